//! Filters as a caller sees them: answers, rates, files, crashes and locks.

mod answers;
mod child;
mod files;
mod rates;

/// Uniform, different and cheap: the n-th output of SplitMix64.
pub(crate) fn hash(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The same for 128 bits.
pub(crate) fn hash_128(number: u64) -> u128 {
    u128::from(hash(number)) << 64 | u128::from(hash(!number))
}
