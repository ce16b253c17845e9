//! What a caller cannot reach: the bytes of version 1 with a fixed salt, and the limit of the search.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::format::Header;
use super::{DamageKind, FrameReader, FrameWriter};
use crate::disk::RealDisk;
use crate::format::Format;

/// Bound to docs/formats/frames.md by tidy.
const VERSION: u32 = 1;
const FORMAT: Format = Format {
    magic: *b"FRAMTEST",
    version: VERSION,
};
const PAYLOADS: [&[u8]; 3] = [b"a batch", b"", b"\0another batch\xFF"];

#[test]
fn the_golden_file_of_version_1_is_written_and_read() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("log");
    let header = Header {
        number: 7,
        salt: 0x0123_4567_89AB_CDEF,
    };
    let mut writer = FrameWriter::create_salted(Arc::new(RealDisk), &path, FORMAT, header).expect("create");
    for payload in PAYLOADS {
        writer.append(payload).expect("append");
    }
    writer.commit().expect("commit");
    let bytes = fs::read(&path).expect("read");

    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/frames-v1.bin");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &bytes).expect("write the golden file");
    }
    let golden_bytes = fs::read(&golden).expect("the golden file is in the repository");
    assert_eq!(bytes, golden_bytes);
    let reader = FrameReader::new(&golden, &golden_bytes, FORMAT).expect("the header is whole");
    assert_eq!(reader.number(), 7);
    let payloads: Vec<_> = reader.map(|frame| frame.expect("no damage").payload).collect();
    assert_eq!(payloads, PAYLOADS);
}

#[test]
fn two_files_have_two_salts() {
    let dir = tempfile::tempdir().expect("a folder");
    let salts = ["a", "b"].map(|name| {
        let path = dir.path().join(name);
        FrameWriter::create(&path, FORMAT, 1).expect("create");
        Header::decode(&path, &fs::read(&path).expect("read"), FORMAT)
            .expect("whole")
            .salt
    });
    assert_ne!(salts[0], salts[1]);
}

#[test]
fn a_search_that_costs_too_much_is_given_up_and_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("log");
    let mut writer = FrameWriter::create(&path, FORMAT, 1).expect("create");
    let offsets = [0, 1, 2].map(|fill| writer.append(&[fill; 100]).expect("append") as usize);
    writer.commit().expect("commit");
    let mut file = fs::read(&path).expect("read");
    // The first two lose their checksums, so that finding the third costs 200 bytes.
    for offset in &offsets[..2] {
        file[offset + 8] ^= 1;
    }
    for (limit, found) in [(200, 1), (199, 0)] {
        let mut reader = FrameReader::new(&path, &file, FORMAT).expect("the header is whole");
        reader.search_bytes_left = limit;
        let items: Vec<_> = reader.collect();
        assert_eq!(items.iter().filter(|item| item.is_ok()).count(), found);
        let damage = items[0].as_ref().expect_err("the first is damaged");
        assert_eq!(
            (damage.offset, damage.kind),
            (offsets[0] as u64, DamageKind::Damaged)
        );
        assert_eq!(damage.reason.contains("given up"), found == 0, "{damage}");
        assert_eq!(items.len(), found + 1);
    }
}
