//! A classic Bloom filter: seven probes anywhere in the bitmap.

use xxhash_rust::xxh3::Xxh3;

const PROBES: u64 = 7;

pub(crate) struct Bloom {
    words: Vec<u64>,
}

impl Bloom {
    pub(crate) fn planned(keys: u64, bits_per_key: f64) -> Self {
        let bits = (keys.max(1) as f64 * bits_per_key) as usize;
        Self {
            words: vec![0; bits.div_ceil(64)],
        }
    }

    /// Sets the bits of (fingerprint, domain); true where one was not set, so the pair is new.
    pub(crate) fn insert(&mut self, sha256: &[u8; 32], domain: &str) -> bool {
        let mut hasher = Xxh3::new();
        hasher.update(sha256);
        hasher.update(domain.as_bytes());
        let hash = hasher.digest128();
        let mut fresh = false;
        for (word, bit) in places(hash, self.words.len()) {
            fresh |= self.words[word] & bit == 0;
            self.words[word] |= bit;
        }
        fresh
    }

    pub(crate) fn add(&mut self, key: &[u8]) {
        for (word, bit) in places(xxhash_rust::xxh3::xxh3_128(key), self.words.len()) {
            self.words[word] |= bit;
        }
    }

    pub(crate) fn may_contain(&self, key: &[u8]) -> bool {
        places(xxhash_rust::xxh3::xxh3_128(key), self.words.len())
            .all(|(word, bit)| self.words[word] & bit != 0)
    }

    pub(crate) fn bytes(&self) -> u64 {
        8 * self.words.len() as u64
    }
}

/// Double hashing.
fn places(hash: u128, words: usize) -> impl Iterator<Item = (usize, u64)> {
    let (first, step) = (hash as u64, (hash >> 64) as u64 | 1);
    let bits = 64 * words as u128;
    (0..PROBES).map(move |probe| {
        let hash = first.wrapping_add(probe.wrapping_mul(step));
        // A multiplication instead of a division: the high half of hash × bits.
        let bit = ((u128::from(hash) * bits) >> 64) as usize;
        (bit / 64, 1 << (bit % 64))
    })
}
