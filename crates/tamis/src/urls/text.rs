//! Records as NDJSON or TSV, straight into bytes: this is the inner loop of every `urls` command.
//!
//! # Invariants
//! A record is one line, whatever stands in it, and nothing in it is obeyed by a terminal.

use std::borrow::Cow;
use std::io::Write;

use serde_json::Value;

use super::Format;
use crate::render;

/// Writes one record, field by field.
pub(super) struct Record<'a> {
    format: Format,
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Record<'a> {
    pub(super) fn new(format: Format, out: &'a mut Vec<u8>) -> Self {
        Self {
            format,
            out,
            first: true,
        }
    }

    fn name(&mut self, name: &str) {
        let (open, part) = match self.format {
            Format::Ndjson => ("{", ","),
            Format::Tsv => ("", "\t"),
        };
        let mark = if self.first { open } else { part };
        self.first = false;
        self.out.extend_from_slice(mark.as_bytes());
        if self.format == Format::Ndjson {
            self.out.push(b'"');
            self.out.extend_from_slice(name.as_bytes());
            self.out.extend_from_slice(b"\":");
        }
    }

    /// Text, or null.
    pub(super) fn text(&mut self, name: &str, text: Option<&str>) -> &mut Self {
        self.name(name);
        match (self.format, text) {
            (Format::Ndjson, Some(text)) => json_text(text, self.out),
            (Format::Ndjson, None) => self.out.extend_from_slice(b"null"),
            (Format::Tsv, Some(text)) => self.out.extend_from_slice(render::printable(text).as_bytes()),
            (Format::Tsv, None) => {}
        }
        self
    }

    /// A number, or null.
    pub(super) fn number(&mut self, name: &str, number: Option<u16>) -> &mut Self {
        self.name(name);
        // Writing to memory cannot fail.
        let _ = match (self.format, number) {
            (_, Some(number)) => write!(self.out, "{number}"),
            (Format::Ndjson, None) => write!(self.out, "null"),
            (Format::Tsv, None) => Ok(()),
        };
        self
    }

    /// A list of plain words.
    pub(super) fn words(&mut self, name: &str, words: impl Iterator<Item = &'static str>) -> &mut Self {
        self.name(name);
        let (open, quote, part, close) = match self.format {
            Format::Ndjson => ("[", "\"", ",", "]"),
            Format::Tsv => ("", "", " ", ""),
        };
        self.out.extend_from_slice(open.as_bytes());
        for (index, word) in words.enumerate() {
            for text in [if index > 0 { part } else { "" }, quote, word, quote] {
                self.out.extend_from_slice(text.as_bytes());
            }
        }
        self.out.extend_from_slice(close.as_bytes());
        self
    }

    /// A list of texts.
    pub(super) fn list(&mut self, name: &str, texts: &[String]) -> &mut Self {
        match self.format {
            Format::Ndjson => self.json(name, &Value::from(texts)),
            Format::Tsv => self.text(name, Some(&texts.join(" "))),
        }
    }

    /// Anything; TSV holds it as JSON, too.
    pub(super) fn json(&mut self, name: &str, value: &Value) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(render::json_line(value).as_bytes());
        self
    }

    /// Ends the line.
    pub(super) fn end(&mut self) {
        if self.format == Format::Ndjson {
            self.out.push(b'}');
        }
        self.out.push(b'\n');
    }
}

fn json_text(text: &str, out: &mut Vec<u8>) {
    let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !b"\"\\".contains(byte);
    if text.as_bytes().iter().all(plain) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(render::json_line(&Value::from(text)).as_bytes());
    }
}

/// A line as text. Bytes that are no UTF-8 are written as the escapes that they mean in a URL.
pub(super) fn shown(line: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(line) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(line.len() + 16);
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    Cow::Owned(text)
}
