//! A disk on which fsync, write or rename fails: told, nothing acknowledged is lost, reading goes on, and once
//! the disk is well again the work is finished as if nothing had been.
//!
//! The calls of the real binary fail, through a library that is preloaded; without a C compiler these are skipped.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::corpus::Corpus;
use crate::run::{Home, Run};

/// Each in a file of its own: an import takes some hundred files together, so this is several commits.
const ENTRIES: u64 = 1_600;
/// Each commit fills a memtable, and so is a flush.
const FLUSH_ROWS: &str = "250";
const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const DEVICE: &str = "the device failed; check the kernel log and the health of the disk";
const FULL: &str = "the disk is full; free some space";
/// More calls than any run makes.
const NEVER: usize = usize::MAX >> 1;

/// A call that fails.
#[derive(Debug, Clone, Copy)]
struct Fault {
    call: &'static str,
    /// A pattern of paths; `*/data` is the folder of the index.
    file: &'static str,
    errno: i32,
    /// What the message names, besides the hint.
    named: &'static str,
}

const fn fault(call: &'static str, file: &'static str, errno: i32, named: &'static str) -> Fault {
    Fault {
        call,
        file,
        errno,
        named,
    }
}

/// Commits.
const OF_LOGS: [Fault; 4] = [
    // A log goes on under the handle of the temporary file that it was made as.
    fault("fsync", "*/wal/.tamis-*deleted)", EIO, ".wal"),
    fault("write", "*/wal/.tamis-*deleted)", ENOSPC, ".wal"),
    fault("fsync", "*/wal/.tamis-*.tmp", EIO, ".wal"),
    fault("fsync", "*/wal", EIO, "wal"),
];

/// Flushes, and the publication of manifests.
const OF_FLUSHES: [Fault; 8] = [
    fault("fsync", "*/seg-*.tamis", EIO, "seg-"),
    fault("write", "*/seg-*.tamis", ENOSPC, "seg-"),
    fault("fsync", "*/data/[0-9]*-[0-9][0-9]", EIO, "seg-"),
    fault("fsync", "*/issuers.tamis", EIO, "issuers.tamis"),
    fault("fsync", "*/data/.tamis-*", EIO, "data/"),
    fault("write", "*/data/.tamis-*", ENOSPC, "data/"),
    fault("rename", "*/data/MANIFEST*", EIO, "MANIFEST"),
    fault("fsync", "*/data", EIO, "data"),
];

const OF_MERGES: [Fault; 6] = [
    fault("fsync", "*/seg-*.tamis", EIO, "seg-"),
    fault("write", "*/seg-*.tamis", ENOSPC, "seg-"),
    fault("fsync", "*/data/[0-9]*-[0-9][0-9]", EIO, "seg-"),
    fault("fsync", "*/data/.tamis-*", EIO, "MANIFEST"),
    fault("rename", "*/data/MANIFEST*", EIO, "MANIFEST"),
    fault("fsync", "*/data", EIO, "MANIFEST"),
];

#[test]
fn commits_on_a_failing_disk_lose_nothing_that_was_acknowledged() {
    check_imports(&OF_LOGS);
}

#[test]
fn flushes_on_a_failing_disk_lose_nothing_that_was_acknowledged() {
    check_imports(&OF_FLUSHES);
}

fn check_imports(faults: &[Fault]) {
    let Some(shim) = shim() else { return };
    let place = Home::new();
    let corpus = Corpus::write(&place.path("corpus"), ENTRIES, 1);
    let undisturbed = Home::new();
    Run::of(&mut import(&undisturbed, &corpus)).code(0);
    let expected = answers(&undisturbed, &corpus);
    for &fault in faults {
        let calls = {
            let home = Home::new();
            let mut command = import(&home, &corpus);
            let log = preload(&mut command, shim, fault, NEVER, &home);
            Run::of(&mut command).code(0);
            lines(&log, "worked ")
        };
        assert!(calls > 0, "{fault:?} has nothing to fail");
        for after in BTreeSet::from([0, calls / 2, calls - 1]) {
            let home = Home::new();
            let case = format!("{fault:?} after {after}");
            let acknowledged = failing_import(&home, &corpus, shim, fault, after);
            assert_readable(&home, &corpus, shim, &acknowledged, &case);
            // While the disk goes on failing, trying again loses nothing either.
            failing_import(&home, &corpus, shim, fault, 0);
            assert_readable(&home, &corpus, shim, &acknowledged, &format!("{case}, then 0"));
            Run::of(&mut import(&home, &corpus)).code(0);
            assert_eq!(answers(&home, &corpus), expected, "{fault:?} after {after}");
        }
    }
}

