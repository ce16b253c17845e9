//! A disk that does not answer: reading pauses, memory stays as it is, and all goes on by itself or ends in time.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tamis_testbed::ctlog::World;

use super::{Following, assert_read, follow_list, standing, world};
use crate::failing_disk::shim;
use crate::run::Home;

const ENTRIES: u64 = 3_000;
/// How a log grows until reading pauses: how much is committed at once decides when.
const GROWTH: u64 = 2_000;
const GROWTHS_MAX: u64 = 60;
/// Of the process while thousands of entries wait: far above what it needs, far below what it would grow to.
const RESIDENT_KB_MAX: u64 = 300 << 10;
/// Within which a supervisor of services wants it to end.
const STOP: Duration = Duration::from_secs(20);

/// A follow whose calls on files like `pattern` do not return while the file exists that is given too.
fn stalling(home: &Home, pattern: &str) -> Option<(World, Command, PathBuf)> {
    let shim = shim()?;
    let log = format!("alpha,kind=static,entries={ENTRIES}");
    let world = world(home, &[&log]);
    let hangs = home.path("hangs");
    std::fs::write(&hangs, b"").unwrap();
    let mut command = follow_list(home, &["--flush-rows", "500"]);
    command
        .env("LD_PRELOAD", shim)
        .env("FAULT_CALL", "fsync")
        .env("FAULT_FILE", pattern)
        .env("FAULT_HANGS", &hangs);
    Some((world, command, hangs))
}

fn resident_kb(following: &Following) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", following.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn read(home: &Home) -> u64 {
    standing(home)
        .values()
        .map(|log| log["read"].as_u64().unwrap())
        .sum()
}

#[test]
fn flushes_that_stall_pause_reading_and_memory_stays_bounded() {
    let home = Home::new();
    let Some((world, mut command, hangs)) = stalling(&home, "*/seg-*.tamis") else {
        return;
    };
    let mut following = Following::start(&mut command);
    let alpha = world.log("alpha");
    let waits = |log: &Value| log["status"] == "paused" && log["backlog"].as_u64() > Some(0);
    for _ in 0..GROWTHS_MAX {
        if standing(&home).values().any(waits) {
            break;
        }
        alpha.grow(GROWTH);
        std::thread::sleep(Duration::from_millis(300));
    }
    // What was on its way when the pause was called may still come.
    std::thread::sleep(Duration::from_millis(1_500));
    let before = read(&home);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(read(&home), before, "it reads while it pauses");
    assert!(before < alpha.size(), "{before} of {}", alpha.size());
    let resident = resident_kb(&following);
    assert!(resident < RESIDENT_KB_MAX, "{resident} kB");
    std::fs::remove_file(hangs).unwrap();
    following.wait(&home, "the rest", |logs| {
        logs.values().any(|log| log["verified_position"] == alpha.size())
    });
    let (run, _) = following.end(Signal::TERM);
    run.code(0);
    assert_read(&home, &world.logs());
}

#[test]
fn commits_that_stall_keep_nobody_from_ending_it() {
    let home = Home::new();
    let Some((world, mut command, hangs)) = stalling(&home, "*/wal/*") else {
        return;
    };
    std::fs::remove_file(&hangs).unwrap();
    let mut following = Following::start(&mut command);
    following.wait(&home, "something to be read", |logs| {
        logs.values().any(|log| log["read"].as_u64() > Some(0))
    });
    std::fs::write(&hangs, b"").unwrap();
    world.log("alpha").grow(3_000);
    std::thread::sleep(Duration::from_secs(2));
    let (run, took) = following.end(Signal::TERM);
    assert!(took < STOP, "it took {took:?}");
    assert!(
        run.code == Some(0) || run.err.contains("the disk does not answer"),
        "{run:?}"
    );
    std::fs::remove_file(&hangs).unwrap();
    // What was not committed is read again, and nothing twice.
    let again = follow_list(&home, &["--until-caught-up", "--flush-rows", "500"])
        .output()
        .unwrap();
    assert!(
        again.status.success(),
        "{}",
        String::from_utf8_lossy(&again.stderr)
    );
    assert_read(&home, &world.logs());
}
