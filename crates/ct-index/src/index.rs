//! The index of one folder and its only writer.
//!
//! # Concurrency
//! One [`Index`] owns a folder (lock file). [`Index::append`] may be called from many threads; they take
//! turns. A background thread turns frozen memtables into segments. Readers never wait for either.
//!
//! # Invariants
//! What [`Index::commit`] acknowledged survives a crash, once. A batch is judged, numbered, logged and
//! made visible in one order: the order of the write-ahead log.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tamis_durable::FolderLock;
use tamis_durable::frames::FrameWriter;
use tamis_hostname::PublicSuffixes;

use crate::batch::Batch;
use crate::compact::cycle::{self, Cycle, Parts};
use crate::compact::pace::Pace;
use crate::compact::prune::{Progress, Prune, Pruned};
use crate::compact::{Compacted, Policy};
use crate::flush::{FlushJob, Flusher};
use crate::folder;
use crate::known::KnownIssuances;
use crate::manifest::{LogEntry, Manifest};
use crate::memtable::Memtable;
use crate::recover::{self, Loaded, ReplayedWal, WAL_FORMAT, wal_path};
use crate::segment::BlockCache;
use crate::snapshot::Snapshot;
use crate::view::{Shared, View};
use crate::windows::{FilterMode, FilterOptions, Issuances, SegmentMark, Windows, WindowsStats};
use crate::writer::Writer;
use crate::{Error, Result};

/// Settings of an index. Libraries take values: nothing here reads the environment.
#[derive(Clone)]
pub struct Options {
    /// A memtable of this many rows becomes a segment. More rows make fewer, larger segments and cost
    /// memory (about 120 bytes each). Default 200,000.
    pub flush_rows: usize,
    /// Bytes of log frames that are written and synced together. Default 4 MiB.
    pub commit_bytes: u64,
    /// A batch waits at most this long for others before it is synced with them. Default 50 ms.
    pub commit_interval: Duration,
    /// Memory for decoded blocks. Default 256 MiB.
    pub cache_bytes: usize,
    /// The wall clock, seconds since 1970; names the month's folder.
    pub now: fn() -> i64,
    /// Which domains are registrable; names the domains of a segment. Default: the list shipped.
    pub public_suffixes: SuffixList,
    /// Under which a new folder computes identities of issuances; `None` draws a key at random, as it
    /// should be but for tests.
    pub identity_key: Option<[u64; 4]>,
    /// Filters that spare looking up new issuances.
    pub filters: FilterMode,
    /// Merging in the background; `None` for never. Default every 30 s.
    pub compaction: Option<Cycle>,
    /// How blocks are read.
    #[cfg(feature = "readers")]
    pub reader: crate::readers::Reader,
}

/// The shipped public suffix list, or a newer one.
#[derive(Clone, Default)]
pub struct SuffixList(Option<Arc<PublicSuffixes>>);

impl SuffixList {
    /// A list that was refreshed since this program was built.
    pub fn refreshed(list: PublicSuffixes) -> Self {
        Self(Some(Arc::new(list)))
    }

    /// The list.
    pub fn get(&self) -> &PublicSuffixes {
        self.0.as_deref().unwrap_or_else(|| PublicSuffixes::shipped())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            flush_rows: 200_000,
            commit_bytes: 4 << 20,
            commit_interval: Duration::from_millis(50),
            cache_bytes: 256 << 20,
            now: || {
                std::time::SystemTime::now()
                    .duration_since(std::time::UNIX_EPOCH)
                    .map_or(0, |now| now.as_secs() as i64)
            },
            public_suffixes: SuffixList::default(),
            identity_key: None,
            filters: FilterMode::On(FilterOptions::default()),
            compaction: Some(Cycle::default()),
            #[cfg(feature = "readers")]
            reader: crate::readers::Reader::default(),
        }
    }
}

/// Frozen memtables that may wait for the flusher; then appending waits.
const FROZEN_MAX: usize = 4;

/// What became of the observations of one batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Issuances that were not known.
    pub new: u64,
    /// Copies of known issuances that brought a fingerprint, a position or an earlier date.
    pub copies: u64,
    /// Copies that brought nothing.
    pub duplicates: u64,
    /// Name rows of the new issuances.
    pub rows: u64,
}

