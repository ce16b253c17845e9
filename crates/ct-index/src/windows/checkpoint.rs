//! Keys from memory into files, and files into the state.
//!
//! # Invariants
//! Bits, sync, digests, state: in this order. Who dies in between leaves files whose digests are not those of
//! the state that is there, and they are filled again. A file of an incomplete window is in no state.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use tamis_bloom::{Filter, Geometry};

use super::month::{Month, WindowKey};
use super::pending::{Pending, random};
use super::state::{RecordedFile, RecordedStatus, RecordedWindow, State};
use super::window::{self, Status, Window, WindowFile, digest_of, path_of};
use super::{Need, SegmentMark, Shared, Trouble, Windows, Writing};

/// How many keys are set at once, and at most before the size of a file is looked at again.
pub(super) const CHUNK_KEYS: usize = 65_536;
/// A window whose last file cannot be followed by another is given up when a new key is "maybe" so often.
const RATE_CLOSED: f64 = 0.5;
/// The others may take this part of the budget, so that old certificates leave room for those of today.
const OTHERS_SHARE: u64 = 2;

/// A chain, and how many keys may be set before its last file is looked at again.
struct FilesWithRoom {
    files: Vec<Arc<WindowFile>>,
    room: usize,
}

impl Windows {
    /// Writes what is pending into the files and publishes which segments they hold. Takes long where windows
    /// are large: it reads and writes most of those in use.
    pub(crate) fn checkpoint(&self) {
        self.change(|writing| self.try_checkpoint(writing));
    }

    /// Makes a last checkpoint, so that the next opening finds nothing to insert again.
    pub(crate) fn finish(&self) {
        if self.shared().unpublished {
            self.checkpoint();
        }
    }

    /// Moves on to the month of `now`: windows of months that passed are dropped.
    pub(crate) fn roll(&self, now: i64) {
        let now = Month::of(now);
        if now <= self.shared().calendar.current {
            return;
        }
        self.change(|writing| {
            self.drop_passed(writing, now);
            self.try_checkpoint(writing)
        });
    }

