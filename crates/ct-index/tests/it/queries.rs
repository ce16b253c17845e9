//! Pages, cursors, filters, deadlines, locks.

use std::time::Duration;

use tamis_ct_index::key::Identifier;
use tamis_ct_index::query::{Filters, NamesQuery, Paging, SearchQuery, Target};
use tamis_ct_index::{Error, Index, Snapshot};

use crate::world::{Model, Seen, all_names, batch, open, options, pairs};

fn filled(dir: &std::path::Path, count: u64, flush_rows: usize) -> Index {
    let index = open(dir, flush_rows);
    for part in pairs(count).chunks(100) {
        index.append(&batch(part)).unwrap();
    }
    index.commit().unwrap();
    index
}

/// Names that a search yields through pages of `limit`.
fn search(snapshot: &Snapshot, target: Target<'_>, filters: Filters, limit: usize) -> Vec<(String, u64)> {
    let mut query = SearchQuery {
        target,
        filters,
        paging: Paging {
            limit,
            ..Paging::default()
        },
    };
    let mut found = Vec::new();
    loop {
        let page = snapshot.search(&query).unwrap();
        found.extend(page.items.iter().map(|item| (item.name.clone(), item.issuance.0)));
        let Some(next) = page.next else { return found };
        query.paging.cursor = Some(next);
    }
}

#[test]
fn search_pages_are_complete_and_filters_hold() {
    let dir = tempfile::tempdir().unwrap();
    let index = filled(dir.path(), 300, 150);
    let snapshot = index.snapshot();
    let everything = search(
        &snapshot,
        Target::Subdomains("imfht.com"),
        Filters::default(),
        1_000,
    );
    for limit in [1, 7, 64] {
        assert_eq!(
            search(
                &snapshot,
                Target::Subdomains("imfht.com"),
                Filters::default(),
                limit
            ),
            everything
        );
    }
    assert!(
        everything
            .iter()
            .all(|(name, _)| name == "imfht.com" || name.ends_with(".imfht.com"))
    );
    let unfiltered = everything.len();
    let google = Filters {
        issuer: Some("google trust".to_owned()),
        ..Filters::default()
    };
    let of_google = search(&snapshot, Target::Subdomains("imfht.com"), google, 10);
    let le = Filters {
        issuer: Some("let's encrypt".to_owned()),
        ..Filters::default()
    };
    let of_le = search(&snapshot, Target::Subdomains("imfht.com"), le, 10);
    assert!(!of_google.is_empty() && !of_le.is_empty());
    assert_eq!(of_google.len() + of_le.len(), unfiltered);
    let organised = Filters {
        organization: Some("org 8".to_owned()),
        ..Filters::default()
    };
    for (_, issuance) in search(&snapshot, Target::Subdomains("com"), organised, 5) {
        let record = &snapshot
            .by_issuance(tamis_ct_index::record::Issuance(issuance))
            .unwrap()[0];
        assert_eq!(record.organization, "Org 8");
    }
    let split = 1_700_000_000 + 150_000;
    let early = Filters {
        before: Some(split),
        ..Filters::default()
    };
    let late = Filters {
        after: Some(split),
        ..Filters::default()
    };
    let count = |filters| search(&snapshot, Target::Subdomains("com"), filters, 50).len();
    assert_eq!(count(early) + count(late), count(Filters::default()));
    let live = Filters {
        not_expired_at: Some(1_707_776_000 + 150_000),
        ..Filters::default()
    };
    assert!(count(live.clone()) < count(Filters::default()) && count(live) > 0);
}

#[test]
fn exact_and_covering_targets() {
    let dir = tempfile::tempdir().unwrap();
    let index = filled(dir.path(), 60, 1_000);
    let snapshot = index.snapshot();
    let exact = search(
        &snapshot,
        Target::Exact(Identifier::Host("imfht.com")),
        Filters::default(),
        9,
    );
    assert!(!exact.is_empty() && exact.iter().all(|(name, _)| name == "imfht.com"));
    let covering = search(
        &snapshot,
        Target::WildcardsCovering("shop.imfht.com"),
        Filters::default(),
        9,
    );
    assert!(!covering.is_empty() && covering.len() < exact.len());
    let query = SearchQuery {
        target: Target::WildcardsCovering("com"),
        filters: Filters::default(),
        paging: Paging::default(),
    };
    assert!(matches!(snapshot.search(&query), Err(Error::BadQuery(_))));
}

