//! Fingerprints: 128 bits of a keyed hash over the id of the rules and the key.
//!
//! SipHash-2-4 with 128 bits of output (<https://www.aumasson.jp/siphash/>) under a secret of the
//! deployment: without it nobody can make two URLs that collide, to hide one behind the other.
//!
//! # Format
//! SipHash-2-4-128 of `id`, a zero byte, and the key; the id holds no zero byte. Bytes are in the order of
//! the reference implementation.

use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;

/// Makes fingerprints of keys of one id.
#[derive(Debug, Clone)]
pub struct Fingerprinter {
    begun: SipHasher24,
}

/// 128 bits that stand for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprinter {
    /// One for a secret and the id of a [`crate::Canonicalizer`].
    #[must_use]
    pub fn new(secret: &[u8; 16], id: &str) -> Self {
        let mut begun = SipHasher24::new_with_key(secret);
        begun.write(id.as_bytes());
        begun.write(&[0]);
        Self { begun }
    }

    /// The fingerprint of a key.
    #[inline]
    #[must_use]
    pub fn of(&self, key: &[u8]) -> Fingerprint {
        let mut hasher = self.begun;
        hasher.write(key);
        Fingerprint(hasher.finish128().as_bytes())
    }
}

impl Fingerprint {
    /// As a number, little-endian.
    #[must_use]
    pub fn as_u128(self) -> u128 {
        u128::from_le_bytes(self.0)
    }

    /// The first 64 bits, for sets that have no room for more. Say so to whoever relies on it:
    /// [`expected_collisions`] with 64 bits tells how many URLs will pass for another.
    #[must_use]
    pub fn first_64_bits(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// How many pairs of `keys` different keys are expected to share a fingerprint of so many bits.
#[must_use]
pub fn expected_collisions(keys: u64, bits: u32) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "an expectation")]
    let keys = keys as f64;
    keys * (keys - 1.0).max(0.0) / 2.0 / 2f64.powi(bits.min(1024).cast_signed())
}
