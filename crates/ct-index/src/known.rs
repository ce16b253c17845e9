//! What the writer knows of issuances, so that a copy is dropped only if it brings nothing new.
//!
//! # Invariants
//! The answer is exact: an issuance that is not in the map is looked up in the segments, and what is
//! not yet in a segment is never dropped from the map.
//!
//! # Limits
//! Besides those of the memtables, [`ISSUANCES_MAX`] issuances stay in memory, and [`LOOKED_UP_MAX`]
//! more that were looked up; about 170 bytes each.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::manifest::LogEntry;
use crate::record::{CertRecord, FINGERPRINTS_MAX, Fingerprint, POSITIONS_MAX, Position, WireRecord};

/// Issuances of flushed memtables that are still remembered.
const ISSUANCES_MAX: usize = 500_000;
/// Issuances remembered because a copy of them was looked up.
const LOOKED_UP_MAX: usize = 100_000;

/// Records fold only where the serials agree too. The serial's hash is seeded, so nobody can choose
/// certificates that meet in one bucket.
type Identity = (u64, u64);

/// Both halves are hashes already.
fn hash_of(identity: &Identity) -> u64 {
    identity.0.rotate_left(29) ^ identity.1
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
    /// Where it was seen so far, also at places that are not kept.
    seen_in: SeenIn,
}

bitflags::bitflags! {
    /// Kinds of places that a record was seen at.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub(crate) struct SeenIn: u8 {
        /// A log that is counted apart.
        const APART = 1;
        /// Any other log, or a file.
        const ELSEWHERE = 2;
    }
}

impl SeenIn {
    /// Where these positions are.
    fn of(positions: impl Iterator<Item = Position>, apart: &ApartLogs) -> Self {
        let seen = positions.map(|position| match apart.0.contains(&position.log) {
            true => Self::APART,
            false => Self::ELSEWHERE,
        });
        let seen = seen.fold(Self::empty(), std::ops::BitOr::bitor);
        if seen.is_empty() { Self::ELSEWHERE } else { seen }
    }
}

/// The logs that are counted apart.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApartLogs(Vec<u16>);

impl ApartLogs {
    pub(crate) fn of(logs: &[LogEntry]) -> Self {
        let apart = logs.iter().filter(|log| log.apart);
        Self(apart.map(|log| log.number).collect())
    }
}

/// What a copy brings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Novelty {
    /// Which of its fingerprints are new, a bit each in their order.
    fingerprints: u32,
    /// Which of its positions are new, likewise.
    positions: u32,
    /// The copy was seen earlier than all before: its rows are needed again.
    pub(crate) earlier: bool,
    /// Names that were over the limit before: all rows are written again.
    pub(crate) names: u32,
    /// It was known from logs counted apart alone, and no longer is.
    pub(crate) joined: bool,
}

impl Novelty {
    /// True when the record is needed with all its names.
    pub(crate) fn is_whole(&self) -> bool {
        self.earlier || self.names > 0
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.fingerprints | self.positions == 0 && !self.is_whole()
    }

    /// The fingerprints of the copy that are new.
    pub(crate) fn fingerprints<'w>(
        &self,
        copy: &WireRecord<'w>,
    ) -> impl Iterator<Item = Fingerprint> + use<'w> {
        chosen(copy.fingerprints(), self.fingerprints)
    }

    /// The positions of the copy that are new.
    pub(crate) fn positions<'w>(&self, copy: &WireRecord<'w>) -> impl Iterator<Item = Position> + use<'w> {
        chosen(copy.positions(), self.positions)
    }
}

/// Items whose bit is set; a record has fewer than 32 of them.
fn chosen<T>(items: impl Iterator<Item = T>, bits: u32) -> impl Iterator<Item = T> {
    let numbered = items.zip(0u32..);
    numbered
        .filter(move |(_, number)| bits >> number & 1 != 0)
        .map(|(item, _)| item)
}

/// The names indexed, unless they are all that the certificate has.
fn names_if_cut(indexed: u32, total: u64) -> Option<u32> {
    (u64::from(indexed) < total).then_some(indexed)
}

