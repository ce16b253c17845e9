//! What the writer knows of issuances, so that a copy is dropped only if it brings nothing new.
//!
//! # Invariants
//! The answer is exact: an issuance that is in no map is looked up in the segments. Maps of memtables
//! that are not yet in a segment are never dropped.
//!
//! # Limits
//! [`ISSUANCES_MAX`] issuances of flushed memtables and [`LOOKED_UP_MAX`] looked-up ones stay in memory,
//! about 150 bytes each.

use std::collections::{HashMap, VecDeque};
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
type Map = HashMap<Identity, Known, BuildHasherDefault<IdentityHasher>>;

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
    first_seen: i64,
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
}

impl Novelty {
    pub(crate) fn is_nothing(&self) -> bool {
        self.fingerprints.is_empty() && self.positions.is_empty() && !self.earlier
    }
}

fn short(fingerprint: &Fingerprint) -> u64 {
    crate::segment::writer::hash_of_sha256(&fingerprint.sha256)
}

impl Known {
    fn of_wire(wire: &WireRecord<'_>) -> Self {
        let mut known = Self {
            first_seen: wire.first_seen,
            ..Self::default()
        };
        known.absorb(wire);
        known
    }

    fn of_record(record: &CertRecord) -> Self {
        let mut known = Self {
            first_seen: record.first_seen,
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

/// Remembers issuances by the write-ahead log file that holds them.
#[derive(Debug, Default)]
pub(crate) struct KnownIssuances {
    generations: VecDeque<(u64, Map)>,
    looked_up: Map,
    seed: Seed,
}

/// What the writer does with a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// An issuance not seen before.
    New,
    /// A copy of a known one, and what it brings.
    Copy(Novelty),
}

impl KnownIssuances {
    /// Starts the map of a new write-ahead log file; maps of files before `first_wal` may go.
    pub(crate) fn rotate(&mut self, wal: u64, first_wal: u64) {
        // As large as the one before will do: growing means moving every entry.
        let room = self.generations.back().map_or(0, |(_, map)| map.len());
        let map = Map::with_capacity_and_hasher(room, BuildHasherDefault::default());
        self.generations.push_back((wal, map));
        let mut held: usize = self.generations.iter().map(|(_, map)| map.len()).sum();
        while held > ISSUANCES_MAX && self.generations.front().is_some_and(|(wal, _)| *wal < first_wal) {
            held -= self.generations.pop_front().map_or(0, |(_, map)| map.len());
        }
    }

    /// Judges a record and notes it. `look_up` finds what the segments hold of an issuance.
    pub(crate) fn judge(
        &mut self,
        wire: &WireRecord<'_>,
        look_up: impl FnOnce() -> crate::Result<Option<CertRecord>>,
    ) -> crate::Result<Verdict> {
        let identity = (wire.issuance, xxh3_64_with_seed(wire.serial, self.seed.0));
        for (_, map) in self.generations.iter_mut().rev() {
            if let Some(known) = map.get_mut(&identity) {
                return Ok(Verdict::Copy(known.absorb(wire)));
            }
        }
        let known = match self.looked_up.remove(&identity) {
            Some(known) => Some(known),
            None => look_up()?.map(|record| Known::of_record(&record)),
        };
        if let Some(known) = known {
            return Ok(Verdict::Copy(self.absorb_looked_up(identity, known, wire)));
        }
        self.note(identity, Known::of_wire(wire));
        Ok(Verdict::New)
    }

    /// A copy of an issuance that lies in a segment. What it brings must be remembered until it lies
    /// there too; that it brings nothing is only worth remembering.
    fn absorb_looked_up(&mut self, identity: Identity, mut known: Known, wire: &WireRecord<'_>) -> Novelty {
        let novelty = known.absorb(wire);
        if novelty.is_nothing() {
            if self.looked_up.len() >= LOOKED_UP_MAX {
                self.looked_up.clear();
            }
            self.looked_up.insert(identity, known);
        } else {
            self.note(identity, known);
        }
        novelty
    }

    /// Notes a record that the write-ahead log brought back.
    pub(crate) fn replay(
        &mut self,
        wire: &WireRecord<'_>,
        look_up: impl FnOnce() -> crate::Result<Option<CertRecord>>,
    ) -> crate::Result<()> {
        self.judge(wire, || if wire.copy { look_up() } else { Ok(None) })
            .map(drop)
    }

    fn note(&mut self, identity: Identity, known: Known) {
        if let Some((_, map)) = self.generations.back_mut() {
            map.insert(identity, known);
        }
    }
}
