//! Paths: segments, `.` and `..`, drive letters.

use super::sets::{self, PATH};
use super::{Scheme, Url};
use crate::rule::{Rule, RuleBits};

/// Reads segments to a `?`, a `#` or the end and appends them; returns what is left.
pub(super) fn segments<'a>(input: &'a [u8], url: &mut Url, fired: &mut RuleBits) -> &'a [u8] {
    let special = url.scheme.is_special();
    let mut rest = input;
    loop {
        let end = rest
            .iter()
            .position(|&byte| matches!(byte, b'/' | b'?' | b'#') || byte == b'\\' && special)
            .unwrap_or(rest.len());
        let (segment, tail) = rest.split_at(end);
        let ends = match tail.first() {
            Some(b'/') => false,
            Some(b'\\') => {
                fired.set(Rule::Backslash);
                false
            }
            _ => true,
        };
        match dots(segment) {
            0 => push(segment, url, fired),
            count => {
                fired.set(Rule::DotSegments);
                if count == 2 {
                    shorten(url);
                }
                if ends {
                    url.href.push(b'/');
                }
            }
        }
        if ends {
            return tail;
        }
        rest = tail.get(1..).unwrap_or_default();
    }
}

fn push(segment: &[u8], url: &mut Url, fired: &mut RuleBits) {
    let first = url.href.len() == url.path_start;
    url.href.push(b'/');
    match *segment {
        [letter, b'|'] if first && url.scheme == Scheme::File && letter.is_ascii_alphabetic() => {
            url.href.extend_from_slice(&[letter, b':']);
            fired.set(Rule::PercentEncode);
        }
        _ => {
            if sets::encode_into(segment, &PATH, &mut url.href) {
                fired.set(Rule::PercentEncode);
            }
        }
    }
}

/// How many dots a segment stands for, escapes counted as dots: 1, 2, or 0 for any other segment.
#[inline]
fn dots(segment: &[u8]) -> u8 {
    if segment.len() > 6 || !matches!(segment.first(), Some(b'.' | b'%')) {
        return 0;
    }
    let (mut rest, mut count) = (segment, 0);
    while !rest.is_empty() {
        rest = match *rest {
            [b'.', ref rest @ ..] => rest,
            [b'%', b'2', b'e' | b'E', ref rest @ ..] => rest,
            _ => return 0,
        };
        count += 1;
    }
    if count <= 2 { count } else { 0 }
}

/// Takes the last segment away; a file's drive letter stays.
pub(super) fn shorten(url: &mut Url) {
    let path = url.href.get(url.path_start..).unwrap_or_default();
    if url.scheme == Scheme::File && matches!(path, [b'/', letter, b':'] if letter.is_ascii_alphabetic()) {
        return;
    }
    let kept = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    url.href.truncate(url.path_start + kept);
}

/// Whether a path begins with a drive letter (`c:` or `c|`) that nothing follows but an end of segment.
pub(super) fn starts_with_drive(input: &[u8]) -> bool {
    is_drive(input.get(..2).unwrap_or_default())
        && matches!(input.get(2), None | Some(b'/' | b'\\' | b'?' | b'#'))
}

pub(super) fn is_drive(segment: &[u8]) -> bool {
    matches!(segment, [letter, b':' | b'|'] if letter.is_ascii_alphabetic())
}
