//! One owner of a folder, in one process and between two.

use std::fs;

use tamis_durable::{Blame, Error, FolderLock};
use tempfile::tempdir;

use crate::child::Running;

#[track_caller]
fn check_locked(error: &Error, pid: u32) {
    assert!(
        matches!(error, Error::Locked { holder: Some(holder), .. } if *holder == pid),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains(&format!("is in use by process {pid}; stop it first")),
        "{error}"
    );
    assert_eq!(error.kind(), Blame::Environment);
}

#[test]
fn two_handles_in_one_process_exclude_each_other() {
    let dir = tempdir().expect("a folder");
    let lock = FolderLock::acquire(dir.path()).expect("nobody holds it");
    assert_eq!(lock.dir(), dir.path());
    check_locked(
        &FolderLock::acquire(dir.path()).expect_err("held"),
        std::process::id(),
    );
    drop(lock);
    FolderLock::acquire(dir.path()).expect("released on drop");
    assert_eq!(fs::read(dir.path().join("LOCK")).expect("the file stays"), b"");
}

#[test]
fn a_lock_of_another_process_ends_when_it_is_killed() {
    let dir = tempdir().expect("a folder");
    let mut child = Running::start("lock", dir.path());
    assert_eq!(child.line(), "locked");
    check_locked(
        &FolderLock::acquire(dir.path()).expect_err("the child holds it"),
        child.pid(),
    );
    child.kill();
    let _lock = FolderLock::acquire(dir.path()).expect("the kernel released it");
    let holder = fs::read_to_string(dir.path().join("LOCK")).expect("read");
    assert_eq!(holder, format!("{}\n", std::process::id()));
}

#[test]
fn what_others_left_in_the_file_does_not_matter() {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("LOCK");
    fs::write(&path, [0xFF; 100]).expect("write");
    let _lock = FolderLock::acquire(dir.path()).expect("a file is no lock");
    fs::write(&path, [0xFF; 100]).expect("write");
    let error = FolderLock::acquire(dir.path()).expect_err("held");
    assert!(matches!(error, Error::Locked { holder: None, .. }), "{error}");
    assert!(
        error.to_string().contains("is in use by another process;"),
        "{error}"
    );
}

#[test]
fn a_missing_folder_is_an_io_error() {
    let dir = tempdir().expect("a folder");
    let error = FolderLock::acquire(&dir.path().join("none")).expect_err("there is none");
    assert!(matches!(error, Error::Io { .. }), "{error}");
}
