//! A folder that may not be written, by its mode and by its mount: writers are told why, questions are answered.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::run::{Home, Run, testdata};

/// Nobody, on every system.
const NOBODY: &str = "65534";
/// A mount that only the command and its shell see.
const SCRIPT: &str = r#"
mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 99
shift
exec "$@"
"#;

#[test]
fn a_folder_that_may_not_be_written_is_read() {
    let home = imported();
    set_modes(&home.data(), 0o555, 0o444);
    // Root may write whatever the mode says.
    let is_root = std::fs::File::create(home.data().join("trial")).is_ok();
    let start: &[&str] = if is_root {
        std::fs::remove_file(home.data().join("trial")).unwrap();
        std::fs::set_permissions(home.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
        &["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    } else {
        &["env"]
    };
    let mut trial = Command::new(start[0]);
    trial
        .args(&start[1..])
        .args([env!("CARGO_BIN_EXE_tamis"), "--version"]);
    if !trial.output().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no user here who may start the binary and not write the folder");
        return;
    }
    check(&home, start, "check the owner and the mode");
    set_modes(&home.data(), 0o755, 0o644);
}

#[test]
fn a_folder_on_a_read_only_mount_is_read() {
    let home = imported();
    let data = home.data();
    let start = [
        "unshare",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        SCRIPT,
        "sh",
        data.to_str().unwrap(),
    ];
    let trial = Command::new(start[0]).args(&start[1..]).arg("true").output();
    if !trial.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no mount here that may be made read-only");
        return;
    }
    check(&home, &start, "the file system is read-only");
}

/// Both writers fail with `hint`, every question is answered as before, and nothing has changed.
fn check(home: &Home, start: &[&str], hint: &str) {
    let questions: [&[&str]; 6] = [
        &["names", "com"],
        &["search", "com"],
        &["stats"],
        &["stats", "--measure"],
        &["verify"],
        &["show", "4d3c"],
    ];
    let listing = || {
        let mut files: Vec<_> = walk(&home.data());
        files.sort();
        files
    };
    let before = listing();
    let file = testdata("ct/sct/test-embedded-pre-cert.pem");
    for writer in [&["import", file.to_str().unwrap()][..], &["compact"]] {
        run(home, start, writer).says(2, &["data", hint]);
    }
    for question in questions {
        let expected = home.ct(question);
        let answered = run(home, start, question);
        assert!(answered.code == expected.code, "{question:?}: {answered:?}");
        if question.len() == 1 || question[1] != "--measure" {
            assert_eq!(answered.out, expected.out, "{question:?}");
        }
    }
    assert_eq!(listing(), before);
}

fn run(home: &Home, start: &[&str], args: &[&str]) -> Run {
    let mut command = Command::new(start[0]);
    command
        .args(&start[1..])
        .args([env!("CARGO_BIN_EXE_tamis"), "ct"])
        .args(args)
        .arg("--data")
        .arg(home.data())
        .current_dir("/");
    Run::of(&mut command)
}

/// An index with a segment, filters, and rows that are in the log alone.
fn imported() -> Home {
    let home = Home::new();
    let corpus = crate::corpus::Corpus::write(&home.path("corpus"), 600, 3);
    let mut args = corpus.arguments().to_vec();
    args.extend(["--flush-rows", "300"]);
    home.import(&args);
    home.import(&[testdata("ct/sct/test-embedded-cert.pem")]);
    home
}

fn walk(folder: &Path) -> Vec<(std::path::PathBuf, u64)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            let bytes = std::fs::metadata(&path).unwrap().len();
            files.push((path, bytes));
        }
    }
    files
}

fn set_modes(folder: &Path, of_folders: u32, of_files: u32) {
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(folder, 0o755);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            set_modes(&path, of_folders, of_files);
        } else {
            set(&path, of_files);
        }
    }
    set(folder, of_folders);
}
