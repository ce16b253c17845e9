//! What the filter files are known to hold: which segments, in which files, with which content.
//!
//! # Format
//! A sealed file (`docs/formats/sealed.md`) with JSON inside, see `docs/formats/windows.md`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tamis_durable::sealed;

use super::SegmentMark;
use super::month::{Calendar, WindowKey};

const MAGIC: [u8; 8] = *b"TAMISWIN";
const VERSION: u32 = 1;
const FORMAT: sealed::Format = sealed::Format {
    magic: MAGIC,
    version: VERSION,
};
const NAME: &str = "STATE";
/// A million segments and a window in every month of ten thousand years stay below this.
const BYTES_MAX: u64 = 64 << 20;

/// The payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    first_month: String,
    current_month: String,
    strays: Vec<String>,
    covered: Vec<SegmentMark>,
    windows: Vec<WindowPayload>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WindowPayload {
    window: String,
    status: RecordedStatus,
    files: Vec<RecordedFile>,
}

/// What a window was at the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RecordedStatus {
    /// Its files hold every key of the covered segments that belongs here.
    Complete,
    /// It must be filled again from all segments.
    Incomplete,
    /// It was given up, as the budget had no room for a useful one.
    Closed,
}

/// A filter file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedFile {
    pub(super) id: u64,
    /// Over all that does not change without a key: see [`super::window::digest_of`].
    pub(super) digest: u64,
}

/// What a window and its files were at the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordedWindow {
    pub(super) window: WindowKey,
    pub(super) status: RecordedStatus,
    /// Of a complete window; the others have none.
    pub(super) files: Vec<RecordedFile>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) calendar: Calendar,
    pub(super) covered: BTreeSet<SegmentMark>,
    pub(super) windows: Vec<RecordedWindow>,
}

/// What was found in place of a state.
#[derive(Debug)]
pub(super) enum Found {
    State(State),
    /// None, or one that says nothing: filters start anew.
    Nothing(Option<String>),
}

pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

impl State {
    pub(super) fn publish(&self, folder: &Path) -> Result<(), super::Trouble> {
        let json = serde_json::to_vec(&self.payload())?;
        Ok(sealed::publish(&path(folder), FORMAT, &json)?)
    }

