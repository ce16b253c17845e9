//! Which records go, and what is left to count.
//!
//! # Invariants
//! An issuance goes as a whole: its first record, the copies of it in whichever files, and its rows.
//! What its parts say is taken together: the earliest date of any copy decides.
//!
//! # Limits
//! Three bits for each sequence number ever given, and 16 bytes for each issuance with a copy that was
//! written whole and is not yet folded (a copy seen earlier than its original): those are looked up one
//! by one.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use super::prune::{Progress, Step, What};
use super::seq_set::SeqSet;
use super::{INPUT_CACHE_BYTES, pace::Pace};
use crate::manifest::{Holds, SegmentEntry};
use crate::record::{CertRecord, CertificateKind};
use crate::row::RowAttrs;
use crate::segment::{BlockCache, Segment};
use crate::totals::Totals;
use crate::view::View;
use crate::{Error, Result};

/// Answers about rows of folded copies that are remembered.
const ANSWERS_MAX: usize = 100_000;

/// What a prune removes.
pub(super) struct Doomed {
    /// Records that go.
    pub(super) seqs: SeqSet,
    /// Months with such a record.
    pub(super) months: BTreeSet<String>,
    /// Counts of what stays.
    pub(super) kept: Totals,
    /// All records there are.
    present: SeqSet,
    view: Arc<View>,
    answers: HashMap<u64, bool>,
}

/// Where the records are read from.
pub(super) struct Source<'s> {
    pub(super) dir: &'s Path,
    pub(super) pace: &'s Pace,
    pub(super) entries: &'s [SegmentEntry],
}

impl Source<'_> {
    fn with_records(&self) -> impl Iterator<Item = &SegmentEntry> {
        let holds = |entry: &&SegmentEntry| matches!(entry.holds, Holds::Everything | Holds::Records);
        self.entries.iter().filter(holds)
    }

    /// Opens a segment for one pass over it; damage is refused, as it would vanish with the file.
    pub(super) fn open(&self, entry: &SegmentEntry) -> Result<Arc<Segment>> {
        let cache = BlockCache::new(INPUT_CACHE_BYTES);
        let mut segment = Segment::open_entry(self.dir, entry, &cache)?;
        if let Some(fault) = segment.faults.pop() {
            return Err(fault);
        }
        segment.blocks.file.read_ahead();
        Ok(Arc::new(segment))
    }
}

/// Visits every record of a segment.
fn for_each_record(segment: &Segment, pace: &Pace, mut visit: impl FnMut(CertRecord)) -> Result<()> {
    let mut number = 0;
    while let Some(block) = segment.records_block(number)? {
        block.records.into_iter().for_each(&mut visit);
        // Nothing was written: this is where a closing index ends the work.
        pace.wrote(0)?;
        number += 1;
    }
    segment.blocks.file.drop_cached();
    Ok(())
}

impl Doomed {
    /// Reads the records that can say so, then all of them for copies and counts.
    pub(super) fn find(
        source: &Source<'_>,
        what: &What,
        view: Arc<View>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let mut doomed = Self {
            seqs: SeqSet::default(),
            months: BTreeSet::new(),
            kept: Totals::default(),
            present: SeqSet::default(),
            view,
            answers: HashMap::new(),
        };
        let files = source.with_records().count() as u64;
        let mut tell = |done| {
            let step = Step::Read;
            let of = 2 * files;
            progress(Progress { step, done, of });
        };
        let mut roots = SeqSet::default();
        for (entry, done) in source.with_records().zip(0..) {
            tell(done);
            what.gather(source, entry, &mut roots)?;
        }
        if roots.len() == 0 {
            return Ok(doomed);
        }
        let mut unfolded = Vec::new();
        for (entry, done) in source.with_records().zip(files..) {
            tell(done);
            let before = doomed.seqs.len();
            for_each_record(&*source.open(entry)?, source.pace, |record| {
                doomed.present.insert(record.seq);
                if roots.contains(record.seq) || record.copy_of.is_some_and(|root| roots.contains(root)) {
                    doomed.seqs.insert(record.seq);
                    return;
                }
                match record.copy_of {
                    // It repeats what is known already.
                    Some(root) if !record.slim => unfolded.push((record.issuance, root)),
                    _ => count(&mut doomed.kept, &record),
                }
            })?;
            if doomed.seqs.len() > before {
                doomed.months.insert(entry.month.clone());
            }
        }
        doomed.settle(unfolded)?;
        Ok(doomed)
    }

