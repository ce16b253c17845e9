//! Log positions: how records keep them, and which blocks can hold one.
//!
//! Records lie in order of discovery, so neighbours come from neighbouring leaves: a position costs two
//! or three bytes before compression. Bounds answer "which record lies at this position".
//!
//! # Format
//! Two columns of a records block: `indexes` (zigzag difference to the last index of that log in the
//! block), `timestamps` (zigzag difference to the one before); the log numbers stand with the counts.
//! Bounds: columns over `count`, then per group of blocks and log `group - group before | log |
//! smallest | largest - smallest`.

use crate::coding::{Decoded, Reader, put_varint, put_zigzag};
use crate::record::{POSITIONS_MAX, Position};
use crate::segment::block::BLOCK_BYTES_MAX;
use crate::segment::columns::{self, Codec};

/// Blocks of records that share one entry of the bounds for each log.
pub(crate) const BLOCKS_PER_GROUP: u64 = 8;

/// Last index seen of each log; a block rarely holds more than a dozen logs.
#[derive(Debug, Default)]
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

/// What the columns of a block continue from.
#[derive(Debug, Default)]
pub(crate) struct Before {
    time: i64,
    last: LastIndex,
}

/// Appends the positions of one record.
pub(crate) fn put(
    positions: &[Position],
    before: &mut Before,
    counts: &mut Vec<u8>,
    indexes: &mut Vec<u8>,
    timestamps: &mut Vec<u8>,
) {
    put_varint(counts, positions.len() as u64);
    for position in positions {
        put_varint(counts, u64::from(position.log));
        before.last.replace(position.log, |before| {
            put_zigzag(indexes, position.index.wrapping_sub(before) as i64);
            position.index
        });
        let time = position.timestamp_ms as i64;
        put_zigzag(timestamps, time.wrapping_sub(before.time));
        before.time = time;
    }
}

/// The positions of the next record.
pub(crate) fn take(
    before: &mut Before,
    counts: &mut Reader<'_>,
    indexes: &mut Reader<'_>,
    timestamps: &mut Reader<'_>,
) -> Decoded<Vec<Position>> {
    let count = counts.bounded(POSITIONS_MAX as u64, "too many positions")?;
    let mut positions = Vec::with_capacity(count);
    for _ in 0..count {
        let log = counts.bounded(u64::from(u16::MAX), "log number over 16 bits")? as u16;
        let difference = indexes.zigzag()?;
        let index = before
            .last
            .replace(log, |before| before.wrapping_add(difference as u64));
        before.time = before.time.wrapping_add(timestamps.zigzag()?);
        positions.push(Position {
            log,
            index,
            timestamp_ms: before.time as u64,
        });
    }
    Ok(positions)
}

/// Smallest and largest index of one log in one group of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) group: u32,
    pub(crate) log: u16,
    pub(crate) smallest: u64,
    pub(crate) largest: u64,
}

/// Gathers the bounds of a table while its records pass, in order.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    all: Vec<Bound>,
    /// Where the group at hand starts.
    start: usize,
}

impl Bounds {
    /// Notes positions of a record of block `block`.
    pub(crate) fn note(&mut self, block: u64, positions: &[Position]) {
        let group = (block / BLOCKS_PER_GROUP) as u32;
        if self.all.last().is_some_and(|last| last.group != group) {
            self.start = self.all.len();
        }
        for position in positions {
            let here = self.all.iter_mut().skip(self.start);
            match here.into_iter().find(|bound| bound.log == position.log) {
                Some(bound) => {
                    bound.smallest = bound.smallest.min(position.index);
                    bound.largest = bound.largest.max(position.index);
                }
                None => self.all.push(Bound {
                    group,
                    log: position.log,
                    smallest: position.index,
                    largest: position.index,
                }),
            }
        }
    }

    pub(crate) fn all(&self) -> &[Bound] {
        &self.all
    }

    /// The payload of the bounds of all blocks.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut raw = Vec::new();
        let mut group = 0;
        put_varint(&mut raw, self.all.len() as u64);
        for bound in &self.all {
            put_varint(&mut raw, u64::from(bound.group - group));
            group = bound.group;
            put_varint(&mut raw, u64::from(bound.log));
            put_varint(&mut raw, bound.smallest);
            put_varint(&mut raw, bound.largest - bound.smallest);
        }
        let mut payload = Vec::new();
        columns::put(&mut payload, &raw, Codec::Zstd);
        payload
    }
}

/// What [`Bounds::encode`] wrote.
pub(crate) fn decode_bounds(payload: &[u8]) -> Decoded<Vec<Bound>> {
    let raw = columns::take(&mut Reader::new(payload), BLOCK_BYTES_MAX)?;
    let mut reader = Reader::new(&raw);
    let count = reader.bounded(raw.len() as u64, "more bounds than bytes")?;
    let mut group = 0u32;
    let mut bounds = Vec::with_capacity(count);
    for _ in 0..count {
        group =
            group.saturating_add(reader.bounded(u64::from(u32::MAX), "group number over 32 bits")? as u32);
        let log = reader.bounded(u64::from(u16::MAX), "log number over 16 bits")? as u16;
        let smallest = reader.varint()?;
        bounds.push(Bound {
            group,
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
        fn positions_and_bounds_round_trip(records in proptest::collection::vec(proptest::collection::vec((0u16..5, 0u64..1 << 48, 0u64..1 << 45), 0..4), 1..40)) {
            let records: Vec<Vec<Position>> = records
                .into_iter()
                .map(|record| record.into_iter().map(|(log, index, timestamp_ms)| Position { log, index, timestamp_ms }).collect())
                .collect();
            let (mut counts, mut indexes, mut timestamps) = (Vec::new(), Vec::new(), Vec::new());
            let (mut before, mut bounds) = (Before::default(), Bounds::default());
            for (number, record) in records.iter().enumerate() {
                put(record, &mut before, &mut counts, &mut indexes, &mut timestamps);
                bounds.note(number as u64 / 3, record);
            }
            let (mut counts, mut indexes, mut timestamps) = (Reader::new(&counts), Reader::new(&indexes), Reader::new(&timestamps));
            let mut before = Before::default();
            for record in &records {
                prop_assert_eq!(&take(&mut before, &mut counts, &mut indexes, &mut timestamps).unwrap(), record);
            }
            let decoded = decode_bounds(&bounds.encode()).unwrap();
            prop_assert_eq!(&decoded, bounds.all());
            for (number, record) in records.iter().enumerate() {
                let group = (number as u64 / 3 / BLOCKS_PER_GROUP) as u32;
                for position in record {
                    prop_assert!(decoded.iter().any(|bound| bound.group == group && bound.log == position.log && bound.smallest <= position.index && position.index <= bound.largest));
                }
            }
        }

        #[test]
        fn any_payload_is_safe(payload: Vec<u8>) {
            let _ = decode_bounds(&payload);
        }
    }
}
