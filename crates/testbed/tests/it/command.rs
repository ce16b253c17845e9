//! The command writes the files it promises.

use std::path::Path;
use std::process::{Command, Output};

fn run(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tamis-testbed"))
        .arg("corpus")
        .args(arguments)
        .arg("--out")
        .arg(folder.join("out"))
        .output()
        .expect("the binary runs")
}

fn files_below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(folder).expect("below").display().to_string());
            }
        }
    }
    found.sort();
    found
}

#[track_caller]
fn check_files(arguments: &[&str], expected: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(arguments, folder.path());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found = files_below(&folder.path().join("out"));
    let found: Vec<_> = found.iter().filter(|path| !path.contains("issuer/")).collect();
    assert_eq!(found, expected);
}

#[test]
fn pages_tiles_and_pem_are_written() {
    check_files(
        &["--entries", "600"],
        &[
            "get-entries-000000000000.json",
            "get-entries-000000000256.json",
            "get-entries-000000000512.json",
        ],
    );
    check_files(
        &["--entries", "300", "--format", "tiles", "--gzip"],
        &["tile/data/000", "tile/data/001.p/44"],
    );
    check_files(
        &["--entries", "20", "--format", "pem", "--page", "30"],
        &["certificates-000000000000.pem"],
    );
}

#[test]
fn several_logs_get_a_folder_each() {
    check_files(
        &["--entries", "40", "--logs", "2"],
        &[
            "log-0/get-entries-000000000000.json",
            "log-1/get-entries-000000000000.json",
        ],
    );
}

#[test]
fn the_truth_has_a_line_for_each_entry() {
    let folder = tempfile::tempdir().expect("a folder");
    let truth = folder.path().join("truth.ndjson");
    let truth_argument = truth.display().to_string();
    let output = run(
        &["--names", "500", "--format", "none", "--truth", &truth_argument],
        folder.path(),
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = std::fs::read_to_string(&truth).expect("the truth");
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let names: usize = lines
        .iter()
        .map(|line| line["names"].as_array().map_or(0, Vec::len))
        .sum();
    assert!((500..510).contains(&names), "{names}");
    assert_eq!(lines[0]["sha256"].as_str().map(str::len), Some(64));
    assert_eq!(lines[0]["index"], 0);
    assert!(lines[0]["issuance"].is_u64());
}

#[test]
fn zero_entries_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(&["--entries", "0"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("at least one entry"));
}
