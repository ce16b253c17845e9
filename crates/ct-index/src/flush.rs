//! The background thread that turns frozen memtables into segments.
//!
//! # Invariants
//! Order: segment file and its fsync, issuers, manifest, readers' view, then the write-ahead log files
//! go. A crash between any two leaves a file that nobody names, or a log that is replayed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::index::SuffixList;
use crate::manifest::{HashPart, Holds, KeyPart, Manifest, SegmentEntry};
use crate::memtable::{Memtable, Run};
use crate::record::{
    Fingerprint, NameBits, Position, RecordView, WireRecord, settle_fingerprints, settle_positions,
    sort_names,
};
use crate::recover::wal_path;
use crate::segment::{BlockCache, Segment, SegmentWriter};
use crate::view::{Shared, View};
use crate::windows::{SegmentMark, Windows};
use crate::{Error, Result};

/// Memtables to flush and the state that belongs to them.
pub(crate) struct FlushJob {
    memtables: Vec<Arc<Memtable>>,
    /// View at the time of freezing: issuers, logs, totals and next seq that the manifest takes.
    view: Arc<View>,
    /// Dropped when the job is done.
    _done: Option<SyncSender<()>>,
}

impl FlushJob {
    pub(crate) fn of(view: &Arc<View>, memtables: Vec<Arc<Memtable>>, done: Option<SyncSender<()>>) -> Self {
        Self {
            memtables,
            view: Arc::clone(view),
            _done: done,
        }
    }
}

/// What the flush thread owns.
pub(crate) struct Flusher {
    pub(crate) dir: PathBuf,
    pub(crate) shared: Arc<Shared>,
    pub(crate) manifest: Arc<Mutex<Manifest>>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) now: fn() -> i64,
    pub(crate) suffixes: SuffixList,
    pub(crate) windows: Arc<Windows>,
    /// Files with a damaged frame: kept aside instead of removed.
    pub(crate) damaged_wals: BTreeSet<u64>,
}

impl Flusher {
    /// Serves jobs until the writer is gone or one fails.
    pub(crate) fn run(&self, queue: &Receiver<FlushJob>) {
        self.mend_meta();
        while let Ok(job) = queue.recv() {
            if let Err(error) = self.flush(&job) {
                tracing::error!(%error, "flush failed; writes are refused from here on");
                let _ = self.shared.failure.set(error.to_string());
                return;
            }
        }
    }

    /// Rebuilds the meta of segments that lost it, so that they are pruned again.
    fn mend_meta(&self) {
        for segment in self
            .shared
            .load()
            .segments
            .iter()
            .filter(|segment| segment.meta.is_none())
        {
            let reopened = crate::segment::check::rebuild_meta(segment)
                .and_then(|()| Segment::open(segment.path(), segment.id, &self.cache))
                .map(|mut reopened| {
                    (reopened.hashes, reopened.standing) = (segment.hashes, segment.standing);
                    reopened
                });
            match reopened {
                Ok(reopened) => self.shared.update(|view| {
                    let reopened = Arc::new(reopened);
                    for known in Arc::make_mut(&mut view.segments)
                        .iter_mut()
                        .filter(|known| known.id == reopened.id)
                    {
                        *known = Arc::clone(&reopened);
                    }
                }),
                Err(error) => {
                    tracing::warn!(%error, "meta of a segment cannot be rebuilt; it is searched without")
                }
            }
        }
    }

    fn flush(&self, job: &FlushJob) -> Result<()> {
        // An earlier job may have taken some of these already.
        let live = self.shared.load();
        let waiting =
            |memtable: &&Arc<Memtable>| live.memtables.iter().any(|known| known.wal == memtable.wal);
        let memtables: Vec<Arc<Memtable>> = job.memtables.iter().filter(waiting).cloned().collect();
        let Some(last_wal) = memtables.iter().map(|memtable| memtable.wal).max() else {
            return Ok(());
        };
        let id = self.reserve_segment();
        let written = self.write_segment(&memtables, id)?;
        let mut manifest = self.manifest();
        let mut next = Manifest {
            first_wal: last_wal + 1,
            ..manifest.clone()
        };
        let mut segment = None;
        if let Some((entry, opened)) = written {
            next.segments.push(entry);
            // From here on the writer may forget them and ask the filters.
            self.windows.insert_batch(&issuances_of(&memtables));
            segment = Some(opened);
        }
        let new_issuers = job.view.issuers.get(next.issuers as usize..).unwrap_or(&[]);
        next.issuers_bytes =
            crate::dictionary::append(&self.dir, next.issuers_bytes, next.issuers, new_issuers)?;
        next.issuers += new_issuers.len() as u32;
        next.next_seq = job.view.next_seq;
        next.totals = job.view.totals.clone();
        for log in &mut next.logs {
            if let Some(seen) = job.view.logs.iter().find(|seen| seen.number == log.number) {
                log.ranges.clone_from(&seen.ranges);
                log.progress = Arc::clone(&seen.progress);
            }
        }
        next.publish(&self.dir)?;
        *manifest = next;
        drop(manifest);
        let marks: Vec<SegmentMark> = segment.iter().map(|segment| segment.mark()).collect();
        self.shared.update(|view| {
            Arc::make_mut(&mut view.segments).extend(segment);
            view.memtables.retain(|memtable| memtable.wal > last_wal);
        });
        self.windows.cover(&marks);
        self.windows.roll((self.now)());
        self.remove_wals(last_wal)
    }

