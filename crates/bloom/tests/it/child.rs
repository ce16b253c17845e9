//! This test binary as its own child: what a killed process leaves, and what it keeps others from.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use tamis_bloom::{Error, Filter, FilterView, Geometry};
use tempfile::tempdir;

use crate::hash;

const PATH: &str = "TAMIS_BLOOM_TEST_PATH";
/// What a child writes before a number that is meant for its parent.
const MARK: &str = "to the parent: ";
const BATCH: u64 = 500;

/// Not a test of its own: in a child, the child; elsewhere only that nothing leaked into the environment.
#[test]
fn child_entry() {
    let Some(path) = std::env::var_os(PATH) else {
        assert!(std::env::args().any(|argument| !argument.is_empty()));
        return;
    };
    let filter = Filter::open(Path::new(&path)).expect("open");
    let mut maybe_seen = [false; BATCH as usize];
    for start in (0..).step_by(BATCH as usize) {
        let keys: Vec<_> = (start..start + BATCH).map(hash).collect();
        filter.check_and_set_batch(&keys, &mut maybe_seen);
        println!("{MARK}{}", start + BATCH);
        std::io::stdout().flush().expect("the parent reads");
        if start + BATCH == 20_000 {
            // Until the parent kills.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
        }
    }
}

/// A child, killed and reaped when dropped.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(path: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("the test binary knows where it is"))
            .args(["--exact", "child::child_entry", "--nocapture", "--test-threads=1"])
            .env(PATH, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start the test binary as a child");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self { child, lines }
    }

    /// How many keys the child has set, as of its next line.
    fn keys(&mut self) -> Option<u64> {
        let mut line = String::new();
        while self.lines.read_line(&mut line).expect("read from the child") > 0 {
            if let (true, Some((_, keys))) = (line.ends_with('\n'), line.split_once(MARK)) {
                return Some(keys.trim_end().parse().expect("a number"));
            }
            line.clear();
        }
        None
    }

    /// SIGKILL; gives the last number that was told and not read yet.
    fn kill(&mut self) -> Option<u64> {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.child.wait().expect("reap the child");
        std::iter::from_fn(|| self.keys()).last()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

fn create(dir: &Path) -> PathBuf {
    let path = dir.join("filter.bloom");
    Filter::create(&path, Geometry::for_keys(20_000, 0.001).expect("a plan")).expect("create");
    path
}

#[test]
fn bits_set_before_a_kill_are_there_and_keys_are_estimated() {
    // Somewhere on the way, and after all keys.
    for kill_at in [500, 3_000, 20_000] {
        let dir = tempdir().expect("a folder");
        let path = create(dir.path());
        let mut child = Running::start(&path);
        let mut told = 0;
        while told < kill_at {
            told = child.keys().expect("the child still talks");
        }
        told = child.kill().unwrap_or(told);
        let filter = Filter::open(&path).expect("a killed process leaves a whole file, and no lock");
        assert!(
            (0..told).all(|number| filter.may_hold(hash(number))),
            "of {told} keys"
        );
        assert!(filter.keys_are_estimated());
        // The child may have been killed a batch after what it told.
        let (least, most) = (told - told / 50 - 10, told + BATCH + told / 50 + 10);
        assert!(
            (least..=most).contains(&filter.keys()),
            "{} keys, {told} were set",
            filter.keys()
        );
        let keys = filter.keys();
        drop(filter);
        let filter = Filter::open(&path).expect("open");
        assert_eq!(
            (filter.keys(), filter.keys_are_estimated()),
            (keys, false),
            "an estimate is kept"
        );
    }
}

#[test]
fn a_process_keeps_others_from_setting_and_not_from_looking() {
    let dir = tempdir().expect("a folder");
    let path = create(dir.path());
    let mut child = Running::start(&path);
    let told = child.keys().expect("the child has it open");
    let error = Filter::open(&path).expect_err("the child has it");
    assert!(
        matches!(&error, Error::Storage(tamis_durable::Error::Locked { .. })),
        "{error}"
    );
    assert!(error.to_string().contains("in use by another process"), "{error}");
    let view = FilterView::open(&path).expect("a view needs no lock");
    assert!(
        (0..told).all(|number| view.may_hold(hash(number))),
        "bits of another process"
    );
    child.kill();
    Filter::open(&path).expect("the lock ended with its holder");
}
