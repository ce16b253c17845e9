//! A walk over DER that never gives up: one element after the other, as far as the bytes go.
//!
//! It takes what BER allows (indefinite and over-long lengths, any tag) and cuts an element at the
//! end of its parent instead of failing, noting each in the [`Deviations`] of the caller.
//!
//! # Limits
//! No recursion. Finding the end of an indefinite length scans forward once per level that the
//! caller enters, and callers enter a fixed number of levels.

use crate::deviation::{Deviation, Deviations};

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OID: u8 = 0x06;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
/// The bit of the tag that says that the content is elements.
pub(crate) const CONSTRUCTED: u8 = 0x20;
pub(crate) const SET: u8 = 0x31;

/// One element: its first identifier byte, its content, and all of its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    pub(crate) raw: &'a [u8],
}

impl<'a> Element<'a> {
    pub(crate) fn children(&self) -> Walk<'a> {
        Walk::new(self.content)
    }
}

/// The elements of one level, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'a> {
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been walked yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next element; `None` at the end, or where not even a tag and a length are left (then
    /// [`Walk::rest`] is not empty).
    #[inline]
    pub(crate) fn next(&mut self, deviations: &mut Deviations) -> Option<Element<'a>> {
        // The shapes of nearly every element: one tag byte, and a length of one, two or three.
        let (tag, header, length) = match *self.rest {
            [tag, length, ..] if length < 0x80 && tag & 0x1f != 0x1f => (tag, 2, usize::from(length)),
            [tag, 0x81, length @ 0x80..=0xff, ..] if tag & 0x1f != 0x1f => (tag, 3, usize::from(length)),
            [tag, 0x82, high @ 1..=0xff, low, ..] if tag & 0x1f != 0x1f => {
                (tag, 4, usize::from(high) << 8 | usize::from(low))
            }
            [] => return None,
            _ => return self.next_odd(deviations),
        };
        let end = header + length;
        let Some((raw, rest)) = self.rest.split_at_checked(end) else {
            return self.next_odd(deviations);
        };
        self.rest = rest;
        Some(Element {
            tag,
            content: raw.get(header..).unwrap_or_default(),
            raw,
        })
    }

    /// The next element if it has this tag; otherwise nothing is consumed.
    #[inline]
    pub(crate) fn next_if(&mut self, tag: u8, deviations: &mut Deviations) -> Option<Element<'a>> {
        if self.rest.first() == Some(&tag) {
            self.next(deviations)
        } else {
            None
        }
    }

    #[cold]
    fn next_odd(&mut self, deviations: &mut Deviations) -> Option<Element<'a>> {
        let all = self.rest;
        let header = Header::read(all)?;
        let body = all.get(header.bytes..).unwrap_or_default();
        deviations.insert_if(header.non_minimal, Deviation::NonMinimalLength);
        let (content, raw_bytes) = match header.length {
            Some(length) => match body.get(..length) {
                Some(content) => (content, header.bytes + length),
                None => {
                    deviations.insert(Deviation::OverrunLength);
                    (body, all.len())
                }
            },
            None => {
                deviations.insert(Deviation::IndefiniteLength);
                match end_of_contents(body) {
                    Some(end) => (body.get(..end).unwrap_or_default(), header.bytes + end + 2),
                    None => {
                        deviations.insert(Deviation::OverrunLength);
                        (body, all.len())
                    }
                }
            }
        };
        let (raw, rest) = all.split_at_checked(raw_bytes)?;
        self.rest = rest;
        Some(Element {
            tag: header.tag,
            content,
            raw,
        })
    }
}

/// The first bytes of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) tag: u8,
    /// Of tag and length together.
    pub(crate) bytes: usize,
    /// `None` when indefinite; `usize::MAX` when larger than what fits.
    pub(crate) length: Option<usize>,
    pub(crate) non_minimal: bool,
}

