//! The block index of a table: first keys of blocks, in two levels.
//!
//! # Format
//! Keys are byte strings; tables keyed by a number use its eight big-endian bytes. A *chunk* (a block
//! of kind index chunk) holds up to [`FANOUT`] entries `shared varint | suffix bytes | offset | bytes`,
//! prefix-compressed; every chunk but the last is full, so that the n-th block is found by division.
//! The *top* holds the first key of every chunk in the same encoding and stays in memory: about one
//! part in 30,000 of the rows.

use std::sync::Arc;

use crate::coding::{Decoded, Malformed, Reader, put_bytes, put_varint};
use crate::segment::block::{BlockAt, BlockKind};
use crate::segment::file::{Blocks, Output};
use crate::{Error, Result};

/// Longest index key: an identifier, a zero byte and an issuance.
const KEY_BYTES_MAX: usize = crate::key::KEY_BYTES_MAX + 9;
/// Entries of a chunk.
pub(crate) const FANOUT: usize = 128;

/// Index entries, decoded.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    keys: Vec<u8>,
    ends: Vec<u32>,
    at: Vec<BlockAt>,
}

impl Chunk {
    pub(crate) fn len(&self) -> usize {
        self.at.len()
    }

    pub(crate) fn key(&self, entry: usize) -> &[u8] {
        let start = entry
            .checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .map_or(0, |&end| end as usize);
        let end = self.ends.get(entry).map_or(0, |&end| end as usize);
        self.keys.get(start..end).unwrap_or(&[])
    }

    pub(crate) fn at(&self, entry: usize) -> Option<BlockAt> {
        self.at.get(entry).copied()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.capacity()
            + self.ends.capacity() * size_of::<u32>()
            + self.at.capacity() * size_of::<BlockAt>()
    }

    pub(crate) fn push(&mut self, key: &[u8], at: BlockAt) {
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len() as u32);
        self.at.push(at);
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.ends.clear();
        self.at.clear();
    }

    /// Number of the last entry whose key is `<= key`, or 0.
    fn floor(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle) <= key {
                low = middle + 1
            } else {
                high = middle
            }
        }
        low.saturating_sub(1)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.keys.len());
        put_varint(&mut out, self.len() as u64);
        let (mut previous, mut offset) = (&[][..], 0u64);
        for (entry, at) in self.at.iter().enumerate() {
            let key = self.key(entry);
            let shared = shared_prefix(previous, key);
            put_varint(&mut out, shared as u64);
            put_bytes(&mut out, key.get(shared..).unwrap_or(&[]));
            put_varint(&mut out, at.offset.wrapping_sub(offset));
            put_varint(&mut out, u64::from(at.bytes));
            (previous, offset) = (key, at.offset);
        }
        out
    }

    pub(crate) fn decode(payload: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(payload);
        let count = reader.bounded(payload.len() as u64, "more entries than bytes")?;
        let mut chunk = Self::default();
        let (mut key, mut offset) = (Vec::new(), 0u64);
        for entry in 0..count {
            let shared = reader.bounded(key.len() as u64, "prefix longer than the key before")?;
            let suffix = reader.bytes()?;
            if entry > 0 && key.get(shared..).is_some_and(|rest| rest >= suffix) {
                return Err(Malformed("index keys out of order"));
            }
            if shared + suffix.len() > KEY_BYTES_MAX {
                return Err(Malformed("index key longer than the limit"));
            }
            key.truncate(shared);
            key.extend_from_slice(suffix);
            offset = offset.wrapping_add(reader.varint()?);
            let bytes = reader.bounded(u64::from(u32::MAX), "block longer than 32 bits")? as u32;
            chunk.push(&key, BlockAt { offset, bytes });
        }
        if reader.is_empty() {
            Ok(chunk)
        } else {
            Err(Malformed("bytes behind the last entry"))
        }
    }
}

/// Length of the common prefix.
pub(crate) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut shared = 0;
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
        let differ = word(a) ^ word(b);
        if differ != 0 {
            return shared + differ.trailing_zeros() as usize / 8;
        }
        shared += 8;
    }
    let (a, b) = (a.get(shared..).unwrap_or(&[]), b.get(shared..).unwrap_or(&[]));
    shared + a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Builds the index while the blocks of a table are written.
#[derive(Debug, Default)]
pub(crate) struct IndexWriter {
    open: Chunk,
    top: Chunk,
    blocks: u64,
}

impl IndexWriter {
    /// Notes a block that was just written; `key` is its first key or a shorter separator.
    pub(crate) fn push(&mut self, key: &[u8], at: BlockAt, output: &mut Output) -> Result<()> {
        self.open.push(key, at);
        self.blocks += 1;
        if self.open.len() == FANOUT {
            self.close(output)
        } else {
            Ok(())
        }
    }

