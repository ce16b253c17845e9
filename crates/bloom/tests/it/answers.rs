//! What was set is "maybe seen", by one thread or many; what was not is new but for false positives.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;

use proptest::prelude::*;
use tamis_bloom::{Filter, Geometry};

use crate::{hash, hash_128};

fn filter(keys: u64, rate: f64) -> Filter {
    Filter::in_memory(Geometry::for_keys(keys, rate).expect("a plan")).expect("memory")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any keys, also far from uniform, one by one and in batches, against a set.
    #[test]
    fn there_is_no_false_negative(
        keys in prop::collection::vec(prop_oneof![any::<u64>(), 0..20_u64], 0..300),
        planned in 1..100_000_u64,
        rate in 1e-9..0.5,
    ) {
        let (one_by_one, batch) = (filter(planned, rate), filter(planned, rate));
        let (mut held, mut expected) = (HashSet::new(), Vec::new());
        for &key in &keys {
            let maybe_seen = one_by_one.check_and_set(key);
            prop_assert!(maybe_seen || held.insert(key), "{} was set and looks new", key);
            expected.push(maybe_seen);
        }
        let mut maybe_seen = vec![false; keys.len()];
        batch.check_and_set_batch(&keys, &mut maybe_seen);
        prop_assert_eq!(&maybe_seen, &expected, "a batch answers as its keys one by one");
        prop_assert_eq!(batch.keys(), held.len() as u64);
        prop_assert_eq!(one_by_one.keys(), batch.keys());
        batch.may_hold_batch(&keys, &mut maybe_seen);
        prop_assert!(maybe_seen.iter().all(|&seen| seen));
        prop_assert!(keys.iter().all(|&key| one_by_one.may_hold(key)));
    }
}

#[test]
fn an_empty_filter_holds_nothing_and_knows_its_plan() {
    let filter = filter(10_000, 0.01);
    assert!((0..10_000).all(|number| !filter.may_hold(hash(number)) && !filter.may_hold(hash_128(number))));
    assert_eq!((filter.keys(), filter.keys_are_estimated()), (0, false));
    assert_eq!((filter.saturation(), filter.fill()), (0.0, 0.0));
    assert_eq!(filter.expected_false_positive_rate(), 0.0);
    assert_eq!(filter.geometry().keys_planned(), 10_000);
    assert_eq!(filter.geometry().false_positive_rate_planned(), 0.01);
    filter.sync().expect("nothing to do");
    filter.reserve().expect("nothing to do");
}

#[test]
fn saturation_is_keys_held_over_keys_planned_and_no_end() {
    let filter = filter(20_000, 0.001);
    for number in 0..40_000 {
        filter.check_and_set(hash_128(number));
    }
    // Keys that were false positives are not counted: about one in a hundred at twice the plan.
    assert!(
        (1.9..=2.0).contains(&filter.saturation()),
        "{}",
        filter.saturation()
    );
    assert!((0.6..0.8).contains(&filter.fill()), "{}", filter.fill());
    assert!((0..40_000).all(|number| filter.may_hold(hash_128(number))));
    assert!(filter.expected_false_positive_rate() > 0.015);
}

#[test]
fn seeds_move_every_key() {
    let geometry = Geometry::for_keys(10_000, 0.001).expect("a plan");
    let [ours, theirs] =
        [[1, 2], [3, 4]].map(|seeds| Filter::in_memory(geometry.with_seeds(seeds)).expect("memory"));
    for number in 0..10_000 {
        ours.check_and_set(hash(number));
        theirs.check_and_set(hash(number + 10_000));
    }
    let crossed = (0..10_000)
        .filter(|&number| theirs.may_hold(hash(number)))
        .count();
    assert!(crossed < 50, "{crossed} keys lie alike under both seeds");
}

/// A caller may give each shard of the hash space a filter of its own.
#[test]
fn keys_that_share_many_bits_still_spread() {
    for shard in [|number: u64| number >> 16, |number: u64| number << 16] {
        let filter = filter(200_000, 0.01);
        for number in 0..200_000 {
            filter.check_and_set(shard(hash(number)));
        }
        let seen = (200_000..400_000)
            .filter(|&number| filter.may_hold(shard(hash(number))))
            .count();
        assert!(seen < 200_000 / 80, "{seen} of 200,000 keys of a shard");
    }
}

#[test]
fn four_racing_threads_lose_no_bit() {
    const KEYS: u64 = 40_000;
    let filter = filter(KEYS, 0.001);
    let (told_new, start) = (AtomicU64::new(0), Barrier::new(4));
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (filter, told_new, start) = (&filter, &told_new, &start);
            scope.spawn(move || {
                start.wait();
                // All threads set all keys; two of them from the front, two from the back, in batches.
                let mut maybe_seen = [false; 50];
                for chunk in 0..KEYS / 50 {
                    let chunk = if thread < 2 { chunk } else { KEYS / 50 - 1 - chunk };
                    let keys: Vec<_> = (chunk * 50..(chunk + 1) * 50).map(hash).collect();
                    filter.check_and_set_batch(&keys, &mut maybe_seen);
                    assert!(
                        keys.iter().all(|&key| filter.may_hold(key)),
                        "a thread sees its own keys"
                    );
                    let new = maybe_seen.iter().filter(|&&seen| !seen).count();
                    told_new.fetch_add(new as u64, Ordering::Relaxed);
                }
            });
        }
    });
    assert!((0..KEYS).all(|number| filter.may_hold(hash(number))));
    let told_new = told_new.into_inner();
    assert_eq!(filter.keys(), told_new, "each one told is counted");
    // At least one racer of each key is told, but for false positives; at most all four are.
    assert!(
        (KEYS - KEYS / 200..=4 * KEYS).contains(&told_new),
        "{told_new} of {KEYS}"
    );
}

#[test]
fn who_is_told_of_a_key_sees_it() {
    let filter = filter(20_000, 0.01);
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..20_000 {
                filter.check_and_set(hash(number));
                sender.send(hash(number)).expect("the receiver waits");
            }
            drop(sender);
        });
        let mut told = 0;
        for key in receiver {
            assert!(filter.may_hold(key));
            told += 1;
            if told == 20_000 {
                break;
            }
        }
        assert_eq!(told, 20_000);
    });
}

#[test]
#[should_panic(expected = "one answer for each key")]
fn a_batch_has_one_answer_for_each_key() {
    filter(10, 0.1).check_and_set_batch(&[1_u64, 2], &mut [false]);
}
