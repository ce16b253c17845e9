//! Pruning where the naive model has no say: months, copies in other files, counts to the last one.

use std::path::Path;

use tamis_ct_index::compact::Policy;
use tamis_ct_index::compact::prune::{Prune, Pruned, What};
use tamis_ct_index::key::Identifier;
use tamis_ct_index::record::{CertificateKind, Fingerprint, Issuance};
use tamis_ct_index::{Batch, Index, Observation, Options, Snapshot};

use crate::world::{Model, Seen, all_names, assert_whole, batch, open, options, pairs};

const OCTOBER: i64 = 1_760_000_000;
const NOVEMBER: i64 = 1_763_000_000;

fn open_in(dir: &Path, now: fn() -> i64) -> Index {
    let options = Options {
        now,
        ..options(1_000_000)
    };
    let index = Index::open(dir, options).unwrap();
    for log in ["log-a", "log-b", "log-c"] {
        index.register_log(log).unwrap();
    }
    index
}

fn append(index: &Index, seen: &[Seen]) {
    index.append(&batch(seen)).unwrap();
    index.flush().unwrap();
}

fn prune(index: &Index, what: What) -> Pruned {
    let before = index.snapshot().stats().totals;
    let dry_run = true;
    let would = index
        .prune(
            &Prune {
                what: what.clone(),
                dry_run,
            },
            |_| {},
        )
        .unwrap();
    assert_eq!(index.snapshot().stats().totals, before);
    let dry_run = false;
    let done = index.prune(&Prune { what, dry_run }, |_| {}).unwrap();
    assert_eq!(done.removed, would.removed);
    assert_eq!(done.bytes_before, would.bytes_before);
    done
}

fn month(name: &str) -> What {
    What::Month(name.to_owned())
}

/// First observations of issuances in October, second ones in November: slim copies, and earlier ones
/// that are written whole.
fn two_months(dir: &Path) -> (Vec<Seen>, Vec<Seen>) {
    let all = pairs(60);
    let october: Vec<Seen> = all
        .iter()
        .filter(|seen| seen.precert && seen.issuance < 40)
        .cloned()
        .collect();
    let mut november: Vec<Seen> = all
        .iter()
        .filter(|seen| !seen.precert || seen.issuance >= 40)
        .cloned()
        .collect();
    november
        .iter_mut()
        .filter(|seen| seen.issuance % 3 == 0)
        .for_each(|seen| seen.at -= 1_000);
    let index = open_in(dir, || OCTOBER);
    append(&index, &october[..20]);
    append(&index, &october[20..]);
    drop(index);
    let index = open_in(dir, || NOVEMBER);
    append(&index, &november[..30]);
    append(&index, &november[30..]);
    (october, november)
}

fn model_of<'s>(seen: impl IntoIterator<Item = &'s Seen>) -> Model {
    let mut model = Model::default();
    seen.into_iter().for_each(|seen| model.add(seen));
    model
}

#[test]
fn a_month_takes_the_copies_of_what_it_brought_along() {
    for merged in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (october, november) = two_months(dir.path());
        let index = open_in(dir.path(), || NOVEMBER);
        if merged {
            index.compact(&Policy::everything()).unwrap();
        }
        model_of(october.iter().chain(&november)).check(&index.snapshot());
        let done = prune(&index, month("2025-10"));
        assert_eq!(done.removed.issuances, 40);
        // Nothing of October is written anew.
        assert_eq!(std::fs::read_dir(dir.path().join("2025-10")).unwrap().count(), 0);
        let later: Vec<&Seen> = november.iter().filter(|seen| seen.issuance >= 40).collect();
        model_of(later.iter().copied()).check(&index.snapshot());
        assert_whole(dir.path());
        index.append(&batch(&october)).unwrap();
        index.append(&batch(&november)).unwrap();
        index.commit().unwrap();
        model_of(october.iter().chain(&november)).check(&index.snapshot());
        index.compact(&Policy::everything()).unwrap();
        index.close().unwrap();
        assert_whole(dir.path());
        model_of(october.iter().chain(&november)).check(&Snapshot::open(dir.path(), &options(1)).unwrap());
    }
}

