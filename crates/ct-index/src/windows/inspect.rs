//! What the filter files of a folder say, seen by whoever does not own them.
//!
//! # Concurrency
//! No lock is taken and nothing is written: the owner goes on. It publishes a state before it removes the files
//! of the old one, so a file that is missing means reading the state again. All of it is as of the owner's last
//! checkpoint: what its memory holds cannot be seen from here.
//!
//! # Limits
//! One file of a window is mapped at a time, at most [`FILES_MAX`] of one window. Digests are not compared, which
//! would read every byte: `complete` is what the state records.

use std::path::Path;

use serde::Serialize;
use tamis_bloom::FilterView;

use super::SegmentMark;
use super::open::FOLDER;
use super::pending::random;
use super::state::{Found, RecordedStatus, RecordedWindow, State};
use super::stats::{WindowStats, random_keys};
use super::window::{FILES_MAX, path_of};

/// Readings of a state while its owner replaces files.
const ATTEMPTS: u32 = 10;
/// Keys asked at once when a rate is measured.
const BATCH_KEYS: u64 = 65_536;

/// The filters of a folder, as its files tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FilterFiles {
    /// Whether they can be asked.
    pub state: FiltersState,
    /// Why not, where damage or a newer Tamis is the reason.
    pub reason: Option<String>,
    /// Bytes of all files.
    pub bytes: u64,
    /// Segments whose issuances are all in the files.
    pub segments_covered: u64,
    /// Segments whose issuances are not: the owner still has them in memory, or reads them again.
    pub segments_missing: u64,
    /// Each window that ever had a key.
    pub windows: Vec<WindowFiles>,
}

/// Whether filters can be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FiltersState {
    /// There are none: they were never wanted, or are not yet made. Every issuance is looked up.
    #[default]
    None,
    /// There is something that is no state of filters: they start anew at the next opening.
    Unreadable,
    /// A segment or a window is missing.
    Incomplete,
    /// They hold every segment.
    Complete,
}

impl FiltersState {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Unreadable => "unreadable",
            Self::Incomplete => "incomplete",
            Self::Complete => "complete",
        }
    }
}

/// A window, as its files tell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowFiles {
    /// Sizes and expectations; the status is the recorded one, or `incomplete` where a file cannot be used.
    #[serde(flatten)]
    pub stats: WindowStats,
    /// How often random keys were "maybe", if that was asked for.
    pub measured_rate: Option<f64>,
    /// What is wrong with a file.
    pub fault: Option<String>,
}

/// Looks at the filters of the index in `dir`, whose segments are `live`. With `questions`, each window that has
/// files is asked for so many random keys, which reads a page of 4 KiB for each key and file.
pub(crate) fn look(dir: &Path, live: &[SegmentMark], questions: u64) -> FilterFiles {
    let folder = dir.join(FOLDER);
    let mut read = State::read(&folder);
    for _ in 1..ATTEMPTS {
        let Ok(Found::State(state)) = &read else { break };
        let (told, gone) = tell(&folder, state, live, questions);
        if !gone {
            return told;
        }
        let again = State::read(&folder);
        // Published as it was: the file is lost, not replaced.
        if matches!(&again, Ok(Found::State(again)) if again == state) {
            return told;
        }
        read = again;
    }
    let (state, reason) = match read {
        Ok(Found::State(state)) => return tell(&folder, &state, live, questions).0,
        Ok(Found::Nothing(None)) => (FiltersState::None, None),
        Ok(Found::Nothing(reason)) => (FiltersState::Unreadable, reason),
        Err(trouble) => (FiltersState::Unreadable, Some(trouble.to_string())),
    };
    FilterFiles {
        state,
        reason,
        segments_missing: live.len() as u64,
        ..FilterFiles::default()
    }
}

/// Also whether a file is not there.
fn tell(folder: &Path, state: &State, live: &[SegmentMark], questions: u64) -> (FilterFiles, bool) {
    let mut gone = false;
    let windows: Vec<WindowFiles> = state
        .windows
        .iter()
        .map(|window| WindowFiles::of(folder, window, questions, &mut gone))
        .collect();
    let covered = live.iter().filter(|mark| state.covered.contains(mark)).count() as u64;
    let missing = live.len() as u64 - covered;
    let incomplete = windows.iter().any(|window| window.stats.status == INCOMPLETE);
    let told = FilterFiles {
        state: if missing > 0 || incomplete {
            FiltersState::Incomplete
        } else {
            FiltersState::Complete
        },
        reason: None,
        bytes: windows.iter().map(|window| window.stats.bytes).sum(),
        segments_covered: covered,
        segments_missing: missing,
        windows,
    };
    (told, gone)
}