impl std::ops::AddAssign for Outcome {
    fn add_assign(&mut self, other: Self) {
        self.new += other.new;
        self.copies += other.copies;
        self.duplicates += other.duplicates;
        self.rows += other.rows;
    }
}

/// The owner of a folder.
pub struct Index {
    dir: PathBuf,
    options: Options,
    shared: Arc<Shared>,
    manifest: Arc<Mutex<Manifest>>,
    writer: Mutex<Writer>,
    flusher: Mutex<Option<JoinHandle<()>>>,
    compacting: Arc<Parts>,
    compactor: Mutex<Option<JoinHandle<()>>>,
    filling: Mutex<Option<JoinHandle<()>>>,
    _lock: FolderLock,
}

impl Index {
    /// Opens or makes the index of a folder and becomes its owner.
    pub fn open(dir: &Path, options: Options) -> Result<Self> {
        std::fs::create_dir_all(recover::wal_dir(dir)).map_err(Error::io("create", dir))?;
        let mut lock = FolderLock::acquire(dir)?;
        lock.remove_stale_temps()?;
        let cache = BlockCache::of(&options);
        let mut loaded = recover::load(dir, &cache)?;
        if loaded.is_none() {
            folder::refuse_orphans(dir)?;
            let key = options.identity_key.unwrap_or_else(random_key);
            Manifest::first(key).publish(dir)?;
            loaded = recover::load(dir, &cache)?;
        }
        let loaded = loaded.ok_or_else(|| Error::NoIndex { path: dir.to_owned() })?;
        Self::start(dir, options, lock, cache, loaded)
    }

    fn start(
        dir: &Path,
        options: Options,
        lock: FolderLock,
        cache: Arc<BlockCache>,
        loaded: Loaded,
    ) -> Result<Self> {
        let Loaded {
            mut manifest,
            mut view,
            wals,
            mut known,
        } = loaded;
        clean_up(dir, &mut manifest, &wals)?;
        let next_wal = number_of_next(&manifest, &wals);
        known.rotate(next_wal, manifest.first_wal);
        let frozen: Vec<Arc<Memtable>> = view.memtables.clone();
        let (jobs, queue) = sync_channel(FROZEN_MAX);
        let windows = Arc::new(open_windows(dir, &options, &view));
        let writer = Writer::start(dir, next_wal, known, Arc::clone(&windows), jobs, &mut view)?;
        if manifest.generation == 1 {
            // From the second generation on, a missing log file is a loss and not a birth cut short.
            manifest.publish(dir)?;
        }
        let damaged = wals.iter().filter(|wal| wal.damaged);
        let shared = Shared::new(view);
        let manifest = Arc::new(Mutex::new(manifest));
        let flusher = Flusher {
            dir: dir.to_owned(),
            shared: Arc::clone(&shared),
            manifest: Arc::clone(&manifest),
            cache: Arc::clone(&cache),
            now: options.now,
            suffixes: options.public_suffixes.clone(),
            windows: Arc::clone(&windows),
            damaged_wals: damaged.map(|wal| wal.number).collect(),
        };
        let thread = spawn_flusher(flusher, queue, dir)?;
        let compacting = Arc::new(Parts {
            dir: dir.to_owned(),
            shared: Arc::clone(&shared),
            manifest: Arc::clone(&manifest),
            cache,
            suffixes: options.public_suffixes.clone(),
            windows: Arc::clone(&windows),
            pace: Pace::default(),
            running: Mutex::new(()),
        });
        let (compactor, filling) = spawn_background(&compacting, options.compaction)?;
        let index = Self {
            dir: dir.to_owned(),
            options,
            shared,
            manifest,
            writer: Mutex::new(writer),
            flusher: Mutex::new(Some(thread)),
            compacting,
            compactor: Mutex::new(compactor),
            filling: Mutex::new(Some(filling)),
            _lock: lock,
        };
        index.settle_replayed(frozen)?;
        Ok(index)
    }

