//! Distinguished names: their attributes one by one, and their display in the manner of RFC 4514.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::text;
use crate::der::{self, Element, Walk};
use crate::deviation::Deviations;

pub(crate) const COMMON_NAME: &[u8] = &[0x55, 4, 3];
pub(crate) const ORGANISATION: &[u8] = &[0x55, 4, 10];
pub(crate) const EMAIL_ADDRESS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1];

/// Short names as RFC 4514 lists them; every other attribute shows its dotted number.
const SHORT_NAMES: [(&[u8], &str); 9] = [
    (COMMON_NAME, "CN"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (ORGANISATION, "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 9], "STREET"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
];

/// Calls `visit(type, value)` for each attribute, in the order of the bytes. Returns whether
/// everything had the shape of a name.
pub(crate) fn each_attribute<'a>(
    content: &'a [u8],
    deviations: &mut Deviations,
    mut visit: impl FnMut(&'a [u8], Element<'a>, &mut Deviations),
) -> bool {
    let mut clean = true;
    let mut sets = Walk::new(content);
    while let Some(set) = sets.next(deviations) {
        clean &= set.tag == der::SET;
        let mut attributes = set.children();
        while let Some(attribute) = attributes.next(deviations) {
            let mut parts = attribute.children();
            match (parts.next(deviations), parts.next(deviations)) {
                (Some(kind), Some(value)) => {
                    clean &= kind.tag == der::OID;
                    visit(kind.content, value, deviations);
                }
                _ => clean = false,
            }
        }
        clean &= attributes.rest().is_empty();
    }
    clean && sets.rest().is_empty()
}

/// The display of a name given as its whole DER: last attribute first, as in
/// `CN=WR1,O=Google Trust Services,C=US`. What is no name gives the empty string.
#[must_use]
pub fn display(name: &[u8]) -> String {
    let mut deviations = Deviations::NONE;
    let mut parts: Vec<String> = Vec::new();
    let mut sets = Walk::new(content_of(name));
    while let Some(set) = sets.next(&mut deviations) {
        let mut part = String::new();
        each_attribute(set.raw, &mut deviations, |kind, value, deviations| {
            if !part.is_empty() {
                part.push('+');
            }
            push_attribute(&mut part, kind, value, deviations);
        });
        parts.push(part);
    }
    parts.reverse();
    parts.join(",")
}

/// The first organisation in a name given as its whole DER.
#[must_use]
pub fn organisation(name: &[u8]) -> Option<Cow<'_, str>> {
    let mut found = None;
    let content = content_of(name);
    each_attribute(content, &mut Deviations::default(), |kind, value, deviations| {
        if kind == ORGANISATION && found.is_none() {
            found = Some(text::decode(value.tag, value.content, deviations));
        }
    });
    found
}

fn content_of(name: &[u8]) -> &[u8] {
    Walk::new(name)
        .next(&mut Deviations::default())
        .map_or(&[][..], |element| element.content)
}

fn push_attribute(into: &mut String, kind: &[u8], value: Element<'_>, deviations: &mut Deviations) {
    match SHORT_NAMES.iter().find(|(oid, _)| *oid == kind) {
        Some((_, short)) => into.push_str(short),
        None => push_dotted(into, kind),
    }
    into.push('=');
    if value.tag == der::BIT_STRING {
        into.push('#');
        for byte in value.content.get(1..).unwrap_or_default() {
            let _ = write!(into, "{byte:02x}");
        }
        return;
    }
    push_escaped(into, &text::decode(value.tag, value.content, deviations));
}

fn push_escaped(into: &mut String, value: &str) {
    let last = value.chars().count().saturating_sub(1);
    for (at, character) in value.chars().enumerate() {
        match character {
            '\\' | '"' | '+' | ',' | ';' | '<' | '>' => into.push('\\'),
            '#' | ' ' if at == 0 => into.push('\\'),
            ' ' if at == last => into.push('\\'),
            '\0' => {
                into.push_str("\\00");
                continue;
            }
            _ => {}
        }
        into.push(character);
    }
}

fn push_dotted(into: &mut String, oid: &[u8]) {
    let mut arc = 0u64;
    let mut first = true;
    for &byte in oid {
        arc = arc.saturating_mul(128).saturating_add(u64::from(byte & 0x7f));
        if byte & 0x80 != 0 {
            continue;
        }
        if first {
            let top = (arc / 40).min(2);
            let _ = write!(into, "{top}.{}", arc - top * 40);
            first = false;
        } else {
            let _ = write!(into, ".{arc}");
        }
        arc = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        let mut shown = String::new();
        push_escaped(&mut shown, " #a, \"b\"\0+c ");
        assert_eq!(shown, "\\ #a\\, \\\"b\\\"\\00\\+c\\ ");
    }

    #[test]
    fn dotted_numbers() {
        let mut shown = String::new();
        push_dotted(&mut shown, EMAIL_ADDRESS);
        assert_eq!(shown, "1.2.840.113549.1.9.1");
        shown.clear();
        push_dotted(&mut shown, &[0x88, 0x37, 0x03]);
        assert_eq!(shown, "2.999.3");
    }

    #[test]
    fn several_values_of_one_set_join_with_plus() {
        let name = b"\x30\x1b\x31\x19\x30\x08\x06\x03\x55\x04\x03\x0c\x01a\x30\x0d\x06\x03\x55\x04\x0a\x0c\x06b corp";
        assert_eq!(display(name), "CN=a+O=b corp");
        assert_eq!(organisation(name).as_deref(), Some("b corp"));
        assert_eq!(display(b""), "");
    }
}
