//! Flipped bytes and cut-off files: told with file and offset, and nothing else lost.

use std::path::{Path, PathBuf};

use tamis_ct_index::query::NamesQuery;
use tamis_ct_index::{Error, Index, Snapshot};

use crate::world::{Model, assert_whole, batch, open, options, pairs};

/// A folder with one segment and an unflushed rest.
fn folder(dir: &Path) -> Model {
    let index = open(dir, 1_000_000);
    let all = pairs(240);
    let mut model = Model::default();
    all.iter().for_each(|seen| model.add(seen));
    index.append(&batch(&all[..400])).unwrap();
    index.flush().unwrap();
    for part in all[400..].chunks(20) {
        index.append(&batch(part)).unwrap();
        index.commit().unwrap();
    }
    model
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().unwrap() != "LOCK" {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn names_told(snapshot: &Snapshot) -> u64 {
    let page = snapshot.names(&NamesQuery::under("com")).unwrap();
    page.items.iter().map(|item| item.issuances).sum()
}

#[test]
fn every_flipped_byte_is_found_and_confined() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    assert_whole(dir.path());
    let whole = names_told(&Snapshot::open(dir.path(), &options(1)).unwrap());
    for path in files(dir.path()) {
        let bytes = std::fs::read(&path).unwrap();
        let step = (bytes.len() / 150).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            std::fs::write(&path, &flipped).unwrap();
            let report = tamis_ct_index::check(dir.path(), |_, _| {}).unwrap();
            let told: Vec<String> = report
                .faults
                .iter()
                .map(ToString::to_string)
                .chain(report.notes.clone())
                .collect();
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(
                told.iter().any(|fault| fault.contains(name)),
                "{name} byte {at}: {told:?}"
            );
            let snapshot = Snapshot::open(dir.path(), &options(1))
                .unwrap_or_else(|error| panic!("{name} byte {at}: {error}"));
            let left = names_told(&snapshot);
            // One segment block or one log frame may be gone, never all.
            assert!(left > 0 && left <= whole, "{name} byte {at}: {left} of {whole}");
        }
        std::fs::write(&path, &bytes).unwrap();
    }
    assert_whole(dir.path());
}

#[test]
fn every_truncation_is_found_and_the_rest_is_read() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    for path in files(dir.path()) {
        let bytes = std::fs::read(&path).unwrap();
        let step = (bytes.len() / 60).max(1);
        for length in (0..bytes.len()).step_by(step) {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            let snapshot = Snapshot::open(dir.path(), &options(1))
                .unwrap_or_else(|error| panic!("{name} cut at {length}: {error}"));
            names_told(&snapshot);
            if !name.ends_with(".wal") {
                let report = tamis_ct_index::check(dir.path(), |_, _| {}).unwrap();
                assert!(!report.faults.is_empty(), "{name} cut at {length}");
            }
        }
        std::fs::write(&path, &bytes).unwrap();
    }
}

#[test]
fn lost_meta_is_rebuilt_and_used() {
    let dir = tempfile::tempdir().unwrap();
    let model = folder(dir.path());
    let segment = files(dir.path())
        .into_iter()
        .find(|path| path.to_str().unwrap().contains("seg-"))
        .unwrap();
    let bytes = std::fs::read(&segment).unwrap();
    // The meta block is the last one before the footer: flip the byte before the footer's header.
    let trailer = &bytes[bytes.len() - 32..];
    let footer = u64::from_le_bytes(trailer[..8].try_into().unwrap()) as usize;
    let mut flipped = bytes.clone();
    flipped[footer - 1] ^= 1;
    std::fs::write(&segment, flipped).unwrap();
    let index = open(dir.path(), 1_000_000);
    model.check(&index.snapshot());
    index.close().unwrap();
    assert!(segment.with_extension("meta").exists());
    model.check(&Snapshot::open(dir.path(), &options(1)).unwrap());
}

