//! Behaviour of `tamis-url-canon` on real data and foreign vectors.
#![allow(clippy::unwrap_used, clippy::panic, reason = "how a test fails")]

mod cases;
mod compat;
mod forms;
mod properties;
mod sets;
mod wpt;

use std::path::PathBuf;

use serde_json::Value;

/// A file of `testdata`.
fn testdata(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata")).join(name)
}

/// A file of data that may not be copied here. Without it a test says that it did not run.
fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!(
        "SKIPPED: {} is not there, so nothing was tested with it",
        path.display()
    );
    None
}

/// The objects of a file of JSON lines.
fn lines(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(testdata(name)).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(!lines.is_empty(), "{name} is empty");
    lines
}
