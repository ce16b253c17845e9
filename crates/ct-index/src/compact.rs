//! Compaction: merges the segments of a month into fewer, folding equal rows and records for good.
//!
//! # Concurrency
//! One compaction runs at a time in a folder. It holds no lock while it merges; readers keep the
//! segments they opened, and the manifest is published before the old files go.
//!
//! # Limits
//! Inputs are streamed block by block. Memory grows with the records of the output (its lookups and
//! positions, about 150 bytes each), so an output holds at most [`Policy::records_max`] records and
//! larger segments stay as they are.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::index::SuffixList;
use crate::key::KeyRange;
use crate::manifest::{Manifest, SegmentEntry};
use crate::merge::{Merge, write_rows};
use crate::record::{CertRecord, Position};
use crate::row::RowCursor;
use crate::segment::certificates::CertificatesBlock;
use crate::segment::writer::Content;
use crate::segment::{BlockCache, Segment, SegmentCursor, SegmentWriter};
use crate::view::Shared;
use crate::{Error, Result};

/// When which segments are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Segments of one size class in a month that are worth a merge. Default 6.
    pub batch: usize,
    /// Segments merged at once when a month has many. Default 12.
    pub surge_batch: usize,
    /// What counts as many. Default 16.
    pub surge_at: usize,
    /// Most records of an output. Default 2 million.
    pub records_max: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            batch: 6,
            surge_batch: 12,
            surge_at: 16,
            records_max: 2_000_000,
        }
    }
}

impl Policy {
    /// Merges whatever can be merged, as an operator asks for.
    pub fn everything() -> Self {
        Self {
            batch: 2,
            surge_batch: usize::MAX,
            surge_at: 2,
            ..Self::default()
        }
    }

    /// The next segments to merge: of one month and one size class, the smallest class first, so that
    /// a row is copied a few times in its life and not once a flush.
    fn choose(&self, segments: &[SegmentEntry]) -> Option<Vec<u64>> {
        let mut classes: BTreeMap<(u32, &str), Vec<&SegmentEntry>> = BTreeMap::new();
        let mut months: BTreeMap<&str, usize> = BTreeMap::new();
        for segment in segments
            .iter()
            .filter(|segment| segment.records < self.records_max)
        {
            *months.entry(&segment.month).or_default() += 1;
            classes
                .entry((size_class(segment.records), &segment.month))
                .or_default()
                .push(segment);
        }
        if self.batch <= 2 {
            // Everything of a month, whatever its size.
            let month = months.iter().find(|(_, count)| **count >= 2)?.0;
            let all: Vec<&SegmentEntry> = classes
                .iter()
                .filter(|((_, of), _)| of == month)
                .flat_map(|(_, segments)| segments.iter().copied())
                .collect();
            return self.fit(&all, usize::MAX);
        }
        classes.iter().find_map(|((_, month), segments)| {
            let surge = months.get(month).is_some_and(|&count| count >= self.surge_at);
            let most = if surge { self.surge_batch } else { self.batch };
            (segments.len() >= self.batch)
                .then(|| self.fit(segments, most))
                .flatten()
        })
    }

    /// As many of the oldest as one output can hold; fewer than two are not worth it.
    fn fit(&self, segments: &[&SegmentEntry], most: usize) -> Option<Vec<u64>> {
        let mut records = 0;
        let mut chosen = Vec::new();
        for segment in segments.iter().take(most) {
            records += segment.records;
            if records > self.records_max {
                break;
            }
            chosen.push(segment.id);
        }
        (chosen.len() >= 2).then_some(chosen)
    }
}

/// Segments within a factor of four are of one class.
fn size_class(records: u64) -> u32 {
    (u64::BITS - records.leading_zeros()) / 2
}

/// What compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Merges done.
    pub merges: u64,
    /// Segments merged.
    pub segments: u64,
    /// Bytes read and written.
    pub bytes_before: u64,
    /// Bytes of the outputs.
    pub bytes_after: u64,
    /// Rows that were copies of others.
    pub rows_folded: u64,
    /// Records that were copies of others.
    pub records_folded: u64,
}

/// What a compaction needs of its folder.
pub(crate) struct Compactor<'i> {
    pub(crate) dir: &'i Path,
    pub(crate) shared: &'i Shared,
    pub(crate) manifest: &'i Mutex<Manifest>,
    pub(crate) cache: &'i Arc<BlockCache>,
    pub(crate) suffixes: &'i SuffixList,
}