const INCOMPLETE: &str = "incomplete";

impl WindowFiles {
    fn of(folder: &Path, recorded: &RecordedWindow, questions: u64, gone: &mut bool) -> Self {
        let mut told = Self {
            stats: WindowStats {
                window: recorded.window.to_string(),
                status: match recorded.status {
                    RecordedStatus::Complete => "complete",
                    RecordedStatus::Incomplete => INCOMPLETE,
                    RecordedStatus::Closed => "closed",
                },
                files: 0,
                bytes: 0,
                keys: 0,
                planned: 0,
                expected_rate: 0.0,
            },
            measured_rate: None,
            fault: None,
        };
        let mut files = Vec::new();
        for file in recorded.files.iter().take(FILES_MAX) {
            match FilterView::open(&path_of(folder, recorded.window, file.id)) {
                Ok(view) => files.push(view),
                Err(error) => {
                    *gone |= is_gone(&error);
                    told.stats.status = INCOMPLETE;
                    told.fault = Some(error.to_string());
                }
            }
        }
        let mut new = 1.0;
        for file in &files {
            told.stats.files += 1;
            told.stats.bytes += file.geometry().file_bytes();
            told.stats.keys += file.keys_synced();
            told.stats.planned += file.geometry().keys_planned();
            new *= 1.0 - file.geometry().false_positive_rate_at(file.keys_synced());
        }
        told.stats.expected_rate = 1.0 - new;
        if questions > 0 && !files.is_empty() {
            told.measured_rate = Some(measure(&files, questions));
        }
        told
    }
}

/// The part of `questions` random keys that one of `files` may hold.
fn measure(files: &[FilterView], questions: u64) -> f64 {
    let mut maybe = 0;
    for start in (0..questions).step_by(BATCH_KEYS as usize) {
        let mut keys: Vec<u64> = random_keys(random(), BATCH_KEYS.min(questions - start)).collect();
        for file in files {
            let mut seen = vec![false; keys.len()];
            file.may_hold_batch(&keys, &mut seen);
            maybe += seen.iter().filter(|seen| **seen).count() as u64;
            let mut seen = seen.into_iter();
            keys.retain(|_| !seen.next().unwrap_or(false));
        }
    }
    maybe as f64 / questions as f64
}

