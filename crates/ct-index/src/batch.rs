//! A batch of observations, encoded by whoever read them (on any thread) and appended as one unit.
//!
//! # Invariants
//! A batch holds records in their wire form with issuer numbers local to the batch; the writer maps
//! them to the dictionary when it commits, so that building needs no lock.

use std::sync::Arc;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

use crate::key::Identifier;
use crate::record::{NAMES_MAX, NameBits, Observation, put_names, put_observation};

/// Leaves of one log that a batch covers: `start <= index < end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRange {
    /// Number of the log.
    pub log: u16,
    /// First leaf.
    pub start: u64,
    /// First leaf behind.
    pub end: u64,
}

/// How far whoever reads a log has come, in a form of its own: the index keeps it and never looks inside.
///
/// It travels in the frame of the batch, so that after a crash it is exactly as old as the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogProgress {
    /// Number of the log.
    pub log: u16,
    /// At most [`PROGRESS_BYTES_MAX`] of them.
    pub bytes: Arc<[u8]>,
}

/// Of the progress of one log.
pub const PROGRESS_BYTES_MAX: usize = 1 << 20;

/// Observations on their way into the index.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends: Vec<u32>,
    pub(crate) issuers: Vec<Box<str>>,
    pub(crate) covers: Vec<LogRange>,
    pub(crate) progress: Vec<LogProgress>,
    /// Numbers of the issuers, by XXH3 of the text.
    issuer_numbers: HashTable<u32>,
}

/// Encoded size of a usual observation.
const OBSERVATION_BYTES: usize = 256;
/// A batch is closed when it holds this many bytes; offsets stay below 32 bits.
pub const BATCH_BYTES_MAX: usize = 64 << 20;

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch with room for so many usual observations.
    pub fn with_capacity(observations: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(observations * OBSERVATION_BYTES),
            ends: Vec::with_capacity(observations),
            ..Self::default()
        }
    }

    /// Number of observations.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when nothing was pushed.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Encoded size in bytes; append the batch before it passes [`BATCH_BYTES_MAX`].
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds one observation with the common names of its subject and all its names.
    pub fn push<'n, 'c>(
        &mut self,
        seen: &Observation<'_>,
        common_names: impl ExactSizeIterator<Item = &'c str>,
        names: impl ExactSizeIterator<Item = (Identifier<'n>, NameBits)>,
    ) {
        let issuer = self.issuer_number(seen.issuer);
        put_observation(&mut self.bytes, seen, issuer, common_names);
        put_names(&mut self.bytes, names.len().min(NAMES_MAX), names);
        self.ends.push(self.bytes.len() as u32);
    }

    /// Says which leaves of a log this batch covers, whether or not they were readable.
    pub fn cover(&mut self, range: LogRange) {
        self.covers.push(range);
    }

    /// Says how far the reader of a log has come with this batch; the last word counts.
    pub fn progress(&mut self, progress: LogProgress) {
        self.progress.retain(|earlier| earlier.log != progress.log);
        self.progress.push(progress);
    }

    /// True when appending it changes nothing.
    pub(crate) fn tells_nothing(&self) -> bool {
        self.is_empty() && self.covers.is_empty() && self.progress.is_empty()
    }

    fn issuer_number(&mut self, issuer: &str) -> u32 {
        let issuer = crate::record::cut(issuer);
        let Self {
            issuers,
            issuer_numbers,
            ..
        } = self;
        let hash_of = |issuer: &str| xxh3_64(issuer.as_bytes());
        let known = |&number: &u32| {
            issuers
                .get(number as usize)
                .is_some_and(|known| **known == *issuer)
        };
        if let Some(&number) = issuer_numbers.find(hash_of(issuer), known) {
            return number;
        }
        let number = issuers.len() as u32;
        issuers.push(issuer.into());
        let rehash = |&number: &u32| issuers.get(number as usize).map_or(0, |issuer| hash_of(issuer));
        issuer_numbers.insert_unique(hash_of(issuer), number, rehash);
        number
    }
}
