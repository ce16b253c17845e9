//! The roots that logs accept.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tamis_engine::follow::FollowOptions;
use tamis_testbed::ctlog::{Fault, FaultRule, Log, LogKind, RequestKind};

use crate::run::{Folder, Running, check_proved, log, options, single, world};

fn files(folder: &Folder) -> Vec<PathBuf> {
    let files = fs::read_dir(folder.path().join("follow/roots"));
    let mut files: Vec<_> = files.unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

fn asked(log: &Log) -> u64 {
    log.report().count(RequestKind::Roots)
}

/// Waits until every log shows how many roots it accepts.
#[track_caller]
fn wait_for_roots(running: &Running, count: usize) {
    running.wait("the roots", |logs| {
        logs.len() == count && logs.values().all(|log| log.roots.is_some_and(|roots| roots > 0))
    });
}

#[test]
fn roots_are_asked_for_once_a_day_and_kept_once_for_all_logs() {
    let world = world([
        log("alpha", LogKind::Rfc6962, 300),
        log("beta", LogKind::Static, 300),
        log("gamma", LogKind::Hybrid, 300),
    ]);
    let folder = Folder::new();
    let running = folder.start(options(&world));
    wait_for_roots(&running, 3);
    running.wait("more heads", |logs| logs.values().all(|log| log.requests > 15));
    running.stop();
    for log in world.logs() {
        assert_eq!(asked(&log), 1, "{}", log.name());
        log.reset_report();
    }
    let files = files(&folder);
    assert_eq!(files.len(), 3);
    for file in &files {
        let list: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let roots = list["roots"].as_array().unwrap();
        assert!(!roots.is_empty());
        for root in roots.iter().map(|root| root.as_str().unwrap()) {
            let der = fs::read(folder.path().join(format!("follow/issuers/{root}.der"))).unwrap();
            let hash: String = Sha256::digest(&der)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(hash, root);
        }
    }
    // Within a day the kept list is shown again; a day later the log is asked again.
    let running = folder.start(options(&world));
    wait_for_roots(&running, 3);
    running.stop();
    for log in world.logs() {
        assert_eq!(asked(&log), 0, "{}", log.name());
    }
    for file in &files {
        let mut list: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let fetched_ms = list["fetched_ms"].as_u64().unwrap() - 86_400_001;
        list["fetched_ms"] = fetched_ms.into();
        list["roots"] = Vec::<Value>::new().into();
        fs::write(file, list.to_string()).unwrap();
    }
    let running = folder.start(options(&world));
    wait_for_roots(&running, 3);
    running.stop();
    for log in world.logs() {
        assert_eq!(asked(&log), 1, "{}", log.name());
    }
}

#[test]
fn a_log_that_does_not_tell_its_roots_is_read_like_others() {
    let html = |status| FaultRule::from(Fault::HtmlPage { status }).on(&[RequestKind::Roots]);
    let stall = FaultRule::from(Fault::Stall).on(&[RequestKind::Roots]);
    for fault in [html(200), html(404), stall] {
        let world = world([log("alpha", LogKind::Rfc6962, 300).fault(fault)]);
        let log = world.log("alpha");
        let folder = Folder::new();
        let running = folder.start(options(&world));
        running.wait("the entries", |logs| {
            logs.values().any(|log| log.verified == 300 && log.requests > 10)
        });
        let summary = running.stop();
        check_proved(&summary, &log);
        let status = &summary.status.logs[0];
        assert_eq!((status.roots, status.failures, &status.error), (None, 0, &None));
        assert_eq!(asked(&log), 1);
    }
}

#[test]
fn a_static_log_named_by_hand_is_not_asked_where_nobody_knows() {
    let world = world([log("beta", LogKind::Static, 300)]);
    let log = world.log("beta");
    let folder = Folder::new();
    let summary = folder.catch_up(FollowOptions {
        list: None,
        logs: vec![single(&log)],
        ..options(&world)
    });
    check_proved(&summary, &log);
    assert_eq!((asked(&log), log.report().count(RequestKind::Other)), (0, 0));
}
