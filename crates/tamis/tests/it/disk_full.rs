//! A disk that runs full: told, and what was acknowledged before stays.

use std::collections::BTreeSet;
use std::path::Path;
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

/// Puts an index on a small disk, leaves so many KiB free, does something, looks at it while the disk is
/// full, makes room and does it again.
const WITH_AN_INDEX: &str = r#"
disk=$1 tamis=$2 out=$3 room=$4
shift 4
mount -t tmpfs -o size=24m tmpfs "$disk" || exit 99
cp -a "$out/before" "$disk/index" || exit 98
dd if=/dev/zero of="$disk/filler" bs=4k 2>/dev/null
size=$(stat -c %s "$disk/filler")
truncate -s $((size - room * 1024)) "$disk/filler"
"$tamis" ct "$@" --data "$disk/index" >"$out/first.out" 2>"$out/first.err"
echo $? >"$out/first.code"
ls "$disk" >"$out/first.ls"
"$tamis" ct verify --data "$disk/index" >"$out/full.out" 2>&1 || exit 97
"$tamis" ct names com --format json --data "$disk/index" >"$out/full.names" || exit 96
rm "$disk/filler"
[ "$(cat "$out/first.code")" != 0 ] || rm -rf "$disk/copy"
"$tamis" ct "$@" --data "$disk/index" >"$out/second.out" 2>"$out/second.err"
echo $? >"$out/second.code"
cp -a "$disk/index" "$out/after"
! [ -e "$disk/copy" ] || cp -a "$disk/copy" "$out/copy"
exit 50
"#;

/// Answers true when the command failed for want of room; `None` where there is no such disk here.
fn with_room(index: &Path, out: &Path, room: u32, args: &[&str]) -> Option<bool> {
    std::fs::create_dir_all(out.join("disk")).unwrap();
    crate::run::copy_folder(index, &out.join("before"));
    let disk = out.join("disk");
    let args = args.iter().map(|arg| arg.replace("DISK", disk.to_str().unwrap()));
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", WITH_AN_INDEX, "sh"])
        .arg(&disk)
        .arg(env!("CARGO_BIN_EXE_tamis"))
        .arg(out)
        .arg(room.to_string())
        .args(args.clone())
        .output();
    let (code, err) = match &output {
        Ok(output) => (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ),
        Err(error) => (Some(99), error.to_string()),
    };
    if matches!(code, Some(1 | 99)) {
        eprintln!("SKIPPED: no tmpfs in a namespace of its own here: {err}");
        return None;
    }
    let text = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_default();
    let told = text("first.err");
    assert_eq!(
        code,
        Some(50),
        "{args:?} {room}: {err} {told} {}",
        text("full.out")
    );
    assert_eq!(
        text("second.code").trim(),
        "0",
        "{args:?} {room}: {}",
        text("second.err")
    );
    let failed = text("first.code").trim() != "0";
    if failed {
        assert_eq!(text("first.code").trim(), "2", "{told}");
        assert!(told.contains("the disk is full; free some space"), "{told}");
        assert_eq!(text("first.out"), "", "no summary of what failed");
        assert!(!text("first.ls").contains("copy"), "{}", text("first.ls"));
    }
    Some(failed)
}

#[test]
fn commands_that_write_an_index_fail_on_a_full_disk_and_go_on_later() {
    let home = Home::new();
    let corpus = Corpus::write(&home.path("corpus"), 3_000, 3);
    let mut arguments = corpus.arguments().to_vec();
    arguments.extend(["--flush-rows", "400"]);
    home.import(&arguments);
    let whole = crate::prune::rows(&home, &corpus.endings());
    let mut ends: Vec<&str> = whole.iter().filter_map(|row| row["not_after"].as_str()).collect();
    ends.sort_unstable();
    let end = ends[ends.len() / 2];
    let pruned = home.copy();
    pruned.ct(&["prune", "--expired", end]).code(0);
    let left = crate::prune::rows(&pruned, &corpus.endings());
    // Importing into what was pruned flushes again and again.
    let mut import = vec!["import"];
    import.extend(&arguments);
    let backup = ["backup", "DISK/copy"];
    let prune = ["prune", "--expired", end];
    let cases: [(&Home, &[&str], &Vec<Value>); 4] = [
        (&home, &["compact"], &whole),
        (&home, &prune, &left),
        (&pruned, &import, &whole),
        (&home, &backup, &whole),
    ];
    for (from, args, expected) in cases {
        let mut failures = 0;
        for room in [0, 12, 100, 300] {
            let case = Home::new();
            let Some(failed) = with_room(&from.data(), &case.path("out"), room, args) else {
                return;
            };
            failures += u32::from(failed);
            std::fs::rename(case.path("out/after"), case.data()).unwrap();
            case.assert_whole();
            assert!(
                crate::prune::rows(&case, &corpus.endings()) == *expected,
                "{args:?} {room}"
            );
            if args == backup {
                let copy = Home::new();
                std::fs::rename(case.path("out/copy"), copy.data()).unwrap();
                copy.assert_whole();
                assert!(crate::prune::rows(&copy, &corpus.endings()) == *expected);
            }
        }
        assert!(failures > 0, "{args:?} always had room");
        eprintln!("{args:?}: {failures} of 4 had no room");
    }
}
