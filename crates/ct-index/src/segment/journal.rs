//! Blocks of the journal: records in order of discovery, with their log positions.
//!
//! Neighbours in this order come from neighbouring leaves, so a position costs a byte or two here and
//! eight beside the certificate. Three questions are answered: which record is `seq`, which positions
//! has a certificate, and which record lies at a log position (by the bounds of each block).
//!
//! # Format
//! `rows u16 | columns`: `seqs` (first, then differences), `ordinals` (width u8, then fixed width),
//! `counts` (positions per row), `logs`, `indexes` (zigzag difference to the last index of that log in
//! the block), `timestamps` (zigzag difference to the one before).

use crate::coding::{Decoded, Malformed, Reader, put_fixed, put_varint, put_zigzag, width_of};
use crate::record::{POSITIONS_MAX, Position};
use crate::segment::block::BLOCK_BYTES_MAX;
use crate::segment::columns;

/// Rows of a full block.
pub(crate) const BLOCK_ROWS: usize = 512;

/// One record in order of discovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JournalRow {
    pub(crate) seq: u64,
    pub(crate) ordinal: u32,
    pub(crate) positions: Vec<Position>,
}

/// Last index seen of each log; a block rarely holds more than a dozen logs.
#[derive(Default)]
struct LastIndex(Vec<(u16, u64)>);

impl LastIndex {
    /// The last index of `log`, which becomes `index`.
    fn replace(&mut self, log: u16, index: impl FnOnce(u64) -> u64) -> u64 {
        if let Some((_, last)) = self.0.iter_mut().find(|(known, _)| *known == log) {
            *last = index(*last);
            return *last;
        }
        let first = index(0);
        self.0.push((log, first));
        first
    }
}

/// The payload of a block of rows sorted by seq.
pub(crate) fn encode(rows: &[JournalRow], out: &mut Vec<u8>) {
    let mut streams: [Vec<u8>; 6] = Default::default();
    let [seqs, ordinals, counts, logs, indexes, timestamps] = &mut streams;
    let width = width_of(rows.iter().map(|row| u64::from(row.ordinal)).max().unwrap_or(0));
    ordinals.push(width as u8);
    let (mut seq, mut time, mut last) = (0u64, 0i64, LastIndex::default());
    for row in rows {
        put_varint(seqs, row.seq - seq);
        seq = row.seq;
        put_fixed(ordinals, u64::from(row.ordinal), width);
        put_varint(counts, row.positions.len() as u64);
        for position in &row.positions {
            put_varint(logs, u64::from(position.log));
            last.replace(position.log, |before| {
                put_zigzag(indexes, position.index.wrapping_sub(before) as i64);
                position.index
            });
            put_zigzag(timestamps, (position.timestamp_ms as i64).wrapping_sub(time));
            time = position.timestamp_ms as i64;
        }
    }
    out.extend_from_slice(&(rows.len() as u16).to_le_bytes());
    columns::put(
        out,
        &columns::join(&[seqs, ordinals, counts, logs, indexes, timestamps]),
    );
}

/// A decoded block.
#[derive(Debug, Default)]
pub(crate) struct JournalBlock {
    pub(crate) rows: Vec<JournalRow>,
}

impl JournalBlock {
    pub(crate) fn decode(payload: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(payload);
        let count = usize::from(reader.u16()?);
        let joined = columns::take(&mut reader, columns::SMALL_BYTES_MAX)?;
        let [
            mut seqs,
            mut ordinals,
            mut counts,
            mut logs,
            mut indexes,
            mut timestamps,
        ] = columns::split::<6>(&joined)?;
        let width = usize::from(ordinals.u8()?);
        if width > 4 {
            return Err(Malformed("ordinals wider than 32 bits"));
        }
        let (mut seq, mut time, mut last) = (0u64, 0i64, LastIndex::default());
        let mut rows = Vec::with_capacity(count);
        for _ in 0..count {
            seq = seq
                .checked_add(seqs.varint()?)
                .ok_or(Malformed("seq overflows"))?;
            let ordinal = ordinals.fixed(width)? as u32;
            let mut positions = Vec::new();
            for _ in 0..counts.bounded(POSITIONS_MAX as u64, "too many positions")? {
                let log = logs.bounded(u64::from(u16::MAX), "log number over 16 bits")? as u16;
                let difference = indexes.zigzag()?;
                let index = last.replace(log, |before| before.wrapping_add(difference as u64));
                time = time.wrapping_add(timestamps.zigzag()?);
                positions.push(Position {
                    log,
                    index,
                    timestamp_ms: time as u64,
                });
            }
            rows.push(JournalRow {
                seq,
                ordinal,
                positions,
            });
        }
        Ok(Self { rows })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.rows
            .iter()
            .map(|row| 40 + row.positions.len() * size_of::<Position>())
            .sum()
    }

