//! Names in the order of the index: `com.example.www`, and the ranges that a subdomain scan reads.
//!
//! # Invariants
//! Reversing is by label and is its own inverse. Names below `p` are exactly the keys that start with
//! `p.`: `-` (0x2D) sorts before `.` (0x2E), so `com.imfht-x` lies between `com.imfht` and
//! `com.imfht.www` and belongs to neither range.

/// Appends the labels of `host` to `out` in reverse order: `www.example.com` gives `com.example.www`.
pub fn reverse_into(host: &str, out: &mut Vec<u8>) {
    out.reserve(host.len());
    let mut rest = host.as_bytes();
    while let Some((before, label)) =
        memchr::memrchr(b'.', rest).and_then(|dot| rest.get(..dot).zip(rest.get(dot + 1..)))
    {
        out.extend_from_slice(label);
        out.push(b'.');
        rest = before;
    }
    out.extend_from_slice(rest);
}

/// The host of a reversed key: `com.example.www` gives `www.example.com`.
///
/// Bytes that are no UTF-8, which only a damaged key holds, become U+FFFD.
#[must_use]
pub fn unreverse(reversed: &[u8]) -> String {
    let reversed = String::from_utf8_lossy(reversed);
    let mut host = Vec::with_capacity(reversed.len());
    reverse_into(&reversed, &mut host);
    // Labels are cut at dots only, so the text stays UTF-8.
    String::from_utf8(host).unwrap_or_default()
}

/// The keys of a host and of everything below it: exactly `p`, and `[p., p/)`.
///
/// Two ranges, never one walk from the first to the last: siblings such as `p-x` sort between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubdomainRange {
    below_start: Vec<u8>,
    below_end: Vec<u8>,
}

impl SubdomainRange {
    /// The ranges of a canonical `host` (not reversed). An empty host selects nothing but the empty key.
    #[must_use]
    pub fn new(host: &str) -> Self {
        let mut below_start = Vec::with_capacity(host.len() + 1);
        reverse_into(host, &mut below_start);
        let mut below_end = below_start.clone();
        below_start.push(b'.');
        below_end.push(b'/');
        Self {
            below_start,
            below_end,
        }
    }

    /// Whether a reversed name is the host or below it.
    #[must_use]
    pub fn contains(&self, reversed: &[u8]) -> bool {
        reversed == self.exact() || reversed.starts_with(&self.below_start)
    }

    /// The reversed host itself, `p`.
    #[must_use]
    pub fn exact(&self) -> &[u8] {
        self.below_start.split_last().map_or(&[], |(_, exact)| exact)
    }

    /// The first key that can lie below the host, `p.`.
    #[must_use]
    pub fn below_start(&self) -> &[u8] {
        &self.below_start
    }

    /// The first key behind all that lie below the host, `p/`; itself excluded.
    #[must_use]
    pub fn below_end(&self) -> &[u8] {
        &self.below_end
    }
}
