//! The header of a filter's file, encoded and judged, without I/O.
//!
//! # Format
//! `docs/formats/bloom.md`.

use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Result, corrupt};
use crate::geometry::{Geometry, HEADER_BYTES, PAGE_BITS, PAGES_MAX, PROBES_MAX};

const MAGIC: [u8; 8] = *b"TAMISBLM";
const VERSION: u32 = 1;

const VERSION_AT: usize = 8;
const PROBES_AT: usize = 12;
const BITS_AT: usize = 16;
const SEEDS_AT: [usize; 2] = [24, 32];
const KEYS_PLANNED_AT: usize = 40;
const RATE_PLANNED_AT: usize = 48;
const KEYS_AT: usize = 56;
const STATE_AT: usize = 64;
const CHECKSUM_AT: usize = 72;
/// All fields lie in the first sector, which a disk writes whole or not at all.
const FIELDS_END: usize = 80;
const _: () = assert!(FIELDS_END <= 512);

pub(crate) const HEADER_LENGTH: usize = HEADER_BYTES as usize;

/// Whether the count of keys in the header is that of the bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The writer ended in order after its last bit.
    Closed,
    /// A writer has, or had, the file open: bits may have been set since the count.
    Open,
}

/// What the header says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Header {
    pub(crate) geometry: Geometry,
    pub(crate) keys: u64,
    pub(crate) state: State,
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER_LENGTH] {
        let Geometry {
            probes,
            seeds: [page_seed, slot_seed],
            keys_planned,
            rate_planned,
            ..
        } = self.geometry;
        let state: u32 = match self.state {
            State::Closed => 0,
            State::Open => 1,
        };
        let fields = MAGIC
            .into_iter()
            .chain(VERSION.to_le_bytes())
            .chain(probes.to_le_bytes())
            .chain(self.geometry.bits().to_le_bytes())
            .chain(page_seed.to_le_bytes())
            .chain(slot_seed.to_le_bytes())
            .chain(keys_planned.to_le_bytes())
            .chain(rate_planned.to_le_bytes())
            .chain(self.keys.to_le_bytes())
            .chain(state.to_le_bytes())
            .chain([0; CHECKSUM_AT - STATE_AT - 4]);
        let mut header = [0; HEADER_LENGTH];
        put(&mut header, fields);
        let checksum = checksum(&header, MAGIC, VERSION).to_le_bytes();
        let before = header;
        put(&mut header, before.into_iter().take(CHECKSUM_AT).chain(checksum));
        header
    }

    /// Accepts exactly what [`encode`](Self::encode) makes, in a file of exactly the length it asks for.
    pub(crate) fn decode(path: &Path, start: &[u8], file_bytes: u64) -> Result<Self> {
        let Some(header) = start.first_chunk::<HEADER_LENGTH>() else {
            return Err(judge_cut(path, start, file_bytes));
        };
        let stored = u64_at(header, CHECKSUM_AT);
        let intact = |magic, version| checksum(header, magic, version) == stored;
        check_start(path, header, intact)?;
        if !intact(MAGIC, VERSION) {
            let reason = "the checksum over the header fails";
            return Err(corrupt(path, CHECKSUM_AT as u64, reason));
        }
        let header = Self::fields(path, header)?;
        let expected = header.geometry.file_bytes();
        if file_bytes != expected {
            let reason = format!("the file has {file_bytes} bytes, its header says {expected}");
            return Err(corrupt(path, file_bytes.min(expected), reason));
        }
        Ok(header)
    }

    /// The fields of a header whose checksum holds; what no writer writes is still refused.
    fn fields(path: &Path, header: &[u8; HEADER_LENGTH]) -> Result<Self> {
        let wrong = |at: usize, reason: &str| corrupt(path, at as u64, reason);
        let bits = u64_at(header, BITS_AT);
        let pages = bits / PAGE_BITS;
        if !bits.is_multiple_of(PAGE_BITS) || !(1..=PAGES_MAX).contains(&pages) {
            return Err(wrong(BITS_AT, "the number of bits is not one of whole pages"));
        }
        let probes = u32_at(header, PROBES_AT);
        if !(1..=PROBES_MAX).contains(&probes) {
            return Err(wrong(PROBES_AT, "the number of probes is out of range"));
        }
        let rate_planned = f64::from_bits(u64_at(header, RATE_PLANNED_AT));
        if !(rate_planned > 0.0 && rate_planned < 1.0) {
            return Err(wrong(RATE_PLANNED_AT, "the false-positive rate is out of range"));
        }
        let keys_planned = u64_at(header, KEYS_PLANNED_AT);
        if keys_planned == 0 {
            return Err(wrong(KEYS_PLANNED_AT, "no keys are planned"));
        }
        let state = match u32_at(header, STATE_AT) {
            0 => State::Closed,
            1 => State::Open,
            _ => return Err(wrong(STATE_AT, "the state is unknown")),
        };
        let read = Self {
            geometry: Geometry {
                pages,
                probes,
                seeds: SEEDS_AT.map(|at| u64_at(header, at)),
                keys_planned,
                rate_planned,
            },
            keys: u64_at(header, KEYS_AT),
            state,
        };
        if read.encode() != *header {
            return Err(wrong(STATE_AT + 4, "bytes that version 1 leaves zero are not"));
        }
        Ok(read)
    }
}

