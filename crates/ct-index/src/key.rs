//! Keys of the names table: every identifier a certificate can carry, in an order that makes
//! "everything under this domain" one contiguous range.
//!
//! # Format
//! A key never holds a zero byte, so `{key}\0{issuance}` orders as the pair does.
//!
//! | space | first byte | rest |
//! |---|---|---|
//! | host name | a byte of the name (above 0x20) | labels reversed: `com.example.www` |
//! | IP address | 0x01 | 8 (IPv4) or 32 (IPv6) lower-case hex digits |
//! | e-mail | 0x02 | domain reversed, `@`, local part in lower case |
//! | other text | 0x03 | the text, reversed by `.` |
//!
//! # Limits
//! A key is at most [`KEY_BYTES_MAX`] bytes; longer text is cut (host names never reach it).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest key in bytes, tag included.
pub const KEY_BYTES_MAX: usize = 1_100;

const TAG_IP: u8 = 1;
const TAG_EMAIL: u8 = 2;
const TAG_TEXT: u8 = 3;
/// Host names sort behind every tag.
const HOSTS_FROM: u8 = 0x21;

/// Something that a certificate names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identifier<'a> {
    /// A canonical host name: lower-case A-labels, no trailing dot, no `*.`.
    Host(&'a str),
    /// An IP address.
    Ip(IpAddr),
    /// An e-mail address, its domain in lower case.
    Email(&'a str),
    /// Text that is no host name (bad wildcards, spaces, URIs).
    Text(&'a str),
}

/// Which kind of identifier a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeySpace {
    /// Host names.
    Host,
    /// IP addresses.
    Ip,
    /// E-mail addresses.
    Email,
    /// Anything else.
    Text,
}

impl Identifier<'_> {
    /// Appends the key of this identifier.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Self::Host(host) => tamis_hostname::reverse_into(host, out),
            Self::Ip(ip) => {
                out.push(TAG_IP);
                match ip {
                    IpAddr::V4(v4) => put_hex(out, &v4.octets()),
                    IpAddr::V6(v6) => put_hex(out, &v6.octets()),
                }
            }
            Self::Email(address) => {
                out.push(TAG_EMAIL);
                let (local, domain) = address.rsplit_once('@').unwrap_or((address, ""));
                tamis_hostname::reverse_into(domain, out);
                out.push(b'@');
                // Nobody tells mailboxes apart by case, so searches must not either.
                out.extend(local.bytes().map(|byte| byte.to_ascii_lowercase()));
            }
            Self::Text(text) => {
                out.push(TAG_TEXT);
                tamis_hostname::reverse_into(text, out);
            }
        }
        sanitise(out, start);
    }
}

/// Keeps the invariant of the table: no zero byte, bounded length, never empty.
fn sanitise(out: &mut Vec<u8>, start: usize) {
    out.truncate(start + KEY_BYTES_MAX);
    if out.len() == start {
        out.push(TAG_TEXT);
    }
    for byte in out.iter_mut().skip(start) {
        if *byte == 0 {
            *byte = b'?';
        }
    }
}

fn put_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            out.push(if nibble < 10 {
                b'0' + nibble
            } else {
                b'a' + nibble - 10
            });
        }
    }
}

/// Which space a key belongs to.
pub fn space_of(key: &[u8]) -> KeySpace {
    match key.first() {
        Some(&TAG_IP) => KeySpace::Ip,
        Some(&TAG_EMAIL) => KeySpace::Email,
        Some(&first) if first >= HOSTS_FROM => KeySpace::Host,
        _ => KeySpace::Text,
    }
}

/// The identifier as people write it.
pub fn display(key: &[u8]) -> String {
    let body = key.get(1..).unwrap_or(&[]);
    match space_of(key) {
        KeySpace::Host => tamis_hostname::unreverse(key),
        KeySpace::Ip => display_ip(body).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned()),
        KeySpace::Email => {
            let at = body.iter().position(|&byte| byte == b'@').unwrap_or(body.len());
            let (domain, local) = body.split_at(at);
            let local = String::from_utf8_lossy(local.get(1..).unwrap_or(&[]));
            format!("{local}@{}", tamis_hostname::unreverse(domain))
        }
        KeySpace::Text => tamis_hostname::unreverse(body),
    }
}

fn display_ip(hex: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(hex).ok()?;
    match hex.len() {
        8 => Some(Ipv4Addr::from(u32::from_str_radix(text, 16).ok()?).to_string()),
        32 => Some(Ipv6Addr::from(u128::from_str_radix(text, 16).ok()?).to_string()),
        _ => None,
    }
}

