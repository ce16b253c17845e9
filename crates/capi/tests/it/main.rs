//! The header, and the library as C and Lua see it, held to the vectors that all bindings share.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "how a test fails")]

mod header;
mod languages;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A file of the repository.
fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// The shared vectors as lines that C reads without a library: fields in hexadecimal, `-` for none.
fn vectors() -> (usize, String) {
    let text = std::fs::read_to_string(repository("testdata/urls/vectors.jsonl")).unwrap();
    let mut lines = String::new();
    for line in text.lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let field = |name: &str| case[name].as_str();
        let hex = |text: &str| {
            text.bytes()
                .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
        };
        writeln!(
            lines,
            "{}\t{}\t{}\t{}",
            field("profile").unwrap(),
            hex(field("input").unwrap()),
            field("key").map_or("-".to_owned(), hex),
            field("fingerprint").unwrap_or("-"),
        )
        .unwrap();
    }
    assert!(!lines.is_empty());
    (text.lines().count(), lines)
}
