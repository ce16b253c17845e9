//! Blocks of the look-ups by fingerprint, serial and issuance: sorted hash prefixes and the records
//! (by `seq`) they lead to.
//!
//! # Format
//! `entries u16 | shift u8 | seq width u8 | smallest seq varint | hashes (varint differences of hash >>
//! shift) | seqs (fixed width over the smallest)`. Only so many bits of a hash are kept that one look-up
//! in a thousand reads a record in vain; the record itself has the last word.

use xxhash_rust::xxh3::xxh3_64;

use crate::coding::{Decoded, Malformed, Reader, put_fixed, put_varint, width_of};
use crate::record::Fingerprint;
use crate::segment::block::BlockKind;

/// The look-ups of a segment, in the order of its file.
pub(crate) const LOOKUPS: [BlockKind; 3] =
    [BlockKind::Fingerprints, BlockKind::Serials, BlockKind::Issuances];

/// Entries of a full block.
pub(crate) const BLOCK_ENTRIES: usize = 512;
/// Bits kept beyond what tells all entries of the table apart.
const SPARE_BITS: u32 = 10;

/// A hash and the seq of a record. As one number, they sort without branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry(u128);

impl Entry {
    pub(crate) fn new(hash: u64, seq: u64) -> Self {
        Self(u128::from(hash) << 64 | u128::from(seq))
    }

    pub(crate) fn hash(self) -> u64 {
        (self.0 >> 64) as u64
    }

    pub(crate) fn seq(self) -> u64 {
        self.0 as u64
    }
}

/// What leads to records, by [`LOOKUPS`].
#[derive(Debug, Default)]
pub(crate) struct Entries(pub(crate) [Vec<Entry>; LOOKUPS.len()]);

impl Entries {
    /// Notes what leads to the record `seq`; a slim copy is not found by its serial number.
    pub(crate) fn note(&mut self, seq: u64, issuance: u64, serial: Option<&[u8]>, prints: &[Fingerprint]) {
        let Self([fingerprints, serials, issuances]) = self;
        fingerprints.extend(
            prints
                .iter()
                .map(|print| Entry::new(hash_of_sha256(&print.sha256), seq)),
        );
        serials.extend(serial.map(|serial| Entry::new(xxh3_64(serial), seq)));
        issuances.push(Entry::new(issuance, seq));
    }

    pub(crate) fn sort(&mut self) {
        self.0.iter_mut().for_each(|entries| entries.sort_unstable());
    }
}

/// The hash of a fingerprint: it is uniform already.
pub(crate) fn hash_of_sha256(sha256: &[u8; 32]) -> u64 {
    sha256
        .first_chunk::<8>()
        .map_or(0, |head| u64::from_be_bytes(*head))
}

/// How far hashes are shifted in a table of `count` entries, whose hashes share `shared` leading bits.
pub(crate) fn shift_for(count: u64, shared: u32) -> u32 {
    let needed = u64::BITS - count.leading_zeros() + SPARE_BITS + shared;
    64 - needed.min(64)
}

/// The payload of a block of sorted entries.
pub(crate) fn encode(entries: &[Entry], shift: u32, out: &mut Vec<u8>) {
    let smallest = entries.iter().map(|entry| entry.seq()).min().unwrap_or(0);
    let largest = entries.iter().map(|entry| entry.seq()).max().unwrap_or(0);
    let width = width_of(largest - smallest);
    out.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    out.push(shift as u8);
    out.push(width as u8);
    put_varint(out, smallest);
    let mut before = 0;
    for entry in entries {
        let kept = entry.hash() >> shift;
        put_varint(out, kept - before);
        before = kept;
    }
    for entry in entries {
        put_fixed(out, entry.seq() - smallest, width);
    }
}

/// A decoded block.
#[derive(Debug, Default)]
pub(crate) struct HashesBlock {
    shift: u32,
    hashes: Vec<u64>,
    seqs: Vec<u64>,
}

impl HashesBlock {
    pub(crate) fn decode(payload: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(payload);
        let count = usize::from(reader.u16()?);
        let shift = u32::from(reader.u8()?);
        let width = usize::from(reader.u8()?);
        let smallest = reader.varint()?;
        if shift > 63 || width > 8 {
            return Err(Malformed("impossible shift or width"));
        }
        let mut block = Self {
            shift,
            hashes: Vec::with_capacity(count),
            seqs: Vec::with_capacity(count),
        };
        let mut hash = 0u64;
        for _ in 0..count {
            hash = hash
                .checked_add(reader.varint()?)
                .filter(|&hash| hash << shift >> shift == hash)
                .ok_or(Malformed("hashes overflow"))?;
            block.hashes.push(hash);
        }
        for _ in 0..count {
            block.seqs.push(smallest.wrapping_add(reader.fixed(width)?));
        }
        if reader.is_empty() {
            Ok(block)
        } else {
            Err(Malformed("bytes behind the last seq"))
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        (self.hashes.capacity() + self.seqs.capacity()) * size_of::<u64>()
    }

    /// An entry, its hash with the bits that are kept.
    pub(crate) fn entry(&self, number: usize) -> Option<Entry> {
        let hash = self.hashes.get(number)? << self.shift;
        Some(Entry::new(hash, *self.seqs.get(number)?))
    }

    /// What the block keeps of a hash.
    pub(crate) fn kept(&self, full: u64) -> u64 {
        full >> self.shift << self.shift
    }

    /// Seqs whose kept hash equals that of `full`.
    pub(crate) fn matching(&self, full: u64) -> impl Iterator<Item = u64> + '_ {
        let wanted = full >> self.shift;
        let start = self.hashes.partition_point(|&hash| hash < wanted);
        self.hashes
            .iter()
            .zip(&self.seqs)
            .skip(start)
            .take_while(move |(hash, _)| **hash == wanted)
            .map(|(_, seq)| *seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_round_trip(entries in proptest::collection::vec((any::<u64>(), 0u64..1 << 40), 1..BLOCK_ENTRIES)) {
            let mut entries: Vec<Entry> = entries.into_iter().map(|(hash, seq)| Entry::new(hash, seq)).collect();
            entries.sort_unstable();
            let shift = shift_for(entries.len() as u64, 0);
            let mut payload = Vec::new();
            encode(&entries, shift, &mut payload);
            let block = HashesBlock::decode(&payload).unwrap();
            for (number, entry) in entries.iter().enumerate() {
                prop_assert!(block.matching(entry.hash()).any(|found| found == entry.seq()));
                prop_assert_eq!(block.entry(number), Some(Entry::new(block.kept(entry.hash()), entry.seq())));
            }
            prop_assert_eq!(block.len(), entries.len());
        }

        #[test]
        fn any_payload_is_safe(payload: Vec<u8>) {
            let _ = HashesBlock::decode(&payload).map(|block| block.matching(7).count());
        }
    }
}
