//! What the writer knows of issuances, so that a copy is dropped only if it brings nothing new.
//!
//! # Invariants
//! The answer is exact: an issuance that is not in the map is looked up in the segments, and what is
//! not yet in a segment is never dropped from the map.
//!
//! # Limits
//! Besides those of the memtables, [`ISSUANCES_MAX`] issuances stay in memory, and [`LOOKED_UP_MAX`]
//! more that were looked up; about 150 bytes each.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::record::{CertRecord, FINGERPRINTS_MAX, Fingerprint, POSITIONS_MAX, Position, WireRecord};

/// Issuances of flushed memtables that are still remembered.
const ISSUANCES_MAX: usize = 500_000;
/// Issuances remembered because a copy of them was looked up.
const LOOKED_UP_MAX: usize = 100_000;

/// Identity for the maps: records fold only where the serials agree too. The serial's hash is seeded,
/// so nobody can choose certificates that meet in one bucket.
type Identity = (u64, u64);
type Map = HashMap<Identity, (u64, Known), BuildHasherDefault<IdentityHasher>>;

/// Both halves of an identity are hashes already.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= xxh3_64(bytes);
    }

    fn write_u64(&mut self, half: u64) {
        self.0 = self.0.rotate_left(29) ^ half;
    }
}

/// What is known of one issuance.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// Of the first record of the issuance: what copies refer to.
    seq: u64,
    first_seen: i64,
    /// Names indexed, where a limit cut them: a later import with a larger limit brings more.
    names: Option<u32>,
    /// The usual two, a precertificate and a certificate.
    fingerprints: [u64; 2],
    fingerprints_count: u8,
    further: Vec<u64>,
    positions: [(u64, u64); POSITIONS_MAX],
    positions_count: u8,
}

/// What a copy brings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Novelty {
    pub(crate) fingerprints: Vec<Fingerprint>,
    pub(crate) positions: Vec<Position>,
    /// The copy was seen earlier than all before: its rows are needed again.
    pub(crate) earlier: bool,
    /// Names that were over the limit before: all rows are written again.
    pub(crate) names: u32,
}

impl Novelty {
    /// True when the record is needed with all its names.
    pub(crate) fn is_whole(&self) -> bool {
        self.earlier || self.names > 0
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.fingerprints.is_empty() && self.positions.is_empty() && !self.is_whole()
    }
}

/// The names indexed, unless they are all that the certificate has.
fn names_if_cut(indexed: u32, total: u64) -> Option<u32> {
    (u64::from(indexed) < total).then_some(indexed)
}

fn short(fingerprint: &Fingerprint) -> u64 {
    crate::segment::writer::hash_of_sha256(&fingerprint.sha256)
}

impl Known {
    fn of_wire(wire: &WireRecord<'_>, seq: u64) -> Self {
        let mut known = Self {
            seq: wire.copy_of.unwrap_or(seq),
            first_seen: wire.first_seen,
            names: names_if_cut(wire.names_count as u32, wire.names_total),
            ..Self::default()
        };
        known.absorb(wire);
        known
    }

    fn of_record(record: &CertRecord) -> Self {
        let mut known = Self {
            seq: record.copy_of.unwrap_or(record.seq),
            first_seen: record.first_seen,
            names: names_if_cut(record.names.len() as u32, record.names_total),
            ..Self::default()
        };
        for fingerprint in &record.fingerprints {
            known.fingerprint(short(fingerprint));
        }
        for position in &record.positions {
            known.position(position);
        }
        known
    }

    /// Notes what `wire` tells and answers what of it is new.
    fn absorb(&mut self, wire: &WireRecord<'_>) -> Novelty {
        let mut novelty = Novelty {
            earlier: wire.first_seen < self.first_seen,
            ..Novelty::default()
        };
        if let Some(indexed) = self.names {
            let names = wire.names_count as u32;
            let is_whole = names_if_cut(names, wire.names_total).is_none();
            // A tenth more at least: names that are one to the index must not pass for new ones.
            if !wire.slim && (is_whole && names > indexed || names > indexed + indexed / 10) {
                novelty.names = names - indexed;
                self.names = names_if_cut(names, wire.names_total);
            }
        }
        self.first_seen = self.first_seen.min(wire.first_seen);
        for fingerprint in wire.fingerprints() {
            if self.fingerprint(short(&fingerprint)) {
                novelty.fingerprints.push(fingerprint);
            }
        }
        novelty
            .positions
            .extend(wire.positions().filter(|position| self.position(position)));
        novelty
    }

