//! Pruning: segments written anew without what is expired or old, or a month's files dropped.
//!
//! # Invariants
//! What goes, goes from names, records and look-ups of every month in one publication of the manifest:
//! a reader, and whoever looks after a crash, finds an issuance whole or not at all. Readers keep the
//! segments they opened. Nothing is removed from a folder with damage in what must be read.
//!
//! # Limits
//! Segments are streamed; memory is that of `doomed`. The disk holds what is written anew beside the old
//! files until the end.

use std::sync::Arc;

use super::doomed::{Doomed, Source};
use super::{Change, Compactor, Open, Outputs, Policy, lookups, marks, names};
use crate::Result;
use crate::key::KeyRange;
use crate::manifest::{Holds, SegmentEntry};
use crate::merge::{Merge, OrganizationNumbers};
use crate::row::RowCursor;
use crate::segment::{Segment, SegmentCursor};
use crate::totals::Totals;

/// What is removed. Times are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Issuances for which all that is given holds; without any, every issuance.
    Dates {
        /// Their end of validity is known and lies before.
        expired_before: Option<i64>,
        /// They were first seen before, by the earliest of their copies.
        seen_before: Option<i64>,
    },
    /// All files of a month of ingestion (`2026-11`), and in later months the copies of what was first
    /// read in it.
    Month(String),
}

/// A prune to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prune {
    /// What is removed.
    pub what: What,
    /// Only tell what would go.
    pub dry_run: bool,
}

/// What a prune did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// What went from the counts of the index.
    pub removed: Totals,
    /// Segments of which a part stays.
    pub segments_rewritten: u64,
    /// Segments of which nothing stays.
    pub segments_removed: u64,
    /// Bytes of both.
    pub bytes_before: u64,
    /// Bytes of what took their place; 0 of a dry run.
    pub bytes_after: u64,
}

/// What a prune is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Reading records: what goes?
    Read,
    /// Writing segments without it.
    Write,
}

/// How far a prune is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What it is doing.
    pub step: Step,
    /// Files done.
    pub done: u64,
    /// Files of this step.
    pub of: u64,
}

impl Compactor<'_> {
    /// Removes what `prune` names. Nothing may be appended meanwhile, and no memtable may hold a row.
    pub(crate) fn prune(&self, prune: &Prune, progress: &mut dyn FnMut(Progress)) -> Result<Pruned> {
        let (entries, before) = {
            let manifest = self.manifest();
            (manifest.segments.clone(), manifest.totals.clone())
        };
        let source = Source {
            dir: self.dir,
            pace: self.pace,
            entries: &entries,
        };
        let mut doomed = Doomed::find(&source, &prune.what, self.shared.load(), progress)?;
        if doomed.months.is_empty() {
            return Ok(Pruned::default());
        }
        let policy = Policy::default();
        let mut outputs = Outputs::bare(self, &policy);
        let mut sieve = Sieve {
            source: &source,
            prune,
            doomed: &mut doomed,
            old: Vec::new(),
            done: Pruned::default(),
        };
        if let Err(error) = sieve.run(&mut outputs, progress) {
            outputs.remove();
            return Err(error);
        }
        let Sieve { old, mut done, .. } = sieve;
        done.removed = before;
        done.removed.subtract(&doomed.kept);
        if prune.dry_run {
            return Ok(done);
        }
        let Outputs { entries: new, .. } = outputs;
        done.bytes_after = new.iter().map(|entry| entry.bytes).sum();
        let totals = Some(doomed.kept);
        let view = self.shared.load();
        let live = view.segments.iter();
        let gone: Vec<Arc<Segment>> = live
            .filter(|segment| old.iter().any(|entry| entry.id == segment.id))
            .cloned()
            .collect();
        let new = self.swap(&old, new, Change { cuts: None, totals })?;
        // Filters go on saying "maybe" to what is gone.
        self.windows.replaced(&marks(&gone), &marks(&new));
        Ok(done)
    }
}

/// One pass over the segments that may hold something that goes.
struct Sieve<'s> {
    source: &'s Source<'s>,
    prune: &'s Prune,
    doomed: &'s mut Doomed,
    /// Segments whose place others take.
    old: Vec<SegmentEntry>,
    done: Pruned,
}

