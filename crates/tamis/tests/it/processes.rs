//! Two processes and one folder: one writes, any number reads.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::corpus::Corpus;
use crate::run::{Home, Run, testdata, text};

/// Longest wait for a child to get somewhere; only a failing test waits as long.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn readers_see_every_name_once_it_was_seen() {
    let home = Home::new();
    let corpus = Corpus::write(&home.path("corpus"), 2_500, 3);
    home.import(&[testdata("ct/sct/test-embedded-cert.pem")]);
    let ending = "com";
    let mut writer = home
        .command(&["import", "--flush-rows", "200"])
        .args(corpus.arguments())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let mut answers = 0;
    loop {
        let done = writer.try_wait().unwrap();
        let run = home.ct(&["names", ending, "--format", "ndjson"]);
        // Until the first commit there is no name, which is no error.
        assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
        let now: BTreeMap<String, u64> = run
            .rows()
            .iter()
            .map(|row| (text(row, "name").to_owned(), row["issuances"].as_u64().unwrap()))
            .collect();
        for (name, count) in &seen {
            assert!(
                now.get(name) >= Some(count),
                "{name}: {count} before, {:?} now",
                now.get(name)
            );
        }
        let stats = home.ct(&["stats", "--format", "json"]).code(0);
        assert!(stats.json()["issuances"].as_u64().unwrap() > 0);
        home.ct(&["verify"]).code(0);
        answers += 1;
        seen = now;
        if let Some(status) = done {
            assert!(status.success());
            break;
        }
    }
    assert!(answers > 1, "nothing was read while the import ran");
    let undisturbed = Home::with(&corpus.arguments());
    let all = undisturbed.ask(&["names", ending]);
    assert_eq!(seen.len(), all.len());
    assert!(
        all.iter()
            .all(|row| seen[text(row, "name")] == row["issuances"].as_u64().unwrap())
    );
}

#[test]
fn readers_see_the_same_while_segments_are_merged() {
    let home = Home::new();
    let corpus = Corpus::write(&home.path("corpus"), 2_500, 3);
    let mut args = corpus.arguments().to_vec();
    args.extend(["--flush-rows", "100"]);
    home.import(&args);
    let expected = home.ask(&["names", "com"]);
    let totals = home.totals();
    let mut writer = home.command(&["compact"]).stdout(Stdio::null()).spawn().unwrap();
    let mut answers = 0;
    loop {
        let done = writer.try_wait().unwrap();
        assert!(
            home.ask(&["names", "com"]) == expected,
            "answer {answers} differs"
        );
        assert_eq!(home.totals(), totals);
        home.ct(&["verify"]).code(0);
        answers += 1;
        if let Some(status) = done {
            assert!(status.success());
            break;
        }
    }
    assert!(answers > 1, "nothing was read while segments were merged");
}

#[test]
fn a_second_writer_is_refused_and_told_the_first() {
    let home = Home::new();
    let file = testdata("ct/sct/test-embedded-cert.pem");
    let mut first = home
        .command(&["import", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let holder = format!("{}\n", first.id());
    let started = Instant::now();
    // It holds the lock from before it reads to the end.
    while std::fs::read_to_string(home.data().join("LOCK")).ok() != Some(holder.clone()) {
        assert!(
            started.elapsed() < PATIENCE,
            "the first import does not take the lock"
        );
        std::thread::yield_now();
    }
    let second = home.try_import(&[&file]).says(2, &[holder.trim(), "LOCK"]);
    assert_eq!(second.out, "");
    let mut stdin = first.stdin.take().unwrap();
    stdin.write_all(&std::fs::read(&file).unwrap()).unwrap();
    drop(stdin);
    assert!(first.wait().unwrap().success());
    assert_eq!(home.import(&[&file])["duplicates"], serde_json::json!(1));
    home.assert_whole();
}

/// What a killed writer leaves is no lock.
#[test]
fn a_killed_writer_holds_nothing() {
    let home = Home::new();
    let mut first = home
        .command(&["import", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !home.data().join("MANIFEST").exists() {
        assert!(started.elapsed() < PATIENCE, "the first import does not begin");
        std::thread::yield_now();
    }
    first.kill().unwrap();
    first.wait().unwrap();
    home.import(&[testdata("ct/sct/test-embedded-cert.pem")]);
    Run::of(&mut home.command(&["verify"])).code(0);
}
