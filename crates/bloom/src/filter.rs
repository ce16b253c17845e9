//! The filter that one process sets, in memory or in a file.
//!
//! # Concurrency
//! All methods take `&self`; threads share a filter without a lock. `keys` is counted with relaxed additions;
//! `header` serialises those who write the header, so that an older count never replaces a newer one.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tamis_durable::{Advice, SharedMap};

use crate::bitmap::{Bitmap, Word};
use crate::error::Result;
use crate::format::{HEADER_LENGTH, Header, State};
use crate::geometry::Geometry;
use crate::key::KeyHash;

/// A Bloom filter that this process may set.
///
/// In a file, one process at a time has it as a `Filter`, kept to by a lock on the file; others look on through
/// a [`FilterView`](crate::FilterView). Bits are in the page cache the moment they are set, so they outlive the
/// process however it dies. Only a crash of the system loses those that were not written back yet
/// ([`sync`](Self::sync) waits for that), which is harmless for a hint: their keys look new once more.
///
/// A sparse file takes room on the disk as pages are first set, and **a disk that is full then kills the
/// process** (SIGBUS); [`reserve`](Self::reserve) takes all room in advance.
#[derive(Debug)]
pub struct Filter {
    map: SharedMap,
    geometry: Geometry,
    keys: KeyCount,
    keys_estimated: bool,
    header: Mutex<()>,
}

/// On cache lines of its own: it changes with every new key, and its neighbours are read with every key.
#[derive(Debug)]
#[repr(align(128))]
struct KeyCount(AtomicU64);

impl KeyCount {
    fn add(&self, keys: u64) {
        if keys > 0 {
            self.0.fetch_add(keys, Ordering::Relaxed);
        }
    }
}

impl Filter {
    /// An empty filter of this process alone. Memory is taken as bits are set.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if there is no room for it.
    pub fn in_memory(geometry: Geometry) -> Result<Self> {
        let map = SharedMap::in_memory(geometry.file_bytes())?;
        Ok(Self::new(map, geometry, 0, false))
    }

    /// Creates the file of an empty filter, sparse.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage), also if there is such a file.
    pub fn create(path: &Path, geometry: Geometry) -> Result<Self> {
        let header = Header {
            geometry,
            keys: 0,
            state: State::Open,
        };
        let map = SharedMap::create(path, &header.encode(), geometry.file_bytes())?;
        map.advise(Advice::Random)?;
        Ok(Self::new(map, geometry, 0, false))
    }

    /// Opens the file of a filter to go on setting it.
    ///
    /// If its last writer died, the number of keys is estimated from the bits set: up to 4,096 pages are read.
    ///
    /// # Errors
    /// [`Error::WrongMagic`](crate::Error::WrongMagic), [`Error::FutureVersion`](crate::Error::FutureVersion),
    /// [`Error::Corrupt`](crate::Error::Corrupt) if it is no filter of ours, whole;
    /// [`Error::Storage`](crate::Error::Storage) if another process has it as a `Filter`, or the disk fails.
    pub fn open(path: &Path) -> Result<Self> {
        let map = SharedMap::open(path)?;
        let header = Header::decode(path, &header_bytes(map.words()), map.bytes())?;
        map.advise(Advice::Random)?;
        let geometry = header.geometry;
        let filter = match header.state {
            State::Closed => Self::new(map, geometry, header.keys, false),
            State::Open => {
                let estimate = geometry.keys_at_fill(Bitmap::new(map.words(), &geometry).fill());
                Self::new(map, geometry, header.keys.max(estimate), true)
            }
        };
        // On the disk before the first bit: otherwise a crash of the system could leave a count that looks exact.
        filter.sync()?;
        Ok(filter)
    }

    fn new(map: SharedMap, geometry: Geometry, keys: u64, keys_estimated: bool) -> Self {
        Self {
            map,
            geometry,
            keys: KeyCount(AtomicU64::new(keys)),
            keys_estimated,
            header: Mutex::new(()),
        }
    }

    /// Whether the key may have been set; false means surely not.
    #[inline]
    pub fn may_hold(&self, key: impl Into<KeyHash>) -> bool {
        self.bitmap().may_hold(key.into())
    }

