//! Behaviour of `tamis-url-canon` on real data and foreign vectors.
#![allow(clippy::unwrap_used, clippy::panic, reason = "how a test fails")]

mod wpt;

use std::path::PathBuf;

/// A file of `testdata/urls`.
fn testdata(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata")).join(name)
}
