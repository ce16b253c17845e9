//! Maps show the file, and outlive its name.

use std::fs;

use tamis_durable::{Advice, Error, Map, publish};
use tempfile::tempdir;

#[test]
fn a_map_is_the_file_with_every_advice() {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("file");
    for length in [0, 1, 4_095, 4_096, 10_000] {
        let content: Vec<_> = (0..length).map(|at| (at % 251) as u8).collect();
        publish(&path, &content).expect("publish");
        for advice in [Advice::Normal, Advice::Random, Advice::Sequential] {
            let map = Map::open(&path, advice).expect("map");
            assert!(*map == content[..] && map.as_slice() == content, "{length} bytes");
            map.advise(Advice::default()).expect("advise");
            assert_eq!(map.path(), path);
        }
    }
}

#[test]
fn a_map_keeps_the_file_that_was_replaced_or_removed() {
    let dir = tempdir().expect("a folder");
    let path = dir.path().join("file");
    publish(&path, b"old").expect("publish");
    let old = Map::open(&path, Advice::Normal).expect("map");
    publish(&path, b"new content").expect("publish");
    let new = Map::open(&path, Advice::Normal).expect("map");
    fs::remove_file(&path).expect("remove");
    assert_eq!((&*old, &*new), (&b"old"[..], &b"new content"[..]));
}

#[test]
fn what_is_no_file_is_an_io_error() {
    let dir = tempdir().expect("a folder");
    for path in [dir.path().to_owned(), dir.path().join("none")] {
        let error = Map::open(&path, Advice::Normal).expect_err("no file");
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

#[test]
fn maps_are_read_from_many_threads() {
    fn check<T: Send + Sync>() {}
    check::<Map>();
}
