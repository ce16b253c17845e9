//! Blocks of the fingerprint and serial lookups: sorted hash prefixes and the certificates they lead to.
//!
//! # Format
//! `entries u16 | shift u8 | ordinal width u8 | hashes (varint differences of hash >> shift) |
//! ordinals (fixed width)`. Only so many bits of a hash are kept that one lookup in a thousand reads a
//! certificate in vain; the certificate itself has the last word.

use crate::coding::{Decoded, Malformed, Reader, put_fixed, put_varint, width_of};

/// Entries of a full block.
pub(crate) const BLOCK_ENTRIES: usize = 512;
/// Bits kept beyond what tells all entries of the table apart.
const SPARE_BITS: u32 = 10;

/// How far hashes are shifted in a table of `count` entries.
pub(crate) fn shift_for(count: u64) -> u32 {
    let needed = u64::BITS - count.leading_zeros() + SPARE_BITS;
    64 - needed.min(64)
}

/// The payload of a block of sorted `(hash, ordinal)` pairs.
pub(crate) fn encode(entries: &[(u64, u32)], shift: u32, out: &mut Vec<u8>) {
    let width = width_of(
        entries
            .iter()
            .map(|&(_, ordinal)| u64::from(ordinal))
            .max()
            .unwrap_or(0),
    );
    out.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    out.push(shift as u8);
    out.push(width as u8);
    let mut before = 0;
    for &(hash, _) in entries {
        put_varint(out, (hash >> shift) - before);
        before = hash >> shift;
    }
    for &(_, ordinal) in entries {
        put_fixed(out, u64::from(ordinal), width);
    }
}

/// A decoded block.
#[derive(Debug, Default)]
pub(crate) struct HashesBlock {
    shift: u32,
    hashes: Vec<u64>,
    ordinals: Vec<u32>,
}

impl HashesBlock {
    pub(crate) fn decode(payload: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(payload);
        let count = usize::from(reader.u16()?);
        let shift = u32::from(reader.u8()?);
        let width = usize::from(reader.u8()?);
        if shift > 63 || width > 4 {
            return Err(Malformed("impossible shift or width"));
        }
        let mut block = Self {
            shift,
            ..Self::default()
        };
        let mut hash = 0u64;
        for _ in 0..count {
            hash = hash
                .checked_add(reader.varint()?)
                .ok_or(Malformed("hashes overflow"))?;
            block.hashes.push(hash);
        }
        for _ in 0..count {
            block.ordinals.push(reader.fixed(width)? as u32);
        }
        if reader.is_empty() {
            Ok(block)
        } else {
            Err(Malformed("bytes behind the last ordinal"))
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.hashes.len() * 12
    }

    pub(crate) fn entry(&self, number: usize) -> Option<(u64, u32)> {
        Some((*self.hashes.get(number)?, *self.ordinals.get(number)?))
    }

    /// Ordinals whose kept hash equals that of `full`.
    pub(crate) fn matching(&self, full: u64) -> impl Iterator<Item = u32> + '_ {
        let wanted = full >> self.shift;
        let start = self.hashes.partition_point(|&hash| hash < wanted);
        self.hashes
            .iter()
            .zip(&self.ordinals)
            .skip(start)
            .take_while(move |(hash, _)| **hash == wanted)
            .map(|(_, ordinal)| *ordinal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_round_trip(mut entries in proptest::collection::vec((any::<u64>(), 0u32..100_000), 1..BLOCK_ENTRIES)) {
            entries.sort_unstable();
            let shift = shift_for(entries.len() as u64);
            let mut payload = Vec::new();
            encode(&entries, shift, &mut payload);
            let block = HashesBlock::decode(&payload).unwrap();
            for &(hash, ordinal) in &entries {
                prop_assert!(block.matching(hash).any(|found| found == ordinal));
            }
            prop_assert_eq!(block.len(), entries.len());
        }

        #[test]
        fn any_payload_is_safe(payload: Vec<u8>) {
            let _ = HashesBlock::decode(&payload).map(|block| block.matching(7).count());
        }
    }
}