    /// Notes a fingerprint; true when it was not known.
    fn fingerprint(&mut self, short: u64) -> bool {
        let count = usize::from(self.fingerprints_count);
        let held = self.fingerprints.get(..count).unwrap_or_default();
        if held.contains(&short) || self.further.contains(&short) {
            return false;
        }
        if let Some(free) = self.fingerprints.get_mut(count) {
            *free = short;
            self.fingerprints_count += 1;
            return true;
        }
        let room = self.further.len() + self.fingerprints.len() < FINGERPRINTS_MAX;
        if room {
            self.further.push(short);
        }
        room
    }

    /// Notes a position; true when it is among the first ones and was not known.
    fn position(&mut self, position: &Position) -> bool {
        let entry = (position.timestamp_ms, position.id());
        let count = usize::from(self.positions_count);
        let Some(held) = self.positions.get(..count) else {
            return false;
        };
        if held.iter().any(|known| known.1 == entry.1) {
            return false;
        }
        if let Some(free) = self.positions.get_mut(count) {
            *free = entry;
            self.positions_count += 1;
            return true;
        }
        let latest = self.positions.iter_mut().max();
        match latest {
            Some(latest) if entry < *latest => {
                *latest = entry;
                true
            }
            _ => false,
        }
    }
}

/// A number that differs from process to process.
#[derive(Debug)]
struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0u8))
    }
}

/// Remembers issuances, each with the write-ahead log file that must be in a segment before it may be
/// forgotten.
#[derive(Debug, Default)]
pub(crate) struct KnownIssuances {
    map: Map,
    /// Number of the log file that is being written.
    wal: u64,
    /// Files before this one are in segments.
    first_wal: u64,
    seed: Seed,
}

/// What the writer does with a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// An issuance not seen before.
    New,
    /// A copy of the record with this seq, and what it brings.
    Copy(u64, Novelty),
}

impl KnownIssuances {
    /// Starts a new write-ahead log file; what files before `first_wal` told may be forgotten.
    pub(crate) fn rotate(&mut self, wal: u64, first_wal: u64) {
        self.wal = wal;
        self.first_wal = first_wal;
        self.make_room();
    }

    /// Forgets what a segment can be asked for, the longest unheard of first.
    fn make_room(&mut self) {
        for kept_files in [3, 1, 0] {
            if self.map.len() < ISSUANCES_MAX {
                return;
            }
            let oldest = self.first_wal.min(self.wal.saturating_sub(kept_files));
            self.map.retain(|_, (wal, _)| *wal >= oldest);
        }
    }

    /// Judges a record and notes it under `seq`, should it be new. `look_up` finds what the segments hold
    /// of an issuance.
    pub(crate) fn judge(
        &mut self,
        wire: &WireRecord<'_>,
        seq: u64,
        look_up: impl FnOnce() -> crate::Result<Option<CertRecord>>,
    ) -> crate::Result<Verdict> {
        let identity = (wire.issuance, xxh3_64_with_seed(wire.serial, self.seed.0));
        let wal = self.wal;
        let (verdict, held_by) = match self.map.entry(identity) {
            Entry::Occupied(mut entry) => {
                let (held_by, known) = entry.get_mut();
                let novelty = known.absorb(wire);
                if !novelty.is_nothing() {
                    // What the copy brings lies in the file at hand only.
                    *held_by = wal;
                }
                return Ok(Verdict::Copy(known.seq, novelty));
            }
            Entry::Vacant(entry) => match look_up()? {
                Some(record) => {
                    let mut known = Known::of_record(&record);
                    let novelty = known.absorb(wire);
                    let held_by = if novelty.is_nothing() { 0 } else { wal };
                    let of = known.seq;
                    entry.insert((held_by, known));
                    (Verdict::Copy(of, novelty), held_by)
                }
                None => {
                    entry.insert((wal, Known::of_wire(wire, seq)));
                    (Verdict::New, wal)
                }
            },
        };
        if held_by == 0 && self.map.len() >= ISSUANCES_MAX + LOOKED_UP_MAX {
            self.make_room();
        }
        Ok(verdict)
    }

    /// Notes a record that the write-ahead log brought back. A copy, or a record written again for its
    /// earlier date, builds on what a segment holds.
    pub(crate) fn replay(
        &mut self,
        wire: &WireRecord<'_>,
        seq: u64,
        look_up: impl FnOnce() -> crate::Result<Option<CertRecord>>,
    ) -> crate::Result<()> {
        self.judge(wire, seq, look_up).map(drop)
    }
}
