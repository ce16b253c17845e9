//! The way in: bytes to an [`Identifier`], quick for the clean names that nearly all are.
//!
//! # Invariants
//! [`settle`] is the only place that decides whether canonical text is a host, so the quick way and the
//! mending way (`repair`) cannot differ.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use crate::identifier::{HOST_BYTES_MAX, HostName, Identifier, Repairs};
use crate::scan::{Kinds, scan};
use crate::{idn, repair};

const LABEL_BYTES_MAX_DNS: usize = 63;
const NAME_BYTES_MAX_DNS: usize = 253;

/// Reads one dNSName, common name or search term; every input is one of the four identifiers.
///
/// # Policies
/// - `*.` before a host makes a wildcard. A `*` anywhere else (`*`, `*.*.example.com`,
///   `f*.example.com`) makes the name text.
/// - White space and NULs at the ends are removed and noted. Inside they make the whole name text:
///   `www.example.com\0.evil.com` is neither cut nor hidden.
/// - A backslash makes a name text, as it starts an escape in [`Identifier::Other`].
/// - The host of a URL is taken out of it, each removed part noted. Without a scheme only a path behind
///   a dotted host counts as one, so that `a/b` stays the text it is.
/// - A single label is a host; whether a bare common name counts as one is up to the caller.
/// - A last label of digits alone is an IPv4 address or text, never a host: `256.1.1.1`, `1.2.3`.
///   `0x7f.1` and its kin are hosts: resolvers of certificates' names know no hexadecimal.
/// - Bytes outside `a-z A-Z 0-9 - _ .` become A-labels by UTS 46 (non-transitional; hyphens anywhere,
///   any length) where that works label by label; what does not is text.
/// - Length alone does not make a name text below [`HOST_BYTES_MAX`].
///
/// Costs tens of nanoseconds and no allocation for a name that is canonical already.
#[must_use]
pub fn read(raw: &[u8]) -> Identifier<'_> {
    let (name, wildcard) = raw.strip_prefix(b"*.").map_or((raw, false), |rest| (rest, true));
    let kinds = scan(name);
    if kinds.is_canonical()
        && let Ok(name) = std::str::from_utf8(name)
        && let Some(identifier) = settle(Cow::Borrowed(name), kinds, wildcard, Repairs::empty())
    {
        return identifier;
    }
    repair::read(raw)
}

/// Decides about text whose `kinds` are known; `None` if it is neither a host nor an address.
#[inline]
pub(crate) fn settle(
    name: Cow<'_, str>,
    kinds: Kinds,
    wildcard: bool,
    mut repairs: Repairs,
) -> Option<Identifier<'_>> {
    if !kinds.is_canonical() || name.len() > HOST_BYTES_MAX {
        return None;
    }
    if ends_in_number(&name) {
        let address: Ipv4Addr = name.parse().ok()?;
        return (!wildcard).then_some(Identifier::Ip(IpAddr::V4(address)));
    }
    repairs.set(Repairs::UNDERSCORE, kinds.has_underscore());
    if name.len() > LABEL_BYTES_MAX_DNS {
        repairs |= lengths(&name);
    }
    if kinds.has_hyphen_pair() && name.split('.').any(idn::is_invalid_a_label) {
        repairs |= Repairs::PUNYCODE_INVALID;
    }
    Some(Identifier::Host(HostName::new(name, wildcard, repairs)))
}

/// Whether the last label holds digits alone.
fn ends_in_number(name: &str) -> bool {
    name.bytes().next_back().is_some_and(|last| last.is_ascii_digit())
        && name
            .bytes()
            .rev()
            .take_while(|&byte| byte != b'.')
            .all(|byte| byte.is_ascii_digit())
}

fn lengths(name: &str) -> Repairs {
    let mut repairs = Repairs::empty();
    repairs.set(Repairs::LONG_NAME, name.len() > NAME_BYTES_MAX_DNS);
    repairs.set(
        Repairs::LONG_LABEL,
        name.split('.').any(|label| label.len() > LABEL_BYTES_MAX_DNS),
    );
    repairs
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
