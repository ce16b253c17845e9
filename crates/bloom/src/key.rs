//! From the hash of a key to its page and its bits in the page.
//!
//! # Format
//! These functions are part of the format: a change of any result is a new version of it.
//!
//! Positions are independent: each probe has 16 bits of its own from a mixer, of which 15 count. Double hashing
//! (`a + i × b` within the page) was rejected: in 32,768 positions two keys of a page share the whole
//! progression, or long parts of it, too often. What it costs is in `docs/decisions`.

/// Multipliers of the mixers, odd and with bits all over: fractional parts of golden ratio and pi.
const PAGE_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const SLOT_FACTOR: u64 = 0xa409_3822_299f_31d1;
/// What sets the words of one key apart from each other.
const SLOT_STEP: u64 = 0x082e_fa98_ec4e_6c89;
/// A word of the mixer gives this many positions.
const POSITIONS_PER_WORD: u32 = 4;
/// Positions are below 2^15.
const POSITION_MASK: u64 = 0x7fff;

/// The hash of a key: 64 or 128 uniform bits, such as a prefix of a SHA-256.
///
/// What is hashed, and how, is the caller's; it must be the same for as long as the filter is kept. Uniform
/// matters: keys that are equal in many bits still spread (bits are mixed with the seeds, so a caller may give
/// each shard of the hash space a filter of its own), but equal hashes are one key. The 64-bit and the 128-bit
/// hash of one number are two keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash {
    page: u64,
    slots: u64,
}

impl From<u64> for KeyHash {
    fn from(hash: u64) -> Self {
        Self {
            page: hash,
            slots: hash,
        }
    }
}

impl From<u128> for KeyHash {
    #[expect(clippy::cast_possible_truncation, reason = "the halves of the hash")]
    fn from(hash: u128) -> Self {
        Self {
            page: (hash >> 64) as u64,
            slots: hash as u64,
        }
    }
}

impl KeyHash {
    /// The page, below `pages`.
    #[inline]
    pub(crate) fn page(self, pages: u64, seeds: [u64; 2]) -> u64 {
        let [seed, _] = seeds;
        // The high half of a product scales 64 uniform bits to a range: over 2^28 pages, each is chosen as
        // often as any other to 2^-36.
        multiply(mix(self.page ^ seed, PAGE_FACTOR), pages).1
    }

    /// The bits within the page; endless.
    #[inline]
    pub(crate) fn positions(self, seeds: [u64; 2]) -> Positions {
        let [_, seed] = seeds;
        Positions {
            next_word: self.slots ^ seed,
            word: 0,
            left: 0,
        }
    }
}

/// The positions of a key in its page, each below 2^15.
pub(crate) struct Positions {
    next_word: u64,
    word: u64,
    left: u32,
}

impl Iterator for Positions {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        if self.left == 0 {
            self.word = mix(self.next_word, SLOT_FACTOR);
            self.next_word = self.next_word.wrapping_add(SLOT_STEP);
            self.left = POSITIONS_PER_WORD;
        }
        let position = (self.word & POSITION_MASK) as u16;
        self.word >>= 16;
        self.left -= 1;
        Some(position)
    }
}

/// The halves of a product folded together, the mixer of wyhash: each bit of `a` reaches all of the result.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let (low, high) = multiply(a, b);
    low ^ high
}

/// The low and the high half of a product.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves of the product")]
fn multiply(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    (product as u64, (product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2^23 pages are 2^38 bits, 2^28 are the most a filter has.
    #[test]
    fn pages_are_in_range_and_all_over_it_at_any_size() {
        for pages in [1, 2, 3, 1 << 17, 6_291_457, 1 << 23, 1 << 28] {
            let found: Vec<_> = (0..4_000_u64)
                .chain([u64::MAX, 1 << 63])
                .map(|number| KeyHash::from(number.wrapping_mul(PAGE_FACTOR)).page(pages, [1, 2]))
                .collect();
            let (least, most) = (found.iter().min().unwrap(), found.iter().max().unwrap());
            assert!(
                *least <= pages / 500 && *most < pages && *most >= pages - 1 - pages / 500,
                "{pages}"
            );
        }
    }

    #[test]
    fn each_probe_is_uniform_and_independent_of_the_others() {
        const KEYS: u64 = 200_000;
        let mut counts = vec![[0_u32; 32]; 32];
        let mut equal = 0;
        for number in 0..KEYS {
            let key = KeyHash::from(number.wrapping_mul(0xd134_2543_de82_ef95));
            let positions: Vec<_> = key.positions([1, 2]).take(32).collect();
            for (counts, position) in counts.iter_mut().zip(&positions) {
                counts[usize::from(position >> 10)] += 1;
            }
            equal += positions
                .iter()
                .zip(&positions[1..])
                .filter(|(a, b)| a == b)
                .count();
        }
        for (probe, counts) in counts.iter().enumerate() {
            for count in counts {
                // Six standard deviations of 200,000 / 32.
                assert!(count.abs_diff(6_250) < 6 * 79, "probe {probe}: {counts:?}");
            }
        }
        // 31 neighbours of 200,000 keys, each equal once in 32,768: 189, six standard deviations are 83.
        assert!(equal.abs_diff(189) < 83, "{equal} neighbours are equal");
    }
}