    /// Does `work` with the right to change files; if it fails, filters are off.
    pub(super) fn change(&self, work: impl FnOnce(&mut Writing) -> Result<(), Trouble>) {
        let mut guard = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(trouble)) = guard.as_mut().map(work) {
            self.turn_off(&mut guard, &trouble);
        }
    }

    fn try_checkpoint(&self, writing: &mut Writing) -> Result<(), Trouble> {
        self.verify(writing);
        let (pending, covered, completed) = self.shared_mut().start_checkpoint();
        for (window, keys) in pending.by_window() {
            self.apply(writing, window, keys)?;
        }
        self.complete(writing, &completed)?;
        self.publish(writing, &covered)?;
        self.shared_mut().applying = Arc::default();
        Ok(())
    }

    /// Windows that all segments were inserted into become complete, from the moment their files are synced.
    fn complete(&self, writing: &mut Writing, completed: &[WindowKey]) -> Result<(), Trouble> {
        for &key in completed {
            let window = self.shared().windows.get(&key).cloned();
            if let Some(window) = window.filter(|window| window.status == Status::Incomplete) {
                self.record(writing, key, &window)?;
                if let Some(window) = self.shared_mut().windows.get_mut(&key) {
                    window.status = Status::Complete;
                }
            }
        }
        Ok(())
    }

    /// Syncs the files of a window that changed, and takes their digests.
    fn record(&self, writing: &mut Writing, key: WindowKey, window: &Window) -> Result<(), Trouble> {
        for file in &window.files {
            if let Entry::Vacant(entry) = writing.digests.entry(file.id) {
                file.filter.sync()?;
                let path = path_of(&self.folder, key, file.id);
                entry.insert(digest_of(&path, file.filter.geometry())?);
            }
        }
        Ok(())
    }

    /// Publishes that the files hold `covered`, and removes those that no state names any more.
    fn publish(&self, writing: &mut Writing, covered: &BTreeSet<SegmentMark>) -> Result<(), Trouble> {
        let windows = self.shared().windows.clone();
        let mut recorded = Vec::with_capacity(windows.len());
        for (&key, window) in &windows {
            let status = match window.status {
                Status::Complete | Status::Unverified => RecordedStatus::Complete,
                Status::Incomplete => RecordedStatus::Incomplete,
                Status::Closed => RecordedStatus::Closed,
            };
            if status == RecordedStatus::Complete {
                self.record(writing, key, window)?;
            }
            let digest = |file: &Arc<WindowFile>| {
                let digest = *writing.digests.get(&file.id)?;
                Some(RecordedFile { id: file.id, digest })
            };
            let files = match status {
                RecordedStatus::Complete => window.files.iter().filter_map(digest).collect(),
                RecordedStatus::Incomplete | RecordedStatus::Closed => Vec::new(),
            };
            recorded.push(RecordedWindow {
                window: key,
                status,
                files,
            });
        }
        let state = State {
            calendar: self.shared().calendar.clone(),
            covered: covered.clone(),
            windows: recorded,
        };
        state.publish(&self.folder)?;
        writing.garbage.retain(|path| !removed(path));
        Ok(())
    }

    /// Sets `keys` in a window, whose chain grows as it must.
    pub(super) fn apply(&self, writing: &mut Writing, key: WindowKey, keys: &[u64]) -> Result<(), Trouble> {
        let mut rest = keys;
        while !rest.is_empty() {
            let Some(FilesWithRoom { files, room }) = self.files_with_room(writing, key)? else {
                return Ok(());
            };
            let (chunk, later) = rest.split_at(rest.len().min(room).min(CHUNK_KEYS));
            if let Some(last) = files.last() {
                writing.digests.remove(&last.id);
            }
            window::set(&files, chunk);
            rest = later;
        }
        Ok(())
    }

    /// The chain of a window with a file that takes keys; None if it takes none.
    fn files_with_room(
        &self,
        writing: &mut Writing,
        key: WindowKey,
    ) -> Result<Option<FilesWithRoom>, Trouble> {
        let window = {
            let shared = self.shared();
            if !shared.calendar.has(key) {
                return Ok(None);
            }
            shared.window_or_new(key)
        };
        if window.status == Status::Closed {
            return Ok(None);
        }
        if let Some(last) = window.files.last().filter(|file| !file.is_full()) {
            let left = last.planned() - last.filter.keys();
            let room = usize::try_from(left).unwrap_or(CHUNK_KEYS);
            let files = window.files;
            return Ok(Some(FilesWithRoom { files, room }));
        }
        let bytes_left = self.shared().bytes_left(key, self.options.bytes_max);
        if let Some(geometry) = window.next_geometry(&self.options, bytes_left) {
            let mut grown = window;
            grown.files.push(Arc::new(self.new_file(key, geometry)?));
            let files = grown.files.clone();
            self.shared_mut().windows.insert(key, grown);
            let room = usize::try_from(geometry.keys_planned()).unwrap_or(CHUNK_KEYS);
            return Ok(Some(FilesWithRoom { files, room }));
        }
        if window.files.is_empty() || window.expected_rate() >= RATE_CLOSED {
            self.empty(writing, key, Status::Closed);
            return Ok(None);
        }
        let files = window.files;
        let room = CHUNK_KEYS;
        Ok(Some(FilesWithRoom { files, room }))
    }

    fn new_file(&self, key: WindowKey, geometry: Geometry) -> Result<WindowFile, Trouble> {
        let id = random();
        let path = path_of(&self.folder, key, id);
        let filter = Filter::create(&path, geometry.with_seeds([random(), random()]))?;
        // All of it now: a page that finds the disk full later kills the process.
        if let Err(error) = filter.reserve() {
            removed(&path);
            return Err(error.into());
        }
        Ok(WindowFile { id, filter })
    }

    /// Takes the files of a window from it.
    fn empty(&self, writing: &mut Writing, key: WindowKey, status: Status) {
        let files = Vec::new();
        let emptied = self.shared_mut().windows.insert(key, Window { status, files });
        self.discard(writing, key, emptied);
    }

    fn discard(&self, writing: &mut Writing, key: WindowKey, window: Option<Window>) {
        for file in window.map(|window| window.files).unwrap_or_default() {
            writing.digests.remove(&file.id);
            writing.garbage.push(path_of(&self.folder, key, file.id));
        }
    }

    fn drop_passed(&self, writing: &mut Writing, now: Month) {
        let mut shared = self.shared_mut();
        shared.calendar.advance(now);
        let passed: Vec<WindowKey> = shared
            .windows
            .keys()
            .filter(|key| !shared.calendar.has(**key))
            .copied()
            .collect();
        for key in passed {
            let window = shared.windows.remove(&key);
            self.discard(writing, key, window);
        }
    }

    /// Compares the files that were there at the opening with what is recorded of them.
    pub(super) fn verify(&self, writing: &mut Writing) {
        let unverified: Vec<(WindowKey, Window)> = self
            .shared()
            .windows
            .iter()
            .filter(|(_, window)| window.status == Status::Unverified)
            .map(|(key, window)| (*key, window.clone()))
            .collect();
        for (key, window) in unverified {
            let strange = window.files.iter().find(|file| {
                let path = path_of(&self.folder, key, file.id);
                digest_of(&path, file.filter.geometry()).ok() != writing.digests.get(&file.id).copied()
            });
            if let Some(file) = strange {
                let path = path_of(&self.folder, key, file.id);
                tracing::warn!(file = %path.display(), "a filter is not what it was at the last checkpoint; it is filled again from the segments");
                self.empty(writing, key, Status::Incomplete);
                self.shared_mut().refill();
            } else if let Some(window) = self.shared_mut().windows.get_mut(&key) {
                window.status = Status::Complete;
            }
        }
    }
}

