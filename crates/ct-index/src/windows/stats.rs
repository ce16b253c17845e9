//! How full the windows are, and how often they say "maybe" for nothing.

use super::month::WindowKey;
use super::pending::random;
use super::window::{Placed, Window};
use super::{Need, Windows};

/// Keys asked at once when a rate is measured.
const BATCH_KEYS: u64 = 65_536;

/// All windows.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct WindowsStats {
    /// Why filters are off, if they are.
    pub off: Option<String>,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes that they may take.
    pub bytes_max: u64,
    /// Keys in memory that are in no file yet.
    pub pending_keys: u64,
    /// Segments that the windows hold.
    pub segments_covered: u64,
    /// Segments to insert again: while there are any, everything is "maybe".
    pub segments_missing: u64,
    /// Segments to read again for windows that lost their files.
    pub segments_to_read: u64,
    /// Months whose windows were dropped since the first.
    pub months_dropped: u32,
    /// Each window that ever had a key.
    pub windows: Vec<WindowStats>,
}

/// A window.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct WindowStats {
    /// `2026-11`, `others` or `undated`.
    pub window: String,
    /// `complete`; or `unverified`, `incomplete`, `closed`, which all answer "maybe".
    pub status: &'static str,
    /// Files of its chain, each asked for a new key.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Keys they hold.
    pub keys: u64,
    /// Keys they are made for; above it the rate rises.
    pub planned: u64,
    /// How likely a new key is "maybe", from the number of keys.
    pub expected_rate: f64,
}

impl WindowsStats {
    /// Keys over keys planned of the fullest window; over 1 it says "maybe" more often than it should.
    pub fn saturation(&self) -> f64 {
        let planned = self.windows.iter().filter(|window| window.planned > 0);
        let saturations = planned.map(|window| window.keys as f64 / window.planned as f64);
        saturations.fold(0.0, f64::max)
    }
}

impl WindowStats {
    fn of(key: WindowKey, window: &Window) -> Self {
        let files = &window.files;
        Self {
            window: key.to_string(),
            status: window.status.name(),
            files: files.len() as u64,
            bytes: window.bytes(),
            keys: files.iter().map(|file| file.filter.keys()).sum(),
            planned: files.iter().map(|file| file.planned()).sum(),
            expected_rate: window.expected_rate(),
        }
    }

    /// Keys held over keys planned.
    pub fn saturation(&self) -> f64 {
        self.keys as f64 / self.planned.max(1) as f64
    }
}

impl Windows {
    /// Sizes and expectations.
    pub(crate) fn stats(&self) -> WindowsStats {
        let shared = self.shared();
        let needing = |need| shared.todo.values().filter(|found| **found == need).count() as u64;
        WindowsStats {
            off: shared.off.clone(),
            bytes: shared.windows.values().map(Window::bytes).sum(),
            bytes_max: self.options.bytes_max,
            pending_keys: (shared.pending.len() + shared.applying.len()) as u64,
            segments_covered: shared.covered.len() as u64,
            segments_missing: needing(Need::Everything),
            segments_to_read: shared.todo.len() as u64,
            months_dropped: shared.calendar.current.since(shared.calendar.first),
            windows: shared
                .windows
                .iter()
                .map(|(key, window)| WindowStats::of(*key, window))
                .collect(),
        }
    }

    /// Asks the files of each window for `questions` random keys, which were never inserted: the part that is
    /// "maybe", by window. Takes some 50 ns a question and file where the files are in memory.
    pub(crate) fn measure_rates(&self, questions: u64) -> Vec<(String, f64)> {
        let windows = self.shared().windows.clone();
        let measured = windows.iter().map(|(key, window)| {
            let maybe: u64 = (0..questions)
                .step_by(BATCH_KEYS as usize)
                .map(|start| maybe_of_random(window, BATCH_KEYS.min(questions - start)))
                .sum();
            (key.to_string(), maybe as f64 / questions.max(1) as f64)
        });
        measured.collect()
    }
}

/// How many of `count` random keys the window may hold.
fn maybe_of_random(window: &Window, count: u64) -> u64 {
    let mut keys: Vec<Placed> = random_keys(random(), count)
        .map(|key| Placed { key, at: 0 })
        .collect();
    let mut maybe = 0;
    window.sift(&mut keys, |_| maybe += 1);
    maybe
}

/// Keys that nobody inserted.
pub(super) fn random_keys(seed: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |number| xxhash_rust::xxh3::xxh3_64_with_seed(&number.to_le_bytes(), seed))
}
