//! Paths: segments, `.` and `..`, drive letters.

use super::sets::{class, encode_class_into};
use super::{Scheme, Url};
use crate::rule::{Rule, RuleBits};

/// Classes of a part that was not looked at byte by byte.
pub(super) const UNKNOWN: u8 = class::PERCENT | class::BARE;

/// Reads segments to a `?`, a `#` or the end and appends them; returns what is left.
pub(super) fn segments<'a>(input: &'a [u8], url: &mut Url, fired: &mut RuleBits) -> &'a [u8] {
    if url.scheme != Scheme::File
        && let Some(rest) = clean(input, url)
    {
        return rest;
    }
    url.path_info = UNKNOWN;
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

/// Appends a path in which nothing is to be done, as most are. None if something is.
#[inline]
fn clean<'a>(input: &'a [u8], url: &mut Url) -> Option<&'a [u8]> {
    let (mut seen, mut before) = (0, b'/');
    let mut end = input.len();
    for (index, &byte) in input.iter().enumerate() {
        let class = class::of(byte);
        if class & (class::IN_PATH | class::BACKSLASH) != 0 {
            if !matches!(byte, b'?' | b'#') {
                return None;
            }
            end = index;
            break;
        }
        if class & class::DOT != 0 && before == b'/' {
            return None;
        }
        seen |= class;
        before = byte;
    }
    let (path, rest) = input.split_at(end);
    url.path_info |= seen;
    url.href.push(b'/');
    url.href.extend_from_slice(path);
    Some(rest)
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
            if encode_class_into(segment, class::IN_PATH, &mut url.href) & class::IN_PATH != 0 {
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