impl Compactor<'_> {
    /// Merges once, if the policy finds something worth it.
    pub(crate) fn step(&self, policy: &Policy, done: &mut Compacted) -> Result<bool> {
        let (chosen, id) = {
            let mut manifest = self.manifest();
            let Some(chosen) = policy.choose(&manifest.segments) else {
                return Ok(false);
            };
            manifest.next_segment += 1;
            (chosen, manifest.next_segment - 1)
        };
        let view = self.shared.load();
        let inputs: Vec<Arc<Segment>> = view
            .segments
            .iter()
            .filter(|segment| chosen.contains(&segment.id))
            .cloned()
            .collect();
        if inputs.len() != chosen.len() || inputs.iter().any(|input| input.is_salvaged()) {
            let what = "a segment to merge is damaged; nothing is merged, so that nothing is lost";
            return Err(Error::corrupt(self.dir, 0, what));
        }
        let entries: Vec<SegmentEntry> = self
            .manifest()
            .segments
            .iter()
            .filter(|entry| chosen.contains(&entry.id))
            .cloned()
            .collect();
        let (entry, segment) = self.merge(&inputs, &entries, id)?;
        done.merges += 1;
        done.segments += inputs.len() as u64;
        done.bytes_before += entries.iter().map(|entry| entry.bytes).sum::<u64>();
        done.bytes_after += entry.bytes;
        done.rows_folded += entries
            .iter()
            .map(|entry| entry.rows)
            .sum::<u64>()
            .saturating_sub(entry.rows);
        done.records_folded += entries
            .iter()
            .map(|entry| entry.records)
            .sum::<u64>()
            .saturating_sub(entry.records);
        self.swap(&entries, entry, segment)?;
        Ok(true)
    }

    fn manifest(&self) -> MutexGuard<'_, Manifest> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn merge(
        &self,
        inputs: &[Arc<Segment>],
        entries: &[SegmentEntry],
        id: u64,
    ) -> Result<(SegmentEntry, Arc<Segment>)> {
        let month = entries
            .first()
            .map(|entry| entry.month.clone())
            .unwrap_or_default();
        let mut entry = SegmentEntry {
            id,
            month,
            bytes: 0,
            rows: 0,
            records: 0,
        };
        let path = entry.path(self.dir);
        let mut writer = SegmentWriter::create(&path, id, Content::Merged, self.suffixes.clone())?;
        let everything = KeyRange {
            start: Vec::new(),
            end: vec![u8::MAX],
        };
        let mut cursors: Vec<Box<dyn RowCursor>> = Vec::new();
        for input in inputs {
            cursors.push(Box::new(SegmentCursor::open(
                Arc::clone(input),
                &everything,
                None,
            )?));
        }
        let mut merge = Merge::new(cursors);
        entry.rows = write_rows(&mut merge, &mut writer)?;
        // A damaged block would vanish with its file: the inputs stay as they are.
        if let Some(fault) = merge.take_faults().into_iter().next() {
            return Err(fault);
        }
        entry.records = write_records(inputs, &mut writer)?;
        entry.bytes = writer.finish()?;
        let segment = Arc::new(Segment::open(&path, id, self.cache)?);
        Ok((entry, segment))
    }

    /// Publishes the output in place of its inputs, then removes their files.
    fn swap(&self, old: &[SegmentEntry], entry: SegmentEntry, segment: Arc<Segment>) -> Result<()> {
        let is_old = |id: u64| old.iter().any(|entry| entry.id == id);
        let mut manifest = self.manifest();
        let mut next = manifest.clone();
        next.segments.retain(|known| !is_old(known.id));
        next.segments.push(entry);
        next.publish(self.dir)?;
        *manifest = next;
        drop(manifest);
        self.shared.update(|view| {
            let segments = Arc::make_mut(&mut view.segments);
            segments.retain(|known| !is_old(known.id));
            segments.push(segment);
        });
        for entry in old {
            let path = entry.path(self.dir);
            std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
            let _ = std::fs::remove_file(path.with_extension("meta"));
        }
        Ok(())
    }
}

