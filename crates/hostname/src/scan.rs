//! One pass over the bytes of a name that tells which kinds of bytes it holds.
//!
//! # Invariants
//! No branch depends on the bytes: a table look-up and two ORs a byte. Pairs (`..`, `--`) are seen by
//! comparing each class with the one before it; the ends count as dots, so that an empty first or last
//! label shows up as a pair too.

/// The kinds of bytes a name holds.
#[derive(Clone, Copy)]
pub(crate) struct Kinds(u8);

const DOT: u8 = 1 << 0;
const HYPHEN: u8 = 1 << 1;
const PAIR_SHIFT: u32 = 2;
const DOT_PAIR: u8 = DOT << PAIR_SHIFT;
const HYPHEN_PAIR: u8 = HYPHEN << PAIR_SHIFT;
const UPPER: u8 = 1 << 4;
const UNDERSCORE: u8 = 1 << 5;
/// ASCII that no host name holds, and everything that is no ASCII.
const FOREIGN: u8 = 1 << 6;

const CLASSES: [u8; 256] = classes();

impl Kinds {
    /// Only canonical bytes and no empty label.
    pub(crate) fn is_canonical(self) -> bool {
        self.0 & (UPPER | FOREIGN | DOT_PAIR) == 0
    }

    pub(crate) fn has_underscore(self) -> bool {
        self.0 & UNDERSCORE != 0
    }

    /// Whether `--` occurs: without it no label starts with `xn--`.
    pub(crate) fn has_hyphen_pair(self) -> bool {
        self.0 & HYPHEN_PAIR != 0
    }
}

/// Classifies every byte of `name`.
#[expect(clippy::indexing_slicing, reason = "a byte cannot leave a table of 256")]
pub(crate) fn scan(name: &[u8]) -> Kinds {
    let mut seen = 0;
    let mut previous = DOT;
    for &byte in name {
        let class = CLASSES[usize::from(byte)];
        seen |= class | pair(class, previous);
        previous = class;
    }
    Kinds(seen | pair(DOT, previous))
}

const fn pair(class: u8, previous: u8) -> u8 {
    (class & previous & (DOT | HYPHEN)) << PAIR_SHIFT
}

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
const fn classes() -> [u8; 256] {
    let mut classes = [FOREIGN; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' => 0,
            b'A'..=b'Z' => UPPER,
            b'.' => DOT,
            b'-' => HYPHEN,
            b'_' => UNDERSCORE,
            _ => FOREIGN,
        };
        byte += 1;
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::scan;

    #[test]
    fn empty_labels_and_pairs_are_seen() {
        for (name, canonical, hyphens) in [
            ("a.b", true, false),
            ("a--b.c", true, true),
            ("a-b-c", true, false),
            ("", false, false),
            (".", false, false),
            (".a", false, false),
            ("a.", false, false),
            ("a..b", false, false),
            ("A.b", false, false),
            ("a b", false, false),
            ("a\u{fc}", false, false),
            ("*.a", false, false),
        ] {
            let kinds = scan(name.as_bytes());
            assert_eq!(kinds.is_canonical(), canonical, "{name:?}");
            assert_eq!(kinds.has_hyphen_pair(), hyphens, "{name:?}");
        }
    }
}
