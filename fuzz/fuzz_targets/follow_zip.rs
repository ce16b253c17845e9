//! Any bytes as the zip file of an archive: no panic, no more memory than the limit, no bytes with a wrong
//! checksum.
//!
//! The file is taken as it is, without its crate, whose HTTP client takes minutes to build.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/engine/src/follow/zip_index.rs"]
mod zip_index;

/// Names that the seeds have, and one that they have not.
const NAMES: [&str; 4] = ["checkpoint", "tile/data/000", "tile/data/000.p/3", "tile/0/000"];

fuzz_target!(|bytes: &[u8]| {
    zip_index::fuzz(bytes, &NAMES, 1 << 16);
});