/// A half-open range of keys: `start <= key < end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// First key that belongs to the range.
    pub start: Vec<u8>,
    /// First key behind the range.
    pub end: Vec<u8>,
}

impl KeyRange {
    /// The one key of `identifier`.
    pub fn exact(identifier: &Identifier<'_>) -> Self {
        let mut start = Vec::new();
        identifier.encode_into(&mut start);
        // Nothing sorts between a key and the same key with the smallest legal byte behind it.
        let mut end = start.clone();
        end.push(1);
        Self { start, end }
    }

    /// Every host name strictly below `host`, label-exact: `[p., p/)`, since `/` follows `.`.
    pub fn below(host: &str) -> Self {
        Self::below_key(Identifier::Host(host))
    }

    /// Texts that are no host names but end in `.host`, such as `*.*.example.com`.
    pub fn texts_below(host: &str) -> Self {
        Self::below_key(Identifier::Text(host))
    }

    fn below_key(identifier: Identifier<'_>) -> Self {
        let mut start = Vec::new();
        identifier.encode_into(&mut start);
        let mut end = start.clone();
        start.push(b'.');
        end.push(b'.' + 1);
        Self { start, end }
    }

    /// True when `key` belongs to the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && key < self.end.as_slice()
    }
}

/// The part of a key that segment filters hold: tag and the first two labels (`com.example`), or
/// `None` when the key (or the start of a range) is too short to decide.
pub(crate) fn filter_part(key: &[u8]) -> Option<&[u8]> {
    let mut dots = 0;
    for (index, &byte) in key.iter().enumerate() {
        if byte == b'@' && key.first() == Some(&TAG_EMAIL) {
            return key.get(..index);
        }
        if byte == b'.' {
            dots += 1;
            if dots == 2 {
                return key.get(..index);
            }
        }
    }
    let two_labels = dots == 1 && key.last() != Some(&b'.');
    (two_labels || key.first() == Some(&TAG_IP)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(identifier: Identifier<'_>, key: &[u8], shown: &str, filter: Option<&[u8]>) {
        let mut out = Vec::new();
        identifier.encode_into(&mut out);
        assert_eq!(out, key);
        assert_eq!(display(&out), shown);
        assert_eq!(filter_part(&out), filter);
        let exact = KeyRange::exact(&identifier);
        assert!(exact.contains(&out));
        out.push(b'!');
        assert!(!exact.contains(&out), "a longer key is another key");
    }

    #[test]
    fn each_space_encodes_and_shows() {
        check(
            Identifier::Host("www.example.com"),
            b"com.example.www",
            "www.example.com",
            Some(b"com.example"),
        );
        check(Identifier::Host("localhost"), b"localhost", "localhost", None);
        check(
            Identifier::Ip("192.0.2.1".parse().unwrap()),
            b"\x01c0000201",
            "192.0.2.1",
            Some(b"\x01c0000201"),
        );
        check(
            Identifier::Ip("2001:db8::1".parse().unwrap()),
            b"\x0120010db8000000000000000000000001",
            "2001:db8::1",
            Some(b"\x0120010db8000000000000000000000001"),
        );
        check(
            Identifier::Email("Al@mail.example.com"),
            b"\x02com.example.mail@al",
            "al@mail.example.com",
            Some(b"\x02com.example"),
        );
        check(
            Identifier::Text("f*.example.com"),
            b"\x03com.example.f*",
            "f*.example.com",
            Some(b"\x03com.example"),
        );
    }

    #[test]
    fn a_sibling_with_a_hyphen_is_not_below() {
        let below = KeyRange::below("imfht.com");
        let key = |host: &str| {
            let mut out = Vec::new();
            Identifier::Host(host).encode_into(&mut out);
            out
        };
        assert!(below.contains(&key("a.imfht.com")));
        assert!(!below.contains(&key("imfht.com")));
        assert!(!below.contains(&key("imfht-x.com")));
        assert!(!below.contains(&key("imfht0.com")));
    }

    #[test]
    fn zero_bytes_and_endless_text_keep_the_table_in_order() {
        let mut out = Vec::new();
        Identifier::Text(&"a\0".repeat(5_000)).encode_into(&mut out);
        assert_eq!(out.len(), KEY_BYTES_MAX);
        assert!(!out.contains(&0));
        out.clear();
        Identifier::Host("").encode_into(&mut out);
        assert!(!out.is_empty());
    }
}
