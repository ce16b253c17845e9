//! The manifest: which files make up the index, and the counters that go with them.
//!
//! # Format
//! A sealed file (`docs/formats/sealed.md`) with JSON inside, see `docs/formats/manifest.md`. Two
//! copies are published one after the other, so that damage to one loses nothing.
//!
//! # Invariants
//! What the manifest does not name does not exist; recovery is manifest plus write-ahead log.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tamis_durable::sealed;

use crate::batch::{LogProgress, LogRange};
use crate::totals::Totals;
use crate::{Error, Result};

/// Magic of the sealed file.
pub(crate) const MAGIC: [u8; 8] = *b"TAMISMAN";
/// Version of the format.
pub(crate) const VERSION: u32 = 1;
const FORMAT: sealed::Format = sealed::Format {
    magic: MAGIC,
    version: VERSION,
};
/// A manifest with a hundred thousand segments stays below this.
const BYTES_MAX: u64 = 256 << 20;
/// Both copies, the first read first.
pub(crate) const NAMES: [&str; 2] = ["MANIFEST", "MANIFEST.copy"];

/// Which tables a segment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Holds {
    /// All of a flush.
    Everything,
    /// A part of the names, in order of keys.
    Names,
    /// Records, in order of discovery.
    Records,
    /// A part of the look-ups, in order of hashes.
    Lookups,
}

/// The part of all hashes that begins with the same bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HashPart {
    /// How many leading bits are the same.
    pub(crate) bits: u32,
    /// Those bits as a number.
    pub(crate) prefix: u64,
}

impl HashPart {
    pub(crate) fn holds(self, hash: u64) -> bool {
        hash.checked_shr(u64::BITS.saturating_sub(self.bits)).unwrap_or(0) == self.prefix
    }

    /// The smallest part that encloses both.
    pub(crate) fn around(self, other: Self) -> Self {
        let mut part = self;
        while !part.encloses(other) {
            part = Self {
                bits: part.bits.saturating_sub(1),
                prefix: part.prefix >> 1,
            };
        }
        part
    }

    /// True when every hash of `other` belongs to this part.
    pub(crate) fn encloses(self, other: Self) -> bool {
        let shift = other.bits.saturating_sub(self.bits);
        let prefix = other.prefix.checked_shr(shift).unwrap_or(0);
        self.bits == 0 || (self.bits <= other.bits && prefix == self.prefix)
    }
}

/// The part of all keys from one cut to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyPart {
    /// First key that may belong to it.
    pub(crate) from: String,
    /// First key behind it; `None` for the last part.
    pub(crate) until: Option<String>,
}

impl KeyPart {
    /// Orders ends: that of the last part is the largest.
    pub(crate) fn end(&self) -> (bool, &str) {
        self.until.as_deref().map_or((true, ""), |until| (false, until))
    }

    /// True when every key of `other` belongs to this part.
    pub(crate) fn encloses(&self, other: &Self) -> bool {
        self.from <= other.from && other.end() <= self.end()
    }
}

/// A live segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SegmentEntry {
    pub(crate) id: u64,
    /// Folder, the month of ingestion: `2026-11`.
    pub(crate) month: String,
    pub(crate) holds: Holds,
    /// Merges that lie behind it: 0 for a flush.
    pub(crate) tier: u32,
    /// Id of the oldest flush in it: orders segments by age, and parts of one merge share it.
    pub(crate) run: u64,
    /// Which keys, of names.
    pub(crate) keys: KeyPart,
    /// Which hashes, of look-ups.
    pub(crate) hashes: HashPart,
    pub(crate) bytes: u64,
    /// Rows of names, or entries of look-ups.
    pub(crate) rows: u64,
    pub(crate) records: u64,
}

impl SegmentEntry {
    pub(crate) fn path(&self, dir: &Path) -> PathBuf {
        dir.join(&self.month).join(file_name(self.id))
    }
}

/// File name of a segment.
pub(crate) fn file_name(id: u64) -> String {
    format!("seg-{id:08}.tamis")
}

/// The id in the file name of a segment.
pub(crate) fn id_of(name: &OsStr) -> Option<u64> {
    name.to_str()?
        .strip_prefix("seg-")?
        .strip_suffix(".tamis")?
        .parse()
        .ok()
}

/// A log that entries came from. Number 0 is the local import and never listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogEntry {
    /// Number used in record ids.
    pub number: u16,
    /// Name or URL given by the operator.
    pub name: String,
    /// Leaves read so far, as sorted, disjoint `[start, end)` pairs.
    pub ranges: Vec<[u64; 2]>,
    /// Issuances known from such logs alone are counted ([`crate::totals::Totals::apart_seen`]).
    pub apart: bool,
    /// What whoever reads the log keeps about it.
    #[serde(with = "base64")]
    pub progress: Arc<[u8]>,
}

/// Bytes as base64 in JSON.
mod base64 {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &Arc<[u8]>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&base64_simd::STANDARD.encode_to_string(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[u8]>, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = base64_simd::STANDARD.decode_to_vec(text);
        bytes.map(Arc::from).map_err(D::Error::custom)
    }
}

