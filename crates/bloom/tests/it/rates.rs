//! The false-positive rate is the one that was planned and is computed, and the fill tells the keys.

use tamis_bloom::{Filter, Geometry, KeyHash};

use crate::{hash, hash_128};

/// Fills a filter as planned; its rate must be within a tenth of the expected one. `queries` makes the standard
/// error a fiftieth at most.
#[track_caller]
fn check<K: Into<KeyHash>>(keys: u64, rate: f64, queries: u64, hash: fn(u64) -> K) {
    let geometry = Geometry::for_keys(keys, rate).expect("a plan");
    let filter = Filter::in_memory(geometry).expect("memory");
    for number in 0..keys {
        filter.check_and_set(hash(number));
    }
    let seen = (keys..keys + queries)
        .filter(|&number| filter.may_hold(hash(number)))
        .count();
    let (found, expected) = (
        seen as f64 / queries as f64,
        geometry.false_positive_rate_at(keys),
    );
    assert!(
        (found / expected - 1.0).abs() < 0.1,
        "{found} at {rate} planned, {expected} expected"
    );
    assert!(found < rate * 1.1);
    let counted = filter.keys() as f64 / keys as f64;
    assert!(
        (1.0 - rate..=1.0).contains(&counted),
        "{counted} of the keys are counted"
    );
}

#[test]
fn the_rate_at_full_is_the_planned_one() {
    check(100_000, 0.5, 20_000, hash);
    check(1_000_000, 0.1, 100_000, hash);
    check(1_000_000, 0.01, 400_000, hash);
    check(500_000, 0.01, 400_000, hash_128);
    check(1_000_000, 0.00236, 1_500_000, hash);
    check(300_000, 0.0005, 5_000_000, hash_128);
}

#[test]
fn the_expected_rate_holds_before_and_behind_full() {
    let geometry = Geometry::for_keys(500_000, 0.01).expect("a plan");
    let filter = Filter::in_memory(geometry).expect("memory");
    let mut held = 0;
    for end in [250_000, 500_000, 1_000_000] {
        (held..end).for_each(|number| {
            filter.check_and_set(hash(number));
        });
        held = end;
        let queries = 2_000_000;
        let seen = (1 << 40..(1 << 40) + queries)
            .filter(|&number| filter.may_hold(hash(number)))
            .count();
        let (found, expected) = (seen as f64 / queries as f64, geometry.false_positive_rate_at(end));
        assert!(
            (found / expected - 1.0).abs() < 0.1,
            "{found} at {end} keys, {expected} expected"
        );
    }
}
