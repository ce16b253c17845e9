//! Escapes of a part, made one spelling: case of digits, unreserved letters, stray `%`, bare characters.
//!
//! # Invariants
//! - Each escape is looked at once: what a decoded letter completes is never decoded again.
//! - A second pass over the result changes nothing.

use crate::parse::sets::{ByteSet, escape_at, hex, push_escape};
use crate::rule::{Rule, RuleBits};

/// Nothing but escapes.
static ESCAPES: ByteSet = ByteSet::of(b"%", None);
/// What a browser leaves bare in a path and others escape.
static PATH: ByteSet = ByteSet::of(b"%[]|^'", None);
/// The same of a query.
static QUERY: ByteSet = ByteSet::of(b"%[]|^'`{}\\", None);
/// <https://www.rfc-editor.org/rfc/rfc3986#section-2.3>.
static UNRESERVED: ByteSet = ByteSet::of(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~",
    None,
);

/// Where the bytes stand, which decides what may be done to them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A path of a special scheme.
    Path,
    /// A query of a web scheme.
    Query,
    /// Userinfo, a fragment, or anything of another scheme: class A only.
    Other,
}

/// Appends `input` in one spelling.
#[inline]
pub(super) fn append(input: &[u8], place: Place, rules: RuleBits, out: &mut Vec<u8>, fired: &mut RuleBits) {
    let set = match place {
        Place::Path if rules.has(Rule::BareCharacters) => &PATH,
        Place::Query if rules.has(Rule::BareCharacters) => &QUERY,
        _ => &ESCAPES,
    };
    let mut rest = input;
    // Where in `out` the last `%` stands that starts no escape.
    let mut stray = None;
    while let Some(at) = set.find(rest) {
        let (clean, tail) = rest.split_at(at);
        out.extend_from_slice(clean);
        match (escape_at(tail), tail) {
            (Some(byte), [_, high, low, after @ ..]) => {
                escape([*high, *low], byte, place, rules, stray, out, fired);
                rest = after;
            }
            (_, [b'%', after @ ..]) => {
                if place != Place::Other && rules.has(Rule::StrayPercent) {
                    out.extend_from_slice(b"%25");
                    fired.set(Rule::StrayPercent);
                } else {
                    stray = Some(out.len());
                    out.push(b'%');
                }
                rest = after;
            }
            (_, [bare, after @ ..]) => {
                push_escape(*bare, out);
                fired.set(Rule::BareCharacters);
                rest = after;
            }
            (_, []) => break,
        }
    }
    out.extend_from_slice(rest);
}

#[inline]
fn escape(
    digits: [u8; 2],
    byte: u8,
    place: Place,
    rules: RuleBits,
    stray: Option<usize>,
    out: &mut Vec<u8>,
    fired: &mut RuleBits,
) {
    if UNRESERVED.has(byte) && rules.has(Rule::Unreserved) && !completes(stray, byte, out) {
        out.push(byte);
        fired.set(Rule::Unreserved);
    } else if byte == b' ' && place == Place::Query && rules.has(Rule::Plus) {
        out.push(b'+');
        fired.set(Rule::Plus);
    } else {
        let [high, low] = digits;
        if rules.has(Rule::EscapeCase) {
            if high.is_ascii_lowercase() || low.is_ascii_lowercase() {
                fired.set(Rule::EscapeCase);
            }
            push_escape(byte, out);
        } else {
            out.extend_from_slice(&[b'%', high, low]);
        }
    }
}

/// Whether a decoded letter would make an escape of a `%` that was none: `%4%31` must not become `%41`.
fn completes(stray: Option<usize>, byte: u8, out: &[u8]) -> bool {
    let Some(behind) = stray.and_then(|at| out.get(at + 1..)) else {
        return false;
    };
    hex(byte).is_some()
        && match *behind {
            [] => true,
            [digit] => hex(digit).is_some(),
            _ => false,
        }
}
