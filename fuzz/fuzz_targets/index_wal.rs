//! Any bytes are a commit of the write-ahead log, or not; any text is a cursor, or not.
//!
//! A commit that decodes becomes a run whose rows are sorted and can be walked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_ct_index::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::commit(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        fuzzing::cursor(text);
    }
});
