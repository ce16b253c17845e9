//! Safe Browsing: the form and the expressions that lists of bad URLs are matched by.
//!
//! <https://developers.google.com/safe-browsing/reference/URLs.and.Hashing>. This form merges on purpose:
//! whoever hides a page behind escapes must not get past the list. So it must never be the key of a set.
//!
//! What a browser can parse is parsed as a browser does, so a `\` is a slash here, too; the rest is cut as
//! the reference cuts it.

use crate::compat::unescape_repeatedly;
use crate::parse::sets::{ByteSet, push_escape};
use crate::parse::{HostKind, Url};

/// Host suffixes beside the host itself.
const SUFFIXES_MAX: usize = 4;
/// Path prefixes beside the path itself.
const PREFIXES_MAX: usize = 4;

static ESCAPED: ByteSet = {
    let mut members = [0; 35];
    let mut index = 0;
    while index < 33 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::indexing_slicing,
            reason = "below 33"
        )]
        {
            members[index] = index as u8;
        }
        index += 1;
    }
    members[33] = b'#';
    members[34] = b'%';
    ByteSet::of(&members, None)
};

/// A URL as Safe Browsing compares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeBrowsing {
    scheme: String,
    host: String,
    is_address: bool,
    path: String,
    query: Option<String>,
}

impl SafeBrowsing {
    /// The form of a URL; none without a host.
    #[must_use]
    pub fn of(input: &[u8]) -> Option<Self> {
        let trimmed: Vec<u8> = input
            .trim_ascii()
            .iter()
            .copied()
            .filter(|byte| !b"\t\r\n".contains(byte))
            .collect();
        let with_scheme = match scheme_end(&trimmed) {
            Some(_) => trimmed,
            None => [b"http://", trimmed.as_slice()].concat(),
        };
        let parsed = Url::parse(&with_scheme).ok();
        let parsed = parsed.filter(|url| {
            matches!(
                url.host_kind(),
                HostKind::Domain | HostKind::Ipv4 | HostKind::Ipv6
            )
        });
        let (scheme, host, path, query) = match &parsed {
            Some(url) => (
                url.scheme().as_bytes(),
                url.host()?.as_bytes(),
                url.path().as_bytes(),
                url.query().map(str::as_bytes),
            ),
            None => cut(&with_scheme)?,
        };
        let (host, is_address) = canonical_host(host);
        if host.is_empty() {
            return None;
        }
        Some(Self {
            scheme: text(&scheme.to_ascii_lowercase()),
            host: text(&host),
            is_address,
            path: text(&canonical_path(&unescape_repeatedly(path))),
            query: query.map(|query| text(&unescape_repeatedly(query))),
        })
    }

    /// The whole form.
    #[must_use]
    pub fn canonical(&self) -> String {
        let query = self
            .query
            .as_ref()
            .map_or_else(String::new, |query| format!("?{query}"));
        format!("{}://{}{}{query}", self.scheme, self.host, self.path)
    }

    /// What is looked up: each suffix of the host with each prefix of the path, at most 30.
    #[must_use]
    pub fn expressions(&self) -> Vec<String> {
        let mut paths = Vec::new();
        if let Some(query) = &self.query {
            paths.push(format!("{}?{query}", self.path));
        }
        paths.push(self.path.clone());
        let slashes = memchr::memchr_iter(b'/', self.path.as_bytes());
        for slash in slashes.take(PREFIXES_MAX) {
            let prefix = self.path.get(..=slash).unwrap_or_default();
            if prefix != self.path {
                paths.push(prefix.to_owned());
            }
        }
        let hosts = self.host_suffixes();
        let pairs = hosts
            .iter()
            .flat_map(|host| paths.iter().map(move |path| format!("{host}{path}")));
        pairs.collect()
    }

    fn host_suffixes(&self) -> Vec<&str> {
        let mut hosts = vec![self.host.as_str()];
        if self.is_address {
            return hosts;
        }
        let dots: Vec<usize> = memchr::memchr_iter(b'.', self.host.as_bytes()).collect();
        // Of the last five labels on, down to two.
        let suffixes = dots.iter().rev().skip(1).take(SUFFIXES_MAX).rev();
        hosts.extend(suffixes.filter_map(|dot| self.host.get(dot + 1..)));
        hosts
    }
}

fn scheme_end(url: &[u8]) -> Option<usize> {
    let colon = url.windows(3).position(|three| three == b"://")?;
    let scheme = url.get(..colon)?;
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    (scheme.first()?.is_ascii_alphabetic() && scheme.iter().all(fits)).then_some(colon)
}

type Parts<'a> = (&'a [u8], &'a [u8], &'a [u8], Option<&'a [u8]>);

/// Scheme, host, path and query of what no browser parses.
fn cut(url: &[u8]) -> Option<Parts<'_>> {
    let colon = scheme_end(url)?;
    let rest = url.get(colon + 3..)?;
    let rest = rest.split(|&byte| byte == b'#').next()?;
    let (before, query) = match memchr::memchr(b'?', rest) {
        Some(at) => (rest.get(..at)?, rest.get(at + 1..)),
        None => (rest, None),
    };
    let (authority, path) = before.split_at(memchr::memchr(b'/', before).unwrap_or(before.len()));
    let at = memchr::memrchr(b'@', authority).map_or(0, |at| at + 1);
    let host = authority.get(at..)?.split(|&byte| byte == b':').next()?;
    Some((url.get(..colon)?, host, path, query))
}

/// The host, and whether it is an address.
fn canonical_host(host: &[u8]) -> (Vec<u8>, bool) {
    let mut host = unescape_repeatedly(host);
    host.make_ascii_lowercase();
    let labels: Vec<&[u8]> = host
        .split(|&byte| byte == b'.')
        .filter(|label| !label.is_empty())
        .collect();
    let dotted = labels.join(&b'.');
    // Escapes may have hidden an address or another alphabet.
    let probe = [b"http://", dotted.as_slice(), b"/"].concat();
    let plain = |byte: &u8| *byte > b' ' && !b"/?#@:\\%".contains(byte);
    if !dotted.starts_with(b"[") && !dotted.iter().all(plain) {
        return (dotted, false);
    }
    match Url::parse(&probe) {
        Ok(url) if url.host_kind() != HostKind::Empty => {
            let is_address = matches!(url.host_kind(), HostKind::Ipv4 | HostKind::Ipv6);
            (url.host().unwrap_or_default().as_bytes().to_vec(), is_address)
        }
        _ => (dotted, false),
    }
}

fn canonical_path(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut directory = true;
    for segment in path.split(|&byte| byte == b'/') {
        directory = matches!(segment, b"" | b"." | b"..");
        match segment {
            b"" | b"." => {}
            b".." => {
                kept.pop();
            }
            segment => kept.push(segment),
        }
    }
    let mut out = Vec::with_capacity(path.len() + 1);
    for segment in &kept {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    if directory || out.is_empty() {
        out.push(b'/');
    }
    out
}

/// Escaped once, so it is ASCII.
fn text(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if byte > 0x7e || ESCAPED.has(byte) {
            push_escape(byte, &mut out);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).unwrap_or_default()
}
