//! Frames JSON without building it: objects with `leaf_input` wherever they stand, `chain` and
//! `certificates`.
//!
//! The shape in which logs answer, `{"leaf_input":"…","extra_data":"…"}`, is taken in one stride from
//! quote to quote; everything else goes token by token. Neither judges what it passes over, so a body
//! that is cut off yields all that is complete, and one bad line of many costs itself.
//!
//! # Limits
//! [`DEPTH_MAX`] open objects and arrays.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memmem};

use super::decode::{Form, RawEntry};
use super::{Framed, Kind};
use crate::error::Reason;

/// Of objects and arrays in each other; get-entries needs three.
const DEPTH_MAX: usize = 64;

/// What JSON with entries or certificates this is, if it is.
pub(super) fn kind(bytes: &[u8]) -> Option<Kind> {
    let has = |key: &[u8]| memmem::find(bytes, key).is_some();
    if has(b"\"leaf_input\"") || has(b"\"entries\"") {
        Some(Kind::Entries)
    } else if has(b"\"chain\"") {
        Some(Kind::Chain)
    } else if has(b"\"certificates\"") {
        Some(Kind::Roots)
    } else {
        None
    }
}

/// The bytes that the text of a string stands for; `None` where its escapes are none.
pub(super) fn bytes(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    if memchr(b'\\', text).is_none() {
        return Some(Cow::Borrowed(text));
    }
    let quoted = [b"\"", text, b"\""].concat();
    let text: String = serde_json::from_slice(&quoted).ok()?;
    Some(Cow::Owned(text.into_bytes()))
}

/// The same as text.
pub(super) fn text(text: &[u8]) -> Option<Cow<'_, str>> {
    match bytes(text)? {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

/// The strings of an array, as their texts.
#[derive(Clone, Debug)]
pub(super) struct Strings<'a> {
    rest: &'a [u8],
}

impl<'a> Strings<'a> {
    pub(super) fn new(array: &'a [u8]) -> Self {
        Self { rest: array }
    }
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let start = memchr(b'"', self.rest)? + 1;
        let rest = self.rest.get(start..)?;
        let Closed::At(end) = closing_quote(rest) else {
            return None;
        };
        self.rest = rest.get(end + 1..)?;
        rest.get(..end)
    }
}

enum Closed {
    At(usize),
    /// A line ends inside the string.
    LineEnd(usize),
    Never,
}

/// Finds the quote that closes a string which starts before `rest`.
fn closing_quote(rest: &[u8]) -> Closed {
    let mut at = 0;
    loop {
        let Some(found) = rest.get(at..).and_then(|rest| memchr2(b'"', b'\n', rest)) else {
            return Closed::Never;
        };
        let end = at + found;
        if rest.get(end) == Some(&b'\n') {
            return Closed::LineEnd(end);
        }
        let before = rest.get(..end).unwrap_or_default();
        let backslashes = before.iter().rev().take_while(|&&byte| byte == b'\\').count();
        if backslashes % 2 == 0 {
            return Closed::At(end);
        }
        at = end + 1;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Key {
    LeafInput,
    ExtraData,
    Chain,
    Certificates,
    Entries,
    Index,
    LogUrl,
    #[default]
    Other,
}

impl Key {
    fn of(text: &[u8]) -> Self {
        match text {
            b"leaf_input" => Self::LeafInput,
            b"extra_data" => Self::ExtraData,
            b"chain" => Self::Chain,
            b"certificates" => Self::Certificates,
            b"entries" => Self::Entries,
            b"cert_index" | b"leaf_index" | b"log_index" | b"index" => Self::Index,
            b"log_url" => Self::LogUrl,
            _ => Self::Other,
        }
    }
}

/// One open object or array.
#[derive(Clone, Copy, Debug, Default)]
struct Open<'a> {
    is_object: bool,
    start: usize,
    /// Of an object: the key whose value is next. Of an array: the key it is the value of.
    key: Key,
    /// Whether a string would be a value.
    after_colon: bool,
    leaf_input: Option<&'a [u8]>,
    extra_data: Option<&'a [u8]>,
    index: Option<u64>,
    log_url: &'a [u8],
}

impl Open<'_> {
    /// The array that is the value of `entries`.
    fn is_entries(&self) -> bool {
        !self.is_object && self.key == Key::Entries
    }
}

