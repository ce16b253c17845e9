//! Any bytes are the entries of a tile up to one error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_ct_log::leaf::TileLeaf;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Ok((leaf, after)) = TileLeaf::parse(rest) {
        assert!(after.len() < rest.len());
        rest = after;
        let _ = leaf.leaf.hash();
    }
});
