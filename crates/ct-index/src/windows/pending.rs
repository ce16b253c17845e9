//! Keys that are known and not yet in a filter file.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, Hasher};

use super::month::WindowKey;

/// Keys in memory: about 25 bytes each.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Whatever their window: who asks with another date is answered "maybe" too.
    asked: HashSet<u64, Spread>,
    keys: BTreeMap<WindowKey, Vec<u64>>,
    count: usize,
}

impl Pending {
    pub(super) fn insert(&mut self, window: WindowKey, key: u64) {
        self.asked.insert(key);
        self.keys.entry(window).or_default().push(key);
        self.count += 1;
    }

    #[inline]
    pub(super) fn holds(&self, key: u64) -> bool {
        self.asked.contains(&key)
    }

    /// Keys by window; one that came twice is there twice.
    pub(super) fn by_window(&self) -> impl Iterator<Item = (WindowKey, &[u64])> {
        self.keys.iter().map(|(window, keys)| (*window, keys.as_slice()))
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }
}

/// Keys are uniform hashes, but who signs certificates can choose their low bits: a secret number mixes them.
#[derive(Debug, Clone)]
struct Spread(u64);

impl Default for Spread {
    fn default() -> Self {
        Self(random())
    }
}

impl BuildHasher for Spread {
    type Hasher = SpreadHasher;

    fn build_hasher(&self) -> SpreadHasher {
        SpreadHasher(self.0)
    }
}

struct SpreadHasher(u64);

impl Hasher for SpreadHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= xxhash_rust::xxh3::xxh3_64_with_seed(bytes, self.0);
    }

    #[inline]
    fn write_u64(&mut self, key: u64) {
        let product = u128::from(key ^ self.0) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

/// A number that nobody can foresee and that is not drawn twice.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(0_u8)
}
