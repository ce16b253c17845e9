//! How large a filter is and how many bits a key has, computed from keys planned and false-positive rate.
//!
//! # Sources
//! The rate of a Bloom filter and its best number of probes: Bloom 1970. Filters in blocks, whose blocks hold
//! a Poisson-distributed number of keys: Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom
//! Filters", 2007. A block here is a page of 32,768 bits, so large that the loss is under 1 % of the rate at
//! one in a thousand.

use crate::error::{Error, Result};

/// Bits of a page, the block that holds all bits of a key.
pub(crate) const PAGE_BITS: u64 = 32_768;
pub(crate) const PAGE_BYTES: u64 = PAGE_BITS / 8;
/// The header is a page too, so that the bitmap starts at one.
pub(crate) const HEADER_BYTES: u64 = PAGE_BYTES;
/// At most this many bits per key: one in a thousand million needs 30.
pub(crate) const PROBES_MAX: u32 = 32;
/// 2^43 bits, 1 TiB.
pub(crate) const PAGES_MAX: u64 = 1 << 28;
const RATE_MIN: f64 = 1e-9;
const RATE_MAX: f64 = 0.5;
/// What a filter may be larger than the smallest possible for having fewer probes: at 12.8 bits per key 1.5 %
/// more buys 7 instead of 9.
const SLACK_FOR_FEWER_PROBES: f64 = 1.02;
/// With so many bits set in a page on average, again and again, less than one in 10^17 is left: the rate is 1.
/// It bounds the sum over the keys of a page, too.
const PAGE_HITS_MAX: f64 = 40.0 * 32_768.0;
/// Used unless the caller brings others; digits of pi, chosen by nobody.
const SEEDS: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];

/// The shape of a filter: fixed when it is made, kept in the header of its file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Geometry {
    pub(crate) pages: u64,
    pub(crate) probes: u32,
    pub(crate) seeds: [u64; 2],
    pub(crate) keys_planned: u64,
    pub(crate) rate_planned: f64,
}

impl Geometry {
    /// The shape for `keys` keys such that, when all of them are in, a new key is "maybe seen" with probability
    /// `false_positive_rate` at most.
    ///
    /// # Errors
    /// [`Error::Plan`] unless there is a key at least, the rate lies between 1e-9 and 0.5, and the bitmap takes
    /// at most 1 TiB.
    pub fn for_keys(keys: u64, false_positive_rate: f64) -> Result<Self> {
        let refused = |reason| Error::Plan {
            keys,
            rate: false_positive_rate,
            reason,
        };
        if keys == 0 {
            return Err(refused("plan for one key at least"));
        }
        if !(RATE_MIN..=RATE_MAX).contains(&false_positive_rate) {
            return Err(refused("the rate must lie between 0.000000001 and 0.5"));
        }
        let probes = probes_for(false_positive_rate);
        let pages = pages_for(keys, false_positive_rate, probes)
            .ok_or_else(|| refused("it would take more than 1 TiB; plan several filters"))?;
        Ok(Self {
            pages,
            probes,
            seeds: SEEDS,
            keys_planned: keys,
            rate_planned: false_positive_rate,
        })
    }

    /// The same shape with positions of its own, for keys that somebody may have chosen to collide.
    ///
    /// Who does not know the seeds cannot find keys that are "maybe seen" without having been seen.
    #[must_use]
    pub fn with_seeds(self, seeds: [u64; 2]) -> Self {
        Self { seeds, ..self }
    }

    /// Bits of the bitmap.
    pub fn bits(&self) -> u64 {
        self.pages * PAGE_BITS
    }

    /// Bytes of a file of this shape: header and bitmap.
    pub fn file_bytes(&self) -> u64 {
        HEADER_BYTES + self.pages * PAGE_BYTES
    }

    /// How many bits each key sets.
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// How many keys the filter is made for.
    pub fn keys_planned(&self) -> u64 {
        self.keys_planned
    }

    /// The false-positive rate at [`keys_planned`](Self::keys_planned) that was asked for.
    pub fn false_positive_rate_planned(&self) -> f64 {
        self.rate_planned
    }