/// A file too short for a header: one of ours that was cut, or another.
fn judge_cut(path: &Path, start: &[u8], file_bytes: u64) -> Error {
    match start.first_chunk::<8>() {
        Some(&found) if found != MAGIC => Error::WrongMagic {
            path: path.to_owned(),
            found,
        },
        _ => corrupt(path, file_bytes, "the file ends inside its header"),
    }
}

/// Judges magic and version. `intact` says whether the checksum holds with these two in place of what is
/// there: so a flip in the magic is told from another file, and one in the version from a newer version.
fn check_start(
    path: &Path,
    header: &[u8; HEADER_LENGTH],
    intact: impl Fn([u8; 8], u32) -> bool,
) -> Result<()> {
    let (magic, version) = (array_at::<8>(header, 0), u32_at(header, VERSION_AT));
    if magic != MAGIC {
        return Err(if intact(MAGIC, version) {
            corrupt(path, 0, "its magic is damaged, the rest is intact")
        } else {
            Error::WrongMagic {
                path: path.to_owned(),
                found: magic,
            }
        });
    }
    if version == VERSION {
        Ok(())
    } else if version == 0 || intact(MAGIC, VERSION) {
        Err(corrupt(path, VERSION_AT as u64, "its version is damaged"))
    } else {
        // A newer version may keep its checksum elsewhere, so this one is believed unchecked.
        Err(Error::FutureVersion {
            path: path.to_owned(),
            found: version,
            supported: VERSION,
        })
    }
}

/// Over the whole header but the checksum itself, with `magic` and `version` in their places.
fn checksum(header: &[u8; HEADER_LENGTH], magic: [u8; 8], version: u32) -> u64 {
    let (fields, rest) = header.split_at(CHECKSUM_AT);
    let mut hasher = Xxh3::new();
    hasher.update(&magic);
    hasher.update(&version.to_le_bytes());
    hasher.update(fields.get(PROBES_AT..).unwrap_or_default());
    hasher.update(rest.get(8..).unwrap_or_default());
    hasher.digest()
}

fn put(header: &mut [u8; HEADER_LENGTH], bytes: impl Iterator<Item = u8>) {
    for (to, from) in header.iter_mut().zip(bytes) {
        *to = from;
    }
}

/// The `N` bytes at `at`, which lie in the fields.
fn array_at<const N: usize>(header: &[u8; HEADER_LENGTH], at: usize) -> [u8; N] {
    header
        .get(at..)
        .and_then(|rest| rest.first_chunk::<N>())
        .copied()
        .unwrap_or([0; N])
}

fn u32_at(header: &[u8; HEADER_LENGTH], at: usize) -> u32 {
    u32::from_le_bytes(array_at(header, at))
}

fn u64_at(header: &[u8; HEADER_LENGTH], at: usize) -> u64 {
    u64::from_le_bytes(array_at(header, at))
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