    fn close(&mut self, output: &mut Output) -> Result<()> {
        if self.open.len() > 0 {
            let at = output.block(BlockKind::IndexChunk, &self.open.encode())?;
            self.top.push(self.open.key(0), at);
            self.open.clear();
        }
        Ok(())
    }

    /// Writes what is left; answers where the top lies and how many blocks it leads to.
    pub(crate) fn finish(mut self, output: &mut Output) -> Result<(BlockAt, u64)> {
        self.close(output)?;
        Ok((
            output.block(BlockKind::IndexTop, &self.top.encode())?,
            self.blocks,
        ))
    }
}

/// The index of one table, its top in memory.
#[derive(Debug)]
pub(crate) struct BlockIndex {
    top: Chunk,
    blocks: u64,
    /// Set when the index was rebuilt from a damaged file: then `top` is the whole index.
    flat: bool,
}

impl BlockIndex {
    pub(crate) fn open(blocks: &Blocks, top: BlockAt, count: u64) -> Result<Self> {
        let top_chunk = blocks.file.block(BlockKind::IndexTop, top, Chunk::decode)?;
        if count.div_ceil(FANOUT as u64) != top_chunk.len() as u64 {
            return Err(Error::corrupt(
                blocks.file.path(),
                top.offset,
                "index top and footer disagree on the blocks",
            ));
        }
        Ok(Self {
            top: top_chunk,
            blocks: count,
            flat: false,
        })
    }

    /// An index over blocks that a scan found.
    pub(crate) fn flat(entries: Chunk) -> Self {
        Self {
            blocks: entries.len() as u64,
            top: entries,
            flat: true,
        }
    }

    pub(crate) fn block_count(&self) -> u64 {
        self.blocks
    }

    /// Number of the last block whose first key is `<= key` (0 when all are larger).
    pub(crate) fn floor(&self, blocks: &Blocks, key: &[u8]) -> Result<u64> {
        let entry = self.top.floor(key);
        if self.flat || self.top.len() == 0 {
            return Ok(entry as u64);
        }
        Ok((entry * FANOUT + self.chunk(blocks, entry)?.floor(key)) as u64)
    }

    /// The chunk that [`Self::floor`] reads for a key, if it reads one.
    pub(crate) fn chunk_for(&self, key: &[u8]) -> Option<BlockAt> {
        if self.flat {
            return None;
        }
        self.top.at(self.top.floor(key))
    }

    /// Where the n-th block lies.
    pub(crate) fn at(&self, blocks: &Blocks, number: u64) -> Result<Option<BlockAt>> {
        if number >= self.blocks {
            return Ok(None);
        }
        if self.flat {
            return Ok(self.top.at(number as usize));
        }
        let chunk = self.chunk(blocks, number as usize / FANOUT)?;
        Ok(chunk.at(number as usize % FANOUT))
    }

    /// First key (or separator) of the n-th block.
    pub(crate) fn key(&self, blocks: &Blocks, number: u64) -> Result<Option<Vec<u8>>> {
        if number >= self.blocks {
            return Ok(None);
        }
        if self.flat {
            return Ok(Some(self.top.key(number as usize).to_vec()));
        }
        let chunk = self.chunk(blocks, number as usize / FANOUT)?;
        Ok(Some(chunk.key(number as usize % FANOUT).to_vec()))
    }

    fn chunk(&self, blocks: &Blocks, number: usize) -> Result<Arc<Chunk>> {
        let at = self
            .top
            .at(number)
            .ok_or_else(|| Error::corrupt(blocks.file.path(), 0, "index chunk out of range"))?;
        blocks.chunk(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_round_trip_and_find_floors() {
        let mut chunk = Chunk::default();
        for (number, key) in ["com.a", "com.b\0x", "net.zzz"].into_iter().enumerate() {
            chunk.push(
                key.as_bytes(),
                BlockAt {
                    offset: 32 + 100 * number as u64,
                    bytes: 100,
                },
            );
        }
        let decoded = Chunk::decode(&chunk.encode()).unwrap();
        let floors =
            ["a", "com.a", "com.azz", "com.b\0x", "com.b\0y", "zzz"].map(|key| decoded.floor(key.as_bytes()));
        assert_eq!(floors, [0, 0, 0, 1, 1, 2]);
        assert_eq!(
            decoded.at(2),
            Some(BlockAt {
                offset: 232,
                bytes: 100
            })
        );
        assert_eq!(decoded.key(1), b"com.b\0x");
    }

    #[test]
    fn keys_out_of_order_are_damage() {
        let mut chunk = Chunk::default();
        chunk.push(b"b", BlockAt { offset: 1, bytes: 1 });
        chunk.push(b"a", BlockAt { offset: 2, bytes: 1 });
        assert!(Chunk::decode(&chunk.encode()).is_err());
    }
}
