//! Compaction: merges segments into fewer, folding equal rows and records for good.
//!
//! Reading order: [`policy`] (what is merged next), then how: `flushes` (the first merge, which takes
//! flushes apart), `names`, `records`, `lookups` (what becomes of each kind), `cycle` (when, in
//! the background), `pace` (how fast); [`prune`] and `doomed` (what is removed for good).
//!
//! # Concurrency
//! One compaction runs at a time in a folder. It holds no lock while it merges; readers keep the
//! segments they opened, and the manifest is published before the old files go.
//!
//! # Limits
//! Inputs are streamed block by block and outputs cut at a set size, so memory does not depend on the
//! size of a segment: about 60 bytes a record while flushes are taken apart
//! ([`Policy::records_max`] at once), and the domains of one part of names.

pub(crate) mod cycle;
mod doomed;
mod flushes;
mod lookups;
mod names;
pub(crate) mod pace;
pub mod policy;
pub mod prune;
mod records;
mod seq_set;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use self::cycle::Cycle;
use self::pace::Pace;
use self::policy::Job;
pub use self::policy::Policy;
use crate::index::SuffixList;
use crate::manifest::{self, HashPart, Holds, KeyPart, Manifest, SegmentEntry};
use crate::segment::{BlockCache, Segment, SegmentWriter};
use crate::totals::Totals;
use crate::view::Shared;
use crate::windows::{SegmentMark, Windows};
use crate::{Error, Result};

/// Memory for the blocks of one input: each is read once, and must not push out what queries need.
const INPUT_CACHE_BYTES: usize = 256 << 10;

/// What compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Merges done.
    pub merges: u64,
    /// Segments merged.
    pub segments: u64,
    /// Bytes of the inputs.
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
    pub(crate) windows: &'i Windows,
    pub(crate) pace: &'i Pace,
}

impl Compactor<'_> {
    /// Merges once, if the policy finds something worth it. Segments with damage, and lost ones, are left
    /// alone.
    pub(crate) fn step(&self, policy: &Policy, done: &mut Compacted) -> Result<bool> {
        self.shared.check()?;
        // One that is lost was not opened: it must not keep the others from being merged.
        let usable: HashSet<u64> = {
            let view = self.shared.load();
            let segments = view.segments.iter().filter(|segment| !segment.is_damaged());
            segments.map(|segment| segment.id).collect()
        };
        let (job, cuts) = {
            let manifest = self.manifest();
            let whole = manifest.segments.iter();
            let whole: Vec<SegmentEntry> = whole
                .filter(|entry| usable.contains(&entry.id))
                .cloned()
                .collect();
            let Some(job) = policy.choose(&whole) else {
                return Ok(false);
            };
            (job, manifest.cuts.clone())
        };
        let mut inputs = Vec::with_capacity(job.inputs.len());
        for entry in &job.inputs {
            let cache = BlockCache::new(INPUT_CACHE_BYTES);
            let segment = Segment::open(&entry.path(self.dir), entry.id, &cache)?;
            segment.blocks.file.read_ahead();
            inputs.push(Arc::new(segment));
        }
        let mut outputs = Outputs::new(self, policy, &job, cuts);
        let merged = match job.holds {
            Holds::Everything => flushes::merge(&inputs, &mut outputs),
            Holds::Names => names::merge(&inputs, &job.inputs, &mut outputs),
            Holds::Records => records::join(&inputs, &mut outputs),
            Holds::Lookups => lookups::merge(&inputs, &job.inputs, &mut outputs),
        };
        if let Err(error) = merged {
            outputs.remove();
            self.note_damage(&error, &job);
            return Err(error);
        }
        inputs.iter().for_each(|input| input.blocks.file.drop_cached());
        let (entries, cuts) = (outputs.entries, outputs.cuts);
        note(done, &job, &entries);
        let old: Vec<SegmentMark> = marks(&inputs);
        let change = Change {
            cuts: Some(cuts),
            totals: None,
        };
        let new = self.swap(&job.inputs, entries, change)?;
        self.windows.replaced(&old, &marks(&new));
        Ok(true)
    }

    /// An input that turned out to be damaged is not tried again while this process runs.
    fn note_damage(&self, error: &Error, job: &Job) {
        let Error::Corrupt { path, .. } = error else {
            return;
        };
        let view = self.shared.load();
        for entry in job.inputs.iter().filter(|entry| entry.path(self.dir) == *path) {
            for segment in view.segments.iter().filter(|segment| segment.id == entry.id) {
                segment.note_damage();
            }
        }
    }

    fn manifest(&self) -> MutexGuard<'_, Manifest> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of a new segment; the flusher takes ids from the same counter.
    fn reserve_segment(&self) -> u64 {
        let mut manifest = self.manifest();
        manifest.next_segment += 1;
        manifest.next_segment - 1
    }

    /// Publishes the outputs in place of their inputs, then removes the files of those.
    fn swap(
        &self,
        old: &[SegmentEntry],
        new: Vec<SegmentEntry>,
        change: Change,
    ) -> Result<Vec<Arc<Segment>>> {
        let mut opened = Vec::with_capacity(new.len());
        for entry in &new {
            opened.push(Arc::new(Segment::open_entry(self.dir, entry, self.cache)?));
        }
        let is_old = |id: u64| old.iter().any(|entry| entry.id == id);
        let mut manifest = self.manifest();
        let mut next = manifest.clone();
        next.segments.retain(|known| !is_old(known.id));
        next.segments.extend(new.iter().cloned());
        if let Some(cuts) = change.cuts {
            next.cuts = cuts;
        }
        if let Some(totals) = &change.totals {
            next.totals.clone_from(totals);
        }
        if let Err(error) = next.publish(self.dir) {
            // What is published next must not pass for this one.
            manifest.generation = next.generation;
            self.take_back(&next, &new, &error);
            return Err(error);
        }
        *manifest = next;
        drop(manifest);
        self.shared.update(|view| {
            let segments = Arc::make_mut(&mut view.segments);
            segments.retain(|known| !is_old(known.id));
            segments.extend(opened.iter().cloned());
            if let Some(totals) = change.totals {
                view.totals = totals;
            }
        });
        for entry in old {
            let path = entry.path(self.dir);
            std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
            let _ = std::fs::remove_file(path.with_extension("meta"));
        }
        Ok(opened)
    }

    /// After a failed publication: removes what no manifest names, so that a full disk has room again.
    /// Where a copy may name it already, neither outputs nor inputs may go, and another manifest of the
    /// same generation must not be written.
    fn take_back(&self, next: &Manifest, new: &[SegmentEntry], error: &Error) {
        let may_count = |name: &&str| match Manifest::read_copy(&self.dir.join(name)) {
            Ok(copy) => copy == *next,
            Err(error) => !error.is_gone(),
        };
        if manifest::NAMES.iter().any(may_count) {
            let _ = self.shared.failure.set(error.to_string());
            return;
        }
        for entry in new {
            let _ = std::fs::remove_file(entry.path(self.dir));
        }
    }
}

