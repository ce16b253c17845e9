//! A sealed file gives back what was sealed, or an error that says where it is wrong.

use std::fs;
use std::path::{Path, PathBuf};

use tamis_durable::sealed::{self, Format};
use tamis_durable::{Blame, Error};
use tempfile::{TempDir, tempdir};

/// Bound to docs/formats/sealed.md by tidy.
const VERSION: u32 = 1;
const FORMAT: Format = Format {
    magic: *b"SEALTEST",
    version: VERSION,
};
const PAYLOAD: &[u8] = b"\0what a manifest could hold\0\xFF";
const BYTES_MAX: u64 = 1_000;

fn sealed_file() -> (TempDir, PathBuf, Vec<u8>) {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("file");
    sealed::publish(&path, FORMAT, PAYLOAD).expect("publish");
    let bytes = fs::read(&path).expect("read");
    (dir, path, bytes)
}

fn read_changed(path: &Path, bytes: &[u8]) -> Error {
    fs::write(path, bytes).expect("write");
    sealed::read(path, FORMAT, BYTES_MAX).expect_err("the file was changed")
}

#[track_caller]
fn corrupt_offset(error: &Error) -> u64 {
    assert_eq!(error.kind(), Blame::Corrupt, "{error}");
    let Error::Corrupt { offset, .. } = error else {
        return u64::MAX;
    };
    assert!(
        error.to_string().contains(&format!("at byte {offset}")),
        "{error}"
    );
    *offset
}

#[test]
fn round_trip_of_every_small_length() {
    let (_dir, path, _) = sealed_file();
    for length in 0..300 {
        let payload = vec![length as u8; length];
        sealed::publish(&path, FORMAT, &payload).expect("publish");
        assert_eq!(sealed::read(&path, FORMAT, BYTES_MAX).expect("read"), payload);
    }
}

#[test]
fn every_flipped_bit_is_told_with_its_place() {
    let (_dir, path, bytes) = sealed_file();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            let error = read_changed(&path, &changed);
            let offset = corrupt_offset(&error);
            match at {
                0..8 => assert_eq!(offset, 0),
                8..12 => assert_eq!(offset, 8),
                12..20 => assert!(offset >= 28, "a wrong length shows at the end, not at {offset}"),
                _ => assert_eq!(offset, 20),
            }
        }
    }
}

#[test]
fn every_truncation_is_told_with_its_place() {
    let (_dir, path, bytes) = sealed_file();
    for length in 0..bytes.len() {
        let error = read_changed(&path, &bytes[..length]);
        assert_eq!(corrupt_offset(&error), length as u64);
    }
}

#[test]
fn surplus_and_zeroed_files_are_rejected() {
    let (_dir, path, bytes) = sealed_file();
    let surplus = [&bytes[..], b"\0"].concat();
    assert_eq!(corrupt_offset(&read_changed(&path, &surplus)), bytes.len() as u64);
    let error = read_changed(&path, &vec![0; bytes.len()]);
    assert!(
        matches!(error, Error::WrongMagic { found: [0, ..], .. }),
        "{error}"
    );
}

#[test]
fn other_formats_and_versions_are_told_apart() {
    let (_dir, path, _) = sealed_file();
    let read_as = |format| sealed::read(&path, format, BYTES_MAX).expect_err("another format");

    let error = read_as(Format {
        magic: *b"OTHERONE",
        version: 1,
    });
    assert!(
        matches!(error, Error::WrongMagic { found, expected, .. } if &found == b"SEALTEST" && &expected == b"OTHERONE")
    );
    assert_eq!(error.kind(), Blame::Input);

    let error = read_as(Format { version: 2, ..FORMAT });
    assert!(
        matches!(
            error,
            Error::OldVersion {
                found: 1,
                supported: 2,
                ..
            }
        ),
        "{error}"
    );

    sealed::publish(&path, Format { version: 3, ..FORMAT }, PAYLOAD).expect("publish");
    let error = read_as(FORMAT);
    assert!(
        matches!(
            error,
            Error::FutureVersion {
                found: 3,
                supported: 1,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("format version 3 at byte 8, this program reads up to 1"),
        "{error}"
    );
}

#[test]
fn a_future_layout_is_called_future_not_damaged() {
    let (_dir, path, bytes) = sealed_file();
    // Twelve bytes are all that a future version promises to keep.
    let mut future = bytes[..8].to_vec();
    future.extend(2_u32.to_le_bytes());
    for length in [12, 20, 40] {
        future.resize(length, 7);
        let error = read_changed(&path, &future);
        assert!(
            matches!(error, Error::FutureVersion { found: 2, .. }),
            "{length} bytes: {error}"
        );
    }
}

#[test]
fn the_limit_is_the_reader_s_and_exact() {
    let (_dir, path, _) = sealed_file();
    let length = PAYLOAD.len() as u64;
    sealed::read(&path, FORMAT, length).expect("at the limit");
    let error = sealed::read(&path, FORMAT, length - 1).expect_err("over the limit");
    assert!(
        matches!(error, Error::TooLarge { bytes, bytes_max, .. } if (bytes, bytes_max) == (length, length - 1))
    );
    sealed::read(&path, FORMAT, u64::MAX).expect("no limit");

    fs::File::create(&path)
        .and_then(|file| file.set_len(1 << 40))
        .expect("a sparse file");
    let error = sealed::read(&path, FORMAT, BYTES_MAX).expect_err("over the limit");
    assert!(
        matches!(error, Error::TooLarge { bytes, .. } if bytes == (1 << 40) - 28),
        "{error}"
    );
}

#[test]
fn a_missing_file_is_not_found() {
    let (dir, ..) = sealed_file();
    let error = sealed::read(&dir.path().join("none"), FORMAT, BYTES_MAX).expect_err("there is none");
    assert!(matches!(error, Error::Io { ref source, .. } if source.kind() == std::io::ErrorKind::NotFound));
}

#[test]
fn the_golden_file_of_version_1_is_written_and_read() {
    let (_dir, _path, bytes) = sealed_file();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/sealed-v1.bin");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &bytes).expect("write the golden file");
    }
    assert_eq!(
        bytes,
        fs::read(&golden).expect("the golden file is in the repository")
    );
    assert_eq!(sealed::read(&golden, FORMAT, BYTES_MAX).expect("read"), PAYLOAD);
}
