//! Unicode names to A-labels and back, by UTS 46.
//!
//! # Invariants
//! Label by label: one label that UTS 46 refuses does not decide about its neighbours.

use std::borrow::Cow;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use crate::identifier::HOST_BYTES_MAX;
use crate::text;

const ACE_PREFIX: &str = "xn--";

/// Lower-cases ASCII labels and turns the others into A-labels. `None` if UTS 46 refuses one.
///
/// The answer may still hold any ASCII; whether it is a host is up to `settle`.
pub(crate) fn to_ascii(name: &str) -> Option<Cow<'_, str>> {
    if name.is_ascii() {
        let has_upper = name.bytes().any(|byte| byte.is_ascii_uppercase());
        return Some(if has_upper {
            Cow::Owned(name.to_ascii_lowercase())
        } else {
            Cow::Borrowed(name)
        });
    }
    // Punycode takes quadratic time; a host that long is none.
    if name.len() > HOST_BYTES_MAX {
        return None;
    }
    let mut ascii = String::with_capacity(name.len() + 16);
    for (position, label) in name.split('.').enumerate() {
        if position > 0 {
            ascii.push('.');
        }
        ascii.push_str(&label_to_ascii(label)?);
    }
    Some(Cow::Owned(ascii))
}

fn label_to_ascii(label: &str) -> Option<Cow<'_, str>> {
    if label.is_ascii() {
        return Some(Cow::Owned(label.to_ascii_lowercase()));
    }
    Uts46::new()
        .to_ascii(
            label.as_bytes(),
            AsciiDenyList::EMPTY,
            Hyphens::Allow,
            DnsLength::Ignore,
        )
        .ok()
}

/// Whether a lower-case label claims to be an A-label and is none.
pub(crate) fn is_invalid_a_label(label: &str) -> bool {
    label.starts_with(ACE_PREFIX) && a_label_to_unicode(label).is_none()
}

/// The U-label of an A-label, if UTS 46 accepts it. One that starts with `xn--` itself would not find its
/// way back (UTS 46, validity criterion 4, which `idna` leaves out when hyphens are free).
fn a_label_to_unicode(label: &str) -> Option<Cow<'_, str>> {
    let (unicode, result) = Uts46::new().to_unicode(label.as_bytes(), AsciiDenyList::URL, Hyphens::Allow);
    (result.is_ok() && !unicode.is_ascii() && !unicode.starts_with(ACE_PREFIX)).then_some(unicode)
}

/// The Unicode spelling of a canonical host, for people.
///
/// An A-label stays as it is if UTS 46 refuses it, or if its Unicode form holds a character that shows
/// as nothing or that fonts draw like `/`, `.`, `:`, `?` or `%`. UTS 46 itself refuses control and
/// bidirectional characters. If the labels together break the Bidi rule (RFC 5893), as
/// digits beside a right-to-left label do, or are longer than [`HOST_BYTES_MAX`], the whole host stays in
/// A-labels. [`crate::read`] of the answer gives the host again.
///
/// Look-alike letters of other scripts are shown: to warn of them is not the job of a spelling. Never use
/// the answer as a key.
#[must_use]
pub fn to_unicode(host: &str) -> Cow<'_, str> {
    if !host.contains(ACE_PREFIX) {
        return Cow::Borrowed(host);
    }
    let labels: Vec<_> = host
        .split('.')
        .map(|label| shown(label).unwrap_or(Cow::Borrowed(label)))
        .collect();
    let unicode = labels.join(".");
    if unicode.is_ascii() || unicode.len() > HOST_BYTES_MAX || breaks_bidi_rule(&unicode) {
        Cow::Borrowed(host)
    } else {
        Cow::Owned(unicode)
    }
}

fn shown(label: &str) -> Option<Cow<'_, str>> {
    let unicode = label
        .starts_with(ACE_PREFIX)
        .then(|| a_label_to_unicode(label))??;
    // UTS 46 lets a joiner pass only where it changes the shape of its neighbours.
    let misleads = |c| {
        (text::is_hidden(c) && !matches!(c, '\u{200c}' | '\u{200d}')) || DELIMITER_LOOK_ALIKES.contains(c)
    };
    (!unicode.chars().any(misleads)).then_some(unicode)
}