/// What a publication changes besides segments.
struct Change {
    cuts: Option<Vec<Vec<String>>>,
    /// Counts of what is left, where something was removed.
    totals: Option<Totals>,
}

/// What filters know those segments by that hold records.
fn marks(segments: &[Arc<Segment>]) -> Vec<SegmentMark> {
    let with_records = segments.iter().filter(|segment| segment.tables.records.rows > 0);
    with_records.map(|segment| segment.mark()).collect()
}

/// Counts a merge.
fn note(done: &mut Compacted, job: &Job, entries: &[SegmentEntry]) {
    let sum = |of: fn(&SegmentEntry) -> u64, entries: &[SegmentEntry]| entries.iter().map(of).sum::<u64>();
    let names = |entry: &SegmentEntry| {
        if entry.holds == Holds::Lookups {
            0
        } else {
            entry.rows
        }
    };
    done.merges += 1;
    done.segments += job.inputs.len() as u64;
    done.bytes_before += sum(|entry| entry.bytes, &job.inputs);
    done.bytes_after += sum(|entry| entry.bytes, entries);
    done.rows_folded += sum(names, &job.inputs).saturating_sub(sum(names, entries));
    done.records_folded +=
        sum(|entry| entry.records, &job.inputs).saturating_sub(sum(|entry| entry.records, entries));
}

/// The segments that a merge writes.
struct Outputs<'m> {
    compactor: &'m Compactor<'m>,
    policy: &'m Policy,
    month: String,
    tier: u32,
    run: u64,
    entries: Vec<SegmentEntry>,
    /// Cuts of names by tier, those that this merge made included.
    cuts: Vec<Vec<String>>,
    /// Files that are being written or not yet published.
    paths: Vec<PathBuf>,
}

/// A segment that is being written.
struct Open {
    entry: SegmentEntry,
    writer: SegmentWriter,
    /// Bytes of it that were told to the pace.
    paced: u64,
}

impl<'m> Outputs<'m> {
    fn new(compactor: &'m Compactor<'m>, policy: &'m Policy, job: &Job, cuts: Vec<Vec<String>>) -> Self {
        Self {
            compactor,
            policy,
            month: job
                .inputs
                .first()
                .map(|input| input.month.clone())
                .unwrap_or_default(),
            tier: job.tier,
            run: job.inputs.iter().map(|input| input.run).min().unwrap_or(0),
            entries: Vec::new(),
            cuts,
            paths: Vec::new(),
        }
    }

    /// Outputs that each take the place of one segment: see [`Self::continue_as`].
    fn bare(compactor: &'m Compactor<'m>, policy: &'m Policy) -> Self {
        Self {
            compactor,
            policy,
            month: String::new(),
            tier: 0,
            run: 0,
            entries: Vec::new(),
            cuts: Vec::new(),
            paths: Vec::new(),
        }
    }

    /// What is opened next belongs where `entry` does.
    fn continue_as(&mut self, entry: &SegmentEntry) {
        self.month.clone_from(&entry.month);
        self.tier = entry.tier;
        self.run = entry.run;
    }

    /// Starts a segment.
    fn open(&mut self, holds: Holds, keys: KeyPart, hashes: HashPart) -> Result<Open> {
        let id = self.compactor.reserve_segment();
        let entry = SegmentEntry {
            id,
            month: self.month.clone(),
            holds,
            tier: self.tier,
            run: self.run,
            keys,
            hashes,
            bytes: 0,
            rows: 0,
            records: 0,
        };
        let path = entry.path(self.compactor.dir);
        self.paths.push(path.clone());
        let writer = SegmentWriter::create(&path, id, holds, self.compactor.suffixes.clone())?;
        Ok(Open {
            entry,
            writer,
            paced: 0,
        })
    }

    /// Keeps to the pace; fails when the index is being closed.
    fn pace(&self, open: &mut Open) -> Result<()> {
        let bytes = open.writer.bytes();
        self.compactor.pace.wrote(bytes - open.paced)?;
        open.paced = bytes;
        Ok(())
    }

    /// Finishes a segment.
    fn close(&mut self, open: Open) -> Result<()> {
        let Open {
            mut entry, writer, ..
        } = open;
        entry.bytes = writer.finish()?;
        self.entries.push(entry);
        Ok(())
    }

    /// Removes what was written, after a failure; what stays behind goes at the next opening.
    fn remove(&self) {
        for path in &self.paths {
            let _ = std::fs::remove_file(path);
        }
    }
}