    /// The id of a new segment; compaction takes ids from the same counter.
    fn reserve_segment(&self) -> u64 {
        let mut manifest = self.manifest();
        manifest.next_segment += 1;
        manifest.next_segment - 1
    }

    fn manifest(&self) -> MutexGuard<'_, Manifest> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes one segment of all memtables, unless they are empty. No lock is held meanwhile.
    fn write_segment(
        &self,
        memtables: &[Arc<Memtable>],
        id: u64,
    ) -> Result<Option<(SegmentEntry, Arc<Segment>)>> {
        let runs: Vec<Arc<Run>> = memtables
            .iter()
            .flat_map(|memtable| memtable.runs.iter().cloned())
            .collect();
        let records: usize = runs.iter().map(|run| run.records()).sum();
        if records == 0 {
            return Ok(None);
        }
        let month = month_of((self.now)());
        let folder = self.dir.join(&month);
        if !folder.is_dir() {
            std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
            tamis_durable::sync_dir(&self.dir)?;
        }
        let mut entry = SegmentEntry {
            id,
            month,
            holds: Holds::Everything,
            tier: 0,
            run: id,
            keys: KeyPart::default(),
            hashes: HashPart::default(),
            bytes: 0,
            rows: 0,
            records: 0,
        };
        let path = entry.path(&self.dir);
        let mut writer = SegmentWriter::create(&path, id, Holds::Everything, self.suffixes.clone())?;
        let run = Run::merge(&runs);
        entry.rows = write_rows(&run, &mut writer)?;
        entry.records = write_records(&runs, &mut writer)?;
        entry.bytes = writer.finish()?;
        let segment = Segment::open_entry(&self.dir, &entry, &self.cache)?;
        tracing::debug!(
            segment = id,
            rows = entry.rows,
            records = entry.records,
            bytes = entry.bytes,
            "flushed"
        );
        Ok(Some((entry, Arc::new(segment))))
    }

    fn remove_wals(&self, last: u64) -> Result<()> {
        for number in crate::recover::wal_numbers(&self.dir)? {
            if number > last {
                continue;
            }
            let path = wal_path(&self.dir, number);
            if self.damaged_wals.contains(&number) {
                let kept = path.with_extension("wal.damaged");
                std::fs::hard_link(&path, &kept).map_err(Error::io("keep aside", &kept))?;
            }
            std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
        Ok(())
    }
}

/// Issuances and the ends of their validity, but for copies that tell no date.
fn issuances_of(memtables: &[Arc<Memtable>]) -> Vec<(u64, Option<i64>)> {
    let runs = memtables.iter().flat_map(|memtable| &memtable.runs);
    runs.flat_map(|run| run.issuances()).collect()
}

/// The folder of a time: `2026-11`.
pub(crate) fn month_of(seconds: i64) -> String {
    let time = time::OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    format!("{:04}-{:02}", time.year(), u8::from(time.month()))
}

/// Rows in order, equal ones folded.
fn write_rows(run: &Run, writer: &mut SegmentWriter) -> Result<u64> {
    let mut written = 0;
    let mut rows = run.rows_in_order();
    let mut next = rows.next();
    while let Some((key, mut attrs)) = next {
        next = rows.next();
        while let Some((_, same)) =
            next.filter(|(other, row)| row.issuance == attrs.issuance && *other == key)
        {
            attrs.fold(&same);
            next = rows.next();
        }
        if attrs.organization != 0 {
            attrs.organization = writer.organization(run.organization(attrs.organization));
        }
        writer.row(key, &attrs)?;
        written += 1;
    }
    writer.finish_rows()?;
    Ok(written)
}

/// Records in order of discovery, copies folded into what they copy where that is here too.
fn write_records(runs: &[Arc<Run>], writer: &mut SegmentWriter) -> Result<u64> {
    let copies = Copies::of(runs);
    let mut waiting = copies.sorted.iter().peekable();
    let mut written = 0;
    let mut group = Group::default();
    for (number, run) in runs.iter().enumerate() {
        for record in 0..run.records() {
            let Some((seq, copy_of)) = run.seqs(record) else {
                break;
            };
            if copy_of.is_some_and(|original| copies.has_original(runs, original)) {
                continue;
            }
            group.parts.extend(part(runs, (number, record)));
            while let Some(copy) = waiting.next_if(|copy| copy.original == seq) {
                group.parts.extend(part(runs, copy.place));
            }
            group.fold(writer)?;
            written += 1;
        }
    }
    Ok(written)
}

/// Number of a run and of a record in it.
type Place = (usize, usize);

/// A record in its wire form with its seq and issuer.
type Part<'r> = (WireRecord<'r>, u64, u32);

