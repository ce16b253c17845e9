//! Bloom filters by month of expiry that tell whether an issuance can be in a segment already.
//!
//! A filter is asked with the 64-bit issuance hash as it is: it is uniform, filters mix it with their own
//! secret seeds, and more bits could only be made of the same 64.
//!
//! Reading order: [`month`], [`window`], [`pending`], [`state`], then `open`, `ask`, `checkpoint`, `settle`; `inspect` is for who does not own them.
//!
//! # The rules of a hint
//! [`Hint::New`] for (issuance, date) says: **no segment holds this issuance with this date**. Everything else
//! is [`Hint::Maybe`], and costs a look-up. It holds because
//! 1. *the caller* inserts the issuances of a segment ([`Windows::insert_batch`]) before anybody may ask the
//!    windows instead of a memory of them, and declares the segment ([`Windows::cover`]) after that;
//! 2. keys go to memory first and reach the files at a checkpoint only. A checkpoint sets bits, syncs, takes a
//!    digest of each file that changed, and then publishes the state: digests and covered segments together;
//! 3. a file counts only if its digest is the recorded one. A file that is older, newer, foreign, cut, flipped
//!    or half written by a power loss is none: its window says "maybe" until it is filled again from all segments;
//! 4. a segment that the state does not name was written without filters, or its keys were lost in memory: until
//!    it is inserted again, everything is "maybe". Segments are named by number and content ([`SegmentMark`]);
//! 5. a month that passed had a window that is dropped: "maybe" for good. A month before the first window never
//!    had one, so the others are asked; a month that came into reach is asked for among the others too, if keys
//!    of it came when it was far ahead;
//! 6. what has no date that can be read is "maybe", and what was stored without a date is asked for by everybody;
//! 7. a filter that fails, in whatever way, is off, and off is "maybe".
//!
//! # Concurrency
//! `shared` is what questions read, locked for memory accesses only. `writing` is the right to change files; who
//! takes both takes `writing` first. A question waits for no disk but for the page it reads.
//!
//! # Format
//! `docs/formats/windows.md`.
//!
//! # Limits
//! Files take [`FilterOptions::bytes_max`]; memory holds [`FilterOptions::pending_keys`] keys of about 25 bytes
//! between checkpoints, [`PENDING_FACTOR_MAX`] times as many before [`Windows::insert_batch`] makes one itself.

mod ask;
mod checkpoint;
mod inspect;
mod issuances;
mod month;
mod open;
mod pending;
mod settle;
mod state;
mod stats;
mod window;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde::{Deserialize, Serialize};
use tamis_durable::FolderLock;

use month::{Calendar, Month, WindowKey};
use pending::Pending;
use window::Window;

pub(crate) use inspect::look;
pub use inspect::{FilterFiles, FiltersState, WindowFiles};
pub(crate) use issuances::Issuances;
#[cfg(test)]
pub(crate) use settle::Settled;
pub use stats::{WindowStats, WindowsStats};

/// How many times the keys that make a checkpoint worth it may gather before inserting makes one.
const PENDING_FACTOR_MAX: usize = 8;

/// Whatever goes wrong with a filter; it ends in words, as filters fail alone.
type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// What the windows know of an issuance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    /// It is in no segment.
    New,
    /// It may be in one: look it up.
    Maybe,
}

/// A segment: its number, and what tells it from every other that ever had this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SegmentMark {
    /// Its number in the manifest.
    pub(crate) id: u64,
    /// A checksum that covers its content: numbers are given again after a crash, and in copies of a folder.
    pub(crate) stamp: u64,
}

/// Which filters an index keeps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FilterMode {
    /// Those in its folder.
    On(FilterOptions),
    /// None: every issuance that is not remembered is looked up.
    Off,
    /// The worst there can be, for tests: what it answers must change nothing but the time.
    AlwaysMaybe,
}

/// Settings of the filters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FilterOptions {
    /// Bytes of all files together; they are taken as files are made, which a new folder makes small. Beyond it
    /// windows answer "maybe" more often, at last always. Default 1 GiB; for billions of issuances 24 GB.
    pub bytes_max: u64,
    /// How many keys the first file of a window is made for. Default 65,536, about 200 KB.
    pub keys_first: u64,
    /// How often an issuance that is new is "maybe", while the budget lasts: 0.000001 to 0.25. Default 0.01.
    pub rate: f64,
    /// Keys that gather in memory before files are written. Every checkpoint writes most pages of the windows
    /// in use, and a crash in the middle of one means filling them again: make it large where windows are
    /// large. Default 1 million.
    pub pending_keys: usize,
}

impl Default for FilterOptions {
    fn default() -> Self {
        Self {
            bytes_max: 1 << 30,
            keys_first: 65_536,
            rate: 0.01,
            pending_keys: 1_000_000,
        }
    }
}

/// The filters of a folder. See the rules at the top of this file.
#[derive(Debug)]
pub(crate) struct Windows {
    options: FilterOptions,
    folder: PathBuf,
    shared: RwLock<Shared>,
    /// None when they are off.
    writing: Mutex<Option<Writing>>,
}

