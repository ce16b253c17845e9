//! Look-ups: merges of sorted hashes, cut into parts by their leading bits.

use std::iter::Peekable;
use std::sync::Arc;

use super::{Open, Outputs};
use crate::manifest::{HashPart, Holds, KeyPart, SegmentEntry};
use crate::segment::Segment;
use crate::segment::block::BlockKind;
use crate::segment::hashes::{Entry, HashesBlock, LOOKUPS};
use crate::{Error, Result};

/// Bits kept of a hash from the first merge on, so that merges never miss bits that a larger table
/// needs: at ten billion entries one look-up in a hundred reads a record in vain.
const KEPT_BITS: u32 = 40;

/// Merges the look-ups of segments whose hashes lie in one cell.
pub(super) fn merge(
    inputs: &[Arc<Segment>],
    entries: &[SegmentEntry],
    outputs: &mut Outputs<'_>,
) -> Result<()> {
    let parts = entries.iter().map(|entry| entry.hashes);
    let cell = parts.reduce(HashPart::around).unwrap_or_default();
    let count: u64 = entries.iter().map(|entry| entry.rows).sum();
    let streams = LOOKUPS.map(|kind| Streams::open(inputs, kind));
    write(streams, cell, count, outputs)
}

/// Writes sorted entries of each kind into parts of `cell`; there are about `count` of all kinds.
pub(super) fn write<I: Iterator<Item = Result<Entry>>>(
    entries: [I; LOOKUPS.len()],
    cell: HashPart,
    count: u64,
    outputs: &mut Outputs<'_>,
) -> Result<()> {
    let parts = count.div_ceil(outputs.policy.part_rows.max(1)).max(1);
    let bits = parts.next_power_of_two().trailing_zeros();
    let mut streams = entries.map(Iterator::peekable);
    for number in 0..1u64 << bits {
        let part = HashPart {
            bits: cell.bits + bits,
            prefix: cell.prefix << bits | number,
        };
        write_part(&mut streams, part, outputs)?;
    }
    if streams.iter_mut().any(|stream| stream.peek().is_some()) {
        return Err(Error::Bug("a hash lies outside of its part".to_owned()));
    }
    Ok(())
}

fn write_part<I: Iterator<Item = Result<Entry>>>(
    streams: &mut [Peekable<I>],
    part: HashPart,
    outputs: &mut Outputs<'_>,
) -> Result<()> {
    let mut open = outputs.open(Holds::Lookups, KeyPart::default(), part)?;
    for (kind, stream) in LOOKUPS.into_iter().zip(streams) {
        let mut table = open.writer.look_up(kind, u64::BITS - KEPT_BITS);
        let mut rows = 0;
        let in_part = |entry: &Result<Entry>| entry.as_ref().map_or(true, |entry| part.holds(entry.hash()));
        while let Some(entry) = stream.next_if(in_part) {
            table.push(entry?)?;
            rows += 1;
        }
        table.finish()?;
        open.entry.rows += rows;
        outputs.pace(&mut open)?;
    }
    outputs.close(open)
}

/// True when a look-up of the segment leads to a seq that is `wanted`.
pub(super) fn any(input: &Arc<Segment>, wanted: impl Fn(u64) -> bool) -> Result<bool> {
    for kind in LOOKUPS {
        for entry in Streams::open(std::slice::from_ref(input), kind) {
            if wanted(entry?.seq()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Writes the look-ups of a segment to `open`, but for entries whose seq does not stay.
pub(super) fn sift(
    input: &Arc<Segment>,
    stays: impl Fn(u64) -> bool,
    open: &mut Open,
    outputs: &Outputs<'_>,
) -> Result<()> {
    for kind in LOOKUPS {
        let mut table = open.writer.look_up(kind, u64::BITS - KEPT_BITS);
        let mut rows = 0;
        for entry in Streams::open(std::slice::from_ref(input), kind) {
            let entry = entry?;
            if stays(entry.seq()) {
                table.push(entry)?;
                rows += 1;
            }
        }
        table.finish()?;
        open.entry.rows += rows;
        outputs.pace(open)?;
    }
    Ok(())
}

/// The entries of one kind of several segments, in order. A dozen streams need no heap.
struct Streams {
    streams: Vec<Stream>,
}

impl Streams {
    fn open(inputs: &[Arc<Segment>], kind: BlockKind) -> Self {
        let stream = |input: &Arc<Segment>| Stream {
            segment: Arc::clone(input),
            kind,
            block: HashesBlock::default(),
            place: 0,
            next_block: 0,
        };
        Self {
            streams: inputs.iter().map(stream).collect(),
        }
    }

    fn try_next(&mut self) -> Result<Option<Entry>> {
        let mut smallest: Option<(Entry, usize)> = None;
        for (number, stream) in self.streams.iter_mut().enumerate() {
            if let Some(entry) = stream.peek()?
                && smallest.is_none_or(|(known, _)| entry < known)
            {
                smallest = Some((entry, number));
            }
        }
        let Some((entry, number)) = smallest else {
            return Ok(None);
        };
        if let Some(stream) = self.streams.get_mut(number) {
            stream.place += 1;
        }
        Ok(Some(entry))
    }
}

impl Iterator for Streams {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.try_next().transpose()
    }
}

/// One look-up of one segment.
struct Stream {
    segment: Arc<Segment>,
    kind: BlockKind,
    block: HashesBlock,
    place: usize,
    next_block: u64,
}

impl Stream {
    fn peek(&mut self) -> Result<Option<Entry>> {
        while self.place >= self.block.len() {
            let blocks = &self.segment.blocks;
            let index = &self.segment.tables().look_up(self.kind).index;
            let Some(at) = index.at(blocks, self.next_block)? else {
                return Ok(None);
            };
            self.block = blocks.file.block(self.kind, at, HashesBlock::decode)?;
            self.next_block += 1;
            self.place = 0;
        }
        Ok(self.block.entry(self.place))
    }
}
