//! Random interleavings of append, commit, flush, merges, prunes, backups and reopening, against the
//! naive model.

use proptest::prelude::*;
use tamis_ct_index::compact::Policy;
use tamis_ct_index::compact::prune::{Prune, What};
use tamis_ct_index::{FilterMode, FilterOptions, Snapshot, backup};

use crate::world::{Model, Seen, all_names, assert_whole, batch, open, open_with, options, pairs};

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<Seen>),
    Commit,
    Flush,
    Compact(Policy),
    Prune(What),
    Backup,
    Reopen,
}

/// Between the dates that certificates of [`seen`] have.
fn what() -> impl Strategy<Value = What> {
    let expired = proptest::option::of(1_707_776_000i64..1_707_816_000);
    let seen = proptest::option::of(1_690_000_000i64..1_690_000_300);
    (expired, seen)
        .prop_filter("an empty prune removes everything", |(expired, seen)| {
            expired.is_some() || seen.is_some()
        })
        .prop_map(|(expired_before, seen_before)| What::Dates {
            expired_before,
            seen_before,
        })
}

fn seen() -> impl Strategy<Value = Seen> {
    let position = proptest::option::of((1u16..4, 0u64..200));
    (0u64..40, any::<bool>(), position, 1_690_000_000i64..1_690_000_300).prop_map(
        |(issuance, precert, position, at)| Seen {
            issuance,
            precert,
            position,
            at,
        },
    )
}

/// Parts so small that names, records and look-ups are cut into many.
fn policy() -> impl Strategy<Value = Policy> {
    (any::<bool>(), 2usize..4, 1u64..60, 1u64..40).prop_map(|(everything, batch, part_rows, file_records)| {
        Policy {
            batch,
            part_rows,
            file_records,
            records_max: file_records * 2,
            everything,
            ..Policy::default()
        }
    })
}

/// As they are, none, and the worst there can be.
fn filters() -> impl Strategy<Value = FilterMode> {
    prop_oneof![
        2 => Just(FilterMode::On(FilterOptions { pending_keys: 10, keys_first: 64, ..FilterOptions::default() })),
        1 => Just(FilterMode::Off),
        1 => Just(FilterMode::AlwaysMaybe),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => proptest::collection::vec(seen(), 1..12).prop_map(Step::Append),
        2 => Just(Step::Commit),
        2 => Just(Step::Flush),
        2 => policy().prop_map(Step::Compact),
        1 => what().prop_map(Step::Prune),
        1 => Just(Step::Backup),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_index_says_what_the_model_says(steps in proptest::collection::vec(step(), 1..24), flush_rows in 5usize..60, filters in filters()) {
        let dir = tempfile::tempdir().unwrap();
        let open = |dir: &std::path::Path, flush_rows| open_with(dir, flush_rows, filters);
        let mut index = open(dir.path(), flush_rows);
        let mut model = Model::default();
        let (aside, mut backups) = (tempfile::tempdir().unwrap(), 0);
        // A log holds one entry at a position: the first one that was drawn for it.
        let mut taken = std::collections::BTreeMap::new();
        for step in steps {
            match step {
                Step::Append(mut seen) => {
                    for one in &mut seen {
                        if let Some(position) = one.position
                            && *taken.entry(position).or_insert(one.issuance) != one.issuance
                        {
                            one.position = None;
                        }
                    }
                    index.append(&batch(&seen)).unwrap();
                    seen.iter().for_each(|one| model.add(one));
                }
                Step::Commit => index.commit().unwrap(),
                Step::Flush => index.flush().unwrap(),
                Step::Compact(policy) => {
                    index.compact(&policy).unwrap();
                }
                Step::Prune(what) => {
                    let before = index.snapshot();
                    index.commit().unwrap();
                    let full = index.snapshot();
                    let names = all_names(&full, "com", 5);
                    let totals = before.stats().totals;
                    let pruned = index
                        .prune(&Prune { what: what.clone(), dry_run: false }, |_| {})
                        .unwrap();
                    prop_assert_eq!(pruned.removed.issuances, model.prune(&what));
                    model.check(&index.snapshot());
                    // Who looked before still sees what was there then.
                    prop_assert_eq!(all_names(&full, "com", 5), names);
                    prop_assert_eq!(before.stats().totals, totals);
                }
                Step::Backup => {
                    index.commit().unwrap();
                    backups += 1;
                    let copy = aside.path().join(format!("copy-{backups}"));
                    backup(dir.path(), &copy, |_| {}).unwrap();
                    assert_whole(&copy);
                    model.check(&Snapshot::open(&copy, &options(flush_rows)).unwrap());
                    let restored = open(&copy, flush_rows);
                    model.check(&restored.snapshot());
                    let partial = copy.with_extension("partial").exists();
                    prop_assert!(!partial);
                }
                Step::Reopen => {
                    index.commit().unwrap();
                    drop(index);
                    index = open(dir.path(), flush_rows);
                }
            }
        }
        index.commit().unwrap();
        model.check(&index.snapshot());
        model.check(&Snapshot::open(dir.path(), &options(flush_rows)).unwrap());
        index.close().unwrap();
        assert_whole(dir.path());
        model.check(&Snapshot::open(dir.path(), &options(flush_rows)).unwrap());
    }
}

#[test]
fn a_second_import_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let all = pairs(500);
    let index = open(dir.path(), 300);
    let mut model = Model::default();
    for part in all.chunks(64) {
        index.append(&batch(part)).unwrap();
        part.iter().for_each(|seen| model.add(seen));
    }
    index.commit().unwrap();
    index.flush().unwrap();
    let before = index.snapshot().stats().totals;
    let mut again = tamis_ct_index::Outcome::default();
    for part in all.chunks(50) {
        again += index.append(&batch(part)).unwrap();
    }
    index.commit().unwrap();
    assert_eq!((again.new, again.copies, again.duplicates), (0, 0, 1_000));
    assert_eq!(index.snapshot().stats().totals, before);
    model.check(&index.snapshot());
    drop(index);
    let index = open(dir.path(), 300);
    let outcome = index.append(&batch(&all)).unwrap();
    assert_eq!(outcome.duplicates, 1_000, "known from the segments alone");
    model.check(&index.snapshot());
}