#[test]
fn a_deadline_of_nothing_still_advances_and_says_partial() {
    let dir = tempfile::tempdir().unwrap();
    let index = filled(dir.path(), 4_000, 2_000);
    let snapshot = index.snapshot();
    let mut query = NamesQuery::under("com");
    query.paging.deadline = Duration::ZERO;
    let (mut pages, mut issuances) = (0, 0);
    loop {
        let page = snapshot.names(&query).unwrap();
        pages += 1;
        issuances += page.items.iter().map(|item| item.issuances).sum::<u64>();
        let Some(next) = page.next else { break };
        assert!(page.partial && page.scanned > 0);
        assert_ne!(query.paging.cursor.as_ref(), Some(&next));
        query.paging.cursor = Some(next);
    }
    assert!(pages > 3, "{pages} pages");
    let whole: u64 = all_names(&snapshot, "com", 100)
        .values()
        .map(|entry| entry.1)
        .sum();
    assert_eq!(issuances, whole, "parts of a name add up");
}

#[test]
fn cursors_survive_flush_and_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let index = filled(dir.path(), 200, 100_000);
    let mut query = NamesQuery::under("com");
    query.paging.limit = 2;
    let first = index.snapshot().names(&query).unwrap();
    index.flush().unwrap();
    query.paging.cursor = first.next;
    let second = index.snapshot().names(&query).unwrap();
    drop(index);
    let reopened = Snapshot::open(dir.path(), &options(100)).unwrap();
    let names: Vec<String> = first
        .items
        .into_iter()
        .chain(second.items.clone())
        .map(|item| item.name)
        .collect();
    assert_eq!(
        names,
        all_names(&reopened, "com", 100)
            .into_keys()
            .take(0)
            .chain(in_key_order(&reopened))
            .take(4)
            .collect::<Vec<_>>()
    );
    assert_eq!(reopened.names(&query).unwrap().items, second.items);
}

fn in_key_order(snapshot: &Snapshot) -> Vec<String> {
    snapshot
        .names(&NamesQuery::under("com"))
        .unwrap()
        .items
        .into_iter()
        .map(|item| item.name)
        .collect()
}

#[test]
fn since_keeps_names_that_are_new() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(dir.path(), 1_000);
    let old = Seen {
        issuance: 0,
        precert: false,
        position: None,
        at: 1_000,
    };
    let new = Seen {
        issuance: 1,
        precert: false,
        position: None,
        at: 2_000,
    };
    index.append(&batch(&[old.clone(), new.clone()])).unwrap();
    index.commit().unwrap();
    let mut query = NamesQuery::under("com");
    query.since = Some(1_500);
    let told: Vec<String> = index
        .snapshot()
        .names(&query)
        .unwrap()
        .items
        .into_iter()
        .map(|item| item.name)
        .collect();
    let older: Vec<&str> = old.names().into_iter().map(|(name, _)| name).collect();
    assert!(!told.is_empty());
    assert!(
        told.iter().all(|name| !older.contains(&name.as_str())),
        "{told:?} {older:?}"
    );
}

#[test]
fn one_owner_many_readers() {
    let dir = tempfile::tempdir().unwrap();
    let index = filled(dir.path(), 50, 40);
    let error = Index::open(dir.path(), options(40)).err().unwrap();
    assert!(error.to_string().contains("in use"), "{error}");
    let mut model = Model::default();
    pairs(50).iter().for_each(|seen| model.add(seen));
    model.check(&Snapshot::open(dir.path(), &options(40)).unwrap());
    drop(index);
    assert!(Index::open(dir.path(), options(40)).is_ok());
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(
        Snapshot::open(empty.path(), &options(1)),
        Err(Error::NoIndex { .. })
    ));
}

#[test]
fn readers_keep_their_picture_while_writing_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let index = filled(dir.path(), 50, 40);
    let before = index.snapshot();
    let told = all_names(&before, "com", 10);
    index.append(&batch(&pairs(400))).unwrap();
    index.flush().unwrap();
    assert_eq!(all_names(&before, "com", 10), told);
    assert!(
        all_names(&index.snapshot(), "com", 10)
            .values()
            .map(|entry| entry.1)
            .sum::<u64>()
            > told.values().map(|entry| entry.1).sum()
    );
}
