//! Random interleavings of append, commit, flush and reopening, against the naive model.

use proptest::prelude::*;
use tamis_ct_index::compact::Policy;
use tamis_ct_index::{FilterMode, FilterOptions, Snapshot};

use crate::world::{Model, Seen, assert_whole, batch, open, open_with, options, pairs};

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<Seen>),
    Commit,
    Flush,
    Compact(Policy),
    Reopen,
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
