//! Serial numbers: opaque bytes, shown and compared as the signed numbers that they encode.

use std::fmt::Write as _;

/// The serial number in the fewest bytes of two's complement: what to compare and to index.
/// An empty serial number stays empty.
#[must_use]
pub fn canonical(mut raw: &[u8]) -> &[u8] {
    while let [0, 0..=0x7f, ..] | [0xff, 0x80..=0xff, ..] = raw {
        raw = raw.get(1..).unwrap_or_default();
    }
    raw
}

/// The number as lower-case hex without leading zeros, with `-` before a negative one; an empty
/// serial number is `0`.
#[must_use]
pub fn signed_hex(raw: &[u8]) -> String {
    let negative = raw.first().is_some_and(|&first| first >= 0x80);
    let mut magnitude = raw.to_vec();
    if negative {
        let mut carry = true;
        for byte in magnitude.iter_mut().rev() {
            let (sum, overflow) = (!*byte).overflowing_add(u8::from(carry));
            *byte = sum;
            carry = overflow;
        }
    }
    let mut hex = String::with_capacity(magnitude.len() * 2 + 1);
    for byte in &magnitude {
        let _ = write!(hex, "{byte:02x}");
    }
    let digits = hex.trim_start_matches('0');
    match (negative, digits) {
        (_, "") => "0".to_owned(),
        (true, digits) => format!("-{digits}"),
        (false, digits) => digits.to_owned(),
    }
}

/// The canonical bytes of a number as people write it: hex with or without leading zeros, `-`,
/// `0x`, and `:` or spaces between the bytes. `None` if it is something else.
#[must_use]
pub fn parse(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let text = text.strip_prefix("0x").unwrap_or(text);
    let digits: Vec<u32> = text
        .chars()
        .filter(|character| !matches!(character, ':' | ' '))
        .map(|character| character.to_digit(16))
        .collect::<Option<_>>()?;
    if digits.is_empty() {
        return None;
    }
    // A zero byte in front keeps the sign apart from the digits.
    let mut bytes = vec![0u8];
    let odd = digits.len() % 2;
    let mut digits = digits.iter();
    if odd == 1 {
        bytes.push(u8::try_from(*digits.next()?).ok()?);
    }
    while let (Some(high), Some(low)) = (digits.next(), digits.next()) {
        bytes.push(u8::try_from(high << 4 | low).ok()?);
    }
    if negative {
        let mut carry = true;
        for byte in bytes.iter_mut().rev() {
            let (sum, overflow) = (!*byte).overflowing_add(u8::from(carry));
            *byte = sum;
            carry = overflow;
        }
    }
    Some(canonical(&bytes).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_and_parsed() {
        let cases: [(&[u8], &[u8], &str); 8] = [
            (&[0], &[0], "0"),
            (&[0, 0, 5], &[5], "5"),
            (&[0, 0xb9, 0x97], &[0, 0xb9, 0x97], "b997"),
            (
                &[0xa6, 0xf6, 0x38, 0xd2, 0, 0, 0x35, 0x7d],
                &[0xa6, 0xf6, 0x38, 0xd2, 0, 0, 0x35, 0x7d],
                "-5909c72dffffca83",
            ),
            (&[0xff], &[0xff], "-1"),
            (&[0xff, 0xff], &[0xff], "-1"),
            (&[0x80], &[0x80], "-80"),
            (&[0xff, 0x7f], &[0xff, 0x7f], "-81"),
        ];
        for (raw, canonical_bytes, shown) in cases {
            assert_eq!(canonical(raw), canonical_bytes);
            assert_eq!(signed_hex(raw), shown);
            assert_eq!(parse(shown).as_deref(), Some(canonical_bytes), "{shown}");
        }
        assert_eq!(signed_hex(&[]), "0");
        assert_eq!(canonical(&[]), [0u8; 0]);
    }

    #[test]
    fn forms_that_people_paste() {
        assert_eq!(parse("00:B9:97"), Some(vec![0, 0xb9, 0x97]));
        assert_eq!(parse("0x0b997 "), Some(vec![0, 0xb9, 0x97]));
        assert_eq!(parse("example"), None);
        assert_eq!(parse(""), None);
        assert_eq!(parse("é"), None);
    }
}
