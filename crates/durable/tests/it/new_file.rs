//! New files hold what was written, or are gone.

use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use tamis_durable::{Error, NewFile};
use tempfile::tempdir;

use crate::publish::names;

#[test]
fn a_file_that_was_not_finished_is_removed() {
    let dir = tempdir().expect("a folder");
    let mut file = NewFile::create(&dir.path().join("segment")).expect("create");
    file.write_all(&vec![1; 5 << 20]).expect("write");
    assert_eq!(names(dir.path()), ["segment"]);
    drop(file);
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn a_file_is_not_created_over_another_and_does_not_remove_it() {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("segment");
    fs::write(&path, b"there").expect("write");
    let error = NewFile::create(&path).expect_err("it exists");
    assert!(
        matches!(error, Error::Io { ref source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists)
    );
    assert!(
        error.to_string().contains("it exists already; remove it"),
        "{error}"
    );
    assert_eq!(fs::read(&path).expect("read"), b"there");
}

#[test]
fn an_empty_file_is_a_file() {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("segment");
    assert_eq!(
        NewFile::create(&path).expect("create").finish().expect("finish"),
        0
    );
    assert_eq!(fs::read(&path).expect("read"), b"");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever the sizes of the writes, the position is known and the content is theirs.
    #[test]
    fn writes_are_one_after_the_other(
        lengths in vec(prop_oneof![0_usize..100, 500_000_usize..600_000, 1_048_574_usize..1_048_579], 0..6),
    ) {
        let dir = tempdir().expect("a folder");
        let path = dir.path().join("segment");
        let mut file = NewFile::create(&path).expect("create");
        let mut expected = Vec::new();
        for (index, length) in lengths.into_iter().enumerate() {
            let bytes = vec![index as u8 + 1; length];
            file.write_all(&bytes).expect("write");
            expected.extend_from_slice(&bytes);
            prop_assert_eq!(file.position(), expected.len() as u64);
        }
        prop_assert_eq!(file.finish().expect("finish"), expected.len() as u64);
        prop_assert!(fs::read(&path).expect("read") == expected);
    }
}