    /// The false-positive rate to expect when `keys` different keys are in. Takes some microseconds.
    pub fn false_positive_rate_at(&self, keys: u64) -> f64 {
        rate(keys, self.pages, self.probes)
    }

    /// How many keys set about `fill` of all bits, a number from 0 to 1; the inverse of the expected fill.
    pub(crate) fn keys_at_fill(&self, fill: f64) -> u64 {
        let stays = (-self.bit_probability()).ln_1p();
        // All bits set says only "many": the estimate is that of one bit left.
        let unset = (1.0 - fill).max(1.0 / lossy(self.bits()));
        whole(unset.ln() / stays * lossy(self.pages))
    }

    /// How likely one key of a page sets one bit of it.
    fn bit_probability(&self) -> f64 {
        bit_probability(self.probes)
    }
}

/// The fewest probes whose filter is hardly larger than the smallest.
fn probes_for(rate: f64) -> u32 {
    let smallest = (1..=PROBES_MAX)
        .map(|probes| bits_per_key(rate, probes))
        .fold(f64::INFINITY, f64::min);
    (1..=PROBES_MAX)
        .find(|&probes| bits_per_key(rate, probes) <= smallest * SLACK_FOR_FEWER_PROBES)
        .unwrap_or(PROBES_MAX)
}

/// Of the classic filter: its rate is (1 − e^(−probes / bits per key))^probes.
fn bits_per_key(rate: f64, probes: u32) -> f64 {
    let probes = f64::from(probes);
    -probes / (-rate.powf(1.0 / probes)).ln_1p()
}