/// Imports while `fault` strikes, and gives the files that were acknowledged.
fn failing_import(home: &Home, corpus: &Corpus, shim: &Path, fault: Fault, after: usize) -> BTreeSet<String> {
    let mut command = import(home, corpus);
    let log = preload(&mut command, shim, fault, after, home);
    let run = Run::of(&mut command);
    if lines(&log, "failed ") == 0 {
        // What is to be written depends on where the run before ended.
        assert_eq!(run.code, Some(0), "{fault:?} after {after}: {}", run.err);
    } else {
        assert_told(&run, fault, after);
    }
    run.rows()
        .iter()
        .filter(|line| line["durable"] == Value::Bool(true))
        .map(|line| {
            line["file"]
                .as_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[test]
fn a_merge_on_a_failing_disk_changes_no_answer() {
    let Some(shim) = shim() else { return };
    let place = Home::new();
    let corpus = Corpus::write(&place.path("corpus"), ENTRIES, 1);
    let everything: BTreeSet<String> = corpus.files.keys().cloned().collect();
    let whole = Home::new();
    Run::of(&mut import(&whole, &corpus)).code(0);
    let expected = answers(&whole, &corpus);
    for fault in OF_MERGES {
        let (calls, segments) = {
            let home = whole.copy();
            let mut command = home.command(&["compact", "--format", "json"]);
            let log = preload(&mut command, shim, fault, NEVER, &home);
            let done = Run::of(&mut command).code(0).json();
            assert!(done["segments_merged"].as_u64() > Some(2), "{done}");
            (lines(&log, "worked "), done["segments"].clone())
        };
        assert!(calls > 0, "{fault:?} has nothing to fail");
        for after in BTreeSet::from([0, calls / 2, calls - 1]) {
            let home = whole.copy();
            let mut command = home.command(&["compact"]);
            let log = preload(&mut command, shim, fault, after, &home);
            let run = Run::of(&mut command);
            assert!(lines(&log, "failed ") > 0, "{fault:?} after {after}: {run:?}");
            assert_told(&run, fault, after);
            assert_readable(
                &home,
                &corpus,
                shim,
                &everything,
                &format!("{fault:?} after {after}"),
            );
            let done = home.ct(&["compact", "--format", "json"]).code(0).json();
            assert_eq!(done["segments"], segments, "{fault:?} after {after}");
            assert_eq!(answers(&home, &corpus), expected, "{fault:?} after {after}");
        }
    }
}

/// Filters are hints: where they cannot be written, the import is as good.
#[test]
fn filters_that_cannot_be_written_stop_no_import() {
    let Some(shim) = shim() else { return };
    let place = Home::new();
    let corpus = Corpus::write(&place.path("corpus"), ENTRIES, 1);
    let undisturbed = Home::new();
    Run::of(&mut import(&undisturbed, &corpus)).code(0);
    let expected = answers(&undisturbed, &corpus);
    for fault in [
        fault("fsync", "*/filters/*", EIO, ""),
        fault("write", "*/filters/*", ENOSPC, ""),
        fault("rename", "*/filters/STATE", EIO, ""),
    ] {
        let home = Home::new();
        let mut command = import(&home, &corpus);
        let log = preload(&mut command, shim, fault, 0, &home);
        let run = Run::of(&mut command).code(0);
        assert!(lines(&log, "failed ") > 0, "{fault:?} has nothing to fail");
        assert!(run.err.contains("filters are off"), "{fault:?}: {}", run.err);
        assert_eq!(answers(&home, &corpus), expected, "{fault:?}");
        let state = |home: &Home| home.ct(&["stats", "--format", "json"]).json()["filters"]["state"].clone();
        assert_ne!(state(&home), "complete");
        Run::of(&mut import(&home, &corpus)).code(0);
        assert_eq!(state(&home), "complete", "{fault:?}");
    }
}

/// What failed is told with its file and what to do, and the command fails.
#[track_caller]
fn assert_told(run: &Run, fault: Fault, after: usize) {
    let hint = if fault.errno == ENOSPC { FULL } else { DEVICE };
    assert_eq!(run.code, Some(2), "{fault:?} after {after}: {run:?}");
    assert!(run.err.contains(hint), "{fault:?} after {after}: {}", run.err);
    assert!(
        run.err.contains(fault.named),
        "{fault:?} after {after}: {}",
        run.err
    );
    assert!(
        !run.err.contains("panicked"),
        "{fault:?} after {after}: {}",
        run.err
    );
}

/// Questions are answered on a disk that takes no write at all, and what was acknowledged is there.
#[track_caller]
fn assert_readable(home: &Home, corpus: &Corpus, shim: &Path, acknowledged: &BTreeSet<String>, case: &str) {
    if !home.data().join("MANIFEST").exists() {
        assert!(acknowledged.is_empty());
        return;
    }
    for question in [&["names", "com"][..], &["search", "com"], &["stats"], &["verify"]] {
        let mut command = home.command(question);
        let log = preload(&mut command, shim, fault("*", "*/data*", EIO, ""), 0, home);
        let run = Run::of(&mut command);
        // Before the first commit there is no name, which is no error.
        let nothing = acknowledged.is_empty() && matches!(question[0], "names" | "search");
        assert!(
            run.code == Some(0) || nothing && run.code == Some(1),
            "{case}: {run:?}"
        );
        assert_eq!(lines(&log, ""), 0, "{case}: {question:?} writes");
    }
    corpus.assert_held(&home.data(), acknowledged);
}

/// Totals and all names of a folder that must hold everything.
fn answers(home: &Home, corpus: &Corpus) -> (Vec<(String, Value)>, Vec<Value>) {
    home.assert_whole();
    let everything: BTreeSet<String> = corpus.files.keys().cloned().collect();
    assert_eq!(corpus.assert_held(&home.data(), &everything) as u64, ENTRIES);
    let names = corpus
        .endings()
        .into_iter()
        .flat_map(|ending| home.ask(&["names", ending]));
    (home.totals(), names.collect())
}

fn import(home: &Home, corpus: &Corpus) -> Command {
    let mut command = home.command(&["import", "--format", "ndjson", "--flush-rows", FLUSH_ROWS]);
    command.args(corpus.arguments());
    command
}

/// Makes calls of `command` fail; gives the log of those that the pattern fits.
fn preload(command: &mut Command, shim: &Path, fault: Fault, after: usize, home: &Home) -> PathBuf {
    let log = home.path("calls");
    let _ = std::fs::remove_file(&log);
    command
        .env("LD_PRELOAD", shim)
        .env("FAULT_CALL", fault.call)
        .env("FAULT_FILE", fault.file)
        .env("FAULT_ERRNO", fault.errno.to_string())
        .env("FAULT_AFTER", after.to_string())
        .env("FAULT_LOG", &log);
    log
}

/// Lines of a log that start so.
fn lines(log: &Path, start: &str) -> usize {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    log.lines().filter(|line| line.starts_with(start)).count()
}

/// The library that makes calls fail, compiled once; none without a compiler.
pub(crate) fn shim() -> Option<&'static Path> {
    static SHIM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let compile = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let library = folder.join("failing_disk.so");
        let new = folder.join(format!("failing_disk.{}.so", std::process::id()));
        let output = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&new)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/failing_disk.c"))
            .arg("-ldl")
            .output();
        match output {
            Err(error) => {
                eprintln!("SKIPPED: no C compiler here: {error}");
                None
            }
            Ok(output) => {
                let err = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{err}");
                std::fs::rename(&new, &library).unwrap();
                Some(library)
            }
        }
    };
    SHIM.get_or_init(compile).as_deref()
}