impl Shared {
    /// Hands over what is pending, with the segments that are covered by it and the files, and the windows
    /// that all segments are in.
    fn start_checkpoint(&mut self) -> (Arc<Pending>, BTreeSet<SegmentMark>, Vec<WindowKey>) {
        self.applying = Arc::new(std::mem::take(&mut self.pending));
        self.unpublished = false;
        let mut completed = Vec::new();
        if self.todo.is_empty() {
            self.rebuilding = false;
            let incomplete = self
                .windows
                .iter()
                .filter(|(_, window)| window.status == Status::Incomplete);
            completed.extend(incomplete.map(|(key, _)| *key));
        }
        (Arc::clone(&self.applying), self.covered.clone(), completed)
    }

    /// Every segment has to be read again for windows that lost their files.
    pub(super) fn refill(&mut self) {
        for &mark in &self.covered {
            self.todo.entry(mark).or_insert(Need::Lost);
        }
        self.unpublished = true;
    }

    pub(super) fn window_or_new(&self, key: WindowKey) -> Window {
        self.windows.get(&key).cloned().unwrap_or_else(|| Window {
            status: if self.rebuilding {
                Status::Incomplete
            } else {
                Status::Complete
            },
            files: Vec::new(),
        })
    }

    /// Bytes that the budget has left for a window.
    fn bytes_left(&self, key: WindowKey, bytes_max: u64) -> u64 {
        let left = |bytes_max: u64, used: u64| bytes_max.saturating_sub(used);
        let all = left(bytes_max, self.windows.values().map(Window::bytes).sum());
        if key == WindowKey::Others {
            let others = self.windows.get(&key).map_or(0, Window::bytes);
            all.min(left(bytes_max / OTHERS_SHARE, others))
        } else {
            all
        }
    }
}

/// True when the file is gone.
fn removed(path: &Path) -> bool {
    match std::fs::remove_file(path) {
        Ok(()) => true,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}