fn part(runs: &[Arc<Run>], (run, record): Place) -> Option<Part<'_>> {
    runs.get(run)?.wire_record(record)
}

/// A copy whose original is in the same memtables.
struct Copy {
    original: u64,
    seq: u64,
    place: Place,
}

/// Records that follow one another in seq and in place.
struct Stretch {
    seqs: std::ops::Range<u64>,
    first: Place,
}

struct Copies {
    /// By original, then seq.
    sorted: Vec<Copy>,
    stretches: Vec<Stretch>,
}

impl Copies {
    fn of(runs: &[Arc<Run>]) -> Self {
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut sorted = Vec::new();
        for (number, run) in runs.iter().enumerate() {
            for record in 0..run.records() {
                let Some((seq, copy_of)) = run.seqs(record) else {
                    break;
                };
                let place = (number, record);
                match stretches.last_mut() {
                    Some(last) if last.seqs.end == seq && last.first.0 == number => last.seqs.end += 1,
                    _ => stretches.push(Stretch {
                        seqs: seq..seq + 1,
                        first: place,
                    }),
                }
                sorted.extend(copy_of.map(|original| Copy { original, seq, place }));
            }
        }
        let mut copies = Self {
            sorted: Vec::new(),
            stretches,
        };
        sorted.retain(|copy| copies.has_original(runs, copy.original));
        sorted.sort_unstable_by_key(|copy| (copy.original, copy.seq));
        copies.sorted = sorted;
        copies
    }

    /// True when the record with this seq is here, and no copy itself.
    fn has_original(&self, runs: &[Arc<Run>], seq: u64) -> bool {
        let behind = self
            .stretches
            .partition_point(|stretch| stretch.seqs.start <= seq);
        let stretch = behind.checked_sub(1).and_then(|at| self.stretches.get(at));
        let Some(Stretch { seqs, first }) = stretch.filter(|stretch| stretch.seqs.contains(&seq)) else {
            return false;
        };
        let record = first.1 + (seq - seqs.start) as usize;
        let found = runs.get(first.0).and_then(|run| run.seqs(record));
        found == Some((seq, None))
    }
}

/// Buffers for folding the parts of one record, kept from record to record.
#[derive(Default)]
struct Group<'r> {
    /// What to fold, by seq.
    parts: Vec<Part<'r>>,
    fingerprints: Vec<Fingerprint>,
    positions: Vec<Position>,
    names: Vec<(&'r [u8], NameBits)>,
    common_names: Vec<&'r str>,
}

impl Group<'_> {
    /// Writes the record that the parts make, and is empty again.
    fn fold(&mut self, writer: &mut SegmentWriter) -> Result<()> {
        let Self {
            parts,
            fingerprints,
            positions,
            names,
            common_names,
        } = self;
        // The oldest part that is not slim tells everything that parts share.
        let whole = parts.iter().find(|(wire, ..)| !wire.slim).or(parts.first());
        let Some((wire, _, issuer)) = whole else {
            return Ok(());
        };
        fingerprints.clear();
        positions.clear();
        names.clear();
        common_names.clear();
        for (part, ..) in parts.iter() {
            fingerprints.extend(part.fingerprints());
            positions.extend(part.positions());
        }
        settle_fingerprints(fingerprints);
        settle_positions(positions);
        // One of them may have been indexed with a larger limit on names.
        let most = parts.iter().max_by_key(|part| part.0.names_count);
        names.extend(most.map_or(wire, |(part, ..)| part).names());
        sort_names(names);
        common_names.extend(wire.common_names());
        writer.record(&RecordView {
            issuance: wire.issuance,
            seq: parts.first().map_or(0, |part| part.1),
            copy_of: parts.first().and_then(|part| part.0.copy_of),
            slim: wire.slim,
            serial: wire.serial,
            fingerprints,
            positions,
            first_seen: parts.iter().map(|part| part.0.first_seen).min().unwrap_or(0),
            not_before: wire.not_before,
            not_after: wire.not_after,
            issuer: *issuer,
            organization: wire.organization(),
            common_names,
            names_total: parts.iter().map(|part| part.0.names_total).max().unwrap_or(0),
            deviations: parts.iter().fold(0, |all, part| all | part.0.deviations),
            names,
        })?;
        parts.clear();
        Ok(())
    }
}