impl LogEntry {
    /// A log of which nothing was read.
    pub(crate) fn new(number: u16, name: String) -> Self {
        Self {
            number,
            name,
            apart: false,
            ranges: Vec::new(),
            progress: Arc::default(),
        }
    }

    /// Adds `[start, end)`, joining what touches.
    pub(crate) fn cover(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        self.ranges.push([start, end]);
        self.ranges.sort_unstable();
        let mut joined: Vec<[u64; 2]> = Vec::with_capacity(self.ranges.len());
        for &[start, end] in &self.ranges {
            match joined.last_mut() {
                Some([_, last]) if *last >= start => *last = end.max(*last),
                _ => joined.push([start, end]),
            }
        }
        self.ranges = joined;
    }
}

/// Adds what a commit says about logs to the logs it belongs to.
pub(crate) fn advance(logs: &mut [LogEntry], ranges: &[LogRange], progress: &[LogProgress]) {
    for range in ranges {
        if let Some(log) = logs.iter_mut().find(|log| log.number == range.log) {
            log.cover(range.start, range.end);
        }
    }
    for progress in progress {
        if let Some(log) = logs.iter_mut().find(|log| log.number == progress.log) {
            log.progress = Arc::clone(&progress.bytes);
        }
    }
}

/// Everything a reader needs to find the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// Grows with each publication.
    pub(crate) generation: u64,
    /// Under which identities of issuances are computed; drawn when the folder is made.
    pub(crate) identity_key: [u64; 4],
    pub(crate) segments: Vec<SegmentEntry>,
    /// Keys at which merges cut names into parts, sorted, by tier. Never removed, so that parts nest.
    pub(crate) cuts: Vec<Vec<String>>,
    pub(crate) logs: Vec<LogEntry>,
    /// Issuers in the dictionary file, and its length in bytes.
    pub(crate) issuers: u32,
    pub(crate) issuers_bytes: u64,
    pub(crate) next_seq: u64,
    pub(crate) next_segment: u64,
    /// First write-ahead log file that is not yet in a segment.
    pub(crate) first_wal: u64,
    /// What the segments hold (the write-ahead log adds to it).
    pub(crate) totals: Totals,
}

impl Manifest {
    /// The manifest of an empty folder.
    pub(crate) fn first(identity_key: [u64; 4]) -> Self {
        Self {
            identity_key,
            first_wal: 1,
            next_segment: 1,
            ..Self::default()
        }
    }

    /// Publishes the next generation, both copies.
    pub(crate) fn publish(&mut self, dir: &Path) -> Result<()> {
        self.generation += 1;
        let json =
            serde_json::to_vec(self).map_err(|error| Error::Bug(format!("encode the manifest: {error}")))?;
        for name in NAMES {
            sealed::publish(&dir.join(name), FORMAT, &json)?;
        }
        Ok(())
    }

    /// Reads the newest readable copy; faults of the other are returned beside it. `None` when the
    /// folder has none.
    pub(crate) fn read(dir: &Path) -> Result<(Option<Self>, Vec<Error>)> {
        let mut newest: Option<Self> = None;
        let mut faults = Vec::new();
        for name in NAMES {
            match Self::read_copy(&dir.join(name)) {
                Ok(manifest) => {
                    if newest
                        .as_ref()
                        .is_none_or(|known| known.generation < manifest.generation)
                    {
                        newest = Some(manifest);
                    }
                }
                Err(error) if error.is_gone() => {}
                // A newer program wrote here: what it wrote must not be taken for damage and replaced.
                Err(error @ Error::Durable(tamis_durable::Error::FutureVersion { .. })) => return Err(error),
                Err(error) => faults.push(error),
            }
        }
        match (newest, faults.pop()) {
            (None, Some(fault)) => Err(fault),
            (newest, fault) => Ok((newest, fault.into_iter().collect())),
        }
    }

    /// True when both copies are whole and of this generation.
    pub(crate) fn is_published(&self, dir: &Path) -> bool {
        NAMES
            .iter()
            .all(|name| Self::read_copy(&dir.join(name)).is_ok_and(|copy| copy == *self))
    }

    /// Reads one copy.
    pub(crate) fn read_copy(path: &Path) -> Result<Self> {
        let payload = sealed::read(path, FORMAT, BYTES_MAX)?;
        serde_json::from_slice(&payload)
            .map_err(|error| Error::corrupt(path, 0, format!("the manifest does not parse: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join() {
        let mut log = LogEntry::new(1, "a".to_owned());
        for (start, end) in [(10, 20), (30, 40), (20, 25), (0, 5), (24, 31), (7, 7)] {
            log.cover(start, end);
        }
        assert_eq!(log.ranges, [[0, 5], [10, 40]]);
    }

    #[test]
    fn one_damaged_copy_is_survived_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let mut manifest = Manifest {
            next_seq: 7,
            ..Manifest::default()
        };
        manifest.publish(dir.path()).unwrap();
        let path = dir.path().join(NAMES[0]);
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let (read, faults) = Manifest::read(dir.path()).unwrap();
        assert_eq!(read, Some(manifest));
        assert_eq!(faults.len(), 1);
        std::fs::remove_file(dir.path().join(NAMES[1])).unwrap();
        assert!(
            Manifest::read(dir.path()).is_err(),
            "a damaged manifest is never an empty index"
        );
    }
}
