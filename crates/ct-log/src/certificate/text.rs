//! The character strings of ASN.1, decoded to text whatever they hold.

use std::borrow::Cow;

use crate::der;
use crate::deviation::{Deviation, Deviations};

const UTF8: u8 = 0x0c;
const BMP: u8 = 0x1e;
const TELETEX: u8 = 0x14;
const UNIVERSAL: u8 = 0x1c;

/// Whether the tag is that of a string whose bytes are a name: text in one byte a character, or octets.
pub(crate) fn is_string(tag: u8) -> bool {
    const NUMERIC: u8 = 0x12;
    const PRINTABLE: u8 = 0x13;
    const IA5: u8 = 0x16;
    const VISIBLE: u8 = 0x1a;
    const GENERAL: u8 = 0x1b;
    matches!(
        tag,
        der::OCTET_STRING | UTF8 | NUMERIC | PRINTABLE | TELETEX | IA5 | VISIBLE | GENERAL
    )
}

/// The text of a string of this tag. What is not in the character set that the tag declares is read
/// as UTF-8 if it is that, else as Latin-1, and noted.
pub(crate) fn decode<'a>(tag: u8, content: &'a [u8], deviations: &mut Deviations) -> Cow<'a, str> {
    match tag {
        BMP => wide::<2>(content, deviations),
        UNIVERSAL => wide::<4>(content, deviations),
        _ if content.is_ascii() => utf8_or_latin1(content),
        UTF8 | TELETEX => {
            // Teletex means Latin-1 in practice; what is valid UTF-8 by chance is so rare that it
            // is taken for text of a CA that mixed up the tags.
            deviations.insert_if(
                tag == UTF8 && std::str::from_utf8(content).is_err(),
                Deviation::TextMisencoded,
            );
            utf8_or_latin1(content)
        }
        _ => {
            deviations.insert(Deviation::TextMisencoded);
            utf8_or_latin1(content)
        }
    }
}

/// UTF-8 where valid, else each byte one character.
pub(crate) fn utf8_or_latin1(content: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(content) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(content.iter().map(|&byte| char::from(byte)).collect()),
    }
}

/// Characters of `WIDTH` bytes each, big-endian; surrogates pair up as in UTF-16.
fn wide<'a, const WIDTH: usize>(content: &'a [u8], deviations: &mut Deviations) -> Cow<'a, str> {
    let mut damaged = !content.len().is_multiple_of(WIDTH);
    let units = content.chunks_exact(WIDTH).map(|unit| {
        unit.iter()
            .fold(0u32, |value, &byte| value << 8 | u32::from(byte))
    });
    let text: String = if WIDTH == 2 {
        let units = units.map(|unit| u16::try_from(unit).unwrap_or(u16::MAX));
        char::decode_utf16(units)
            .map(|character| character.unwrap_or_else(|_| mark(&mut damaged)))
            .collect()
    } else {
        units
            .map(|unit| char::from_u32(unit).unwrap_or_else(|| mark(&mut damaged)))
            .collect()
    };
    deviations.insert_if(damaged, Deviation::TextMisencoded);
    Cow::Owned(text)
}

fn mark(damaged: &mut bool) -> char {
    *damaged = true;
    char::REPLACEMENT_CHARACTER
}

/// The longest start of `text` that is at most `bytes_max` long, and whether that cut it.
pub(crate) fn cut(text: &str, bytes_max: usize) -> (&str, bool) {
    if text.len() <= bytes_max {
        return (text, false);
    }
    let end = (0..=bytes_max)
        .rev()
        .find(|&end| text.is_char_boundary(end))
        .unwrap_or(0);
    (text.get(..end).unwrap_or_default(), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_set() {
        let cases: [(u8, &[u8], &str, bool); 9] = [
            (UTF8, "ñ".as_bytes(), "ñ", false),
            (UTF8, b"\xf1", "ñ", true),
            (TELETEX, b"\xf1", "ñ", false),
            (0x13, b"a.b", "a.b", false),
            (0x13, b"\xe9", "é", true),
            (BMP, b"\0a\x20\xac", "a€", false),
            (BMP, b"\xd8\x00\0a", "\u{fffd}a", true),
            (UNIVERSAL, b"\0\0\0a\0\x01\xf6\0", "a😀", false),
            (UNIVERSAL, b"\0\0\0a\0", "a", true),
        ];
        for (tag, content, expected, misencoded) in cases {
            let mut deviations = Deviations::NONE;
            assert_eq!(decode(tag, content, &mut deviations), expected);
            assert_eq!(
                deviations.contains(Deviation::TextMisencoded),
                misencoded,
                "{expected}"
            );
        }
    }

    #[test]
    fn cut_keeps_characters_whole() {
        assert_eq!(cut("añb", 2), ("a", true));
        assert_eq!(cut("añb", 4), ("añb", false));
    }
}
