//! Any bytes are a block of a segment, or not; a segment with any block changed opens, or says why not.
//!
//! The first byte of the input is the code of a kind, and the rest its payload. From 0x80 on it is the
//! number of a block in a whole segment, and the rest a mask over its payload: the block is sealed
//! again, so that the change gets past the checksum.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tamis_ct_index::fuzzing;

const SEGMENT: &[u8] = include_bytes!("../../testdata/index/v1/2025-11/seg-00000003.tamis");
const DOMAINS: u8 = 10;

fuzz_target!(|input: &[u8]| {
    let Some((&first, rest)) = input.split_first() else {
        return;
    };
    if first < 0x80 {
        fuzzing::block(first, rest);
        fuzzing::frames(rest);
    } else {
        changed(usize::from(first - 0x80), rest);
    }
});

fn changed(number: usize, mask: &[u8]) {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let path = PATH.get_or_init(|| {
        std::env::temp_dir().join(format!("tamis-fuzz-index-block-{}.tamis", std::process::id()))
    });
    let blocks = fuzzing::blocks_of(SEGMENT);
    let (kind, offset, payload) = blocks[number % blocks.len()];
    // The set of domains is read by another crate, which leans on the checksum.
    if kind == DOMAINS {
        return;
    }
    let payload: Vec<u8> = payload
        .iter()
        .zip(mask.iter().copied().chain(std::iter::repeat(0)))
        .map(|(byte, mask)| byte ^ mask)
        .collect();
    let framed = fuzzing::framed(kind, offset, &payload);
    let mut file = SEGMENT.to_vec();
    file[offset as usize..offset as usize + framed.len()].copy_from_slice(&framed);
    fs::write(path, &file).expect("write the changed segment");
    fuzzing::segment(path);
}
