//! Filters in files: reopened, damaged, watched, larger than 2^32 bits, and as version 1 wrote them.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tamis_bloom::{Blame, Error, Filter, FilterView, Geometry};
use tempfile::{TempDir, tempdir};

use crate::{hash, hash_128};

const KEYS: u64 = 10_000;

fn geometry() -> Geometry {
    Geometry::for_keys(KEYS, 0.001).expect("a plan")
}

/// A file with all keys in it, closed in order.
fn full() -> (TempDir, PathBuf) {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("filter.bloom");
    let filter = Filter::create(&path, geometry()).expect("create");
    for number in 0..KEYS {
        filter.check_and_set(hash(number));
    }
    drop(filter);
    (dir, path)
}

#[test]
fn a_filter_is_reopened_as_it_was() {
    let (_dir, path) = full();
    assert_eq!(
        fs::metadata(&path).expect("it is there").len(),
        geometry().file_bytes()
    );
    let view = FilterView::open(&path).expect("view");
    let filter = Filter::open(&path).expect("open");
    assert_eq!((filter.geometry(), view.geometry()), (&geometry(), &geometry()));
    assert_eq!(filter.keys(), view.keys_synced());
    assert!(filter.keys() > KEYS * 99 / 100 && !filter.keys_are_estimated());
    assert_eq!(filter.fill(), view.fill());
    assert!((0..KEYS).all(|number| filter.may_hold(hash(number)) && view.may_hold(hash(number))));
    let new = (0..)
        .find(|&number| !filter.may_hold(hash_128(number)))
        .expect("a new key");
    assert!(!view.may_hold(hash_128(new)));
    filter.check_and_set(hash_128(new));
    let mut maybe_seen = [false];
    view.may_hold_batch(&[hash_128(new)], &mut maybe_seen);
    assert!(maybe_seen[0], "a view sees bits as they are set");
    filter.reserve().expect("reserve");
    filter.sync().expect("sync");
    assert_eq!(
        FilterView::open(&path).expect("view").keys_synced(),
        filter.keys()
    );
}

#[test]
fn memory_and_file_have_the_same_layout() {
    let (_dir, path) = full();
    let memory = Filter::in_memory(geometry()).expect("memory");
    for number in 0..KEYS {
        memory.check_and_set(hash(number));
    }
    let file = Filter::open(&path).expect("open");
    assert_eq!((file.fill(), file.keys()), (memory.fill(), memory.keys()));
    for number in KEYS..200_000 {
        assert_eq!(file.may_hold(hash(number)), memory.may_hold(hash(number)));
    }
}

#[track_caller]
fn refused(path: &Path) -> Error {
    let view = FilterView::open(path).expect_err("a view of no filter");
    let error = Filter::open(path).expect_err("no filter");
    assert_eq!(error.to_string(), view.to_string());
    assert_eq!(error.path(), Some(path));
    error
}

#[test]
fn every_flipped_byte_of_the_header_and_every_wrong_length_is_refused() {
    let (_dir, path) = full();
    let whole = fs::read(&path).expect("read");
    let file = OpenOptions::new().write(true).open(&path).expect("open");
    // Every bit of every byte is flipped in the tests of the header itself.
    for at in (0..80).chain([81, 511, 512, 4_095]) {
        file.write_all_at(&[whole[at] ^ 0x10], at as u64).expect("flip");
        assert_eq!(refused(&path).kind(), Blame::Corrupt, "byte {at}");
        file.write_all_at(&whole[at..=at], at as u64).expect("mend");
    }
    for bytes in [
        0,
        1,
        7,
        8,
        79,
        4_095,
        4_096,
        whole.len() - 4_096,
        whole.len() - 1,
        whole.len() + 1,
    ] {
        file.set_len(bytes as u64).expect("cut");
        let error = refused(&path);
        assert_eq!(error.kind(), Blame::Corrupt, "{bytes} bytes: {error}");
        fs::write(&path, &whole).expect("mend");
    }
    Filter::open(&path).expect("it is mended");
}

#[test]
fn other_files_and_missing_ones_are_refused() {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("file");
    assert_eq!(refused(&path).kind(), Blame::Environment, "it is missing");
    fs::write(&path, vec![b'x'; 20_000]).expect("write");
    assert!(matches!(
        refused(&path),
        Error::WrongMagic {
            found: [b'x', ..],
            ..
        }
    ));
    let error = Filter::create(&path, geometry()).expect_err("it is there");
    assert!(error.to_string().contains("it exists already"), "{error}");
    for error in [
        Filter::open(dir.path()).expect_err("a folder"),
        FilterView::open(dir.path()).expect_err("a folder"),
    ] {
        assert_eq!(error.kind(), Blame::Environment);
    }
}

#[test]
fn two_filters_on_one_file_are_one_too_many() {
    let (_dir, path) = full();
    let filter = Filter::open(&path).expect("open");
    let error = Filter::open(&path).expect_err("this process has it");
    assert!(
        matches!(&error, Error::Storage(tamis_durable::Error::Locked { .. })),
        "{error}"
    );
    assert_eq!(error.kind(), Blame::Environment);
    drop(filter);
    Filter::open(&path).expect("it is free");
}

/// More than 2^32 bits; the file takes only the pages that were set.
#[test]
fn positions_beyond_32_bits_are_reached() {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("large.bloom");
    let geometry = Geometry::for_keys(450_000_000, 0.00236).expect("a plan");
    assert!(geometry.bits() > 5 << 30);
    let filter = Filter::create(&path, geometry).expect("create");
    let keys: Vec<_> = (0..2_000).map(hash).collect();
    let mut maybe_seen = vec![true; keys.len()];
    filter.check_and_set_batch(&keys, &mut maybe_seen);
    assert_eq!(
        maybe_seen.iter().filter(|&&seen| seen).count(),
        0,
        "2,000 keys among 160,000 pages"
    );
    assert!(keys.iter().all(|&key| filter.may_hold(key)));
    drop(filter);
    let filter = Filter::open(&path).expect("open");
    assert!(keys.iter().all(|&key| filter.may_hold(key)));
    // A quarter of the bitmap lies beyond 2^32 bits, and so does about a quarter of the bits.
    let beyond = 4_096 + (1 << 32) / 8;
    let mut tail = vec![0; (geometry.file_bytes() - beyond) as usize];
    File::open(&path)
        .and_then(|file| file.read_exact_at(&mut tail, beyond))
        .expect("read");
    let set: u32 = tail.iter().map(|byte| byte.count_ones()).sum();
    let share = f64::from(set) / 14_000.0 / (tail.len() as f64 * 8.0 / geometry.bits() as f64);
    assert!((0.85..1.15).contains(&share), "{set} bits beyond 2^32");
}

/// The bytes that version 1 wrote: header, and with it where keys lie.
#[test]
fn the_golden_file_is_read_and_written() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/bloom/filter-v1.bloom");
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("filter.bloom");
    let geometry = Geometry::for_keys(100, 0.0001)
        .expect("a plan")
        .with_seeds([7, 8]);
    let filter = Filter::create(&path, geometry).expect("create");
    for number in 0..50 {
        filter.check_and_set(hash(number));
        filter.check_and_set(hash_128(number));
    }
    drop(filter);
    let written = fs::read(&path).expect("read");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &written).expect("write the golden file");
    }
    assert!(
        fs::read(&golden).expect("it is in the repository") == written,
        "the format has changed"
    );
}