    pub(crate) fn of_seq(&self, seq: u64) -> Option<&JournalRow> {
        let row = self.rows.get(self.rows.partition_point(|row| row.seq < seq))?;
        (row.seq == seq).then_some(row)
    }
}

/// Smallest and largest index of one log in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) block: u32,
    pub(crate) log: u16,
    pub(crate) smallest: u64,
    pub(crate) largest: u64,
}

/// The bounds of a block that is about to be written as number `block`.
pub(crate) fn bounds_of(block: u32, rows: &[JournalRow]) -> Vec<Bound> {
    let mut bounds: Vec<Bound> = Vec::new();
    for position in rows.iter().flat_map(|row| &row.positions) {
        match bounds.iter_mut().find(|bound| bound.log == position.log) {
            Some(bound) => {
                bound.smallest = bound.smallest.min(position.index);
                bound.largest = bound.largest.max(position.index);
            }
            None => bounds.push(Bound {
                block,
                log: position.log,
                smallest: position.index,
                largest: position.index,
            }),
        }
    }
    bounds
}

/// The payload of the bounds of all blocks.
pub(crate) fn encode_bounds(bounds: &[Bound]) -> Vec<u8> {
    let mut raw = Vec::new();
    let mut block = 0;
    put_varint(&mut raw, bounds.len() as u64);
    for bound in bounds {
        put_varint(&mut raw, u64::from(bound.block - block));
        block = bound.block;
        put_varint(&mut raw, u64::from(bound.log));
        put_varint(&mut raw, bound.smallest);
        put_varint(&mut raw, bound.largest - bound.smallest);
    }
    let mut payload = Vec::new();
    columns::put(&mut payload, &raw);
    payload
}

/// What [`encode_bounds`] wrote.
pub(crate) fn decode_bounds(payload: &[u8]) -> Decoded<Vec<Bound>> {
    let raw = columns::take(&mut Reader::new(payload), BLOCK_BYTES_MAX)?;
    let mut reader = Reader::new(&raw);
    let count = reader.bounded(raw.len() as u64, "more bounds than bytes")?;
    let mut block = 0u32;
    let mut bounds = Vec::with_capacity(count);
    for _ in 0..count {
        block =
            block.saturating_add(reader.bounded(u64::from(u32::MAX), "block number over 32 bits")? as u32);
        let log = reader.bounded(u64::from(u16::MAX), "log number over 16 bits")? as u16;
        let smallest = reader.varint()?;
        bounds.push(Bound {
            block,
            log,
            smallest,
            largest: smallest.saturating_add(reader.varint()?),
        });
    }
    Ok(bounds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_round_trip(rows in proptest::collection::vec((1u64..50, 0u32..90_000, proptest::collection::vec((0u16..5, 0u64..1 << 48, 0u64..1 << 45), 0..4)), 1..40)) {
            let mut seq = 0;
            let rows: Vec<JournalRow> = rows.into_iter().map(|(step, ordinal, positions)| {
                seq += step;
                let positions = positions.into_iter().map(|(log, index, timestamp_ms)| Position { log, index, timestamp_ms }).collect();
                JournalRow { seq, ordinal, positions }
            }).collect();
            let mut payload = Vec::new();
            encode(&rows, &mut payload);
            let block = JournalBlock::decode(&payload).unwrap();
            prop_assert_eq!(&block.rows, &rows);
            prop_assert_eq!(block.of_seq(seq), rows.last());
            let bounds = bounds_of(3, &rows);
            prop_assert_eq!(decode_bounds(&encode_bounds(&bounds)).unwrap(), bounds);
        }

        #[test]
        fn any_payload_is_safe(payload: Vec<u8>) {
            let _ = JournalBlock::decode(&payload);
            let _ = decode_bounds(&payload);
        }
    }
}