impl Header {
    /// `None` when the bytes end inside it.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (&tag, mut rest) = bytes.split_first()?;
        if tag & 0x1f == 0x1f {
            // A tag number of several bytes: all but the last have the high bit.
            let last = rest.iter().position(|byte| byte & 0x80 == 0)?;
            rest = rest.get(last + 1..)?;
        }
        let (&first, mut rest) = rest.split_first()?;
        let mut header = Self {
            tag,
            bytes: 0,
            length: Some(usize::from(first)),
            non_minimal: false,
        };
        if first == 0x80 {
            header.length = None;
        } else if first > 0x80 {
            let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
            rest = after;
            let length = digits.iter().fold(0usize, |length, &digit| {
                if length >> (usize::BITS - 8) == 0 {
                    length << 8 | usize::from(digit)
                } else {
                    usize::MAX
                }
            });
            header.length = Some(length);
            header.non_minimal = digits.first() == Some(&0) || length < 0x80;
        }
        header.bytes = bytes.len() - rest.len();
        Some(header)
    }

    /// The bytes of the whole element, where its length is definite and they are there.
    pub(crate) fn element_bytes(bytes: &[u8]) -> Option<usize> {
        let header = Self::read(bytes)?;
        let body = bytes.get(header.bytes..)?;
        match header.length {
            Some(length) if length <= body.len() => Some(header.bytes + length),
            Some(_) => None,
            None => end_of_contents(body).map(|end| header.bytes + end + 2),
        }
    }
}

/// Where the two zero bytes that close an indefinite length start.
fn end_of_contents(body: &[u8]) -> Option<usize> {
    let mut open = 0usize;
    let mut at = 0usize;
    loop {
        let rest = body.get(at..)?;
        if rest.starts_with(&[0, 0]) {
            if open == 0 {
                return Some(at);
            }
            open -= 1;
            at += 2;
            continue;
        }
        let header = Header::read(rest)?;
        at = at.checked_add(header.bytes)?;
        match header.length {
            Some(length) => at = at.checked_add(length)?,
            None => open += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(bytes: &[u8]) -> (Vec<(u8, Vec<u8>)>, Deviations, usize) {
        let mut deviations = Deviations::NONE;
        let mut walk = Walk::new(bytes);
        let mut found = Vec::new();
        while let Some(element) = walk.next(&mut deviations) {
            found.push((element.tag, element.content.to_vec()));
        }
        (found, deviations, walk.rest().len())
    }

    fn names(deviations: Deviations) -> Vec<&'static str> {
        deviations.iter().map(Deviation::as_str).collect()
    }

    #[test]
    fn lengths_of_every_form() {
        let (found, deviations, _) = walk(&[2, 1, 7, 4, 0]);
        assert_eq!(
            (found, deviations),
            (vec![(2, vec![7]), (4, vec![])], Deviations::NONE)
        );
        let (found, deviations, _) = walk(&[2, 0x81, 1, 7, 2, 0x83, 0, 0, 1, 8]);
        assert_eq!(found, [(2, vec![7]), (2, vec![8])]);
        assert_eq!(names(deviations), ["non-minimal-length"]);
        let (found, deviations, _) = walk(&[4, 0x84, 0xff, 0xff, 0xff, 0xff, 1, 2]);
        assert_eq!(found, [(4, vec![1, 2])]);
        assert_eq!(names(deviations), ["overrun-length"]);
    }

    #[test]
    fn indefinite_lengths_nest() {
        let (found, deviations, rest) = walk(&[0x30, 0x80, 0x30, 0x80, 2, 1, 0, 0, 0, 0, 0, 5, 0]);
        assert_eq!(found, [(0x30, vec![0x30, 0x80, 2, 1, 0, 0, 0]), (5, vec![])]);
        assert_eq!(names(deviations), ["indefinite-length"]);
        assert_eq!(rest, 0);
    }

    #[test]
    fn a_long_tag_and_a_cut_header() {
        let (found, _, rest) = walk(&[0x1f, 0x85, 0x01, 1, 9, 0x30, 0x82]);
        assert_eq!(found, [(0x1f, vec![9])]);
        assert_eq!(rest, 2);
    }
}
