//! Opening the folder of filters: what is believed, what is removed, what must be inserted again.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

use tamis_bloom::Filter;
use tamis_durable::FolderLock;

use super::month::{Month, WindowKey};
use super::state::{Found, RecordedStatus, RecordedWindow, State};
use super::window::{SUFFIX, Status, Window, WindowFile, path_of};
use super::{FilterOptions, Need, SegmentMark, Shared, Trouble, Windows, Writing};

/// Folder of the filters in that of the index. Its owner may remove it whenever nobody has the index open.
pub(super) const FOLDER: &str = "filters";
/// A clock that is set back so many months is an hour at the end of a month; more is a clock that was wrong.
const CLOCK_BACK_MONTHS_MAX: u32 = 1;
const RATE_MIN: f64 = 0.000_001;
const RATE_MAX: f64 = 0.25;

impl Windows {
    /// Opens the filters in the folder of an index whose segments are `live`, at the time `now`.
    ///
    /// This reads little and never fails: filters that cannot be used are off. Until
    /// [`catch_up`](Self::catch_up) ran once, most answers are "maybe".
    pub(crate) fn open(dir: &Path, live: &[SegmentMark], now: i64, options: FilterOptions) -> Self {
        let folder = dir.join(FOLDER);
        Self::try_open(&folder, live, Month::of(now), options.sane()).unwrap_or_else(|trouble| {
            tracing::warn!(
                folder = %folder.display(),
                reason = %trouble,
                "filters are off: every issuance is looked up, which is slower and as right"
            );
            Self::without(&trouble.to_string(), options)
        })
    }

    fn try_open(
        folder: &Path,
        live: &[SegmentMark],
        now: Month,
        options: FilterOptions,
    ) -> Result<Self, Trouble> {
        std::fs::create_dir_all(folder)?;
        let mut lock = FolderLock::acquire(folder)?;
        lock.remove_stale_temps()?;
        let state = read_state(folder, now)?;
        let mut writing = Writing {
            _lock: lock,
            digests: HashMap::new(),
            garbage: Vec::new(),
        };
        let mut shared = Shared::starting(now);
        if let Some(state) = &state {
            let moved = shared.take_calendar(state, now);
            let lost = shared.take_windows(folder, state, &mut writing)?;
            shared.covered = live
                .iter()
                .filter(|mark| state.covered.contains(mark))
                .copied()
                .collect();
            shared.unpublished = moved || shared.covered != state.covered;
            if lost {
                shared.refill();
            }
        }
        for &mark in live.iter().filter(|mark| !shared.covered.contains(mark)) {
            shared.todo.insert(mark, Need::Everything);
        }
        shared.rebuilding = state.is_none() && !shared.todo.is_empty();
        remove_strangers(folder, &shared)?;
        Ok(Self {
            options,
            folder: folder.to_owned(),
            shared: RwLock::new(shared),
            writing: Mutex::new(Some(writing)),
        })
    }
}

impl FilterOptions {
    fn sane(self) -> Self {
        let rate = if self.rate.is_nan() {
            Self::default().rate
        } else {
            self.rate
        };
        Self {
            keys_first: self.keys_first.max(1),
            rate: rate.clamp(RATE_MIN, RATE_MAX),
            pending_keys: self.pending_keys.max(1),
            ..self
        }
    }
}

/// None if filters start anew.
fn read_state(folder: &Path, now: Month) -> Result<Option<State>, Trouble> {
    let reason = match State::read(folder)? {
        Found::State(state) if state.calendar.current.since(now) <= CLOCK_BACK_MONTHS_MAX => {
            return Ok(Some(state));
        }
        Found::State(state) => format!("they are of {}, and the clock says {now}", state.calendar.current),
        Found::Nothing(Some(reason)) => reason,
        Found::Nothing(None) => return Ok(None),
    };
    tracing::warn!(folder = %folder.display(), reason, "filters start anew and are filled from the segments");
    Ok(None)
}

impl Shared {
    /// True if the state is of an earlier month.
    fn take_calendar(&mut self, state: &State, now: Month) -> bool {
        self.calendar = state.calendar.clone();
        self.calendar.advance(now)
    }

    /// Takes the windows of a state; true if keys of a covered segment are missing in one.
    fn take_windows(&mut self, folder: &Path, state: &State, writing: &mut Writing) -> Result<bool, Trouble> {
        let mut lost = false;
        for recorded in &state.windows {
            if !self.calendar.has(recorded.window) {
                continue;
            }
            let window = match recorded.status {
                RecordedStatus::Complete => open_files(folder, recorded)?,
                RecordedStatus::Incomplete => Window::without_files(Status::Incomplete),
                RecordedStatus::Closed => Window::without_files(Status::Closed),
            };
            if window.status == Status::Unverified {
                writing
                    .digests
                    .extend(recorded.files.iter().map(|file| (file.id, file.digest)));
            }
            lost |= window.status == Status::Incomplete;
            self.windows.insert(recorded.window, window);
        }
        Ok(lost)
    }
}

impl Window {
    fn without_files(status: Status) -> Self {
        Self {
            status,
            files: Vec::new(),
        }
    }
}

fn open_files(folder: &Path, recorded: &RecordedWindow) -> Result<Window, Trouble> {
    let mut window = Window::without_files(Status::Unverified);
    for file in &recorded.files {
        let path = path_of(folder, recorded.window, file.id);
        match open_file(&path)? {
            Some(filter) => window.files.push(Arc::new(WindowFile { id: file.id, filter })),
            None => return Ok(Window::without_files(Status::Incomplete)),
        }
    }
    Ok(window)
}

/// None if it is gone, or no filter any more.
fn open_file(path: &Path) -> Result<Option<Filter>, Trouble> {
    use tamis_bloom::{Blame, Error};
    match Filter::open(path) {
        Ok(filter) => {
            // A copy of the file may have holes again, and a hole that finds the disk full kills the process.
            filter.reserve()?;
            Ok(Some(filter))
        }
        Err(Error::Storage(tamis_durable::Error::Io { source, .. }))
            if source.kind() == std::io::ErrorKind::NotFound =>
        {
            tracing::warn!(file = %path.display(), "a filter is missing; it is filled again from the segments");
            Ok(None)
        }
        Err(error) if matches!(error.kind(), Blame::Corrupt | Blame::Input) => {
            tracing::warn!(%error, "a filter is filled again from the segments");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Removes filters that no window has: of a crash, of a dropped month, of a damaged state.
fn remove_strangers(folder: &Path, shared: &Shared) -> Result<(), Trouble> {
    let path = |key: &WindowKey, file: &Arc<WindowFile>| path_of(folder, *key, file.id);
    let kept: BTreeSet<PathBuf> = shared
        .windows
        .iter()
        .flat_map(|(key, window)| window.files.iter().map(move |file| path(key, file)))
        .collect();
    for entry in std::fs::read_dir(folder)? {
        let found = entry?.path();
        let is_filter = found
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().ends_with(SUFFIX.as_bytes()));
        if is_filter && !kept.contains(&found) {
            std::fs::remove_file(&found)?;
        }
    }
    Ok(())
}
