//! The slow way in: takes apart what certificates and people put around a host name.
//!
//! # Invariants
//! Every step notes what it removes in [`Repairs`]; a step that is not sure gives up, and the whole
//! input becomes text.
//!
//! # Limits
//! Inputs over [`INPUT_BYTES_MAX`] are text at once, so the work is bounded.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use crate::identifier::{Identifier, Repairs, TEXT_BYTES_MAX};
use crate::read::settle;
use crate::scan::scan;
use crate::{idn, text};

/// The longest input that is searched for a host. A URL in a common name may be long; a name may not.
const INPUT_BYTES_MAX: usize = 4_096;

/// Reads what is not canonical already.
pub(crate) fn read(raw: &[u8]) -> Identifier<'_> {
    if raw.len() > INPUT_BYTES_MAX {
        return Identifier::Other(text::printable(text::decode_start(raw)));
    }
    let text = text::decode(raw);
    let mended = match &text {
        Cow::Borrowed(text) => mend(text, Repairs::empty()),
        Cow::Owned(text) => mend(text, Repairs::LATIN1).map(Identifier::into_owned),
    };
    mended.unwrap_or_else(|| Identifier::Other(text::printable(text)))
}

fn mend(text: &str, mut repairs: Repairs) -> Option<Identifier<'_>> {
    let text = trim(text, &mut repairs);
    // A backslash is in no name and starts every escape: escaped text must not read as more than text.
    if text
        .chars()
        .any(|c| c.is_control() || c.is_whitespace() || c == '\\')
    {
        return None;
    }
    let text = strip_scheme(text, &mut repairs);
    let text = strip_path(text, &mut repairs)?;
    let text = match text.rsplit_once('@') {
        Some((local, domain)) if !repairs.contains(Repairs::SCHEME) => return email(text, local, domain),
        Some((_, host)) => {
            repairs |= Repairs::USERINFO;
            host
        }
        None => text,
    };
    let identifier = match ipv6(text) {
        Some(address) => Identifier::Ip(IpAddr::V6(address)),
        None => host(strip_port(text, &mut repairs)?, repairs)?,
    };
    let is_cidr = matches!(identifier, Identifier::Ip(_))
        && repairs.contains(Repairs::PATH)
        && !repairs.contains(Repairs::SCHEME);
    (!is_cidr).then_some(identifier)
}

fn trim<'a>(text: &'a str, repairs: &mut Repairs) -> &'a str {
    text.trim_matches(|c: char| {
        *repairs |= match c {
            '\0' => Repairs::NUL,
            c if c.is_whitespace() => Repairs::WHITESPACE,
            _ => return false,
        };
        true
    })
}

fn strip_scheme<'a>(text: &'a str, repairs: &mut Repairs) -> &'a str {
    match text.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => {
            *repairs |= Repairs::SCHEME;
            rest
        }
        _ => text,
    }
}

/// RFC 3986, section 3.1.
fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

/// Removes a path. Without a scheme, `/` is a path only behind a dotted host and without an `@`.
fn strip_path<'a>(text: &'a str, repairs: &mut Repairs) -> Option<&'a str> {
    let has_scheme = repairs.contains(Repairs::SCHEME);
    let Some(end) = text.find(|c| c == '/' || (has_scheme && matches!(c, '?' | '#'))) else {
        return Some(text);
    };
    let host = text.get(..end)?;
    *repairs |= Repairs::PATH;
    (has_scheme || (host.contains('.') && !text.contains('@'))).then_some(host)
}

fn ipv6(text: &str) -> Option<Ipv6Addr> {
    let Some(bracketed) = text.strip_prefix('[') else {
        return text.parse().ok();
    };
    let (address, rest) = bracketed.split_once(']')?;
    let is_port = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    address.parse().ok().filter(|_| is_port)
}

/// Removes a port. `None` if a colon is followed by anything else.
fn strip_port<'a>(text: &'a str, repairs: &mut Repairs) -> Option<&'a str> {
    let Some((host, port)) = text.split_once(':') else {
        return Some(text);
    };
    *repairs |= Repairs::PORT;
    is_port(port).then_some(host)
}

/// RFC 3986 lets a port be empty.
fn is_port(port: &str) -> bool {
    port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit())
}

fn host(text: &str, mut repairs: Repairs) -> Option<Identifier<'_>> {
    let undotted = text.trim_start_matches('.');
    repairs.set(Repairs::LEADING_DOT, undotted.len() < text.len());
    let name = undotted.trim_end_matches('.');
    repairs.set(Repairs::TRAILING_DOT, name.len() < undotted.len());
    let (name, wildcard) = name.strip_prefix("*.").map_or((name, false), |rest| (rest, true));
    repairs.set(Repairs::ULABEL, !name.is_ascii());
    let mut name = idn::to_ascii(name)?;
    if repairs.contains(Repairs::ULABEL) && name.ends_with('.') {
        // One of the other full stops that UTS 46 knows. More than one is an empty label.
        name.to_mut().pop();
        repairs |= Repairs::TRAILING_DOT;
    }
    let kinds = scan(name.as_bytes());
    settle(name, kinds, wildcard, repairs)
}

fn email<'a>(text: &'a str, local: &str, domain: &str) -> Option<Identifier<'a>> {
    let is_plain = !local.is_empty() && !local.contains('@') && !local.chars().any(text::is_hidden);
    let Identifier::Host(domain) = host(domain, Repairs::empty()).filter(|_| is_plain)? else {
        return None;
    };
    if domain.wildcard() || local.len() + 1 + domain.host().len() > TEXT_BYTES_MAX {
        return None;
    }
    let is_canonical = text.get(local.len() + 1..) == Some(domain.host());
    Some(Identifier::Email(match is_canonical {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("{local}@{}", domain.host())),
    }))
}
