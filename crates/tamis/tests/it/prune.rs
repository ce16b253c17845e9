//! What `prune` removes is gone by every way of asking, the rest is as it was, and what was removed can
//! be imported again.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::corpus::Corpus;
use crate::run::{Home, testdata, text};

/// A moment that parts what a folder holds.
#[derive(Debug)]
enum Cut<'c> {
    Expired(&'c str),
    SeenBefore(&'c str),
    Both(&'c str, &'c str),
}

impl Cut<'_> {
    fn arguments(&self) -> Vec<&str> {
        match self {
            Self::Expired(end) => vec!["--expired", end],
            Self::SeenBefore(end) => vec!["--seen-before", end],
            Self::Both(end, seen) => vec!["--expired", end, "--seen-before", seen],
        }
    }

    /// Texts of one form compare as the times they tell.
    fn takes(&self, row: &Value) -> bool {
        let expired = |end: &str| row["not_after"].as_str().is_some_and(|after| after < end);
        let seen = |end: &str| text(row, "first_seen") < end;
        match self {
            Self::Expired(end) => expired(end),
            Self::SeenBefore(end) => seen(end),
            Self::Both(end, before) => expired(end) && seen(before),
        }
    }
}

/// Rows of all certificates with names below these endings, sorted.
pub(crate) fn rows(home: &Home, endings: &BTreeSet<&str>) -> Vec<Value> {
    let mut rows: Vec<Value> = endings
        .iter()
        .flat_map(|ending| {
            let limit = ["search", ending, "--limit", "1000000", "--format", "ndjson"];
            let run = home.ct(&limit);
            // Nothing may be left of it.
            assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
            run.rows()
        })
        .collect();
    rows.sort_by_key(Value::to_string);
    rows
}

/// Ids of the certificates in some rows.
fn issuances(rows: &[Value]) -> BTreeSet<String> {
    rows.iter().map(|row| text(row, "id").to_owned()).collect()
}

/// The id of what came without a log is its order of discovery.
fn without_ids(mut rows: Vec<Value>) -> Vec<Value> {
    for row in &mut rows {
        row.as_object_mut().unwrap().remove("id");
    }
    rows.sort_by_key(Value::to_string);
    rows
}

/// Prunes a copy of `home`, and looks at everything.
fn check(home: &Home, endings: &BTreeSet<&str>, again: &[&str], cut: &Cut<'_>) {
    let home = home.copy();
    let before = rows(&home, endings);
    let (totals, names) = (home.totals(), before.len());
    let stays: Vec<Value> = before.iter().filter(|row| !cut.takes(row)).cloned().collect();
    let gone: Vec<Value> = before.iter().filter(|row| cut.takes(row)).cloned().collect();
    let (gone_ids, stays_ids) = (issuances(&gone), issuances(&stays));
    assert!(
        !gone.is_empty() && !stays.is_empty(),
        "{cut:?} parts nothing of {names} rows"
    );
    assert!(gone_ids.is_disjoint(&stays_ids));
    let mut arguments = vec!["prune", "--format", "json"];
    arguments.extend(cut.arguments());
    let mut dry = arguments.clone();
    dry.push("--dry-run");
    let would = home.ct(&dry).code(0).json();
    assert_eq!(would["issuances"], json!(gone_ids.len()), "{would}");
    assert_eq!(rows(&home, endings), before, "a dry run removes nothing");
    let done = home.ct(&arguments).code(0).json();
    for key in ["issuances", "certificates", "name_rows", "bytes_before"] {
        assert_eq!(done[key], would[key], "{key}: {done} {would}");
    }
    assert!(
        done["bytes_after"].as_u64() < done["bytes_before"].as_u64(),
        "{done}"
    );
    assert_eq!(rows(&home, endings), stays);
    home.assert_whole();
    let after = home.totals();
    for (key, value) in &after[..4] {
        let (_, before) = totals.iter().find(|(known, _)| known == key).unwrap();
        let left = before.as_u64().unwrap() - done[key].as_u64().unwrap();
        assert_eq!(value, &json!(left), "{key}");
    }
    for id in gone_ids.iter().step_by(9) {
        home.ct(&["show", id]).code(1);
    }
    for id in stays_ids.iter().step_by(9) {
        home.ct(&["show", id]).code(0);
    }
    // Twice is once.
    let nothing = home.ct(&arguments).code(0).json();
    assert_eq!(
        (&nothing["issuances"], &nothing["bytes_before"]),
        (&json!(0), &json!(0))
    );
    // A merge changes none of it.
    home.ct(&["compact"]).code(0);
    assert_eq!((rows(&home, endings), home.totals()), (stays, after));
    home.assert_whole();
    let summary = home.import(again);
    assert_eq!(summary["new_issuances"], json!(gone_ids.len()), "{summary}");
    assert_eq!(home.totals(), totals);
    let came_back = rows(&home, endings);
    assert_eq!(issuances(&came_back), issuances(&before));
    assert_eq!(came_back, before);
    home.assert_whole();
}

/// The times under a key, sorted; the one at a share of them.
fn at_share<'r>(rows: &'r [Value], key: &str, share: usize) -> &'r str {
    let mut times: Vec<&str> = rows.iter().filter_map(|row| row[key].as_str()).collect();
    times.sort_unstable();
    times[times.len() * share / 100]
}

