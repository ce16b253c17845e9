//! A backup holds what was acknowledged before it began, whoever writes meanwhile, and is an index.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::corpus::Corpus;
use crate::run::{Home, Run, tamis, testdata};

/// Segment files of a folder, relative to it, sorted.
pub(crate) fn segments(data: &Path) -> Vec<PathBuf> {
    files(data)
        .into_iter()
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("seg-"))
        .collect()
}

/// All files of a folder, relative to it, sorted.
pub(crate) fn files(data: &Path) -> Vec<PathBuf> {
    fn walk(root: &Path, dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                found.push(path.strip_prefix(root).unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(data, data, &mut found);
    found.sort();
    found
}

/// `tamis ct ARGS --data DIR`.
fn ct_at(data: &Path, args: &[&str]) -> Run {
    Run::of(tamis(&["ct"]).args(args).arg("--data").arg(data))
}

fn backup(home: &Home, to: &Path) -> Value {
    let to = to.to_str().unwrap();
    home.ct(&["backup", to, "--format", "json"]).code(0).json()
}

#[test]
fn a_backup_is_the_index_and_takes_little_room() {
    let home = Home::new();
    let corpus = Corpus::write(&home.path("corpus"), 1_200, 3);
    let mut arguments = corpus.arguments().to_vec();
    arguments.extend(["--flush-rows", "500"]);
    home.import(&arguments);
    let everything: BTreeSet<String> = corpus.files.keys().cloned().collect();
    let copy = home.path("copies/2026-11-30");
    let told = backup(&home, &copy);
    ct_at(&copy, &["verify"]).code(0);
    assert_eq!(corpus.assert_held(&copy, &everything), 1_200);
    let linked = segments(&home.data());
    assert_eq!(segments(&copy), linked);
    assert_eq!(told["linked"], json!(linked.len()));
    assert_eq!(told["files"], json!(files(&copy).len()));
    for path in &linked {
        let [here, there] = [home.data(), copy.clone()].map(|dir| dir.join(path).metadata().unwrap().ino());
        assert_eq!(here, there, "{}", path.display());
    }
    let expected: BTreeSet<PathBuf> = files(&home.data())
        .into_iter()
        .filter(|path| path.as_os_str() != "LOCK" && !path.starts_with("filters"))
        .collect();
    assert_eq!(files(&copy).into_iter().collect::<BTreeSet<_>>(), expected);
    // What becomes of the index is nothing to the copy.
    home.ct(&["prune", "--seen-before", "9999-01-01"]).code(0);
    ct_at(&copy, &["verify"]).code(0);
    assert_eq!(corpus.assert_held(&copy, &everything), 1_200);
    // Restored, it can be written.
    let restored = Run::of(
        tamis(&["ct", "import", "--format", "json", "--data"])
            .arg(&copy)
            .args(corpus.arguments()),
    );
    assert_eq!(restored.code(0).json()["new_issuances"], json!(0));
    ct_at(&copy, &["compact"]).code(0);
    assert_eq!(corpus.assert_held(&copy, &everything), 1_200);
    // And nothing that the copy does is anything to what is linked elsewhere.
    let second = home.path("copies/second");
    assert_eq!(ct_at(&copy, &["backup", second.to_str().unwrap()]).code, Some(0));
    assert_eq!(corpus.assert_held(&second, &everything), 1_200);
}

#[test]
fn real_entries_are_backed_up() {
    let home = Home::new();
    home.try_import(&[testdata("ct").to_str().unwrap()]);
    let copy = home.path("copy");
    // An empty folder is as good as none.
    std::fs::create_dir(&copy).unwrap();
    backup(&home, &copy);
    ct_at(&copy, &["verify"]).code(0);
    for args in [
        ["names", "com", "--format", "json"],
        ["stats", "--format", "json", "--verbose"],
    ] {
        // Filters stay behind: they are made again where the copy is written.
        let [here, there] = [home.ct(&args), ct_at(&copy, &args)].map(|run| {
            let mut told = run.code(0).json();
            if let Some(facts) = told.as_object_mut() {
                facts.remove("filters");
            }
            told
        });
        assert_eq!(here, there);
    }
}

#[test]
fn a_place_that_cannot_be_is_refused_and_left_alone() {
    let home = Home::with(&[testdata("ct/sct/test-embedded-cert.pem")]);
    let before = files(&home.data());
    let refused = |to: &Path, parts: &[&str]| {
        home.ct(&["backup", to.to_str().unwrap()]).says(2, parts);
        assert_eq!(files(&home.data()), before);
        assert!(!home.path("other.partial").exists());
    };
    refused(&home.data(), &["is not empty"]);
    refused(&home.data().join("copy"), &["lies in the index itself"]);
    refused(&home.data().join("wal/../copy"), &["lies in the index itself"]);
    std::os::unix::fs::symlink(home.data(), home.path("link")).unwrap();
    refused(&home.path("link/copy"), &["lies in the index itself"]);
    let file = home.file("file", b"1");
    refused(&file, &["is a file"]);
    refused(&file.join("below"), &["is a file, or lies below one"]);
    let other = home.file("other/thing", b"2");
    refused(other.parent().unwrap(), &["is not empty", "does not exist yet"]);
    // Somebody's folder, which is called as ours would be.
    let foreign = home.file("new.partial/letter", b"3");
    refused(&home.path("new"), &["in the way", "letter"]);
    assert!(foreign.exists() && !home.path("new").exists());
    let nowhere = Home::new();
    nowhere.ct(&["backup", "elsewhere"]).says(2, &["no index here"]);
}

#[test]
fn a_missing_file_is_told_and_nothing_is_left() {
    let home = Home::new();
    let corpus = Corpus::write(&home.path("corpus"), 300, 3);
    let mut arguments = corpus.arguments().to_vec();
    arguments.extend(["--flush-rows", "200"]);
    home.import(&arguments);
    let segment = segments(&home.data()).remove(0);
    std::fs::remove_file(home.data().join(&segment)).unwrap();
    let to = home.path("copy");
    home.ct(&["backup", to.to_str().unwrap()]).says(
        2,
        &["it is missing", segment.file_name().unwrap().to_str().unwrap()],
    );
    assert!(!to.exists() && !home.path("copy.partial").exists());
}

/// Whatever the owner does at that moment, all that it acknowledged before is in the copy.
#[test]
fn a_busy_index_is_backed_up_whole() {
    let home = Home::new();
    let corpus = Corpus::write(&home.path("corpus"), 4_000, 3);
    let mut writer = home
        .command(&["import", "--format", "ndjson", "--flush-rows", "150"])
        .args(corpus.arguments())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let (mut acknowledged, mut copies, mut rounds) = (BTreeSet::new(), 0, 0);
    while let Some(Ok(line)) = lines.next() {
        let told: Value = serde_json::from_str(&line).unwrap();
        let Some(file) = told["file"].as_str() else {
            continue;
        };
        acknowledged.insert(file.rsplit('/').next().unwrap().to_owned());
        if acknowledged.len() % 100 != 0 {
            continue;
        }
        let copy = home.path(&format!("copy-{copies}"));
        rounds += backup(&home, &copy)["rounds"].as_u64().unwrap();
        ct_at(&copy, &["verify"]).code(0);
        corpus.assert_held(&copy, &acknowledged);
        copies += 1;
    }
    assert!(writer.wait().unwrap().success());
    assert!(copies > 3, "{copies} copies were made while it was written");
    eprintln!("{copies} copies in {rounds} rounds");
    // While segments are merged.
    let everything: BTreeSet<String> = corpus.files.keys().cloned().collect();
    let mut merger = home.command(&["compact"]).stdout(Stdio::null()).spawn().unwrap();
    let mut copies = 0;
    while merger.try_wait().unwrap().is_none() {
        let copy = home.path(&format!("merged-{copies}"));
        backup(&home, &copy);
        ct_at(&copy, &["verify"]).code(0);
        assert_eq!(corpus.assert_held(&copy, &everything), 4_000);
        copies += 1;
    }
    assert!(copies > 0);
}