/// The fewest pages that keep `rate` with `keys` in; None if there are too many.
fn pages_for(keys: u64, rate_max: f64, probes: u32) -> Option<u64> {
    let classic = bits_per_key(rate_max, probes) * lossy(keys) / lossy(PAGE_BITS);
    // Blocks of a page need a little more, at the smallest rates about a tenth: half as much again is enough.
    let (mut too_few, mut enough) = (whole(classic * 0.98), whole(classic * 1.5) + 1);
    while enough - too_few > 1 {
        let middle = too_few.midpoint(enough);
        if rate(keys, middle, probes) <= rate_max {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    (enough <= PAGES_MAX).then_some(enough)
}

/// The rate of a page with so many keys, averaged over the Poisson distribution of keys in a page.
fn rate(keys: u64, pages: u64, probes: u32) -> f64 {
    let mean = lossy(keys) / lossy(pages);
    if mean * f64::from(probes) > PAGE_HITS_MAX {
        return 1.0;
    }
    // Beyond twelve standard deviations nothing counts; the constant covers small means.
    let reach = 12.0 * mean.sqrt() + 20.0;
    let (first, last) = (whole((mean - reach).max(0.0)), whole(mean + reach));
    let stays = (-bit_probability(probes)).ln_1p();
    // Weights relative to the first, kept in logarithms: the first is as small as e^-72.
    let (mut weight_ln, mut weights, mut weighted) = (0.0_f64, 0.0, 0.0);
    let peak_ln = ln_ratio(first, mean);
    for in_page in first..=last {
        if in_page > first {
            weight_ln += (mean / lossy(in_page)).ln();
        }
        let weight = (weight_ln - peak_ln).exp();
        let fill = -(lossy(in_page) * stays).exp_m1();
        weights += weight;
        weighted += weight * fill.powi(probes.cast_signed());
    }
    weighted / weights
}

/// About the logarithm of how much likelier the mean is than `first`, so that weights neither vanish nor overflow.
fn ln_ratio(first: u64, mean: f64) -> f64 {
    let first = lossy(first).max(1.0);
    first * (first / mean.max(1.0)).ln() - (first - mean)
}

/// Probes are independent, so two of a key may fall on one bit.
fn bit_probability(probes: u32) -> f64 {
    let one = 1.0 / lossy(PAGE_BITS);
    -(f64::from(probes) * (-one).ln_1p()).exp_m1()
}

#[expect(clippy::cast_precision_loss, reason = "rates need no more than 52 bits")]
fn lossy(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts; the cast saturates"
)]
fn whole(count: f64) -> u64 {
    count.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(keys: u64, rate: f64, probes: u32, bits_per_key: f64) {
        let geometry = Geometry::for_keys(keys, rate).expect("a plan");
        assert_eq!(geometry.probes(), probes);
        let found = lossy(geometry.bits()) / lossy(keys);
        assert!((found / bits_per_key - 1.0).abs() < 0.01, "{found} bits per key");
        let full = geometry.false_positive_rate_at(keys);
        assert!(full <= rate && full > rate * 0.98, "{full} at full");
    }

    #[test]
    fn size_and_probes_follow_from_the_plan() {
        // Probes × 1.44 bits for the optimum, up to 2 % more for fewer of them, and what pages cost.
        check(83_886_080, 0.00236, 7, 12.85);
        check(100_000_000, 0.5, 1, 1.443);
        check(100_000_000, 0.1, 3, 4.81);
        check(100_000_000, 0.01, 6, 9.68);
        check(100_000_000, 0.001, 8, 14.65);
        check(100_000_000, 1e-6, 16, 29.6);
        check(100_000_000, 1e-9, 24, 44.3);
    }

    #[test]
    fn the_24_gb_budget_and_more_are_planned_without_overflow() {
        check(15_000_000_000, 0.00236, 7, 12.85);
        let geometry = Geometry::for_keys(21_000_000_000, 0.00236).expect("a plan");
        assert!(
            geometry.bits() > 1 << 37 && geometry.bits() < 1 << 38,
            "{}",
            geometry.bits()
        );
        let keys_max = 680_000_000_000;
        assert!(Geometry::for_keys(keys_max, 0.00236).expect("a plan").pages <= PAGES_MAX);
        for keys in [keys_max * 2, u64::MAX] {
            let error = Geometry::for_keys(keys, 0.00236).expect_err("over 1 TiB");
            assert!(error.to_string().ends_with("plan several filters"), "{error}");
        }
    }

    #[test]
    fn plans_that_make_no_sense_are_refused() {
        for (keys, rate) in [
            (0, 0.01),
            (1, 0.0),
            (1, 0.6),
            (1, -1.0),
            (1, f64::NAN),
            (1, f64::INFINITY),
        ] {
            let error = Geometry::for_keys(keys, rate).expect_err("no plan");
            assert_eq!((error.kind(), error.path()), (crate::Blame::Input, None));
        }
    }

    #[test]
    fn few_keys_get_a_page_and_the_rate_grows_with_keys() {
        let geometry = Geometry::for_keys(1, 1e-9).expect("a plan");
        assert_eq!((geometry.bits(), geometry.file_bytes()), (32_768, 8_192));
        let rates: Vec<_> = [0, 1, 10, 100, 1_000, 10_000, 1_000_000]
            .map(|keys| geometry.false_positive_rate_at(keys))
            .into();
        assert_eq!((rates[0], rates[6]), (0.0, 1.0));
        assert_eq!(
            geometry.false_positive_rate_at(u64::MAX),
            1.0,
            "and it takes no time"
        );
        assert!(rates.is_sorted() && rates[3] < rates[4], "{rates:?}");
    }

    #[test]
    fn keys_are_found_again_from_the_fill() {
        let geometry = Geometry::for_keys(10_000_000, 0.01).expect("a plan");
        for keys in [0_u64, 1_000, 1_000_000, 10_000_000, 30_000_000] {
            let in_page = lossy(keys) / lossy(geometry.pages);
            let fill = 1.0 - (1.0 - geometry.bit_probability()).powf(in_page);
            assert!(
                geometry.keys_at_fill(fill).abs_diff(keys) <= 1,
                "{keys} at {fill}"
            );
        }
        assert!(
            geometry.keys_at_fill(1.0) > 60_000_000,
            "a full filter is not an infinite one"
        );
    }
}
