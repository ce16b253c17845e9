//! Every way of reading blocks gives the same answers, and tells the same damage.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tamis_ct_index::query::{Filters, NamesQuery, Paging, SearchQuery, Target};
use tamis_ct_index::readers::{Read, Reader, record_reads, recorded_reads};
use tamis_ct_index::{Options, Snapshot};

use crate::world::{batch, open, options, pairs};

const READERS: [Reader; 6] = [
    Reader::Shipped,
    Reader::OneByOne,
    Reader::Map,
    Reader::Direct,
    Reader::Uring,
    Reader::UringDirect,
];

/// A folder of several segments that overlap.
fn folder(dir: &Path) -> Vec<PathBuf> {
    let index = open(dir, 1_000_000);
    for part in pairs(600).chunks(300) {
        index.append(&batch(part)).unwrap();
        index.flush().unwrap();
    }
    let months = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let files = months
        .filter(|path| path.is_dir())
        .flat_map(|path| std::fs::read_dir(path).unwrap());
    let mut found: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    found.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with("seg-"));
    assert!(found.len() >= 4, "{found:?}");
    found
}

/// All that a snapshot answers, damage included.
fn answers(dir: &Path, reader: Reader, cache_bytes: usize) -> Vec<String> {
    let options = Options {
        reader,
        cache_bytes,
        ..options(1)
    };
    let snapshot = Snapshot::open(dir, &options).unwrap();
    let mut told: Vec<String> = snapshot.faults().map(ToString::to_string).collect();
    for domain in ["imfht.com", "example.com", "org", "localhost"] {
        told.push(format!(
            "{:?}",
            snapshot.names(&NamesQuery::under(domain)).unwrap()
        ));
        let query = SearchQuery {
            target: Target::Subdomains(domain),
            filters: Filters::default(),
            paging: Paging::default(),
        };
        told.push(format!("{:?}", snapshot.search(&query).unwrap()));
    }
    for seen in pairs(600).iter().step_by(101) {
        told.push(format!("{:?}", snapshot.by_sha256(&seen.sha256())));
    }
    told
}

#[track_caller]
fn assert_same(dir: &Path) {
    let expected = answers(dir, Reader::OneByOne, 1 << 20);
    for reader in READERS {
        for cache_bytes in [0, 1 << 20] {
            assert_eq!(
                answers(dir, reader, cache_bytes),
                expected,
                "{reader:?}, {cache_bytes}"
            );
        }
    }
}

#[test]
fn all_readers_give_the_same_answers() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    assert_same(dir.path());
}

#[test]
fn all_readers_tell_the_same_damage() {
    let dir = tempfile::tempdir().unwrap();
    // Somewhere else in each: a block, an index, what is read on opening; and the last one cut off.
    let files = folder(dir.path());
    for (number, path) in files.iter().enumerate() {
        let whole = std::fs::read(path).unwrap();
        let mut damaged = whole.clone();
        damaged[whole.len() * (2 * number + 1) / (2 * files.len())] ^= 0x10;
        if number + 1 == files.len() {
            damaged.truncate(whole.len() / 2);
        }
        std::fs::write(path, &damaged).unwrap();
        assert_same(dir.path());
        std::fs::write(path, &whole).unwrap();
    }
}

#[test]
fn batches_bring_each_block_once() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    record_reads();
    for (reader, in_batches) in [
        (Reader::OneByOne, 0),
        (Reader::Uring, 8),
        (Reader::UringDirect, 8),
    ] {
        let options = Options { reader, ..options(1) };
        let snapshot = Snapshot::open(dir.path(), &options).unwrap();
        snapshot.names(&NamesQuery::under("imfht.com")).unwrap();
        // Other tests of this process read too.
        let ours = recorded_reads()
            .into_iter()
            .filter(|read| read.path.starts_with(dir.path()));
        let wanted = |read: &Read| ["names", "index chunk"].contains(&read.kind);
        let reads: Vec<Read> = ours.filter(wanted).collect();
        let places: HashSet<_> = reads.iter().map(|read| (&read.path, read.offset)).collect();
        assert_eq!(places.len(), reads.len(), "{reader:?}: {reads:?}");
        let batched = reads.iter().filter(|read| read.in_batch).count();
        assert!(
            (batched == 0) == (in_batches == 0) && batched >= in_batches,
            "{reader:?}: {reads:?}"
        );
    }
}
