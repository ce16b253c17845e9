//! Text that is no name: decoded, made safe to show, bounded.
//!
//! # Invariants
//! [`printable`] text holds nothing that [`is_hidden`] and is at most [`TEXT_BYTES_MAX`] bytes, so
//! printing it again changes nothing.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::identifier::TEXT_BYTES_MAX;

/// Marks text that was cut.
const CUT_MARK: &str = "…";

/// UTF-8 as it is, anything else as Latin-1: borrowed means that it was UTF-8.
pub(crate) fn decode(raw: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(raw) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(latin1(raw)),
    }
}

/// Decodes enough of `raw` to fill a cut text and to show that it was cut.
pub(crate) fn decode_start(raw: &[u8]) -> Cow<'_, str> {
    let start = raw.trim_ascii_start();
    let start = start.get(..2 * TEXT_BYTES_MAX).unwrap_or(start);
    match std::str::from_utf8(start) {
        Ok(text) => Cow::Borrowed(text),
        // Cut inside a character: the rest of it is behind the cut anyway.
        Err(error) if error.error_len().is_none() => start
            .get(..error.valid_up_to())
            .map_or(Cow::Borrowed(""), String::from_utf8_lossy),
        Err(_) => Cow::Owned(latin1(start)),
    }
}

fn latin1(raw: &[u8]) -> String {
    raw.iter().map(|&byte| char::from(byte)).collect()
}

/// Trims, escapes and cuts `text`.
pub(crate) fn printable(text: Cow<'_, str>) -> Cow<'_, str> {
    let trimmed = text.trim();
    if trimmed.len() <= TEXT_BYTES_MAX && !trimmed.chars().any(is_hidden) {
        return match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
            Cow::Owned(ref text) => Cow::Owned(text.trim().to_owned()),
        };
    }
    Cow::Owned(cut(escape_start(trimmed, TEXT_BYTES_MAX)))
}

/// Control characters, and the characters that show as nothing or turn the text around them.
///
/// What shows text to people escapes these, by [`escape`] or by the means of its own format.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Text with everything that [`is_hidden`] written out: `\xNN` up to U+00FF, else `\u{N}`. A backslash
/// stays as it is, so that escaping again changes nothing.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_hidden) {
        Cow::Owned(escape_start(text, usize::MAX))
    } else {
        Cow::Borrowed(text)
    }
}

/// Escapes no more than is needed to pass `bytes_max`.
fn escape_start(text: &str, bytes_max: usize) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        // Writing to a String cannot fail.
        let _ = match c {
            c if !is_hidden(c) => escaped.write_char(c),
            c if u32::from(c) <= 0xff => write!(escaped, "\\x{:02X}", u32::from(c)),
            c => write!(escaped, "\\u{{{:X}}}", u32::from(c)),
        };
        if escaped.len() > bytes_max {
            break;
        }
    }
    escaped
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        let fits = |end: &usize| end + CUT_MARK.len() <= TEXT_BYTES_MAX;
        let end = text
            .char_indices()
            .map(|(start, _)| start)
            .take_while(fits)
            .last();
        text.truncate(end.unwrap_or_default());
        text.push_str(CUT_MARK);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{TEXT_BYTES_MAX, decode, escape, printable};

    #[track_caller]
    fn check(raw: &[u8], expected: &str) {
        let text = printable(decode(raw));
        assert_eq!(text, expected);
        assert_eq!(printable(text.clone()), text, "printing again changes nothing");
    }

    #[test]
    fn hidden_characters_are_escaped() {
        check(b"Acme Ltd.", "Acme Ltd.");
        check(b" \tAcme\r\n", "Acme");
        check(b"a\0b\x7f\n\x1b[31m", r"a\x00b\x7F\x0A\x1B[31m");
        check(b"caf\xe9 \x85x", r"café \x85x");
        check("a \u{202e}moc.\u{2066}".as_bytes(), r"a \u{202E}moc.\u{2066}");
        check(br"a\x00b", r"a\x00b");
        check(b"", "");
    }

    #[test]
    fn escaped_text_is_not_trimmed_and_not_cut() {
        let long = format!(" {}\u{9b}\u{e0041} ", "x".repeat(2 * TEXT_BYTES_MAX));
        let escaped = escape(&long).into_owned();
        assert!(escaped.starts_with(' ') && escaped.ends_with(r"x\x9B\u{E0041} "));
        assert_eq!(escape(&escaped), escaped, "escaping again changes nothing");
        assert_eq!(escape("bücher.example"), "bücher.example");
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        let fits = "ü".repeat(TEXT_BYTES_MAX / 2);
        check(fits.as_bytes(), &fits);
        check(format!("{fits}x").as_bytes(), &format!("{}…", "ü".repeat(238)));
        // Odd alignment: the cut falls inside a character.
        check(format!("x{fits}").as_bytes(), &format!("x{}…", "ü".repeat(238)));
        // An escape may be cut; it only shows.
        let controls = printable(decode(&[1; 1_000])).into_owned();
        assert!(controls.starts_with(r"\x01") && controls.ends_with('…') && controls.len() <= TEXT_BYTES_MAX);
    }
}