#[derive(Debug)]
pub(super) struct Framer<'a> {
    all: &'a [u8],
    at: usize,
    open: Vec<Open<'a>>,
}

impl<'a> Framer<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let at = bytes.len() - super::trimmed(bytes).len();
        Self {
            all: bytes,
            at,
            open: Vec::new(),
        }
    }

    fn rest(&self) -> &'a [u8] {
        self.all.get(self.at..).unwrap_or_default()
    }

    pub(super) fn next(&mut self) -> Option<Framed<'a>> {
        loop {
            let rest = self.rest();
            let Some(&byte) = rest.first() else {
                return self.end();
            };
            let framed = match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b',' => {
                    self.at += 1;
                    None
                }
                b':' => {
                    self.at += 1;
                    if let Some(open) = self.open.last_mut() {
                        open.after_colon = true;
                    }
                    None
                }
                b'{' => self.open_object(rest),
                b'[' => self.open_array(rest),
                b'}' | b']' => self.close(byte == b'}'),
                b'"' => self.string(rest),
                _ => self.literal(rest),
            };
            if framed.is_some() {
                return framed;
            }
        }
    }

    /// The input is over; what is still open was cut off.
    fn end(&mut self) -> Option<Framed<'a>> {
        let deepest = self
            .open
            .iter()
            .rev()
            .find(|open| open.is_object)
            .or(self.open.first())?;
        let offset = deepest.start;
        self.open.clear();
        Some(Err((
            offset,
            Reason::CutOff {
                field: "a JSON object",
            },
        )))
    }

    /// True inside an element of `entries`: what lies deeper there is no entry of its own.
    fn is_inside_entry(&self) -> bool {
        let array = self.open.iter().rposition(Open::is_entries);
        array.is_some_and(|array| array + 1 < self.open.len())
    }

    /// An element of `entries` that is none still stands for a leaf: those behind it keep their index.
    fn no_entry(&self, offset: usize) -> Option<Framed<'a>> {
        let is_element = self.open.last().is_some_and(Open::is_entries);
        is_element.then_some(Err((offset, Reason::Missing { field: "leaf_input" })))
    }

    fn open_object(&mut self, rest: &'a [u8]) -> Option<Framed<'a>> {
        if !self.is_inside_entry()
            && let Some((leaf_input, extra_data, bytes)) = stride(rest)
        {
            let entry = RawEntry::new(
                self.at,
                Form::GetEntries {
                    leaf_input,
                    extra_data,
                },
            );
            self.at += bytes;
            self.value_done();
            return Some(Ok(entry));
        }
        self.push(Open {
            is_object: true,
            start: self.at,
            ..Open::default()
        })
    }

    fn open_array(&mut self, rest: &'a [u8]) -> Option<Framed<'a>> {
        let key = self
            .open
            .last()
            .filter(|open| open.is_object)
            .map_or(Key::Other, |open| open.key);
        if key == Key::Chain
            && let Some(bytes) = memchr(b']', rest)
            && let Some(array) = rest.get(1..bytes)
        {
            let offset = self.open.last().map_or(self.at, |open| open.start);
            self.at += bytes + 1;
            self.value_done();
            return Some(Ok(RawEntry::new(offset, Form::Chain(array))));
        }
        self.push(Open {
            start: self.at,
            key,
            ..Open::default()
        })
    }

    fn push(&mut self, open: Open<'a>) -> Option<Framed<'a>> {
        if self.open.len() >= DEPTH_MAX {
            let offset = self.at;
            self.at = self.all.len();
            self.open.clear();
            return Some(Err((offset, Reason::TooDeep { limit: DEPTH_MAX })));
        }
        self.at += 1;
        self.open.push(open);
        None
    }

    fn close(&mut self, is_object: bool) -> Option<Framed<'a>> {
        self.at += 1;
        let at = self.open.iter().rposition(|open| open.is_object == is_object)?;
        let open = self.open.drain(at..).next()?;
        self.value_done();
        match (open.leaf_input, open.extra_data) {
            _ if self.is_inside_entry() => None,
            (Some(leaf_input), extra_data) => {
                let form = Form::GetEntries {
                    leaf_input,
                    extra_data: extra_data.unwrap_or_default(),
                };
                Some(Ok(
                    RawEntry::new(open.start, form).in_log(open.index, open.log_url)
                ))
            }
            (None, Some(_)) => Some(Err((open.start, Reason::Missing { field: "leaf_input" }))),
            (None, None) => self.no_entry(open.start),
        }
    }

    fn string(&mut self, rest: &'a [u8]) -> Option<Framed<'a>> {
        let inside = rest.get(1..).unwrap_or_default();
        let end = match closing_quote(inside) {
            Closed::At(end) => end,
            Closed::LineEnd(end) => return self.broken_line(end + 1),
            Closed::Never => {
                self.at = self.all.len();
                return self.end();
            }
        };
        let text = inside.get(..end).unwrap_or_default();
        let offset = self.at;
        self.at += end + 2;
        let open = self.open.last_mut()?;
        if !open.is_object {
            if open.key == Key::Certificates {
                return Some(Ok(RawEntry::new(offset, Form::Root(text))));
            }
            return self.no_entry(offset);
        }
        if !open.after_colon {
            open.key = bytes(text).map_or(Key::Other, |text| Key::of(&text));
            return None;
        }
        match open.key {
            Key::LeafInput => open.leaf_input = Some(text),
            Key::ExtraData => open.extra_data = Some(text),
            Key::LogUrl => open.log_url = text,
            Key::Index => open.index = number(text),
            Key::Chain | Key::Certificates | Key::Entries | Key::Other => {}
        }
        self.value_done();
        None
    }

    /// A number, `true`, `false` or `null`; anything else is an error up to where JSON may go on.
    fn literal(&mut self, rest: &'a [u8]) -> Option<Framed<'a>> {
        let bytes = rest
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(byte))
            .count();
        let token = rest.get(..bytes).unwrap_or_default();
        let is_json = matches!(token, b"true" | b"false" | b"null" | [b'0'..=b'9' | b'-', ..]);
        if !is_json {
            let offset = self.at;
            self.open.clear();
            self.at += memchr2(b'{', b'\n', rest).unwrap_or(rest.len());
            return Some(Err((offset, Reason::Unexpected { expected: "JSON" })));
        }
        let offset = self.at;
        self.at += bytes;
        if let Some(open) = self.open.last_mut().filter(|open| open.key == Key::Index) {
            open.index = number(token);
        }
        self.value_done();
        self.no_entry(offset)
    }

    fn value_done(&mut self) {
        if let Some(open) = self.open.last_mut().filter(|open| open.is_object) {
            open.after_colon = false;
            open.key = Key::Other;
        }
    }

    /// A string that its line cuts off: one bad line among good ones.
    fn broken_line(&mut self, bytes: usize) -> Option<Framed<'a>> {
        let offset = self.open.last().map_or(self.at, |open| open.start);
        self.open.clear();
        self.at += bytes;
        Some(Err((
            offset,
            Reason::CutOff {
                field: "a JSON string",
            },
        )))
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Both texts and the length of an object of the shape that logs write; `None` for any other.
fn stride(rest: &[u8]) -> Option<(&[u8], &[u8], usize)> {
    let mut at = 1;
    let leaf_input = member(rest, &mut at, b"\"leaf_input\"")?;
    punctuation(rest, &mut at, b',')?;
    let extra_data = member(rest, &mut at, b"\"extra_data\"")?;
    punctuation(rest, &mut at, b'}')?;
    Some((leaf_input, extra_data, at))
}

fn member<'a>(all: &'a [u8], at: &mut usize, key: &[u8]) -> Option<&'a [u8]> {
    *at += space(all, *at);
    all.get(*at..)?.starts_with(key).then_some(())?;
    *at += key.len();
    punctuation(all, at, b':')?;
    punctuation(all, at, b'"')?;
    let rest = all.get(*at..)?;
    // Base64 holds neither quotes nor line ends, so no escape can hide the closing quote; the walk by
    // token takes over for what is no base64.
    let bytes = memchr2(b'"', b'\n', rest)?;
    let text = rest.get(..bytes)?;
    if rest.get(bytes) != Some(&b'"') || text.last() == Some(&b'\\') {
        return None;
    }
    *at += bytes + 1;
    Some(text)
}

fn punctuation(all: &[u8], at: &mut usize, byte: u8) -> Option<()> {
    *at += space(all, *at);
    (all.get(*at) == Some(&byte)).then(|| *at += 1)
}

fn space(all: &[u8], at: usize) -> usize {
    let rest = all.get(at..).unwrap_or_default();
    rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}