    /// Replayed memtables that are large or damaged become segments now; the rest waits in memory and
    /// in its file, and goes with the next flush.
    fn settle_replayed(&self, frozen: Vec<Arc<Memtable>>) -> Result<()> {
        let rows: usize = frozen.iter().map(|memtable| memtable.rows()).sum();
        let many = frozen.len() > FROZEN_MAX;
        if rows >= self.options.flush_rows / 2 || many {
            let view = self.shared.load();
            self.send(&mut self.lock(), FlushJob::of(&view, frozen, None))?;
        }
        Ok(())
    }

    /// The key under which this folder computes identities of issuances: whoever appends must use it.
    /// It is a secret, or a certificate authority could make certificates that pass for one.
    pub fn identity_key(&self) -> [u64; 4] {
        self.manifest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .identity_key
    }

    /// Rows that wait in memory for the disk; appending waits on its own where there are far too many.
    pub fn waiting_rows(&self) -> usize {
        self.shared.load().memtable_rows()
    }

    /// Rows of a memtable that becomes a segment.
    pub fn flush_rows(&self) -> usize {
        self.options.flush_rows
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What readers see now: everything that was committed.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.shared.load())
    }

    /// The number of a log, which is registered if it is new. Number 0 is the local import.
    pub fn register_log(&self, name: &str) -> Result<u16> {
        let _writer = self.lock();
        let mut manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        let view = self.shared.load();
        if let Some(log) = view.logs.iter().find(|log| log.name == name) {
            return Ok(log.number);
        }
        let number = view
            .logs
            .iter()
            .map(|log| log.number)
            .max()
            .unwrap_or(0)
            .checked_add(1)
            .ok_or(Error::TooLarge {
                what: "logs",
                found: u64::from(u16::MAX) + 1,
                limit: u64::from(u16::MAX),
            })?;
        let log = LogEntry::new(number, name.to_owned());
        manifest.logs.push(log.clone());
        manifest.publish(&self.dir)?;
        self.shared.update(|view| Arc::make_mut(&mut view.logs).push(log));
        Ok(number)
    }

    /// Counts a registered log apart from here on, or no longer ([`LogEntry::apart`]).
    pub fn count_apart(&self, number: u16, apart: bool) -> Result<()> {
        let _writer = self.lock();
        let mut manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(log) = manifest.logs.iter_mut().find(|log| log.number == number) else {
            return Ok(());
        };
        if log.apart == apart {
            return Ok(());
        }
        log.apart = apart;
        manifest.publish(&self.dir)?;
        self.shared.update(|view| {
            let logs = Arc::make_mut(&mut view.logs);
            if let Some(log) = logs.iter_mut().find(|log| log.number == number) {
                log.apart = apart;
            }
        });
        Ok(())
    }

    /// Judges and logs a batch. It is durable and visible after [`Self::commit`], which also happens by
    /// itself when enough has gathered.
    pub fn append(&self, batch: &Batch) -> Result<Outcome> {
        if batch.tells_nothing() {
            return Ok(Outcome::default());
        }
        let mut writer = self.lock();
        self.check()?;
        let outcome = writer.log(batch, &self.shared.load()).inspect_err(|error| {
            // Records were judged that the log does not hold: going on could drop their copies.
            let _ = self.shared.failure.set(error.to_string());
        })?;
        let old = writer
            .oldest_pending
            .is_some_and(|since| since.elapsed() >= self.options.commit_interval);
        if old || writer.wal.pending_bytes() >= self.options.commit_bytes {
            self.commit_locked(&mut writer)?;
        }
        Ok(outcome)
    }

    /// Makes everything appended durable and visible.
    pub fn commit(&self) -> Result<()> {
        let mut writer = self.lock();
        self.check()?;
        self.commit_locked(&mut writer)
    }

    fn commit_locked(&self, writer: &mut Writer) -> Result<()> {
        writer.oldest_pending = None;
        if writer.pending.is_empty() {
            return Ok(());
        }
        writer.wal.commit()?;
        let pending = std::mem::take(&mut writer.pending);
        let next_seq = writer.next_seq;
        let mut heads = Vec::with_capacity(pending.len());
        for (run, head) in pending {
            if run.records() > 0 {
                writer.active.push(run);
            }
            heads.push(head);
        }
        let active = Arc::new(writer.active.clone());
        self.shared.update(|view| {
            for head in &heads {
                view.totals.add(&head.totals);
                if !head.new_issuers.is_empty() {
                    Arc::make_mut(&mut view.issuers)
                        .extend(head.new_issuers.iter().map(|issuer| Arc::from(issuer.as_ref())));
                }
                head.advance(&mut view.logs);
            }
            view.next_seq = next_seq;
            if let Some(last) = view.memtables.last_mut() {
                *last = active;
            }
        });
        if writer.active.rows() >= self.options.flush_rows {
            self.freeze(writer, None)?;
        }
        Ok(())
    }

    /// Starts a new memtable and hands the full one to the flusher.
    fn freeze(&self, writer: &mut Writer, done: Option<SyncSender<()>>) -> Result<()> {
        let first_wal = self
            .manifest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .first_wal;
        let next = writer.active.wal + 1;
        let wal = FrameWriter::create(&wal_path(&self.dir, next), WAL_FORMAT, next)?;
        writer.wal = wal;
        writer.known.rotate(next, first_wal);
        writer.active = Memtable {
            wal: next,
            ..Memtable::default()
        };
        let active = Arc::new(writer.active.clone());
        // Frozen here is all that no earlier job has taken: the flusher removes what it finished, and
        // jobs run in order, so taking a memtable twice is harmless but for the work.
        let view = self.shared.load();
        let frozen = view.memtables.clone();
        self.shared.update(|view| view.memtables.push(active));
        self.send(writer, FlushJob::of(&view, frozen, done))
    }

    fn send(&self, writer: &mut Writer, job: FlushJob) -> Result<()> {
        let sent = writer.jobs.as_ref().map(|jobs| jobs.send(job));
        if matches!(sent, Some(Ok(()))) {
            return Ok(());
        }
        self.check()?;
        Err(Error::Refusing {
            reason: "the flusher is gone".to_owned(),
        })
    }

    /// Commits, turns everything into segments and waits for it.
    pub fn flush(&self) -> Result<()> {
        let waiting = self.freeze_all(&mut self.lock())?;
        // The flusher drops the sender when it stops, done or failed.
        let _ = waiting.recv();
        self.check()
    }

    /// Commits and hands everything to the flusher, which drops the other end when it is done.
    fn freeze_all(&self, writer: &mut Writer) -> Result<Receiver<()>> {
        self.check()?;
        self.commit_locked(writer)?;
        let (done, waiting) = sync_channel(1);
        self.freeze(writer, Some(done))?;
        Ok(waiting)
    }

    /// Merges segments until the policy finds nothing more to merge. Reading and appending go on.
    pub fn compact(&self, policy: &Policy) -> Result<Compacted> {
        self.compact_with(policy, |_| {})
    }

    /// As [`Self::compact`]; `progress` is told after each merge.
    pub fn compact_with(&self, policy: &Policy, progress: impl FnMut(&Compacted)) -> Result<Compacted> {
        self.compacting.compact(policy, 0, progress)
    }

    /// How full the filters are. With `questions`, also how often each says "maybe" to that many random
    /// issuances that nobody has.
    pub fn filters(&self, questions: u64) -> (WindowsStats, Vec<(String, f64)>) {
        let windows = &self.compacting.windows;
        (windows.stats(), windows.measure_rates(questions))
    }

    /// Removes what `prune` names, for good and at once: after a crash all of it is there, or none.
    /// Reading goes on, also of snapshots taken before; appending waits until it is done. `progress` is
    /// told how far it is.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where damage keeps records, rows or look-ups from being read: nothing was
    /// removed.
    pub fn prune(&self, prune: &Prune, mut progress: impl FnMut(Progress)) -> Result<Pruned> {
        self.compacting.alone(0, |compactor| {
            // Held to the end: a copy appended meanwhile would refer to a record that goes.
            let mut writer = self.lock();
            let _ = self.freeze_all(&mut writer)?.recv();
            self.check()?;
            let pruned = compactor.prune(prune, &mut progress)?;
            if !prune.dry_run {
                // What was removed is new when it comes again; what stays is looked up.
                writer.known = KnownIssuances::default();
                let wal = writer.active.wal;
                writer.known.rotate(wal, wal);
            }
            Ok(pruned)
        })
    }

    /// Commits, flushes what is worth a segment, and ends the background thread.
    pub fn close(self) -> Result<()> {
        self.commit()?;
        if self.shared.load().memtable_rows() >= self.options.flush_rows / 10 {
            self.flush()?;
        }
        self.stop();
        self.compacting.windows.finish();
        self.check()
    }

    fn stop(&self) {
        self.lock().jobs = None;
        self.compacting.pace.stop();
        for thread in [&self.flusher, &self.compactor, &self.filling] {
            let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(thread) = thread {
                let _ = thread.join();
            }
        }
    }

    fn check(&self) -> Result<()> {
        self.shared.check()
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The number of the log file that is written next.
fn number_of_next(manifest: &Manifest, wals: &[ReplayedWal]) -> u64 {
    let behind = wals.iter().map(|wal| wal.number + 1);
    behind.fold(manifest.first_wal, u64::max)
}

/// Removes what a crash left.
fn clean_up(dir: &Path, manifest: &mut Manifest, wals: &[ReplayedWal]) -> Result<()> {
    if manifest.generation > 1 && !manifest.is_published(dir) {
        // A crash between the two copies, or damage to one: from here on both count again. The first
        // generation is followed by a second once there is a log file: a reader takes a missing one for a loss.
        manifest.publish(dir)?;
    }
    folder::remove_strangers(dir, manifest)?;
    folder::cut_torn_tails(dir, wals)
}

fn open_windows(dir: &Path, options: &Options, view: &View) -> Windows {
    let filters = match options.filters {
        FilterMode::On(filters) => filters,
        FilterMode::Off => return Windows::off(),
        FilterMode::AlwaysMaybe => return Windows::always_maybe(),
    };
    Windows::open(dir, &view.marks(), (options.now)(), filters)
}

/// The threads that merge, if they shall, and fill the filters.
fn spawn_background(
    parts: &Arc<Parts>,
    cycle: Option<Cycle>,
) -> Result<(Option<JoinHandle<()>>, JoinHandle<()>)> {
    let compactor = cycle
        .map(|cycle| cycle::spawn(Arc::clone(parts), cycle))
        .transpose()
        .map_err(Error::io("start the compaction thread of", &parts.dir))?;
    let filling = spawn_filling(parts).map_err(Error::io("start the filter thread of", &parts.dir))?;
    Ok((compactor, filling))
}

/// Compares the filters with what is recorded of them and fills them again where they lack something.
fn spawn_filling(parts: &Arc<Parts>) -> std::io::Result<JoinHandle<()>> {
    let (windows, parts) = (Arc::clone(&parts.windows), Arc::clone(parts));
    let fill = move || {
        let read = |mark: SegmentMark| {
            let view = parts.shared.load();
            let segment = view.segments.iter().find(|segment| segment.mark() == mark);
            Ok(segment.map(|segment| Issuances::of(Arc::clone(segment), &parts.pace)))
        };
        match windows.catch_up(read) {
            Ok(_) | Err(Error::Stopped) => {}
            Err(error) => tracing::warn!(%error, "filters stay incomplete; copies are looked up instead"),
        }
    };
    std::thread::Builder::new()
        .name("tamis-filters".to_owned())
        .spawn(fill)
}

/// Hashes under keys that the system drew: as hard to guess as those.
fn random_key() -> [u64; 4] {
    use std::hash::BuildHasher as _;
    [0u8; 4].map(|nothing| std::hash::RandomState::new().hash_one(nothing))
}

fn spawn_flusher(flusher: Flusher, queue: Receiver<FlushJob>, dir: &Path) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name("tamis-flush".to_owned())
        .spawn(move || flusher.run(&queue))
        .map_err(Error::io("start the flush thread of", dir))
}