#[test]
fn a_torn_tail_is_dropped_once_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let model = folder(dir.path());
    let wal = files(dir.path())
        .into_iter()
        .rfind(|path| path.extension().is_some_and(|ending| ending == "wal"))
        .unwrap();
    let mut bytes = std::fs::read(&wal).unwrap();
    let whole = bytes.len();
    // The head of a frame that never came to its end: what a kill during a write leaves.
    let header = tamis_durable::frames::HEADER_BYTES as usize;
    bytes.extend_from_within(header..header + 40);
    std::fs::write(&wal, &bytes).unwrap();
    let report = tamis_ct_index::check(dir.path(), |_, _| {}).unwrap();
    assert_eq!(report.notes.len(), 1, "{report:?} {wal:?}");
    let index = open(dir.path(), 1_000_000);
    assert_eq!(std::fs::metadata(&wal).unwrap().len(), whole as u64);
    model.check(&index.snapshot());
    index.close().unwrap();
    assert_whole(dir.path());
}

#[test]
fn unfinished_segments_go_and_newer_formats_stay() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    let segment = files(dir.path())
        .into_iter()
        .find(|path| path.to_str().unwrap().contains("seg-"))
        .unwrap();
    let stranger = segment.with_file_name("seg-00000099.tamis");
    std::fs::write(&stranger, b"half").unwrap();
    drop(open(dir.path(), 1_000));
    assert!(!stranger.exists());
    let mut bytes = std::fs::read(&segment).unwrap();
    let end = bytes.len();
    bytes[end - 20] = 9;
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[end - 32..end - 16]);
    bytes[end - 16..end - 8].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&segment, bytes).unwrap();
    let error = Index::open(dir.path(), options(10)).err().unwrap();
    assert!(
        matches!(error, Error::Durable(_)) && error.to_string().contains("version 9"),
        "{error}"
    );
}

#[test]
fn a_lost_segment_keeps_no_other_from_being_merged() {
    let dir = tempfile::tempdir().unwrap();
    let all = pairs(90);
    let index = open(dir.path(), 1_000_000);
    for part in all.chunks(60) {
        index.append(&batch(part)).unwrap();
        index.flush().unwrap();
    }
    index.close().unwrap();
    std::fs::remove_file(segment_of(dir.path())).unwrap();
    let index = open(dir.path(), 1_000_000);
    let done = index
        .compact(&tamis_ct_index::compact::Policy::everything())
        .unwrap();
    assert_eq!((done.merges, done.segments), (1, 2));
    let snapshot = index.snapshot();
    assert!(snapshot.rows_lost(), "the loss is told");
    for seen in &all[60..] {
        assert_eq!(snapshot.by_sha256(&seen.sha256()).unwrap().len(), 1);
    }
    let report = tamis_ct_index::check(dir.path(), |_, _| {}).unwrap();
    assert_eq!(report.faults.len(), 1, "{:?}", report.faults);
}

#[test]
fn a_lost_manifest_never_costs_the_data() {
    let dir = tempfile::tempdir().unwrap();
    let model = folder(dir.path());
    let copies = ["MANIFEST", "MANIFEST.copy"].map(|name| dir.path().join(name));
    let kept = std::fs::read(&copies[0]).unwrap();
    copies.iter().for_each(|copy| std::fs::remove_file(copy).unwrap());
    let before = files(dir.path());
    let error = Index::open(dir.path(), options(10)).err().unwrap();
    assert!(error.to_string().contains("put it back"), "{error}");
    assert_eq!(files(dir.path()), before, "nothing was removed");
    // One copy is enough, and opening makes the other again.
    std::fs::write(&copies[1], kept).unwrap();
    let index = open(dir.path(), 1_000_000);
    model.check(&index.snapshot());
    assert!(copies.iter().all(|copy| copy.exists()));
}

