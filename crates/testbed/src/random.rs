//! A small, fast, reproducible source of numbers; of no use for secrets.
//!
//! wyrand (Wang Yi): one multiplication per 8 bytes. The standard library's hashers and the `rand`
//! crate may change their streams between versions; a corpus must not.

/// A stream of numbers that depends on its seed alone.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// A stream for one thing among many, such as rank 17 of the domains.
    pub(crate) fn for_item(seed: u64, purpose: u64, item: u64) -> Self {
        let mut mixed = Self(seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let start = mixed.next().wrapping_add(item);
        let mut mixed = Self(start);
        Self(mixed.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xa076_1d64_78bd_642f);
        let product = u128::from(self.0) * u128::from(self.0 ^ 0xe703_7ed1_a0b4_28db);
        (product >> 64) as u64 ^ product as u64
    }

    /// Uniform in `0..limit`; 0 for a limit of 0. The bias is below limit / 2^64.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// Uniform in `low..high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low)
    }

    /// True in `per_mille` of 1,000 cases.
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    /// Picks by weight; linear, for tables of some tens.
    pub(crate) fn pick_weighted<T>(&mut self, items: &[T], weight: impl Fn(&T) -> u64) -> usize {
        let total = items.iter().map(&weight).sum();
        let mut at = self.below(total);
        for (index, item) in items.iter().enumerate() {
            let weight = weight(item);
            if at < weight {
                return index;
            }
            at -= weight;
        }
        0
    }

    /// Rank in `0..count` by a power law with exponent 5/7: few ranks are met often, most hardly
    /// ever. The inverse of its distribution, `count · u^3.5`, needs only exact operations, so it
    /// is the same on every machine.
    pub(crate) fn rank(&mut self, count: u64) -> u64 {
        let unit = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let skewed = unit * unit * unit * unit.sqrt();
        ((count as f64 * skewed) as u64).min(count.saturating_sub(1))
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let next = self.next().to_le_bytes();
            chunk.copy_from_slice(&next[..chunk.len()]);
        }
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// Appends `count` lower-case hexadecimal digits, at most 16.
    pub(crate) fn push_hex(&mut self, out: &mut String, count: usize) {
        let mut bits = self.next();
        for _ in 0..count {
            out.push(char::from(b"0123456789abcdef"[(bits & 15) as usize]));
            bits >>= 4;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_never_changes() {
        // Pinned: a change here changes every corpus that anyone has generated.
        let mut random = Random(1);
        assert_eq!(
            [random.next(), random.next()],
            [0xcdef_1695_e1f8_ed2c, 0x61d6_d24b_1c9a_ad40]
        );
    }

    #[test]
    fn ranks_are_skewed_and_in_range() {
        let mut random = Random(7);
        let ranks: Vec<_> = (0..100_000).map(|_| random.rank(1_000_000)).collect();
        assert!(ranks.iter().all(|rank| *rank < 1_000_000));
        let top = ranks.iter().filter(|rank| **rank < 1000).count();
        // P(rank < 1000) = (1000 / 1,000,000)^(2/7) = 13.9 %.
        assert!((13_000..15_000).contains(&top), "{top}");
    }

    #[test]
    fn weights_are_kept() {
        let mut random = Random(3);
        let mut counts = [0_u32; 3];
        for _ in 0..10_000 {
            counts[random.pick_weighted(&[1_u64, 0, 3], |weight| *weight)] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((2200..2800).contains(&counts[0]), "{counts:?}");
    }
}
