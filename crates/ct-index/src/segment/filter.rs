//! A Bloom filter whose bits for one key share a cache line, for what a segment surely does not hold.
//!
//! # Format
//! `probes u8 | lines u32 | bits`, a line being 512 bits. The low half of a 64-bit hash chooses the
//! line, nine bits each of a remix choose the probes.
//!
//! # Invariants
//! Never a false negative. A false positive costs a lookup and never a record.

use crate::coding::{Decoded, Malformed, Reader};

const LINE_BYTES: usize = 64;
const LINE_BITS: u64 = 512;

/// An immutable filter over 64-bit hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineFilter {
    probes: u8,
    lines: u32,
    bits: Vec<u8>,
}

impl LineFilter {
    /// A filter of `bits_per_key` over the given hashes.
    pub(crate) fn build(hashes: &[u64], bits_per_key: u64) -> Self {
        let lines = (hashes.len() as u64 * bits_per_key)
            .div_ceil(LINE_BITS)
            .clamp(1, u64::from(u32::MAX)) as u32;
        // Fewer probes than the classic optimum: lines fill unevenly.
        let probes = (bits_per_key * 69 / 110).clamp(1, 12) as u8;
        let mut filter = Self {
            probes,
            lines,
            bits: vec![0; lines as usize * LINE_BYTES],
        };
        for &hash in hashes {
            let start = filter.line(hash);
            for bit in probes_of(hash, probes) {
                if let Some(byte) = filter.bits.get_mut(start + bit / 8) {
                    *byte |= 1 << (bit % 8);
                }
            }
        }
        filter
    }

    /// False when the key was surely not among those given.
    pub(crate) fn may_hold(&self, hash: u64) -> bool {
        let start = self.line(hash);
        probes_of(hash, self.probes).all(|bit| {
            self.bits
                .get(start + bit / 8)
                .is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
        })
    }

    fn line(&self, hash: u64) -> usize {
        (((hash & 0xffff_ffff) * u64::from(self.lines)) >> 32) as usize * LINE_BYTES
    }

    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        out.push(self.probes);
        out.extend_from_slice(&self.lines.to_le_bytes());
        out.extend_from_slice(&self.bits);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Decoded<Self> {
        let probes = reader.u8()?;
        let lines = reader.u32()?;
        if lines == 0 || probes == 0 {
            return Err(Malformed("a filter without lines or probes"));
        }
        Ok(Self {
            probes,
            lines,
            bits: reader.take(lines as usize * LINE_BYTES)?.to_vec(),
        })
    }
}

/// Nine bits a probe, seven probes a word; double hashing inside so short a line doubles the false
/// positives.
fn probes_of(hash: u64, probes: u8) -> impl Iterator<Item = usize> {
    let mix = |odd: u64| (hash ^ (hash >> 32)).wrapping_mul(odd);
    let words = [mix(0x9e37_79b9_7f4a_7c15), mix(0xc2b2_ae3d_27d4_eb4f)];
    let words = words.map(|word| word ^ (word >> 29));
    (0..usize::from(probes)).map(move |probe| {
        let word = words.get(probe / 7).copied().unwrap_or(hash);
        (word >> (9 * (probe % 7))) as usize % LINE_BITS as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_64;

    fn hashes(from: u64, to: u64) -> Vec<u64> {
        (from..to).map(|number| xxh3_64(&number.to_le_bytes())).collect()
    }

    #[test]
    fn holds_what_it_was_given_and_little_else() {
        let filter = LineFilter::build(&hashes(0, 50_000), 16);
        assert!(hashes(0, 50_000).into_iter().all(|hash| filter.may_hold(hash)));
        let wrong = hashes(50_000, 1_050_000)
            .into_iter()
            .filter(|&hash| filter.may_hold(hash))
            .count();
        // 0.1 % is planned at 16 bits a key; twice that would be a fault of the probes.
        assert!(wrong < 2_000, "{wrong} false positives in a million");
        let mut bytes = Vec::new();
        filter.encode_into(&mut bytes);
        assert_eq!(LineFilter::read(&mut Reader::new(&bytes)), Ok(filter));
    }

    #[test]
    fn an_empty_filter_holds_nothing() {
        let filter = LineFilter::build(&[], 16);
        assert!(!hashes(0, 100).into_iter().any(|hash| filter.may_hold(hash)));
    }
}
