//! What `stats` says of the filter windows, seen by who does not own them.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::corpus::Corpus;
use crate::run::{Home, text};

const ENTRIES: u64 = 1_200;
/// Longest wait for a child to get somewhere; only a failing test waits as long.
const PATIENCE: Duration = Duration::from_secs(60);

fn imported() -> Home {
    let home = Home::new();
    let corpus = Corpus::write(&home.path("corpus"), ENTRIES, 3);
    let mut args = corpus.arguments().to_vec();
    args.extend(["--flush-rows", "200"]);
    home.import(&args);
    home.ct(&["compact"]).code(0);
    home
}

#[track_caller]
fn stats(home: &Home, args: &[&str]) -> Value {
    home.ct(&[&["stats", "--format", "json"], args].concat())
        .code(0)
        .json()
}

fn sum(list: &Value, key: &str) -> u64 {
    let list = list.as_array().unwrap();
    list.iter().map(|item| item[key].as_u64().unwrap()).sum()
}

#[test]
fn filters_are_told_and_measured_when_asked() {
    let home = imported();
    let told = stats(&home, &[]);
    let filters = &told["filters"];
    assert_eq!(filters["state"], "complete");
    assert_eq!(filters["segments_missing"], json!(0));
    let issuances = told["issuances"].as_u64().unwrap();
    // A key that is "maybe" when it comes is not set again.
    let keys = sum(&filters["windows"], "keys");
    assert!(
        keys <= issuances && keys * 50 > issuances * 49,
        "{keys} of {issuances}"
    );
    let measured = stats(&home, &["--measure"]);
    let windows = filters["windows"].as_array().unwrap();
    assert!(windows.len() > 1);
    for (plain, asked) in windows
        .iter()
        .zip(measured["filters"]["windows"].as_array().unwrap())
    {
        assert_eq!(plain["measured_rate"], Value::Null);
        let rate = asked["measured_rate"].as_f64().unwrap();
        let expected = asked["expected_rate"].as_f64().unwrap();
        assert!((rate - expected).abs() < 0.01, "{asked}");
        assert!(asked["saturation"].as_f64().unwrap() < 1.0, "{asked}");
    }
    let table = home.ct(&["stats", "--measure"]).code(0).out;
    for part in ["complete: ", "maybe for nothing", "measured"] {
        assert!(table.contains(part), "no {part:?} in {table}");
    }
}

/// The owner goes on, and neither waits for the other.
#[test]
fn filters_are_told_while_another_process_owns_the_folder() {
    let home = imported();
    let mut owner = home
        .command(&["import", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let holder = format!("{}\n", owner.id());
    let started = Instant::now();
    while std::fs::read_to_string(home.data().join("filters/LOCK")).ok() != Some(holder.clone()) {
        assert!(started.elapsed() < PATIENCE, "the owner does not take the lock");
        std::thread::yield_now();
    }
    let filters = stats(&home, &["--measure"])["filters"].clone();
    assert_eq!(filters["state"], "complete", "{filters}");
    assert!(filters["windows"][0]["measured_rate"].is_number());
    drop(owner.stdin.take());
    owner.wait().unwrap();
    home.assert_whole();
}

#[test]
fn lost_filters_are_told_and_no_failure() {
    let home = imported();
    let filters = home.data().join("filters");
    let lost = std::fs::read_dir(&filters)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "bloom"))
        .unwrap();
    std::fs::remove_file(&lost).unwrap();
    let told = stats(&home, &["--measure"])["filters"].clone();
    assert_eq!(told["state"], "incomplete");
    let name = lost.file_name().unwrap().to_str().unwrap();
    assert!(told.to_string().contains(name), "{told}");
    std::fs::write(filters.join("STATE"), b"no state").unwrap();
    let told = stats(&home, &[])["filters"].clone();
    assert_eq!(told["state"], "unreadable");
    assert!(text(&told, "reason").contains("STATE"));
    std::fs::remove_dir_all(&filters).unwrap();
    assert_eq!(stats(&home, &[])["filters"]["state"], "none");
    home.assert_whole();
}
