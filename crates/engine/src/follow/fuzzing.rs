//! The decoder of a log's progress, opened to the fuzzer and to nobody else.
//!
//! # Invariants
//! Compiled only under `cfg(fuzzing)`, which cargo-fuzz sets. What decodes is used as a reader uses it.

use super::progress_format::{decode, encode};
use super::status::LogStatus;

/// Decodes a log's progress, shows it as `tamis ct logs` does, and writes it back.
pub fn progress(bytes: &[u8]) {
    let Ok(progress) = decode(bytes) else {
        return;
    };
    let mut status = LogStatus::unknown("", "", progress.log_id.to_string());
    status.take(&progress);
    assert!(status.verified <= status.read);
    assert!(status.ranges.is_sorted() && status.holes.iter().all(|[begin, end]| begin < end));
    let written = encode(&progress);
    // Text that is no UTF-8 is mended once; from then on the bytes stay.
    let again = decode(&written).map(|progress| encode(&progress));
    assert_eq!(again.ok(), Some(written));
}