/// Flips a byte in every block of a kind, one folder each, and asks for every certificate.
fn with_damaged_blocks(kind: u8, check: impl Fn(&Snapshot, u64)) {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    let segment = segment_of(dir.path());
    let bytes = std::fs::read(&segment).unwrap();
    for (at, length) in blocks(&bytes, kind) {
        let mut flipped = bytes.clone();
        flipped[at + 13 + length / 2] ^= 1;
        std::fs::write(&segment, flipped).unwrap();
        check(&Snapshot::open(dir.path(), &options(1)).unwrap(), at as u64);
    }
}

fn segment_of(dir: &Path) -> PathBuf {
    let is_segment = |path: &PathBuf| {
        path.extension().is_some_and(|ending| ending == "tamis") && path.to_str().unwrap().contains("seg-")
    };
    files(dir).into_iter().find(is_segment).unwrap()
}

/// Offsets and payload lengths of the blocks of a kind: kind u8, length u32, checksum u64, payload.
fn blocks(bytes: &[u8], kind: u8) -> Vec<(usize, usize)> {
    let (mut found, mut at) = (Vec::new(), 32);
    while at + 45 < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 1..at + 5].try_into().unwrap()) as usize;
        if bytes[at] == kind {
            found.push((at, length));
        }
        at += 13 + length;
    }
    assert!(!found.is_empty(), "no block of kind {kind}");
    found
}

#[test]
fn a_damaged_block_of_records_hides_its_own_and_says_so() {
    with_damaged_blocks(2, |snapshot, at| {
        let (mut found, mut damaged) = (0, 0);
        for seen in pairs(200) {
            match snapshot.by_sha256(&seen.sha256()) {
                Ok(records) => {
                    assert_eq!(records.len(), 1, "block at {at}: never \"not found\"");
                    assert_eq!(records[0].serial, seen.serial());
                    assert_eq!(snapshot.by_id(records[0].id()).unwrap(), records);
                    found += 1;
                }
                Err(Error::Corrupt { .. }) => damaged += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(
            damaged > 0 && damaged <= 128 && found + damaged == 400,
            "block at {at}: {found} {damaged}"
        );
    });
}

#[test]
fn damaged_lookups_and_organizations_hide_no_certificate() {
    for kind in [3, 4, 5, 6, 7] {
        with_damaged_blocks(kind, |snapshot, at| {
            for seen in pairs(200) {
                let records = snapshot.by_sha256(&seen.sha256()).unwrap();
                assert_eq!(records.len(), 1, "kind {kind}, block at {at}");
                assert_eq!(snapshot.by_serial(&seen.serial()).unwrap().len(), 1);
            }
            let query = tamis_ct_index::query::SearchQuery {
                target: tamis_ct_index::query::Target::Subdomains("com"),
                filters: tamis_ct_index::query::Filters::default(),
                paging: tamis_ct_index::query::Paging::default(),
            };
            assert!(!snapshot.search(&query).unwrap().items.is_empty());
        });
    }
}

#[test]
fn one_copy_of_a_newer_manifest_is_enough_to_refuse() {
    for name in ["MANIFEST", "MANIFEST.copy"] {
        let dir = tempfile::tempdir().unwrap();
        folder(dir.path());
        let payload = tamis_durable::sealed::read(&dir.path().join(name), MANIFEST, 1 << 20).unwrap();
        let newer = tamis_durable::sealed::Format {
            version: 2,
            ..MANIFEST
        };
        tamis_durable::sealed::publish(&dir.path().join(name), newer, &payload).unwrap();
        let before = files(dir.path());
        let error = Index::open(dir.path(), options(10)).err().unwrap();
        assert!(error.to_string().contains("version 2"), "{error}");
        assert!(Snapshot::open(dir.path(), &options(10)).is_err());
        assert_eq!(files(dir.path()), before);
    }
}

const MANIFEST: tamis_durable::sealed::Format = tamis_durable::sealed::Format {
    magic: *b"TAMISMAN",
    version: 1,
};
