//! Flipped bytes and cut-off files: `verify` names the file, and the rest is still answered.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::corpus::{Corpus, Numbers};
use crate::run::{Home, testdata, text};

/// Flipped bytes of each kind of file.
const FLIPS: u64 = 40;
/// Lengths that each kind of file is cut to.
const CUTS: u64 = 12;

/// A folder with segments and a rest in the write-ahead log.
fn folder(home: &Home) -> BTreeMap<String, u64> {
    let corpus = Corpus::write(&home.path("corpus"), 600, 3);
    let half = corpus.files.len() / 2;
    let paths: Vec<PathBuf> = corpus.files.keys().map(|name| corpus.folder.join(name)).collect();
    let import = |paths: &[PathBuf], flush_rows: &str| {
        let mut args: Vec<_> = paths.iter().map(|path| path.as_os_str().to_owned()).collect();
        args.extend(["--flush-rows".into(), flush_rows.into()]);
        home.import(&args);
    };
    import(&paths[..half], "100");
    // Two commits, so that damage to one leaves another.
    import(&paths[half..half + half / 2], "100000");
    import(&paths[half + half / 2..], "100000");
    home.assert_whole();
    counts(home).1
}

/// Exit code, issuances by name, and talk of `names com`.
fn counts(home: &Home) -> (Option<i32>, BTreeMap<String, u64>, String) {
    let run = home.ct(&["names", "com", "--format", "ndjson"]);
    let counts = run
        .rows()
        .iter()
        .map(|row| (text(row, "name").to_owned(), row["issuances"].as_u64().unwrap()))
        .collect();
    (run.code, counts, run.err)
}

/// One file of each kind, by kind.
fn kinds(data: &Path) -> BTreeMap<&'static str, PathBuf> {
    let mut kinds = BTreeMap::new();
    let mut folders = vec![data.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let kind = match name {
                // Filters are hints that count only as recorded: nothing can be lost with them.
                "filters" => continue,
                _ if path.is_dir() => {
                    folders.push(path);
                    continue;
                }
                "LOCK" => continue,
                "MANIFEST" => "manifest",
                "MANIFEST.copy" => "copy of the manifest",
                "issuers.tamis" => "issuers",
                _ if name.ends_with(".wal") => "write-ahead log",
                _ if name.starts_with("seg-") => "segment",
                _ => panic!("{} is of no known kind", path.display()),
            };
            // The largest: the newest log file of an import that is over is empty.
            let bytes = |path: &PathBuf| fs::metadata(path).unwrap().len();
            if kinds.get(kind).is_none_or(|known| bytes(known) < bytes(&path)) {
                kinds.insert(kind, path);
            }
        }
    }
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    kinds
}

/// Asserts that the damage is told and that what is left is a part of the truth.
fn assert_told(home: &Home, whole: &BTreeMap<String, u64>, path: &Path, what: &str) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let verify = home.ct(&["verify"]);
    assert!(
        verify.err.contains(name),
        "{what}: verify does not name the file: {verify:?}"
    );
    assert_eq!(verify.code, Some(1), "{what}: {verify:?}");
    let (code, left, err) = counts(home);
    for (name, count) in &left {
        assert!(
            whole.get(name) >= Some(count),
            "{what}: {name} was never counted {count} times"
        );
    }
    match code {
        Some(0) => assert_eq!(&left, whole, "{what}: rows are missing in silence: {err}"),
        Some(2) => assert!(err.contains(name) && err.contains("incomplete"), "{what}: {err}"),
        _ => panic!("{what}: exit {code:?}: {err}"),
    }
    assert!(!left.is_empty(), "{what}: nothing is left: {err}");
}

#[test]
fn flipped_bytes_are_named_and_cost_little() {
    let mut random = Numbers::told("flipped bytes");
    let home = Home::new();
    let whole = folder(&home);
    for (kind, path) in kinds(&home.data()) {
        let bytes = fs::read(&path).unwrap();
        for _ in 0..FLIPS {
            let at = random.below(bytes.len() as u64) as usize;
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << random.below(8);
            fs::write(&path, flipped).unwrap();
            assert_told(
                &home,
                &whole,
                &path,
                &format!("{kind}, byte {at} of {}", bytes.len()),
            );
        }
        fs::write(&path, bytes).unwrap();
    }
    home.assert_whole();
    assert_eq!(counts(&home).1, whole);
}

/// Merging what is left would make the loss final.
#[test]
fn damaged_segments_are_not_merged_away() {
    let home = Home::new();
    folder(&home);
    let path = kinds(&home.data()).remove("segment").unwrap();
    let mut bytes = fs::read(&path).unwrap();
    // Inside the first block of names.
    bytes[200] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let before = counts(&home);
    assert_eq!(before.0, Some(2));
    home.ct(&["compact"]).says(2, &[name, "damaged at byte"]);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(counts(&home).1, before.1);
    assert_eq!(before.2.matches(name).count(), 1, "told once: {}", before.2);
}

#[test]
fn cut_off_files_are_named_and_cost_little() {
    let mut random = Numbers::told("cut-off files");
    let home = Home::new();
    let whole = folder(&home);
    for (kind, path) in kinds(&home.data()) {
        let bytes = fs::read(&path).unwrap();
        for cut in 0..CUTS {
            // A log that ends early cannot be told from one that a crash tore: that is a note.
            if kind == "write-ahead log" {
                break;
            }
            let length = if cut == 0 {
                0
            } else {
                random.below(bytes.len() as u64) as usize
            };
            fs::write(&path, &bytes[..length]).unwrap();
            assert_told(
                &home,
                &whole,
                &path,
                &format!("{kind}, {length} of {} bytes", bytes.len()),
            );
        }
        fs::remove_file(&path).unwrap();
        assert_told_if_needed(&home, &whole, kind, &path);
        fs::write(&path, bytes).unwrap();
    }
    home.assert_whole();
    assert_eq!(counts(&home).1, whole);
}

/// A file that is gone: one of two manifests is enough, and a missing log is a log that was flushed.
fn assert_told_if_needed(home: &Home, whole: &BTreeMap<String, u64>, kind: &str, path: &Path) {
    match kind {
        "segment" | "issuers" => assert_told(home, whole, path, &format!("{kind}, gone")),
        "write-ahead log" => {}
        _ => assert_eq!(&counts(home).1, whole, "{kind}, gone"),
    }
}

#[test]
fn lost_issuers_and_lost_logs_are_not_taken_for_complete() {
    let home = Home::new();
    home.import(&[
        "--flush-rows",
        "50",
        testdata("ct/rfc6962/navigli2025h2_get-entries.json.gz")
            .to_str()
            .unwrap(),
    ]);
    let search = ["search", "com", "--issuer", "encrypt", "--format", "json"];
    assert!(
        !home.ct(&search).code(0).json()["results"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    std::fs::remove_file(home.data().join("issuers.tamis")).unwrap();
    let told = home.ct(&search).code(2).json();
    assert_eq!(told["partial"], serde_json::json!(true));

    let home = Home::new();
    home.import(&[testdata("ct/rfc6962/live_ct.json")]);
    for entry in std::fs::read_dir(home.data().join("wal")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    home.ct(&["verify"]).says(1, &["00000001.wal", "missing"]);
    home.ct(&["names", "org"]).code(2);
}
