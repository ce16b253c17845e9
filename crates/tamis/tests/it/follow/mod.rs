//! Following logs from end to end: the real binary against simulated logs on the loopback.
//!
//! `lists` asks how logs are named and who is refused, `standing` how they stand, to people, programs and
//! Prometheus, `stalling` what a disk does that does not answer, `ending` how it ends: told to, and killed.

mod ending;
mod lists;
mod stalling;
mod standing;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tamis_ct_index::record::{CertRecord, Position};
use tamis_ct_index::{Options, Snapshot};
use tamis_testbed::ctlog::{Log, LogOptions, World, WorldOptions};

use crate::run::{Home, Run, text};

/// Longest wait for anything; only a failing test waits as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A world with these logs (`NAME,FIELD=VALUE…`), whose list lies in the folder `list` of `home`.
fn world(home: &Home, logs: &[&str]) -> World {
    let logs = logs.iter().map(|log| LogOptions::parse(log).unwrap());
    World::start(WorldOptions {
        logs: logs.collect(),
        folder: Some(home.path("list")),
        ..WorldOptions::default()
    })
    .unwrap()
}

/// `tamis ct follow ARGS`, in haste, not started yet.
fn follow(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(&["follow", "--poll-interval", "100ms"]);
    // A tile need not become full, and this machine's disk may be as full as it is.
    command.args(["--partial-delay", "200ms", "--disk-max", "100"]);
    // A person's own setting must not make a test pass.
    command.args(args).env_remove("TAMIS_CONTACT");
    command
}

/// The same with the list in the folder of `home`.
fn follow_list(home: &Home, args: &[&str]) -> Command {
    let mut command = follow(home, args);
    command.arg("--log-list").arg(home.path("list/log_list.json"));
    command
        .arg("--log-list-key")
        .arg(home.path("list/log_list_key.pem"));
    command
}

/// How logs stand, by their address.
fn standing(home: &Home) -> BTreeMap<String, Value> {
    let run = home.ct(&["logs", "--format", "json"]);
    // 2 until there is an index, 1 until there are logs.
    if run.code == Some(2) {
        return BTreeMap::new();
    }
    let Value::Array(logs) = run.json() else {
        panic!("no list of logs: {run:?}");
    };
    logs.into_iter()
        .map(|log| (text(&log, "url").to_owned(), log))
        .collect()
}

/// A follow that goes on beside the test; it ends with it.
struct Following {
    child: Child,
    err: Option<BufReader<ChildStderr>>,
}

impl Following {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            err: Some(err),
        }
    }

    /// The next line that it tells.
    fn told(&mut self) -> String {
        let mut line = String::new();
        self.err.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    /// Waits until the logs stand as wanted.
    #[track_caller]
    fn wait(&mut self, home: &Home, what: &str, wanted: impl Fn(&BTreeMap<String, Value>) -> bool) {
        let started = Instant::now();
        loop {
            let logs = standing(home);
            if wanted(&logs) {
                return;
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                let mut err = String::new();
                self.err.take().unwrap().read_to_string(&mut err).unwrap();
                panic!("{status} while waiting for {what}: {err}");
            }
            assert!(started.elapsed() < PATIENCE, "waited for {what}: {logs:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends it by a signal, and gives what it left and how long that took.
    #[track_caller]
    fn end(mut self, signal: Signal) -> (Run, Duration) {
        let started = Instant::now();
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        while self.child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        let took = started.elapsed();
        let (mut out, mut err) = (String::new(), String::new());
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        self.err.take().unwrap().read_to_string(&mut err).unwrap();
        let code = self.child.wait().unwrap().code();
        let run = Run::told("follow", code, out, err);
        (run, took)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // Most have ended by themselves.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asserts that these logs are read whole, caught in nothing, and that each entry is one record with its place.
#[track_caller]
fn assert_read(home: &Home, logs: &[Log]) {
    home.assert_whole();
    let told = standing(home);
    let snapshot = Snapshot::open(&home.data(), &Options::default()).unwrap();
    for log in logs {
        let size = log.size();
        let status = &told[&log.url()];
        assert_eq!(
            [
                &status["tree_size"],
                &status["verified_position"],
                &status["read"],
                &status["backlog"]
            ],
            [size, size, size, 0],
            "{status:#}"
        );
        assert_eq!(status["lies"], Value::Array(Vec::new()), "{status:#}");
        assert_eq!(status["root"], log.root().to_string().as_str());
        let known = snapshot.logs().iter().find(|known| known.name == log.url());
        let known = known.unwrap_or_else(|| panic!("{} is not in the index", log.name()));
        assert_eq!(known.ranges, [[0, size]], "{}", log.name());
        for (index, sha256, names) in log.expected() {
            let found = snapshot.by_sha256(&sha256).unwrap();
            let [record] = &found[..] else {
                panic!("{} records of leaf {index} of {}", found.len(), log.name())
            };
            assert_placed(record, known.number, index);
            assert!(names.is_empty() || !record.names.is_empty(), "{record:?}");
        }
    }
}

/// An issuance keeps its first four places, so that a fifth need not show.
#[track_caller]
fn assert_placed(record: &CertRecord, log: u16, index: u64) {
    let is_placed = |at: &Position| (at.log, at.index) == (log, index);
    assert!(
        record.positions.iter().any(is_placed) || record.positions.len() == 4,
        "leaf {index} is not in {record:?}"
    );
}
