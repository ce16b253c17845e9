//! Which bytes are percent-encoded where: the sets of <https://url.spec.whatwg.org/#percent-encoded-bytes>.

/// A set of bytes, asked in one load.
pub(crate) struct ByteSet([bool; 256]);

impl ByteSet {
    #[expect(
        clippy::indexing_slicing,
        reason = "evaluated by the compiler, and a table of 256 has every byte"
    )]
    pub(crate) const fn of(members: &[u8], base: Option<&Self>) -> Self {
        let mut table = match base {
            Some(base) => base.0,
            None => [false; 256],
        };
        let mut index = 0;
        while index < members.len() {
            table[members[index] as usize] = true;
            index += 1;
        }
        Self(table)
    }

    #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
    const fn c0_controls() -> Self {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            table[byte] = byte < 0x20 || byte > 0x7e;
            byte += 1;
        }
        Self(table)
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a table of 256 has every byte")]
    pub(crate) fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte)]
    }

    /// Bytes before the first member.
    #[inline]
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<usize> {
        bytes.iter().position(|&byte| self.has(byte))
    }
}

pub(crate) static C0_CONTROL: ByteSet = ByteSet::c0_controls();
static FRAGMENT: ByteSet = ByteSet::of(b" \"<>`", Some(&ByteSet::c0_controls()));
static QUERY: ByteSet = ByteSet::of(b" \"#<>", Some(&ByteSet::c0_controls()));
static SPECIAL_QUERY: ByteSet = ByteSet::of(b" \"#<>'", Some(&ByteSet::c0_controls()));
static PATH: ByteSet = ByteSet::of(b" \"#<>?^`{}", Some(&ByteSet::c0_controls()));
pub(crate) static USERINFO: ByteSet = ByteSet::of(b" \"#<>?^`{}/:;=@[\\]|", Some(&ByteSet::c0_controls()));
/// Code points that no host may hold, opaque ones included.
pub(crate) static FORBIDDEN_HOST: ByteSet = ByteSet::of(b"\0\t\n\r #/:<>?@[\\]^|", None);
/// Those and what a domain may not hold besides; other bytes over 0x7f are no concern of this set.
pub(crate) static FORBIDDEN_DOMAIN: ByteSet = ByteSet::of(
    b"\0\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f #/:<>?@[\\]^|%\x7f",
    None,
);

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Appends `%XX`.
#[expect(clippy::indexing_slicing, reason = "a nibble is below 16")]
pub(crate) fn push_escape(byte: u8, out: &mut Vec<u8>) {
    let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
    out.extend_from_slice(&[b'%', HEX[high], HEX[low]]);
}

/// Appends `bytes`, with members of the set as escapes. Says whether there were any.
pub(crate) fn encode_into(bytes: &[u8], set: &ByteSet, out: &mut Vec<u8>) -> bool {
    let before = out.len();
    for &byte in bytes {
        if set.has(byte) {
            push_escape(byte, out);
        } else {
            out.push(byte);
        }
    }
    out.len() - before != bytes.len()
}

/// What a byte is in the parts that make up most of a URL, all at once: a bit for each question.
pub(crate) mod class {
    use super::{ByteSet, FRAGMENT, PATH, QUERY, SPECIAL_QUERY};

    /// Escaped in a path.
    pub(crate) const IN_PATH: u8 = 1;
    /// Escaped in a query.
    pub(crate) const IN_QUERY: u8 = 2;
    /// Escaped in a query of a special scheme.
    pub(crate) const IN_SPECIAL_QUERY: u8 = 4;
    /// Escaped in a fragment.
    pub(crate) const IN_FRAGMENT: u8 = 8;
    /// `%`: escapes may have to be spelled anew.
    pub(crate) const PERCENT: u8 = 16;
    /// What browsers leave bare in some part and others escape.
    pub(crate) const BARE: u8 = 32;
    /// `\`, which may be a slash.
    pub(crate) const BACKSLASH: u8 = 64;
    /// What a dot segment begins with.
    pub(crate) const DOT: u8 = 128;

    static TABLE: [u8; 256] = table();

    #[expect(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "evaluated by the compiler"
    )]
    const fn table() -> [u8; 256] {
        static BARE_SET: ByteSet = ByteSet::of(b"[]|^'`{}\\", None);
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let sets = [
                (&PATH, IN_PATH),
                (&QUERY, IN_QUERY),
                (&SPECIAL_QUERY, IN_SPECIAL_QUERY),
                (&FRAGMENT, IN_FRAGMENT),
                (&BARE_SET, BARE),
            ];
            let mut index = 0;
            while index < sets.len() {
                if sets[index].0.0[byte] {
                    table[byte] |= sets[index].1;
                }
                index += 1;
            }
            table[byte] |= match byte as u8 {
                b'%' => PERCENT | DOT,
                b'.' => DOT,
                b'\\' => BACKSLASH,
                _ => 0,
            };
            byte += 1;
        }
        table
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a table of 256 has every byte")]
    pub(crate) fn of(byte: u8) -> u8 {
        TABLE[usize::from(byte)]
    }
}

/// Appends `bytes`, with those of the class `escaped` as escapes. Returns all classes seen.
#[inline]
pub(crate) fn encode_class_into(bytes: &[u8], escaped: u8, out: &mut Vec<u8>) -> u8 {
    let (mut seen, mut start) = (0, 0);
    for (index, &byte) in bytes.iter().enumerate() {
        let class = class::of(byte);
        seen |= class;
        if class & escaped != 0 {
            out.extend_from_slice(bytes.get(start..index).unwrap_or_default());
            push_escape(byte, out);
            start = index + 1;
        }
    }
    out.extend_from_slice(bytes.get(start..).unwrap_or_default());
    seen
}

/// The value of a hexadecimal digit.
#[inline]
pub(crate) fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// The byte that an escape at the start of `bytes` stands for.
#[inline]
pub(crate) fn escape_at(bytes: &[u8]) -> Option<u8> {
    match *bytes {
        [b'%', high, low, ..] => Some(hex(high)? << 4 | hex(low)?),
        _ => None,
    }
}

/// Decodes every escape once; what is no escape stays.
pub(crate) fn decode_into(mut bytes: &[u8], out: &mut Vec<u8>) {
    while let Some((&byte, rest)) = bytes.split_first() {
        if let Some(decoded) = escape_at(bytes) {
            out.push(decoded);
            bytes = bytes.get(3..).unwrap_or_default();
        } else {
            out.push(byte);
            bytes = rest;
        }
    }
}
