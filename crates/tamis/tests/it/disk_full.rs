//! A disk that runs full: told, and what was acknowledged before stays.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::corpus::Corpus;
use crate::run::{Home, Run};

/// Mounts a small disk that only the import and its shell see, and copies what it left.
const SCRIPT: &str = r#"
mount -t tmpfs -o size=400k tmpfs "$1" || exit 99
"$2" ct import --format ndjson --data "$1/index" --flush-rows 100000 "$4" --log corpus --start 0
code=$?
cp -a "$1/index" "$3"
exit $code
"#;

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    let home = Home::new();
    // Several groups of files, each acknowledged, and more than fits.
    let corpus = Corpus::write(&home.path("corpus"), 6_000, 3);
    std::fs::create_dir(home.path("disk")).unwrap();
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh"])
        .arg(home.path("disk"))
        .arg(env!("CARGO_BIN_EXE_tamis"))
        .arg(home.data())
        .arg(&corpus.folder)
        .output();
    let output = match output {
        Ok(output) if output.status.code() != Some(99) && output.status.code() != Some(1) => output,
        Ok(output) => {
            eprintln!(
                "SKIPPED: no tmpfs here: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            return;
        }
        Err(error) => {
            eprintln!("SKIPPED: no unshare here: {error}");
            return;
        }
    };
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("the disk is full; free some space"), "{err}");
    let acknowledged: BTreeSet<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| {
            assert_eq!(
                line["durable"],
                Value::Bool(true),
                "no summary of what failed: {line}"
            );
            let file = line["file"].as_str().unwrap();
            file.rsplit('/').next().unwrap().to_owned()
        })
        .collect();
    assert!(acknowledged.len() > 100, "{} files fitted", acknowledged.len());
    assert!(acknowledged.len() < corpus.files.len());
    Run::of(&mut home.command(&["verify"])).code(0);
    corpus.assert_held(&home.data(), &acknowledged);
    // With room again, it goes on.
    home.import(&corpus.arguments());
    let everything: BTreeSet<String> = corpus.files.keys().cloned().collect();
    assert_eq!(corpus.assert_held(&home.data(), &everything), 6_000);
}
