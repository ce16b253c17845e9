//! Any bytes are the progress of a log that can be shown and is written back, or one error.
//!
//! The ranges in it have checksums, which no mutation hits: where bytes hold one, its checksum is mended.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_engine::follow::fuzzing;
use xxhash_rust::xxh3::xxh3_64;

const RANGE_MAGIC: &[u8; 8] = b"TAMISRNG";
const CHECKSUM_BYTES: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::progress(bytes);
    let mut mended = bytes.to_vec();
    for at in 4..bytes.len() {
        if bytes[at..].starts_with(RANGE_MAGIC) {
            mend(&mut mended, at);
        }
    }
    fuzzing::progress(&mended);
});

/// Seals the range that begins at `at`; its length stands before it.
fn mend(bytes: &mut [u8], at: usize) {
    let (before, range) = bytes.split_at_mut(at);
    let Some(length) = before.last_chunk::<4>() else {
        return;
    };
    let length = u32::from_le_bytes(*length) as usize;
    let Some(range) = range.get_mut(..length) else {
        return;
    };
    let Some(sealed) = length.checked_sub(CHECKSUM_BYTES) else {
        return;
    };
    let (content, checksum) = range.split_at_mut(sealed);
    checksum.copy_from_slice(&xxh3_64(content).to_le_bytes());
}
