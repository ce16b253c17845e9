//! Pages: one after the other they are the whole answer, whatever happens between them.

use serde_json::{Value, json};

use crate::run::{Home, Run, testdata};

const TILE: &str = "ct/static/navigli2025h2/tile/data/000";

/// One page and the cursor of the next.
fn page(home: &Home, query: &str, limit: &str, cursor: Option<&str>) -> (Vec<Value>, Option<String>) {
    let mut command = home.command(&["search", query, "--format", "json", "--limit", limit]);
    if let Some(cursor) = cursor {
        command.args(["--cursor", cursor]);
    }
    let page = Run::of(&mut command).code(0).json();
    (
        page["results"].as_array().unwrap().clone(),
        page["next_cursor"].as_str().map(str::to_owned),
    )
}

#[test]
fn pages_of_one_are_the_whole() {
    let home = Home::with(&[testdata(TILE)]);
    for query in ["gamen.net", "top", "jccsmatrei.top"] {
        let (whole, none) = page(&home, query, "1000", None);
        assert_eq!(none, None);
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let (mut items, next) = page(&home, query, "1", cursor.as_deref());
            assert_eq!(items.len(), 1, "{query}: no page is empty");
            found.append(&mut items);
            assert!(next.is_none() || next != cursor, "{query}: the cursor moves");
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert!(found.len() > 1, "{query}");
        assert_eq!(found, whole, "{query}");
    }
}

/// What was there when the first page was read comes once each, in order; what comes in behind the
/// cursor is seen, too.
#[test]
fn a_cursor_survives_imports_and_flushes() {
    let home = Home::with(&[testdata("ct/rfc6962/live_ct.json")]);
    let (before, _) = page(&home, "com", "1000", None);
    let (mut found, mut cursor) = page(&home, "com", "2", None);
    let more = testdata(TILE);
    // Flushed at once, the old rows too.
    home.import(&[more.to_str().unwrap(), "--flush-rows", "1"]);
    assert!(
        home.ct(&["stats", "--format", "json"]).json()["segments"]
            .as_u64()
            .unwrap()
            > 0
    );
    while cursor.is_some() {
        let (mut items, next) = page(&home, "com", "2", cursor.as_deref());
        found.append(&mut items);
        cursor = next;
    }
    let (after, _) = page(&home, "com", "1000", None);
    assert!(after.len() > before.len());
    let is_old = |row: &Value| before.iter().any(|old| same(old, row));
    let old: Vec<&Value> = found.iter().filter(|row| is_old(row)).collect();
    assert_eq!(old.len(), before.len(), "each row that was there comes once");
    assert!(
        old.iter().zip(&before).all(|(found, old)| same(found, old)),
        "and in the same order"
    );
    let start = after.iter().position(|row| same(row, &found[1])).unwrap() + 1;
    assert_eq!(found[2..], after[start..], "behind the cursor, new rows are seen");
}

fn same(left: &Value, right: &Value) -> bool {
    left["name"] == right["name"] && left["issuance"] == right["issuance"]
}

#[test]
fn a_wrong_cursor_is_refused() {
    let home = Home::with(&[testdata(TILE)]);
    let (_, next) = page(&home, "com", "1", None);
    let next = next.unwrap();
    let cut = &next[..next.len() / 4];
    for (query, cursor) in [
        ("com", "!!!"),
        ("com", "AAAA"),
        ("com", cut),
        ("net", &next),
        ("com", ""),
    ] {
        let run = home
            .ct(&["search", query, "--cursor", cursor])
            .says(2, &["not a cursor of this query", "start again"]);
        assert_eq!(run.out, "");
    }
    assert_eq!(json!(page(&home, "com", "1", Some(&next)).0.len()), json!(1));
}

/// The filters are part of the question: with others, a place in the answer means nothing.
#[test]
fn a_cursor_belongs_to_its_question() {
    let home = Home::with(&[testdata(TILE)]);
    let first = |args: &[&str]| {
        let run = Run::of(
            home.command(&["search", "com", "--format", "json", "--limit", "1"])
                .args(args),
        )
        .code(0);
        run.json()["next_cursor"].as_str().unwrap().to_owned()
    };
    let go_on = |query: &str, args: &[&str], cursor: &str| {
        Run::of(
            home.command(&["search", query, "--format", "json", "--cursor", cursor])
                .args(args),
        )
    };
    let filters: [&[&str]; 6] = [
        &[],
        &["--issuer", "encrypt"],
        &["--after", "2020-01-01"],
        &["--before", "2100-01-01"],
        &["--after", "9000d"],
        &["--issuer", "encrypt", "--after", "2020-01-01"],
    ];
    for asked in filters {
        let cursor = first(asked);
        for other in filters {
            let run = go_on("com", other, &cursor);
            if asked == other {
                assert!(!run.code(0).json()["results"].as_array().unwrap().is_empty());
            } else {
                let run = run.says(
                    2,
                    &[
                        "not a cursor of this query",
                        "same name and filters",
                        "without --cursor",
                    ],
                );
                assert_eq!(run.out, "", "{asked:?} {other:?}");
            }
        }
        for other in [&["--exact"][..], &["--not-expired"], &["--org", "x"]] {
            go_on("com", &[asked, other].concat(), &cursor).says(2, &["not a cursor of this query"]);
        }
    }
    let cursor = first(&["--issuer", "encrypt", "--after", "2020-01-01"]);
    // Spellings of one question, and another page length.
    let same = [
        "--limit",
        "7",
        "--after",
        "2020-01-01T00:00:00Z",
        "--issuer",
        "ENCRYPT",
    ];
    go_on("COM.", &same, &cursor).code(0);
}
