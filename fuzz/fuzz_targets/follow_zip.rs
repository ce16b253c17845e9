//! Any bytes as the zip file of an archive: no panic, no more memory than the limit, no bytes with a wrong
//! checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Names that the seeds have, and one that they have not.
const NAMES: [&str; 4] = ["checkpoint", "tile/data/000", "tile/data/000.p/3", "tile/0/000"];

fuzz_target!(|bytes: &[u8]| {
    tamis_engine::follow::fuzzing::zip_index(bytes, &NAMES, 1 << 16);
});