#[test]
fn a_month_of_copies_leaves_their_originals() {
    for merged in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (october, november) = two_months(dir.path());
        let index = open_in(dir.path(), || NOVEMBER);
        if merged {
            index.compact(&Policy::everything()).unwrap();
        }
        let done = prune(&index, month("2025-11"));
        assert_eq!(done.removed.issuances, 20);
        model_of(&october).check(&index.snapshot());
        assert_eq!(fresh(&october), index.snapshot().stats().totals);
        assert_whole(dir.path());
        // What the copies told is told again.
        index.append(&batch(&november)).unwrap();
        index.commit().unwrap();
        model_of(october.iter().chain(&november)).check(&index.snapshot());
    }
}

/// Counts of an index that never had anything else.
fn fresh(seen: &[Seen]) -> tamis_ct_index::totals::Totals {
    let dir = tempfile::tempdir().unwrap();
    let index = open(dir.path(), 1_000_000);
    index.append(&batch(seen)).unwrap();
    index.commit().unwrap();
    index.snapshot().stats().totals
}

#[test]
fn counts_are_those_of_an_index_that_never_had_more() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(dir.path(), 1_000_000);
    let mut all = pairs(120);
    // Copies in other files than their originals, some of them earlier.
    all.sort_by_key(|seen| (!seen.precert, seen.issuance));
    for seen in all
        .iter_mut()
        .filter(|seen| !seen.precert && seen.issuance % 4 == 1)
    {
        seen.at -= 500;
    }
    for part in all.chunks(48) {
        append(&index, part);
    }
    let end = 1_707_776_000 + 70_000;
    let what = What::Dates {
        expired_before: Some(end),
        seen_before: None,
    };
    let left: Vec<Seen> = all
        .iter()
        .filter(|seen| seen.not_after().is_none_or(|after| after >= end))
        .cloned()
        .collect();
    let before = index.snapshot().stats().totals;
    let done = prune(&index, what);
    let after = index.snapshot().stats().totals;
    assert_eq!(after, fresh(&left));
    assert_eq!(done.removed.positions, before.positions - after.positions);
    model_of(&left).check(&index.snapshot());
    assert_whole(dir.path());
}

/// A certificate of which a first import kept `names` of five names.
fn cut(names: usize, at: i64) -> Batch {
    let all = ["a.cut.com", "b.cut.com", "c.cut.com", "d.cut.com", "e.cut.com"];
    let observation = Observation {
        issuance: Issuance(77),
        serial: b"cut",
        fingerprint: Some(Fingerprint {
            kind: CertificateKind::Certificate,
            sha256: [7; 32],
        }),
        position: None,
        first_seen: at,
        not_before: None,
        not_after: None,
        issuer: "CN=Cut",
        organization: "Cut",
        names_total: 5,
        deviations: 0,
    };
    let mut batch = Batch::new();
    batch.push(
        &observation,
        std::iter::empty(),
        all[..names].iter().map(|name| (Identifier::Host(name), 1)),
    );
    batch
}

/// Rows that only a later copy brought carry its date and number; they go with the issuance all the same.
#[test]
fn names_beyond_an_earlier_limit_go_too() {
    for merges in [0, 1, 2] {
        for (before, left) in [(1_000, 0), (10, 5)] {
            let dir = tempfile::tempdir().unwrap();
            let index = open(dir.path(), 1_000_000);
            append(&index, &pairs(3));
            index.append(&cut(2, 500)).unwrap();
            if merges < 2 {
                index.flush().unwrap();
            }
            index.append(&cut(5, 2_000)).unwrap();
            index.flush().unwrap();
            if merges > 0 {
                index.compact(&Policy::everything()).unwrap();
            }
            assert_eq!(all_names(&index.snapshot(), "cut.com", 9).len(), 5);
            let what = What::Dates {
                expired_before: None,
                seen_before: Some(before),
            };
            let done = prune(&index, what);
            let names = all_names(&index.snapshot(), "cut.com", 9);
            assert_eq!(names.len(), left, "{merges} {names:?}");
            assert_eq!(done.removed.name_rows, 5 - left as u64);
            assert_whole(dir.path());
        }
    }
}

#[test]
fn nothing_to_remove_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(dir.path(), 1_000_000);
    append(&index, &pairs(50));
    let before = index.snapshot().stats();
    for what in [
        month("2001-01"),
        What::Dates {
            expired_before: Some(0),
            seen_before: None,
        },
    ] {
        assert_eq!(prune(&index, what), Pruned::default());
    }
    assert_eq!(index.snapshot().stats().segment_bytes, before.segment_bytes);
    model_of(&pairs(50)).check(&index.snapshot());
}
