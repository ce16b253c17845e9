//! Reads frames back, and goes on behind damage.

use std::fmt;
use std::path::{Path, PathBuf};

use super::format::{FRAME_HEADER_BYTES, Flaw, HEADER_BYTES, Header, MARKER, find_marker};
use crate::error::{Error, Result, corrupt};
use crate::format::Format;

/// How many bytes one reader hashes in search of the next whole frame: a file made of markers must not cost
/// the square of its length.
const SEARCH_HASHED_BYTES_MAX: u64 = 16 << 30;
/// The smallest unit in which disks write; a torn write is zero from such a boundary on.
const SECTOR_BYTES: usize = 512;

/// A whole frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Where the frame starts in the file, its header first: what [`FrameWriter::append`] gave.
    ///
    /// [`FrameWriter::append`]: super::FrameWriter::append
    pub offset: u64,
    /// What was appended.
    pub payload: &'a [u8],
}

/// A stretch of the file that is no whole frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Where it starts.
    pub offset: u64,
    /// How long it is; the next frame, if any, starts behind it.
    pub bytes: u64,
    /// What is wrong at its start.
    pub reason: String,
    /// What to make of it.
    pub kind: DamageKind,
}

/// What to make of [`Damage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DamageKind {
    /// A write that a crash cut off: runs to the end of the file, and the frame is incomplete or the rest is
    /// zeros. It was never acknowledged; cut it off and go on.
    Torn,
    /// Bytes that changed after they were written. What they held may have been acknowledged; say so.
    Damaged,
}

impl Damage {
    /// This damage as an error about `path`.
    pub fn to_error(&self, path: &Path) -> Error {
        corrupt(
            path,
            self.offset,
            format!("{} ({} bytes)", self.reason, self.bytes),
        )
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.kind {
            DamageKind::Torn => "torn",
            DamageKind::Damaged => "damaged",
        };
        write!(
            f,
            "{word} at byte {}, {} bytes: {}",
            self.offset, self.bytes, self.reason
        )
    }
}

/// Gives the frames of a file in order; where there is none, the damage, and then the next frame.
///
/// Give it a [`Map`](crate::Map) or the bytes of a read; it copies nothing. Cost: one hash of every payload.
#[derive(Debug)]
pub struct FrameReader<'a> {
    path: PathBuf,
    file: &'a [u8],
    header: Header,
    at: usize,
    torn_at: Option<usize>,
    /// Where the zeros start that end the file; known once a search found no frame up to the end. So a chain of
    /// damaged frames is searched once, not once for each.
    tail_zeros_at: Option<usize>,
    pub(super) search_bytes_left: u64,
}

impl<'a> FrameReader<'a> {
    /// Reads the whole file `file`; `path` is for messages.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::WrongMagic`], [`Error::FutureVersion`] or [`Error::OldVersion`] if the file
    /// header is not one of `format`.
    pub fn new(path: &Path, file: &'a [u8], format: Format) -> Result<Self> {
        let header = Header::decode(path, file, format)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            header,
            at: HEADER_BYTES as usize,
            torn_at: None,
            tail_zeros_at: None,
            search_bytes_left: SEARCH_HASHED_BYTES_MAX,
        })
    }

    /// The number the file was created with.
    pub fn number(&self) -> u64 {
        self.header.number
    }

    /// The path given to [`new`](Self::new).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where [`FrameWriter::open_append`] goes on, once all frames were read: before a torn tail, else the end.
    ///
    /// [`FrameWriter::open_append`]: super::FrameWriter::open_append
    pub fn append_offset(&self) -> u64 {
        self.torn_at.unwrap_or(self.file.len()) as u64
    }

    /// The damage at `self.at`, where `flaw` was found.
    fn damage(&mut self, flaw: Flaw) -> Damage {
        let start = self.at;
        let mut reason = flaw.to_string();
        let (end, kind) = match self.next_frame_after(start) {
            Search::Found(next) => (next, DamageKind::Damaged),
            Search::None { zeros_at } => judge_tail(self.header, self.file, start, flaw, zeros_at),
            Search::GivenUp => {
                reason.push_str("; too many false markers behind it, the search was given up");
                (self.file.len(), DamageKind::Damaged)
            }
        };
        if kind == DamageKind::Torn {
            self.torn_at = Some(start);
        }
        self.at = end;
        Damage {
            offset: start as u64,
            bytes: (end - start) as u64,
            reason,
            kind,
        }
    }

    fn next_frame_after(&mut self, start: usize) -> Search {
        if let Some(zeros_at) = self.tail_zeros_at {
            return Search::None { zeros_at };
        }
        let mut from = start + 1;
        while let Some(at) = find_marker(self.file, from) {
            let cost = Header::frame_cost(self.file, at);
            let Some(left) = self.search_bytes_left.checked_sub(cost) else {
                return Search::GivenUp;
            };
            self.search_bytes_left = left;
            if self.header.decode_frame(self.file, at).is_ok() {
                return Search::Found(at);
            }
            from = at + 1;
        }
        let zeros_at = self
            .file
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(0, |last| last + 1);
        self.tail_zeros_at = Some(zeros_at);
        Search::None { zeros_at }
    }
}

impl<'a> Iterator for FrameReader<'a> {
    type Item = Result<Frame<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.file.len() {
            return None;
        }
        match self.header.decode_frame(self.file, self.at) {
            Ok(payload) => {
                let offset = self.at as u64;
                self.at += FRAME_HEADER_BYTES as usize + payload.len();
                Some(Ok(Frame { offset, payload }))
            }
            Err(flaw) => Some(Err(self.damage(flaw))),
        }
    }
}

enum Search {
    Found(usize),
    /// No whole frame up to the end of the file, which is zero from `zeros_at` on.
    None {
        zeros_at: usize,
    },
    GivenUp,
}

/// Where the damage from `start` ends, and its kind, given that no whole frame follows it.
fn judge_tail(header: Header, file: &[u8], start: usize, flaw: Flaw, zeros_at: usize) -> (usize, DamageKind) {
    match flaw {
        Flaw::HeaderCut | Flaw::PayloadCut { .. } => (file.len(), DamageKind::Torn),
        Flaw::NoMarker if zeros_at <= start || marker_unwritten(file, start, zeros_at) => {
            (file.len(), DamageKind::Torn)
        }
        Flaw::NoMarker | Flaw::TooLong { .. } | Flaw::LengthWrong => (file.len(), DamageKind::Damaged),
        Flaw::Checksum { end } => {
            // The length got to the disk and the rest of the frame did not.
            let unwritten_at = zeros_at.max(start + 1).next_multiple_of(SECTOR_BYTES);
            if unwritten_at < end {
                return (file.len(), DamageKind::Torn);
            }
            // A damaged frame and a torn one behind it are two things, if the length can be believed.
            let torn_behind = match header.decode_frame(file, end) {
                Err(Flaw::NoMarker) => zeros_at <= end,
                Err(_) | Ok(_) => true,
            };
            (if torn_behind { end } else { file.len() }, DamageKind::Damaged)
        }
    }
}

/// Whether a sector boundary parts the marker at `start` into what was written and zeros.
fn marker_unwritten(file: &[u8], start: usize, zeros_at: usize) -> bool {
    let unwritten_at = zeros_at.next_multiple_of(SECTOR_BYTES);
    file.get(start..unwritten_at)
        .is_some_and(|written| MARKER.starts_with(written))
}
