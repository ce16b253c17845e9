//! What the Python tools share: decoding until nothing changes, quoting, and IDNA 2003.

use crate::parse::sets::{ByteSet, escape_at, push_escape};

/// Bytes that Python's `quote` never escapes.
pub(super) const UNRESERVED: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

/// Decodes escapes until none is left, in one pass: what a decoded byte completes is decoded at once, and
/// since escapes never overlap the order makes no difference.
pub(crate) fn unescape_repeatedly(bytes: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        out.push(byte);
        while let Some(start) = out.len().checked_sub(3)
            && let Some(decoded) = escape_at(out.get(start..).unwrap_or_default())
        {
            out.truncate(start);
            out.push(decoded);
        }
    }
    out
}

/// Appends `bytes` with everything escaped that is not in `safe`.
pub(super) fn quote_into(bytes: &[u8], safe: &ByteSet, out: &mut Vec<u8>) {
    for &byte in bytes {
        if safe.has(byte) {
            out.push(byte);
        } else {
            push_escape(byte, out);
        }
    }
}

/// A host under IDNA 2003, where `ß` is `ss` and joiners vanish. None where Python's codec fails.
pub(super) fn idna_2003(host: &str) -> Option<String> {
    let mut mapped = String::with_capacity(host.len());
    for c in host.chars() {
        match c {
            'ß' | 'ẞ' => mapped.push_str("ss"),
            'ς' => mapped.push('σ'),
            '\u{200c}' | '\u{200d}' => {}
            '。' | '．' | '｡' => mapped.push('.'),
            _ => mapped.push(c),
        }
    }
    let ascii = idna::uts46::Uts46::new()
        .to_ascii(
            mapped.as_bytes(),
            idna::AsciiDenyList::EMPTY,
            idna::uts46::Hyphens::Allow,
            idna::uts46::DnsLength::Ignore,
        )
        .ok()?;
    let labels = ascii.strip_suffix('.').unwrap_or(&ascii);
    let fits = labels.split('.').all(|label| (1..=63).contains(&label.len()));
    fits.then(|| ascii.into_owned())
}