    /// Sets the key; gives whether it may have been set before.
    ///
    /// Of several threads that set one new key at once, at least one is told that it is new, unless other keys
    /// cover it; it may be more than one, and each of them counts it. So two of them may both do the work for
    /// the key, and never none. Who needs exactly one decides it where the truth is.
    #[inline]
    pub fn check_and_set(&self, key: impl Into<KeyHash>) -> bool {
        let maybe_seen = self.bitmap().check_and_set(key.into());
        self.keys.add(u64::from(!maybe_seen));
        maybe_seen
    }

    /// [`check_and_set`](Self::check_and_set) of all `keys` in order, into `maybe_seen`; faster where the bitmap
    /// is larger than the caches, as it asks for the memory of many keys at once.
    ///
    /// A key that comes twice is "maybe seen" the second time.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn check_and_set_batch<K: Copy + Into<KeyHash>>(&self, keys: &[K], maybe_seen: &mut [bool]) {
        self.keys.add(self.bitmap().check_and_set_batch(keys, maybe_seen));
    }

    /// [`may_hold`](Self::may_hold) of all `keys`, into `maybe_seen`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn may_hold_batch<K: Copy + Into<KeyHash>>(&self, keys: &[K], maybe_seen: &mut [bool]) {
        self.bitmap().may_hold_batch(keys, maybe_seen);
    }

    /// The shape.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// How many keys were new: those told so since the filter was made, or an estimate
    /// ([`keys_are_estimated`](Self::keys_are_estimated)) and those told so since. False positives are missing.
    pub fn keys(&self) -> u64 {
        self.keys.0.load(Ordering::Relaxed)
    }

    /// Whether the last writer of the file died, so that the keys up to then are estimated from the bits set.
    pub fn keys_are_estimated(&self) -> bool {
        self.keys_estimated
    }

    /// Keys held over keys planned: 1 is full. Above it the filter works on, with more false positives.
    pub fn saturation(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a ratio for people and thresholds")]
        let saturation = self.keys() as f64 / self.geometry.keys_planned as f64;
        saturation
    }

    /// The fraction of bits set; of up to 4,096 pages spread evenly if there are more.
    ///
    /// About half when full: this is no measure of saturation.
    pub fn fill(&self) -> f64 {
        self.bitmap().fill()
    }

    /// How likely a new key is "maybe seen" now, from the number of keys.
    pub fn expected_false_positive_rate(&self) -> f64 {
        self.geometry.false_positive_rate_at(self.keys())
    }

    /// Waits until the bits set before and the number of keys are on the disk. In memory: nothing to do.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage). Once syncing failed it is refused: the kernel may have dropped
    /// bits that it could not write. Setting goes on, for the filter is a hint.
    pub fn sync(&self) -> Result<()> {
        self.write_header(State::Open)?;
        Ok(self.map.flush()?)
    }

    /// Takes all the room the file needs on its disk, so that setting bits never finds it full.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage): the disk has not that much.
    pub fn reserve(&self) -> Result<()> {
        Ok(self.map.reserve()?)
    }

    /// Before the bits in time, behind them in effect: the count may run ahead of bits that a crash of the
    /// system loses, and is then estimated anew.
    fn write_header(&self, state: State) -> Result<()> {
        let _serialised = self.header.lock().unwrap_or_else(PoisonError::into_inner);
        let header = Header {
            geometry: self.geometry,
            keys: self.keys(),
            state,
        };
        Ok(self.map.write_all_at(&header.encode(), 0)?)
    }

    #[inline]
    fn bitmap(&self) -> Bitmap<'_, AtomicU64> {
        Bitmap::new(self.map.words(), &self.geometry)
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        // Best effort: without it the next opener estimates the number of keys.
        let _ = self.write_header(State::Closed);
    }
}

/// The bytes at the start of the file, as many as a header has or fewer.
pub(crate) fn header_bytes<W: Word>(words: &[W]) -> Vec<u8> {
    words
        .iter()
        .take(HEADER_LENGTH / size_of::<u64>())
        .flat_map(|word| word.load().to_ne_bytes())
        .collect()
}