impl Sieve<'_> {
    fn run(&mut self, outputs: &mut Outputs<'_>, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let months = self.doomed.months.clone();
        let entries = self.source.entries.iter();
        // Rows and look-ups of a month lead to records of that month only.
        let touched: Vec<&SegmentEntry> = entries.filter(|entry| months.contains(&entry.month)).collect();
        let of = touched.len() as u64;
        for (entry, done) in touched.into_iter().zip(0..) {
            let step = Step::Write;
            progress(Progress { step, done, of });
            let all = matches!(&self.prune.what, What::Month(month) if *month == entry.month);
            let left = if all {
                false
            } else {
                let segment = self.source.open(entry)?;
                if !self.touches(entry, &segment)? {
                    continue;
                }
                let left = if self.prune.dry_run {
                    true
                } else {
                    let written = outputs.entries.len();
                    self.rewrite(entry, &segment, outputs)?;
                    outputs.entries.len() > written
                };
                segment.blocks.file.drop_cached();
                left
            };
            self.done.segments_rewritten += u64::from(left);
            self.done.segments_removed += u64::from(!left);
            self.done.bytes_before += entry.bytes;
            self.old.push(entry.clone());
        }
        Ok(())
    }

    /// True when something in the segment goes. Most answer soon.
    fn touches(&mut self, entry: &SegmentEntry, segment: &Arc<Segment>) -> Result<bool> {
        match entry.holds {
            Holds::Names => {
                let mut rows = rows_of(segment)?;
                while let Some((_, attrs, _)) = rows.next()? {
                    if self.doomed.takes(&attrs)? {
                        return Ok(true);
                    }
                }
                refuse_faults(&mut rows)?;
                Ok(false)
            }
            Holds::Lookups => lookups::any(segment, |seq| self.doomed.seqs.contains(seq)),
            Holds::Everything | Holds::Records => {
                let mut number = 0;
                while let Some(block) = segment.records_block(number)? {
                    if block.records.iter().any(|record| self.goes(record.seq)) {
                        return Ok(true);
                    }
                    number += 1;
                }
                Ok(false)
            }
        }
    }

    fn goes(&self, seq: u64) -> bool {
        self.doomed.seqs.contains(seq)
    }

    fn rewrite(
        &mut self,
        entry: &SegmentEntry,
        segment: &Arc<Segment>,
        outputs: &mut Outputs<'_>,
    ) -> Result<()> {
        outputs.continue_as(entry);
        let mut slot = Slot { entry, open: None };
        match entry.holds {
            Holds::Names => {
                self.rows(segment, &mut slot, outputs)?;
                slot.finish_rows()?;
            }
            Holds::Records => self.records(segment, &mut slot, outputs)?,
            Holds::Everything => {
                self.rows(segment, &mut slot, outputs)?;
                if slot.open.is_none() && !self.any_record_stays(segment)? {
                    return Ok(());
                }
                // Records without a name are possible.
                slot.open(outputs)?;
                slot.finish_rows()?;
                self.records(segment, &mut slot, outputs)?;
            }
            Holds::Lookups => {
                let stays = |seq: u64| !self.goes(seq);
                if lookups::any(segment, stays)? {
                    let open = slot.open(outputs)?;
                    lookups::sift(segment, stays, open, outputs)?;
                }
            }
        }
        slot.open.map_or(Ok(()), |open| outputs.close(open))
    }

    fn any_record_stays(&self, segment: &Segment) -> Result<bool> {
        let mut number = 0;
        while let Some(block) = segment.records_block(number)? {
            if block.records.iter().any(|record| !self.goes(record.seq)) {
                return Ok(true);
            }
            number += 1;
        }
        Ok(false)
    }

    fn rows(&mut self, segment: &Arc<Segment>, slot: &mut Slot<'_>, outputs: &mut Outputs<'_>) -> Result<()> {
        let mut rows = rows_of(segment)?;
        let (mut key, mut numbers) = (Vec::new(), OrganizationNumbers::default());
        while let Some((row_key, mut attrs, source)) = rows.next()? {
            if self.doomed.takes(&attrs)? {
                continue;
            }
            key.clear();
            key.extend_from_slice(row_key);
            let open = slot.open(outputs)?;
            attrs.organization = numbers.number(&rows, source, attrs.organization, &mut open.writer)?;
            open.writer.row(&key, &attrs)?;
            open.entry.rows += 1;
            if open.entry.rows.is_multiple_of(names::PACE_ROWS) {
                outputs.pace(open)?;
            }
        }
        refuse_faults(&mut rows)
    }

    fn records(&mut self, segment: &Segment, slot: &mut Slot<'_>, outputs: &mut Outputs<'_>) -> Result<()> {
        let mut number = 0;
        while let Some(block) = segment.records_block(number)? {
            for record in block.records.iter().filter(|record| !self.goes(record.seq)) {
                let open = slot.open(outputs)?;
                record.with_view(|view| match open.entry.holds {
                    Holds::Everything => open.writer.record(view),
                    _ => open.writer.record_alone(view),
                })?;
                open.entry.records += 1;
            }
            if let Some(open) = &mut slot.open {
                outputs.pace(open)?;
            }
            number += 1;
        }
        Ok(())
    }
}

/// What takes the place of a segment; made with the first thing that stays.
struct Slot<'e> {
    entry: &'e SegmentEntry,
    open: Option<Open>,
}

impl Slot<'_> {
    fn open(&mut self, outputs: &mut Outputs<'_>) -> Result<&mut Open> {
        let open = match self.open.take() {
            Some(open) => open,
            None => outputs.open(self.entry.holds, self.entry.keys.clone(), self.entry.hashes)?,
        };
        Ok(self.open.insert(open))
    }

    fn finish_rows(&mut self) -> Result<()> {
        self.open
            .as_mut()
            .map_or(Ok(()), |open| open.writer.finish_rows())
    }
}

/// All rows of a segment.
fn rows_of(segment: &Arc<Segment>) -> Result<Merge> {
    let everything = KeyRange {
        start: Vec::new(),
        end: vec![u8::MAX],
    };
    let cursor: Box<dyn RowCursor> = Box::new(SegmentCursor::open(Arc::clone(segment), &everything, None)?);
    Ok(Merge::new(vec![cursor]))
}

/// Rows of a damaged block would vanish with the file.
fn refuse_faults(rows: &mut Merge) -> Result<()> {
    rows.take_faults().into_iter().next().map_or(Ok(()), Err)
}