    /// Counts issuances of which a copy was written whole.
    fn settle(&mut self, mut unfolded: Vec<(u64, u64)>) -> Result<()> {
        unfolded.sort_unstable();
        unfolded.dedup();
        for (issuance, root) in unfolded {
            let parts = self.view.parts_of_issuance(issuance)?;
            let (mut apart, mut whole): (Totals, Option<CertRecord>) = Default::default();
            for part in parts {
                if part.copy_of.unwrap_or(part.seq) != root || self.seqs.contains(part.seq) {
                    continue;
                }
                if part.slim || part.copy_of.is_none() {
                    count(&mut apart, &part);
                }
                match &mut whole {
                    Some(whole) => whole.fold(part),
                    None => whole = Some(part),
                }
            }
            // Without its original, which only damage takes, it counts as what it tells.
            let whole = whole.map(|whole| {
                let mut together = Totals::default();
                count(&mut together, &whole);
                together.issuances = apart.issuances;
                together.deviations.clone_from(&apart.deviations);
                together
            });
            self.kept.subtract(&apart);
            self.kept.add(&whole.unwrap_or_default());
        }
        Ok(())
    }

    /// True when a row goes with its record.
    pub(super) fn takes(&mut self, row: &RowAttrs) -> Result<bool> {
        if self.seqs.contains(row.seq) {
            return Ok(true);
        }
        if self.present.contains(row.seq) {
            return Ok(false);
        }
        // A name that only a copy had, which is folded into its original by now.
        if let Some(&known) = self.answers.get(&row.issuance) {
            return Ok(known);
        }
        let parts = self.view.parts_of_issuance(row.issuance)?;
        let goes = parts.iter().any(|part| self.seqs.contains(part.seq));
        if self.answers.len() == ANSWERS_MAX {
            self.answers.clear();
        }
        self.answers.insert(row.issuance, goes);
        Ok(goes)
    }
}

impl What {
    /// Gathers the first records of what goes; of a month, all of its records.
    fn gather(&self, source: &Source<'_>, entry: &SegmentEntry, roots: &mut SeqSet) -> Result<()> {
        match self {
            Self::Month(month) if *month != entry.month => Ok(()),
            Self::Month(_) => for_each_record(&*source.open(entry)?, source.pace, |record| {
                roots.insert(record.seq);
            }),
            Self::Dates {
                expired_before,
                seen_before,
            } => {
                let segment = source.open(entry)?;
                if let (Some(end), Some(meta)) = (expired_before, &segment.meta)
                    && meta.expiry.is_none_or(|(earliest, _)| earliest >= *end)
                {
                    return Ok(());
                }
                for_each_record(&segment, source.pace, |record| {
                    // A slim copy has no dates.
                    let expired =
                        expired_before.is_none_or(|end| record.not_after.is_some_and(|after| after < end));
                    let seen = seen_before.is_none_or(|end| record.first_seen < end);
                    if !record.slim && expired && seen {
                        roots.insert(record.copy_of.unwrap_or(record.seq));
                    }
                })
            }
        }
    }
}

/// Counts a record: all of an original, of a slim copy what it adds.
fn count(totals: &mut Totals, record: &CertRecord) {
    if record.copy_of.is_none() {
        totals.issuances += 1;
        totals.count_deviations(record.deviations);
    }
    totals.certificates += record.fingerprints.len() as u64;
    totals.precertificates += record
        .fingerprints
        .iter()
        .filter(|print| print.kind == CertificateKind::Precertificate)
        .count() as u64;
    totals.positions += record.positions.len() as u64;
    totals.name_rows += record.names.len() as u64;
}

impl View {
    /// The records of an issuance in segments, as they lie; damage that may hide one is an error.
    fn parts_of_issuance(&self, issuance: u64) -> Result<Vec<CertRecord>> {
        let (records, hidden) = self.stored_parts(issuance)?;
        hidden.map_or(Ok(records), Err::<_, Error>)
    }
}
