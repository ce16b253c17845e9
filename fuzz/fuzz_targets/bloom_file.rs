//! Any file is a filter that answers and is written back unchanged, or one error; it never stops the process.
//!
//! The input is a file as it is, and once more as changes to a good header, whose magic, version and checksum
//! are mended, so that what is behind the checksum is reached too.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tamis_bloom::{Filter, FilterView, Geometry};
use xxhash_rust::xxh3::Xxh3;

const HEADER_BYTES: usize = 4_096;
const CHECKSUM_AT: usize = 72;
/// Larger files than this are not made.
const PAGES_MAX: u64 = 16;

fuzz_target!(|bytes: &[u8]| {
    open(bytes);
    let mut mended = good_header().to_vec();
    for (header, change) in mended.iter_mut().zip(bytes) {
        *header ^= change;
    }
    mended[..12].copy_from_slice(b"TAMISBLM\x01\0\0\0");
    let mut hasher = Xxh3::new();
    hasher.update(&mended[..CHECKSUM_AT]);
    hasher.update(&mended[CHECKSUM_AT + 8..]);
    mended[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&hasher.digest().to_le_bytes());
    let bits = u64::from_le_bytes(mended[16..24].try_into().expect("eight bytes"));
    let pages = (bits / 32_768).min(PAGES_MAX) as usize;
    // The bitmap is the input over and over.
    let bitmap = bytes.iter().copied().cycle().take(pages * HEADER_BYTES);
    mended.extend(bitmap);
    open(&mended);
});

fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| std::env::temp_dir().join(format!("tamis-fuzz-bloom-file-{}", std::process::id())))
}

fn good_header() -> &'static [u8] {
    static HEADER: OnceLock<Vec<u8>> = OnceLock::new();
    HEADER.get_or_init(|| {
        let _ = fs::remove_file(path());
        let geometry = Geometry::for_keys(1_000, 0.01).expect("a plan");
        drop(Filter::create(path(), geometry).expect("create"));
        let mut file = fs::read(path()).expect("read");
        file.truncate(HEADER_BYTES);
        file
    })
}

fn open(file: &[u8]) {
    let path = path();
    fs::write(path, file).expect("write");
    let view = FilterView::open(path);
    let filter = Filter::open(path);
    assert_eq!(view.is_ok(), filter.is_ok());
    let (Ok(view), Ok(filter)) = (view, filter) else {
        return;
    };
    assert_eq!(view.geometry(), filter.geometry());
    assert!(filter.geometry().file_bytes() == file.len() as u64 && filter.keys() >= view.keys_synced());
    assert!(
        (0.0..=1.0).contains(&filter.fill()) && (0.0..=1.0).contains(&filter.expected_false_positive_rate())
    );
    for key in [0, 1, u64::MAX] {
        filter.check_and_set(key);
        assert!(filter.may_hold(key) && view.may_hold(key));
    }
    let keys = filter.keys();
    drop((filter, view));
    assert_eq!(
        Filter::open(path).expect("what was read is written back").keys(),
        keys
    );
}