/// What questions read.
#[derive(Debug)]
struct Shared {
    /// Why everything is "maybe" for good, if it is.
    off: Option<String>,
    calendar: Calendar,
    windows: BTreeMap<WindowKey, Window>,
    /// Known, and in no file yet.
    pending: Pending,
    /// Those that a checkpoint is writing.
    applying: Arc<Pending>,
    /// Segments whose keys are all in a complete window, in one that is not complete, or pending.
    covered: BTreeSet<SegmentMark>,
    /// Segments to insert again.
    todo: BTreeMap<SegmentMark, Need>,
    /// Filters started anew beside segments: windows are incomplete from their birth until all are inserted.
    rebuilding: bool,
    /// Something changed since the last publication.
    unpublished: bool,
}

/// What of a segment is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// Its keys in windows that are incomplete.
    Lost,
    /// All keys.
    Everything,
}

/// The right to change files.
#[derive(Debug)]
struct Writing {
    _lock: FolderLock,
    /// Of each file that has not changed since.
    digests: HashMap<u64, u64>,
    /// Files to remove once no published state names them.
    garbage: Vec<PathBuf>,
}

impl Windows {
    /// No filters: for readers, and where nobody wants them.
    pub(crate) fn off() -> Self {
        Self::without("not wanted", FilterOptions::default())
    }

    /// Answers "maybe" to everything, as the worst filter would: with it nothing may be lost or different.
    pub(crate) fn always_maybe() -> Self {
        Self::without("made to answer maybe", FilterOptions::default())
    }

    fn without(reason: &str, options: FilterOptions) -> Self {
        let mut shared = Shared::starting(Month::of(0));
        shared.off = Some(reason.to_owned());
        Self {
            options,
            folder: PathBuf::new(),
            shared: RwLock::new(shared),
            writing: Mutex::new(None),
        }
    }

    /// Notes issuances with their dates. They are "maybe" from now on.
    ///
    /// Insert what a segment holds before the memory of it may go. A record that only adds to another one has no
    /// date of its own: leave it out, the whole one is in a segment too, or will be. (If that is lost, the next
    /// copy is "new" and brings it back.)
    pub(crate) fn insert_batch(&self, issuances: &[(u64, Option<i64>)]) {
        let pending = self.shared_mut().insert(issuances);
        if pending >= self.options.pending_keys.saturating_mul(PENDING_FACTOR_MAX) {
            self.checkpoint();
        }
    }

    /// Declares segments whose issuances were all inserted. Makes a checkpoint if it is worth it.
    pub(crate) fn cover(&self, segments: &[SegmentMark]) {
        let worth_it = {
            let mut shared = self.shared_mut();
            if shared.off.is_some() {
                return;
            }
            shared.covered.extend(segments);
            shared.unpublished = true;
            // While files wait to be verified, keys gather: a checkpoint would read all files first.
            let unverified = shared
                .windows
                .values()
                .any(|window| window.status == window::Status::Unverified);
            shared.pending.len() >= self.options.pending_keys && !unverified
        };
        if worth_it {
            self.checkpoint();
        }
    }

    /// Declares that `new` hold what `old` held; `new` may be empty when `old` were removed.
    pub(crate) fn replaced(&self, old: &[SegmentMark], new: &[SegmentMark]) {
        let mut shared = self.shared_mut();
        if shared.off.is_some() {
            return;
        }
        // What is in no list is a segment of this process that is not covered yet: its keys are here, so
        // questions are right, and the next opening inserts `new` again.
        let covered = old.iter().all(|mark| shared.covered.contains(mark));
        let need = old.iter().filter_map(|mark| shared.todo.get(mark).copied()).max();
        for mark in old {
            shared.covered.remove(mark);
            shared.todo.remove(mark);
        }
        for &mark in new {
            if covered {
                shared.covered.insert(mark);
            }
            if let Some(need) = need {
                shared.todo.insert(mark, need);
            }
        }
        shared.unpublished = true;
    }

    fn shared(&self) -> RwLockReadGuard<'_, Shared> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared_mut(&self) -> RwLockWriteGuard<'_, Shared> {
        self.shared.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// For good, and told once.
    fn turn_off(&self, writing: &mut Option<Writing>, trouble: &Trouble) {
        *writing = None;
        let mut shared = self.shared_mut();
        if shared.off.is_none() {
            tracing::warn!(
                folder = %self.folder.display(),
                reason = %trouble,
                "filters are off until the next start: every issuance is looked up, which is slower and as right"
            );
            shared.turn_off(trouble.to_string());
        }
    }
}

impl Shared {
    fn starting(now: Month) -> Self {
        Self {
            off: None,
            calendar: Calendar::starting(now),
            windows: BTreeMap::new(),
            pending: Pending::default(),
            applying: Arc::default(),
            covered: BTreeSet::new(),
            todo: BTreeMap::new(),
            rebuilding: false,
            unpublished: true,
        }
    }

    fn turn_off(&mut self, reason: String) {
        *self = Self {
            off: Some(reason),
            ..Self::starting(self.calendar.current)
        };
    }

    /// Gives how many keys are pending then.
    fn insert(&mut self, issuances: &[(u64, Option<i64>)]) -> usize {
        if self.off.is_none() {
            for &(key, not_after) in issuances {
                if let Some(window) = self.calendar.put(not_after) {
                    self.pending.insert(window, key);
                }
            }
            self.unpublished |= !issuances.is_empty();
        }
        self.pending.len()
    }

    /// Whether some segment's keys are missing, in whatever window.
    fn lacks_a_segment(&self) -> bool {
        self.todo.values().any(|need| *need == Need::Everything)
    }
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