fn short(fingerprint: &Fingerprint) -> u64 {
    crate::segment::hashes::hash_of_sha256(&fingerprint.sha256)
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
        for (fingerprint, number) in wire.fingerprints().zip(0..) {
            novelty.fingerprints |= u32::from(self.fingerprint(short(&fingerprint))) << number;
        }
        for (position, number) in wire.positions().zip(0..) {
            novelty.positions |= u32::from(self.position(&position)) << number;
        }
        novelty
    }

    /// Notes where it was seen; true when that ends its being known from logs counted apart alone.
    fn see_in(&mut self, seen_in: SeenIn) -> bool {
        let was_apart = self.seen_in == SeenIn::APART;
        self.seen_in |= seen_in;
        was_apart && self.seen_in != SeenIn::APART
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

#[derive(Debug)]
struct Slot {
    identity: Identity,
    /// The write-ahead log file that must be in a segment before this may be forgotten.
    wal: u64,
    known: Known,
}

/// Remembers issuances, each with the write-ahead log file that must be in a segment before it may be
/// forgotten.
#[derive(Debug, Default)]
pub(crate) struct KnownIssuances {
    /// In order of arrival: what is new is written at the end, and only numbers are moved about.
    slots: Vec<Slot>,
    /// Numbers of the slots by identity.
    table: HashTable<u32>,
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
    /// As `New`, and seen in logs counted apart alone.
    NewApart,
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
            if self.slots.len() < ISSUANCES_MAX {
                return;
            }
            let oldest = self.first_wal.min(self.wal.saturating_sub(kept_files));
            self.slots.retain(|slot| slot.wal >= oldest);
            self.table.clear();
            for (slot, number) in self.slots.iter().zip(0..) {
                let rehash = |&number: &u32| hash_at(&self.slots, number);
                self.table.insert_unique(hash_of(&slot.identity), number, rehash);
            }
        }
    }

    fn identity_of(&self, wire: &WireRecord<'_>) -> Identity {
        (wire.issuance, xxh3_64_with_seed(wire.serial, self.seed.0))
    }

    fn number_of(&self, identity: &Identity) -> Option<u32> {
        let is_it = |&number: &u32| {
            let slot = self.slots.get(number as usize);
            slot.is_some_and(|slot| slot.identity == *identity)
        };
        self.table.find(hash_of(identity), is_it).copied()
    }

    /// True when the issuance of a record is remembered.
    pub(crate) fn holds(&self, wire: &WireRecord<'_>) -> bool {
        self.number_of(&self.identity_of(wire)).is_some()
    }

    /// Judges a record and notes it under `seq`, should it be new. `look_up` finds what the segments hold
    /// of an issuance.
    pub(crate) fn judge(
        &mut self,
        wire: &WireRecord<'_>,
        seq: u64,
        apart: &ApartLogs,
        look_up: impl FnOnce() -> crate::Result<Option<CertRecord>>,
    ) -> crate::Result<Verdict> {
        let identity = self.identity_of(wire);
        let seen_in = SeenIn::of(wire.positions(), apart);
        if let Some(number) = self.number_of(&identity)
            && let Some(Slot { wal, known, .. }) = self.slots.get_mut(number as usize)
        {
            let novelty = Novelty {
                joined: known.see_in(seen_in),
                ..known.absorb(wire)
            };
            if !novelty.is_nothing() {
                // What the copy brings lies in the file at hand only.
                *wal = self.wal;
            }
            return Ok(Verdict::Copy(known.seq, novelty));
        }
        let mut looked_up = false;
        let (verdict, wal, known) = match look_up()? {
            Some(record) => {
                let mut known = Known::of_record(&record);
                known.seen_in = SeenIn::of(record.positions.iter().copied(), apart);
                let novelty = Novelty {
                    joined: known.see_in(seen_in),
                    ..known.absorb(wire)
                };
                looked_up = novelty.is_nothing();
                let wal = if looked_up { 0 } else { self.wal };
                (Verdict::Copy(known.seq, novelty), wal, known)
            }
            None => {
                let known = Known {
                    seen_in,
                    ..Known::of_wire(wire, seq)
                };
                let verdict = match seen_in {
                    SeenIn::APART => Verdict::NewApart,
                    _ => Verdict::New,
                };
                (verdict, self.wal, known)
            }
        };
        let number = self.slots.len() as u32;
        self.slots.push(Slot { identity, wal, known });
        let rehash = |&number: &u32| hash_at(&self.slots, number);
        self.table.insert_unique(hash_of(&identity), number, rehash);
        if looked_up && self.slots.len() >= ISSUANCES_MAX + LOOKED_UP_MAX {
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
        apart: &ApartLogs,
        look_up: impl FnOnce() -> crate::Result<Option<CertRecord>>,
    ) -> crate::Result<()> {
        self.judge(wire, seq, apart, look_up).map(drop)
    }
}

fn hash_at(slots: &[Slot], number: u32) -> u64 {
    slots
        .get(number as usize)
        .map_or(0, |slot| hash_of(&slot.identity))
}