/// What fonts draw like `/`, `.`, `:`, `?` or `%`, after Chromium's list. Letters of living scripts that
/// only resemble one, such as U+30CE, are not here: names of their languages need them.
const DELIMITER_LOOK_ALIKES: &str = "\u{2d0}\u{2f8}\u{338}\u{589}\u{5c3}\u{609}\u{60a}\u{66a}\u{6d4}\u{701}\u{702}\u{703}\u{704}\
    \u{1735}\u{1803}\u{2027}\u{2041}\u{2044}\u{2052}\u{2215}\u{2236}\u{2571}\u{2572}\u{27cb}\u{27cd}\u{29f5}\u{29f8}\u{29f9}\
    \u{2cc6}\u{2e4a}\u{2f03}\u{3033}\u{31d3}\u{a4f8}\u{a4fd}\u{a60e}\u{a789}\u{1d15d}";

fn breaks_bidi_rule(unicode: &str) -> bool {
    // Only labels that are not ASCII can make a name right-to-left; invalid A-labels must not decide.
    let readable: Vec<_> = unicode
        .split('.')
        .filter(|label| !label.starts_with(ACE_PREFIX))
        .collect();
    let (_, result) = Uts46::new().to_unicode(
        readable.join(".").as_bytes(),
        AsciiDenyList::EMPTY,
        Hyphens::Allow,
    );
    result.is_err()
}

#[cfg(test)]
mod tests {
    use super::to_unicode;

    #[track_caller]
    fn check(host: &str, expected: &str) {
        assert_eq!(to_unicode(host), expected);
    }

    #[test]
    fn valid_a_labels_are_shown_in_unicode() {
        check("www.example.com", "www.example.com");
        check("xn--mller-kva.de", "müller.de");
        check("www.xn--85x722f.xn--55qx5d.cn", "www.食狮.公司.cn");
        check("xn--strae-oqa.de", "straße.de");
        check("xn--g6h.net", "♥.net");
        check("xn--mgba3gch31f060k.com", "نامه\u{200c}ای.com");
        check("xn--pcks4b7a9kqd.com", "テクノロジー.com");
        check("_dmarc.xn--mller-kva.de", "_dmarc.müller.de");
    }

    #[test]
    fn invalid_a_labels_stay() {
        check("xn--a.xn--mller-kva.de", "xn--a.müller.de");
        check("xn--.com", "xn--.com");
        check("xn--zn7c.com", "xn--zn7c.com"); // U+FFFD
        check("xn--foo-.com", "xn--foo-.com"); // ASCII alone
        check("xn--1ug.example", "xn--1ug.example"); // a joiner without context
        check("a-xn--b.com", "a-xn--b.com");
        check("xn--xn--5ke2uw-k0o.com", "xn--xn--5ke2uw-k0o.com"); // xn-- inside xn--
    }

    #[test]
    fn misleading_a_labels_stay() {
        for (misleading, why) in [
            ("a\u{2215}b", "division slash"),
            ("a\u{2044}b", "fraction slash"),
            ("a\u{2027}b", "hyphenation point"),
            ("a\u{2236}b", "ratio"),
            ("a\u{2800}b", "blank braille"),
        ] {
            let host = format!("xn--{}.com", idna::punycode::encode_str(misleading).unwrap());
            assert_eq!(to_unicode(&host), host, "{why}");
        }
        for refused in ["a\u{202e}b", "a\u{2066}b", "a\u{1}b", "a\u{85}b", "a\u{200b}b"] {
            let host = format!("xn--{}.com", idna::punycode::encode_str(refused).unwrap());
            assert_eq!(to_unicode(&host), host, "UTS 46 refuses {refused:?}");
        }
    }

    #[test]
    fn a_host_that_breaks_the_bidi_rule_stays_whole() {
        check("xn--4dbrk0ce.com", "ישראל.com");
        check("1a.xn--4dbrk0ce.com", "1a.xn--4dbrk0ce.com");
        check("xn--mller-kva.1a.xn--4dbrk0ce", "xn--mller-kva.1a.xn--4dbrk0ce");
    }
}