/// Merges the certificates tables by (issuance, serial).
fn write_records(inputs: &[Arc<Segment>], writer: &mut SegmentWriter) -> Result<u64> {
    let mut streams = Vec::with_capacity(inputs.len());
    for input in inputs {
        streams.push(RecordStream::open(input)?);
    }
    let mut written = 0;
    while let Some(first) = smallest(&streams) {
        let Some(mut record) = streams.get_mut(first).and_then(|stream| stream.record.take()) else {
            break;
        };
        advance(&mut streams, first)?;
        while let Some(next) = smallest(&streams) {
            let same = streams
                .get(next)
                .and_then(|stream| stream.record.as_ref())
                .is_some_and(|other| other.same_issuance(&record));
            if !same {
                break;
            }
            if let Some(copy) = streams.get_mut(next).and_then(|stream| stream.record.take()) {
                record.fold(copy);
            }
            advance(&mut streams, next)?;
        }
        record.with_view(|view| writer.record(view))?;
        written += 1;
    }
    Ok(written)
}

/// The stream with the smallest record; a dozen streams need no heap.
fn smallest(streams: &[RecordStream]) -> Option<usize> {
    streams
        .iter()
        .enumerate()
        .filter_map(|(number, stream)| {
            let record = stream.record.as_ref()?;
            Some((record.issuance, record.serial.as_slice(), number))
        })
        .min()
        .map(|(_, _, number)| number)
}

fn advance(streams: &mut [RecordStream], number: usize) -> Result<()> {
    streams.get_mut(number).map_or(Ok(()), RecordStream::advance)
}

/// Walks the certificates of one segment in order.
struct RecordStream {
    segment: Arc<Segment>,
    /// Positions by seq, taken from the journal once instead of once a record.
    positions: Vec<(u64, Vec<Position>)>,
    block: Option<CertificatesBlock>,
    next_block: u64,
    place: usize,
    record: Option<CertRecord>,
}

impl RecordStream {
    fn open(segment: &Arc<Segment>) -> Result<Self> {
        let mut stream = Self {
            positions: segment.all_positions()?,
            segment: Arc::clone(segment),
            block: None,
            next_block: 0,
            place: 0,
            record: None,
        };
        stream.advance()?;
        Ok(stream)
    }

    fn advance(&mut self) -> Result<()> {
        self.record = None;
        loop {
            if let Some(stored) = self
                .block
                .as_ref()
                .and_then(|block| block.records.get(self.place))
            {
                let mut record = stored.record.clone();
                record.organization = self.segment.organization(stored.organization)?;
                if let Ok(at) = self.positions.binary_search_by_key(&record.seq, |(seq, _)| *seq) {
                    record.positions = self
                        .positions
                        .get_mut(at)
                        .map(|(_, held)| std::mem::take(held))
                        .unwrap_or_default();
                }
                self.place += 1;
                self.record = Some(record);
                return Ok(());
            }
            self.block = self.segment.certificates_block(self.next_block)?;
            self.next_block += 1;
            self.place = 0;
            if self.block.is_none() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u64, month: &str, records: u64) -> SegmentEntry {
        SegmentEntry {
            id,
            month: month.to_owned(),
            bytes: records * 100,
            rows: records * 2,
            records,
        }
    }

    #[track_caller]
    fn check(segments: &[SegmentEntry], policy: Policy, expected: Option<&[u64]>) {
        assert_eq!(policy.choose(segments).as_deref(), expected);
    }

    #[test]
    fn merges_wait_for_enough_of_one_size_and_month() {
        let flushed = |count: u64| -> Vec<SegmentEntry> {
            (0..count).map(|id| entry(id, "2026-11", 90_000 + id)).collect()
        };
        check(&flushed(5), Policy::default(), None);
        check(&flushed(6), Policy::default(), Some(&[0, 1, 2, 3, 4, 5]));
        check(&flushed(7), Policy::default(), Some(&[0, 1, 2, 3, 4, 5]));
        check(
            &flushed(16),
            Policy::default(),
            Some(&(0..12).collect::<Vec<_>>()),
        );
        check(&flushed(2), Policy::everything(), Some(&[0, 1]));
        let mut mixed = flushed(5);
        mixed.push(entry(9, "2026-12", 90_000));
        mixed.push(entry(10, "2026-11", 1_900_000));
        check(&mixed, Policy::default(), None);
    }

    #[test]
    fn outputs_stay_within_their_limit() {
        let large: Vec<SegmentEntry> = (0..6).map(|id| entry(id, "2026-11", 900_000)).collect();
        check(&large, Policy::default(), Some(&[0, 1]));
        let full: Vec<SegmentEntry> = (0..6).map(|id| entry(id, "2026-11", 2_000_000)).collect();
        check(&full, Policy::default(), None);
        check(&full, Policy::everything(), None);
    }
}
