//! The bytes of a frames file, without I/O.
//!
//! # Format
//! `docs/formats/frames.md`.

use std::path::Path;

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use crate::bytes::{array_at, u32_at, u64_at};
use crate::error::{Result, corrupt};
use crate::format::{Format, check_start};

/// Bytes of the file header: magic, version, number, salt, checksum.
pub const HEADER_BYTES: u64 = 36;
/// Bytes before the payload of a frame: marker, length, checksum.
pub const FRAME_HEADER_BYTES: u64 = 16;
/// The largest payload of one frame.
pub const PAYLOAD_BYTES_MAX: u64 = 256 << 20;

const NUMBER_AT: usize = 12;
const SALT_AT: usize = 20;
const CHECKSUM_AT: usize = 28;

/// What a frame starts with. No UTF-8 text contains 0xF5, and no proper suffix is a prefix.
pub(super) const MARKER: [u8; 4] = [0xF5, 0x9D, 0xC3, 0x1E];

/// The fields of a file header that vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// What the owner calls this file: the place in its sequence of files.
    pub(super) number: u64,
    /// Random; part of every frame's seed.
    pub(super) salt: u64,
}

impl Header {
    /// The file header.
    pub(super) fn encode(self, format: Format) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES as usize);
        bytes.extend(format.magic);
        bytes.extend(format.version.to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.salt.to_le_bytes());
        bytes.extend(self.checksum(format.magic, format.version).to_le_bytes());
        bytes
    }

    /// The header at the start of `file`, which may be all of the file or its start.
    pub(super) fn decode(path: &Path, file: &[u8], format: Format) -> Result<Self> {
        let fields = (
            u64_at(file, NUMBER_AT),
            u64_at(file, SALT_AT),
            u64_at(file, CHECKSUM_AT),
        );
        let (Some(number), Some(salt), Some(stored)) = fields else {
            check_start(path, file, format, |_, _| false)?;
            return Err(corrupt(
                path,
                file.len() as u64,
                "the file ends inside its header",
            ));
        };
        let header = Self { number, salt };
        let intact = |magic, version| header.checksum(magic, version) == stored;
        check_start(path, file, format, intact)?;
        if !intact(format.magic, format.version) {
            return Err(corrupt(
                path,
                CHECKSUM_AT as u64,
                "the checksum of the file header fails",
            ));
        }
        Ok(header)
    }

    /// Appends the frame whose payload is `parts` one behind the other to `to`; the frame will stand at
    /// `offset` of the file.
    ///
    /// The caller has checked the length against [`PAYLOAD_BYTES_MAX`].
    pub(super) fn encode_frame(self, offset: u64, parts: &[&[u8]], to: &mut Vec<u8>) {
        let payload_bytes: usize = parts.iter().map(|part| part.len()).sum();
        to.reserve(FRAME_HEADER_BYTES as usize + payload_bytes);
        to.extend(MARKER);
        to.extend((payload_bytes as u32).to_le_bytes());
        let checksum_at = to.len();
        to.extend([0; 8]);
        for part in parts {
            to.extend_from_slice(part);
        }
        // The payload is hashed where it lies together for the first time.
        if let Some((checksum, payload)) = to
            .get_mut(checksum_at..)
            .and_then(|rest| rest.split_first_chunk_mut::<8>())
        {
            *checksum = self.frame_checksum(offset, payload).to_le_bytes();
        }
    }

    /// The payload of the frame at `offset` of `file`, or why there is none.
    pub(super) fn decode_frame(self, file: &[u8], offset: usize) -> Result<&[u8], Flaw> {
        let rest = file.get(offset..).unwrap_or_default();
        let head = rest.get(..MARKER.len()).unwrap_or(rest);
        if !MARKER.starts_with(head) {
            return Err(Flaw::NoMarker);
        }
        let (Some(length), Some(stored)) = (u32_at(rest, 4), u64_at(rest, 8)) else {
            return Err(Flaw::HeaderCut);
        };
        if u64::from(length) > PAYLOAD_BYTES_MAX {
            return Err(Flaw::TooLong { length });
        }
        let body = rest.get(FRAME_HEADER_BYTES as usize..).unwrap_or_default();
        let Some(payload) = body.get(..length as usize) else {
            // A torn frame, unless the length alone is wrong and the payload is all that follows.
            let length_wrong = self.frame_checksum(offset as u64, body) == stored;
            return Err(if length_wrong {
                Flaw::LengthWrong
            } else {
                Flaw::PayloadCut {
                    length,
                    present: body.len() as u64,
                }
            });
        };
        if self.frame_checksum(offset as u64, payload) != stored {
            return Err(Flaw::Checksum {
                end: offset + FRAME_HEADER_BYTES as usize + payload.len(),
            });
        }
        Ok(payload)
    }

    /// How many bytes [`Self::decode_frame`] would hash at `offset`.
    pub(super) fn frame_cost(file: &[u8], offset: usize) -> u64 {
        let rest = file.len().saturating_sub(offset) as u64;
        let length = file
            .get(offset..)
            .and_then(|rest| u32_at(rest, 4))
            .map_or(0, u64::from);
        if length > PAYLOAD_BYTES_MAX {
            0
        } else {
            length.min(rest)
        }
    }

    fn checksum(self, magic: [u8; 8], version: u32) -> u64 {
        let mut hasher = Xxh3::new();
        hasher.update(&magic);
        hasher.update(&version.to_le_bytes());
        hasher.update(&self.number.to_le_bytes());
        hasher.update(&self.salt.to_le_bytes());
        hasher.digest()
    }

    fn frame_checksum(self, offset: u64, payload: &[u8]) -> u64 {
        xxh3_64_with_seed(payload, self.salt.wrapping_add(offset))
    }
}

/// Where the next marker stands at or after `from`.
pub(super) fn find_marker(file: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += file.get(at..)?.iter().position(|&byte| byte == MARKER[0])?;
        if array_at::<4>(file, at)? == MARKER {
            return Some(at);
        }
        at += 1;
    }
}

/// Why there is no whole frame at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The bytes there are no marker, nor the start of one at the end of the file.
    NoMarker,
    /// The file ends inside the frame's header.
    HeaderCut,
    /// The file ends inside the payload.
    PayloadCut { length: u32, present: u64 },
    /// The payload is whole and ends the file; the length beside it is wrong.
    LengthWrong,
    /// No frame is that long.
    TooLong { length: u32 },
    /// Header and payload are all there, and do not belong together.
    Checksum { end: usize },
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoMarker => f.write_str("no frame starts here"),
            Self::HeaderCut => f.write_str("the file ends inside the header of a frame"),
            Self::PayloadCut { length, present } => {
                write!(f, "the file ends after {present} of {length} payload bytes")
            }
            Self::LengthWrong => f.write_str("the length of the last frame is damaged"),
            Self::TooLong { length } => write!(f, "a frame of {length} bytes is over {PAYLOAD_BYTES_MAX}"),
            Self::Checksum { .. } => f.write_str("the checksum of a frame fails"),
        }
    }
}