fn is_gone(error: &tamis_bloom::Error) -> bool {
    matches!(
        error,
        tamis_bloom::Error::Storage(tamis_durable::Error::Io { source, .. })
            if source.kind() == std::io::ErrorKind::NotFound
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::tests::{DAY, Issuance, NEVER, NOW, filter_files, hash, mark, settle, small};
    use super::super::{Windows, WindowsStats};
    use super::*;

    const QUESTIONS: u64 = 100_000;

    fn issuances(numbers: std::ops::Range<u64>, days: i64) -> Vec<Issuance> {
        numbers.map(|n| (hash(n), Some(NOW + days * DAY))).collect()
    }

    fn filled(dir: &Path) -> Windows {
        let windows = Windows::open(dir, NEVER, NOW, small());
        settle(&windows);
        windows.insert_batch(&issuances(0..6_000, 3));
        windows.insert_batch(&issuances(6_000..7_000, 40));
        windows.cover(&[mark(1)]);
        windows
    }

    /// What the owner says of the same files.
    fn assert_as_owned(told: &FilterFiles, owned: &WindowsStats) {
        assert_eq!(told.bytes, owned.bytes);
        assert_eq!(told.segments_covered, owned.segments_covered);
        let told: Vec<&WindowStats> = told.windows.iter().map(|window| &window.stats).collect();
        assert_eq!(told, owned.windows.iter().collect::<Vec<_>>());
    }

    #[test]
    fn what_is_seen_is_what_the_owner_says_while_it_owns_and_after() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(look(dir.path(), &[], 9), FilterFiles::default());
        let windows = filled(dir.path());
        let owned = windows.stats();
        assert_eq!(owned.windows.len(), 2);
        assert!(owned.windows[0].files > 1, "a chain: {owned:?}");
        let told = look(dir.path(), &[mark(1)], 0);
        assert_as_owned(&told, &owned);
        assert_eq!((told.state, told.segments_missing), (FiltersState::Complete, 0));
        assert!(told.windows.iter().all(|window| window.measured_rate.is_none()));
        let told = look(dir.path(), &[mark(1), mark(2)], 0);
        assert_eq!((told.state, told.segments_missing), (FiltersState::Incomplete, 1));
        windows.finish();
        drop(windows);
        assert_as_owned(&look(dir.path(), &[mark(1)], 0), &owned);
    }

    #[test]
    fn the_measured_rate_is_near_the_expected_one() {
        let dir = tempfile::tempdir().unwrap();
        let _windows = filled(dir.path());
        let told = look(dir.path(), &[mark(1)], QUESTIONS);
        for window in &told.windows {
            let (expected, measured) = (window.stats.expected_rate, window.measured_rate.unwrap());
            // Five standard deviations of the count, and one in five for the filter's own luck.
            let spread = 5.0 * (expected / QUESTIONS as f64).sqrt() + expected / 5.0;
            assert!((measured - expected).abs() < spread, "{window:?}");
        }
        let full = told.windows[0].measured_rate.unwrap();
        assert!(full > 0.0, "asked of nothing: {told:?}");
    }

    #[test]
    fn a_file_that_is_lost_or_damaged_is_told_and_the_rest_too() {
        type Harm = fn(&Path);
        let harms: [(Harm, &str); 3] = [
            (|path| std::fs::remove_file(path).unwrap(), "does not exist"),
            (|path| std::fs::write(path, b"no filter").unwrap(), ""),
            (
                |path| {
                    let mut bytes = std::fs::read(path).unwrap();
                    bytes[20] ^= 1;
                    std::fs::write(path, bytes).unwrap();
                },
                "damaged at byte",
            ),
        ];
        for (harm, said) in harms {
            let dir = tempfile::tempdir().unwrap();
            drop(filled(dir.path()));
            harm(&filter_files(dir.path())[0]);
            let told = look(dir.path(), &[mark(1)], 10);
            assert_eq!(told.state, FiltersState::Incomplete);
            let faults: Vec<&String> = told.windows.iter().filter_map(|w| w.fault.as_ref()).collect();
            assert_eq!(faults.len(), 1, "{told:?}");
            assert!(faults[0].contains(said), "{faults:?}");
            assert!(told.bytes > 0);
        }
    }

    #[test]
    fn a_damaged_state_is_unreadable_and_no_error() {
        let dir = tempfile::tempdir().unwrap();
        drop(filled(dir.path()));
        std::fs::write(dir.path().join("filters/STATE"), b"TAMISWIN and more").unwrap();
        let told = look(dir.path(), &[mark(1)], 10);
        assert_eq!((told.state, told.segments_missing), (FiltersState::Unreadable, 1));
        assert!(told.reason.unwrap().contains("STATE"));
        std::fs::remove_file(dir.path().join("filters/STATE")).unwrap();
        std::fs::create_dir(dir.path().join("filters/STATE")).unwrap();
        assert_eq!(look(dir.path(), &[], 10).state, FiltersState::Unreadable);
    }

    /// Checkpoints that make files, and months that drop them, while somebody looks.
    #[test]
    fn looking_while_files_come_and_go_finds_no_fault() {
        let dir = tempfile::tempdir().unwrap();
        let windows = filled(dir.path());
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..40 {
                    let numbers = 10_000 + round * 2_500..12_500 + round * 2_500;
                    windows.insert_batch(&issuances(numbers, 20 + round as i64 * 31));
                    windows.cover(&[mark(2 + round)]);
                    windows.roll(NOW + round as i64 * 31 * DAY);
                }
                done.store(true, Ordering::Release);
            });
            let mut looks = 0;
            while !done.load(Ordering::Acquire) || looks == 0 {
                let told = look(dir.path(), &[], 10);
                assert_eq!(told.state, FiltersState::Complete, "{told:?}");
                looks += 1;
            }
        });
    }
}