    /// Damage is no error: it is "nothing", with the reason.
    ///
    /// # Errors
    /// The disk fails, or a newer Tamis wrote it, whose files are not ours to remove.
    pub(super) fn read(folder: &Path) -> Result<Found, super::Trouble> {
        use tamis_durable::Error;
        let nothing = |reason: String| Ok(Found::Nothing(Some(reason)));
        match sealed::read(&path(folder), FORMAT, BYTES_MAX) {
            Ok(payload) => Ok(match Self::decode(&payload) {
                Some(state) => Found::State(state),
                None => Found::Nothing(Some(format!(
                    "{}: the state does not parse",
                    path(folder).display()
                ))),
            }),
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(Found::Nothing(None))
            }
            Err(error @ (Error::Corrupt { .. } | Error::WrongMagic { .. } | Error::TooLarge { .. })) => {
                nothing(error.to_string())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn payload(&self) -> Payload {
        Payload {
            first_month: self.calendar.first.to_string(),
            current_month: self.calendar.current.to_string(),
            strays: self.calendar.strays.iter().map(ToString::to_string).collect(),
            covered: self.covered.iter().copied().collect(),
            windows: self
                .windows
                .iter()
                .map(|window| WindowPayload {
                    window: window.window.to_string(),
                    status: window.status,
                    files: window.files.clone(),
                })
                .collect(),
        }
    }

    /// Accepts exactly what [`payload`](Self::payload) gives.
    fn decode(json: &[u8]) -> Option<Self> {
        let payload: Payload = serde_json::from_slice(json).ok()?;
        let state = Self {
            calendar: Calendar {
                first: payload.first_month.parse().ok()?,
                current: payload.current_month.parse().ok()?,
                strays: payload
                    .strays
                    .iter()
                    .map(|month| month.parse().ok())
                    .collect::<Option<_>>()?,
            },
            covered: payload.covered.iter().copied().collect(),
            windows: payload
                .windows
                .iter()
                .map(|window| {
                    Some(RecordedWindow {
                        window: window.window.parse().ok()?,
                        status: window.status,
                        files: window.files.clone(),
                    })
                })
                .collect::<Option<_>>()?,
        };
        let names: BTreeSet<_> = state.windows.iter().map(|window| window.window).collect();
        let files = || state.windows.iter().flat_map(|window| &window.files);
        let ids: BTreeSet<_> = files().map(|file| file.id).collect();
        let sound = state.calendar.first <= state.calendar.current
            && names.len() == state.windows.len()
            && ids.len() == files().count()
            && state
                .windows
                .iter()
                .all(|window| window.files.is_empty() != (window.status == RecordedStatus::Complete))
            && state.payload() == payload;
        sound.then_some(state)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::month::Month;
    use super::*;

    const GOLDEN: &[u8] = include_bytes!("../../testdata/windows/state-v1");

    fn example() -> State {
        let now = Month::of(1_796_000_000);
        let mut calendar = Calendar::starting(now);
        calendar.strays.insert(now.plus(17));
        calendar.advance(now.plus(1));
        let marks = [(3, u64::MAX), (7, 1), (8, 0)].map(|(id, stamp)| SegmentMark { id, stamp });
        let window = |window, status, files: &[(u64, u64)]| RecordedWindow {
            window,
            status,
            files: files
                .iter()
                .map(|&(id, digest)| RecordedFile { id, digest })
                .collect(),
        };
        State {
            calendar,
            covered: marks.into(),
            windows: vec![
                window(
                    WindowKey::Month(now.plus(2)),
                    RecordedStatus::Complete,
                    &[(5, 6), (u64::MAX, 9)],
                ),
                window(WindowKey::Others, RecordedStatus::Closed, &[]),
                window(WindowKey::Undated, RecordedStatus::Incomplete, &[]),
            ],
        }
    }

    fn read(bytes: &[u8]) -> Found {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(path(dir.path()), bytes).unwrap();
        State::read(dir.path()).unwrap()
    }

    #[test]
    fn what_is_published_is_read_back_byte_for_byte_as_ever() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(State::read(dir.path()), Ok(Found::Nothing(None))));
        example().publish(dir.path()).unwrap();
        let written = std::fs::read(path(dir.path())).unwrap();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all("testdata/windows").unwrap();
            std::fs::write("testdata/windows/state-v1", &written).unwrap();
        }
        assert_eq!(
            written.escape_ascii().to_string(),
            GOLDEN.escape_ascii().to_string()
        );
        assert!(matches!(read(GOLDEN), Found::State(state) if state == example()));
    }

    #[test]
    fn every_flip_and_every_cut_is_nothing_and_says_so() {
        for at in 0..GOLDEN.len() {
            let mut flipped = GOLDEN.to_vec();
            flipped[at] ^= 1 << (at % 8);
            assert!(matches!(read(&flipped), Found::Nothing(Some(_))), "flip at {at}");
            assert!(
                matches!(read(&GOLDEN[..at]), Found::Nothing(Some(_))),
                "cut at {at}"
            );
        }
    }

    #[test]
    fn a_newer_version_is_an_error_and_not_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let format = sealed::Format {
            version: VERSION + 1,
            ..FORMAT
        };
        sealed::publish(&path(dir.path()), format, b"{}").unwrap();
        let error = State::read(dir.path()).unwrap_err();
        assert!(error.to_string().contains("version 2"), "{error}");
    }

    #[test]
    fn what_no_writer_writes_is_refused() {
        let json = serde_json::to_string(&example().payload()).unwrap();
        assert_eq!(State::decode(json.as_bytes()), Some(example()));
        for (from, to) in [
            ("others", "2026-13"),
            ("others", "undated"),
            ("closed", "complete"),
            ("complete", "closed"),
            ("\"id\":5", "\"id\":18446744073709551615"),
            ("\"strays\"", "\"stray\""),
            ("\"first_month\":\"2026", "\"first_month\":\"2036"),
            ("\"covered\":[{\"id\":3", "\"covered\":[{\"id\":9"),
        ] {
            let changed = json.replacen(from, to, 1);
            assert_ne!(changed, json, "{from}");
            assert_eq!(State::decode(changed.as_bytes()), None, "{changed}");
        }
    }
}
