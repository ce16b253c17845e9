//! Publication is atomic whatever dies when.

use std::fs;
use std::path::Path;

use tamis_durable::{Blame, FolderLock, publish, sync_dir};
use tempfile::tempdir;

use crate::child::{Numbers, Running, version, version_of};

const KILLS: u64 = 30;

#[test]
fn a_killed_publisher_leaves_the_old_file_or_the_new_one() {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("file");
    publish(&path, &version(0)).expect("publish");
    let mut numbers = Numbers(1);
    for _ in 0..KILLS {
        let mut child = Running::start("publish", dir.path());
        for _ in 0..numbers.below(4) {
            child.line();
            version_of(&fs::read(&path).expect("the file is always there"));
        }
        numbers.spin_us(8_000);
        let acknowledged = child.kill().last().and_then(|line| line.parse::<u64>().ok());
        let found = version_of(&fs::read(&path).expect("the file is always there"));
        if let Some(acknowledged) = acknowledged {
            assert!(
                [acknowledged, acknowledged + 1].contains(&found),
                "{found} after {acknowledged}"
            );
        }
    }
    let mut lock = FolderLock::acquire(dir.path()).expect("nobody holds it");
    lock.remove_stale_temps().expect("remove what the killed left");
    assert_eq!(names(dir.path()), ["LOCK", "file"]);
}

#[test]
fn stale_temporary_files_are_removed_and_nothing_else() {
    let dir = tempdir().expect("a folder");
    for name in [".tamis-12-0.tmp", ".tamis-7-19.tmp", ".tamis-keep", "a.tmp"] {
        fs::write(dir.path().join(name), b"x").expect("write");
    }
    let mut lock = FolderLock::acquire(dir.path()).expect("nobody holds it");
    assert_eq!(lock.remove_stale_temps().expect("remove"), 2);
    assert_eq!(names(dir.path()), [".tamis-keep", "LOCK", "a.tmp"]);
}

#[test]
fn publishing_replaces_and_leaves_nothing_beside() {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("file");
    for content in [&b"long content"[..], b"short", b""] {
        publish(&path, content).expect("publish");
        assert_eq!(fs::read(&path).expect("read"), content);
    }
    sync_dir(dir.path()).expect("sync");
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn racing_publishers_leave_one_whole_file() {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("file");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for round in 0..8 {
                    publish(path, &version(thread * 8 + round)).expect("publish");
                    version_of(&fs::read(path).expect("the file is there"));
                }
            });
        }
    });
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn what_cannot_be_published_says_where_and_what_to_do() {
    let dir = tempdir().expect("a folder");
    let missing = dir.path().join("nowhere/file");
    let error = publish(&missing, b"x").expect_err("there is no such folder");
    assert_eq!(error.kind(), Blame::Environment);
    assert_eq!(
        error.to_string(),
        format!(
            "cannot create a temporary file for {}: it does not exist; check the path, and that its folder has been made",
            missing.display()
        )
    );

    let folder = dir.path().join("folder");
    fs::create_dir(&folder).expect("create");
    publish(&folder, b"x").expect_err("a folder cannot be replaced by a file");
    assert_eq!(names(dir.path()), ["folder"]);
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .expect("list")
        .map(|entry| entry.expect("list").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