#[test]
fn real_entries_go_by_their_dates() {
    let folder = testdata("ct");
    let arguments = [folder.to_str().unwrap()];
    let home = Home::new();
    home.try_import(&arguments);
    let endings = BTreeSet::from(["com", "net", "org", "top", "de"]);
    let all = rows(&home, &endings);
    let (end, seen) = (at_share(&all, "not_after", 50), at_share(&all, "first_seen", 50));
    let home_rows = all.len();
    assert!(home_rows > 100, "{home_rows}");
    for cut in [Cut::Expired(end), Cut::SeenBefore(seen)] {
        let home = home.copy();
        let before = rows(&home, &endings);
        let mut arguments = vec!["prune"];
        arguments.extend(cut.arguments());
        home.ct(&arguments).code(0);
        let stays: Vec<Value> = before.iter().filter(|row| !cut.takes(row)).cloned().collect();
        assert_eq!(rows(&home, &endings), stays, "{cut:?}");
        home.assert_whole();
        home.try_import(&[folder.to_str().unwrap()]);
        assert_eq!(without_ids(rows(&home, &endings)), without_ids(before), "{cut:?}");
        home.assert_whole();
    }
}

#[test]
fn generated_entries_go_by_their_dates() {
    let home = Home::new();
    let corpus = Corpus::write(&home.path("corpus"), 1_500, 3);
    let mut arguments = corpus.arguments().to_vec();
    arguments.extend(["--flush-rows", "100"]);
    home.import(&arguments);
    let flushes = crate::backup::segments(&home.data()).len();
    assert!(flushes > 1, "{flushes} segments");
    let merged = home.copy();
    merged.ct(&["compact"]).code(0);
    let endings = corpus.endings();
    let all = rows(&home, &endings);
    let (end, seen) = (at_share(&all, "not_after", 40), at_share(&all, "first_seen", 60));
    for home in [&home, &merged] {
        for cut in [Cut::Expired(end), Cut::SeenBefore(seen), Cut::Both(end, seen)] {
            check(home, &endings, &corpus.arguments(), &cut);
        }
    }
}

#[test]
fn everything_and_a_whole_month_can_go() {
    let home = Home::new();
    let corpus = Corpus::write(&home.path("corpus"), 400, 3);
    let mut arguments = corpus.arguments().to_vec();
    arguments.extend(["--flush-rows", "200"]);
    home.import(&arguments);
    let (before, totals) = (rows(&home, &corpus.endings()), home.totals());
    let month = std::fs::read_dir(home.data())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .find(|name| name.len() == 7 && name.contains('-'))
        .unwrap();
    for what in [["--month", month.as_str()], ["--seen-before", "9999-01-01"]] {
        let home = home.copy();
        let mut arguments = vec!["prune", "--format", "json"];
        arguments.extend(what);
        let done = home.ct(&arguments).code(0).json();
        assert_eq!(done["issuances"], totals[0].1, "{done}");
        assert_eq!(
            (&done["bytes_after"], &done["segments_rewritten"]),
            (&json!(0), &json!(0))
        );
        assert_eq!(rows(&home, &corpus.endings()), [] as [Value; 0]);
        home.assert_whole();
        home.import(&corpus.arguments());
        assert_eq!(rows(&home, &corpus.endings()), before);
        assert_eq!(home.totals(), totals);
    }
    // Of another month nothing came.
    let done = home
        .ct(&["prune", "--format", "json", "--month", "1999-12"])
        .code(0)
        .json();
    assert_eq!(done["issuances"], json!(0));
    assert_eq!(rows(&home, &corpus.endings()), before);
}

#[test]
fn what_is_asked_for_must_be_said() {
    let home = Home::with(&[testdata("ct/sct/test-embedded-cert.pem")]);
    home.ct(&["prune"])
        .says(2, &["--expired", "--seen-before", "--month"]);
    home.ct(&["prune", "--month", "2026-13"]).says(2, &["2026-11"]);
    home.ct(&["prune", "--month", "2026-11", "--expired"])
        .says(2, &["cannot be used with"]);
    home.ct(&["prune", "--expired", "soon"]).says(2, &["30d"]);
    let nowhere = Home::new();
    nowhere.ct(&["prune", "--expired"]).says(2, &["no index here"]);
    assert!(!nowhere.data().exists());
}

#[test]
fn damage_is_never_pruned_away() {
    let home = Home::new();
    let corpus = Corpus::write(&home.path("corpus"), 1_200, 3);
    let mut arguments = corpus.arguments().to_vec();
    arguments.extend(["--flush-rows", "100"]);
    home.import(&arguments);
    home.ct(&["compact"]).code(0);
    let totals = home.totals();
    let segments = crate::backup::segments(&home.data());
    assert!(segments.len() >= 3, "{segments:?}");
    for segment in segments {
        let home = home.copy();
        let path = home.data().join(&segment);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[60] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let run = home.ct(&["prune", "--seen-before", "9999-01-01"]);
        run.says(
            2,
            &["damaged at byte", segment.file_name().unwrap().to_str().unwrap()],
        );
        bytes[60] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        home.assert_whole();
        assert_eq!(home.totals(), totals);
    }
}
