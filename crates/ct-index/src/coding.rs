//! Variable-length integers and a checked reader: the alphabet of every encoding in this crate.
//!
//! # Format
//! Unsigned integers are LEB128 (7 bits a byte, least significant first, at most ten bytes); signed
//! ones are zigzag-mapped first. Fixed-width integers are little-endian.
//!
//! # Limits
//! [`Reader`] never reads past its slice: each take is checked and answers with a reason.

/// Why bytes could not be decoded; the caller adds the file and the offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// What every decoder in this crate answers.
pub(crate) type Decoded<T> = Result<T, Malformed>;

/// Appends `value` as LEB128.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `value` zigzag-mapped, so that small negative numbers stay short.
pub(crate) fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends a length and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends the lowest `width` bytes of `value`, little-endian.
pub(crate) fn put_fixed(out: &mut Vec<u8>, value: u64, width: usize) {
    out.extend_from_slice(value.to_le_bytes().get(..width).unwrap_or(&[]));
}

/// Bytes needed to hold `max` (at least one).
pub(crate) fn width_of(max: u64) -> usize {
    (8 - (max.leading_zeros() as usize) / 8).max(1)
}

/// A cursor over bytes that checks every step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, count: usize) -> Decoded<&'a [u8]> {
        let (head, tail) = self
            .rest
            .split_at_checked(count)
            .ok_or(Malformed("bytes end early"))?;
        self.rest = tail;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let (head, tail) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Malformed("bytes end early"))?;
        self.rest = tail;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Decoded<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Decoded<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Decoded<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Decoded<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A little-endian integer of `width` bytes (1 to 8).
    pub(crate) fn fixed(&mut self, width: usize) -> Decoded<u64> {
        let mut word = [0u8; 8];
        let bytes = self.take(width)?;
        word.get_mut(..width)
            .ok_or(Malformed("integer wider than eight bytes"))?
            .copy_from_slice(bytes);
        Ok(u64::from_le_bytes(word))
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Decoded<u64> {
        let mut value = 0u64;
        for (count, byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * count);
            if byte & 0x80 == 0 {
                self.rest = self.rest.get(count + 1..).unwrap_or(&[]);
                return Ok(value);
            }
        }
        Err(Malformed("integer does not end"))
    }

    pub(crate) fn zigzag(&mut self) -> Decoded<i64> {
        let value = self.varint()?;
        Ok(((value >> 1) as i64) ^ -((value & 1) as i64))
    }

    /// A varint that must not exceed `max`.
    pub(crate) fn bounded(&mut self, max: u64, what: &'static str) -> Decoded<usize> {
        let value = self.varint()?;
        if value > max {
            Err(Malformed(what))
        } else {
            Ok(value as usize)
        }
    }

    /// A length-prefixed slice.
    pub(crate) fn bytes(&mut self) -> Decoded<&'a [u8]> {
        self.bytes_within(u64::MAX)
    }

    /// A length-prefixed slice that is no longer than `limit`.
    pub(crate) fn bytes_within(&mut self, limit: u64) -> Decoded<&'a [u8]> {
        let limit = limit.min(self.rest.len() as u64);
        let length = self.bounded(limit, "length over its limit or past the end")?;
        self.take(length)
    }

    /// A length-prefixed text.
    pub(crate) fn text(&mut self) -> Decoded<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("text is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn integers_round_trip(unsigned: u64, signed: i64, width in 1usize..=8) {
            let mut out = Vec::new();
            put_varint(&mut out, unsigned);
            put_zigzag(&mut out, signed);
            let narrow = if width == 8 { unsigned } else { unsigned & ((1 << (8 * width)) - 1) };
            put_fixed(&mut out, narrow, width);
            prop_assert!(width_of(narrow) <= width);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.varint(), Ok(unsigned));
            prop_assert_eq!(reader.zigzag(), Ok(signed));
            prop_assert_eq!(reader.fixed(width), Ok(narrow));
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn any_bytes_are_safe(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            while !reader.is_empty() {
                if reader.varint().is_err() || reader.bytes().is_err() {
                    break;
                }
            }
        }
    }

    #[test]
    fn an_endless_integer_is_refused() {
        assert_eq!(
            Reader::new(&[0x80; 11]).varint(),
            Err(Malformed("integer does not end"))
        );
        assert!(Reader::new(&[0x80]).varint().is_err());
    }
}
