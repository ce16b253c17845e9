//! Logs that do nothing wrong.

use std::time::Duration;

use tamis_engine::follow::FollowOptions;
use tamis_testbed::ctlog::{LogKind, RequestKind};

use crate::run::{Folder, check_proved, log, of, options, single, world};

#[test]
fn every_kind_of_log_is_read_whole_and_proved() {
    let world = world([
        log("alpha", LogKind::Rfc6962, 1_000),
        log("beta", LogKind::Static, 1_000),
        log("gamma", LogKind::Hybrid, 1_000),
        log("delta", LogKind::Rfc6962, 300).rsa().page(32, true),
        log("epsilon", LogKind::Static, 256),
        log("one", LogKind::Rfc6962, 1),
        log("single", LogKind::Static, 1),
        log("empty", LogKind::Static, 0),
        log("void", LogKind::Rfc6962, 0),
    ]);
    let folder = Folder::new();
    let summary = folder.catch_up(options(&world));
    assert_eq!(summary.failing, []);
    for log in world.logs() {
        check_proved(&summary, &log);
        if log.size() > 0 {
            folder.check_whole([&log]);
        }
    }
    assert_eq!(of(&summary, &world.log("gamma")).api, "rfc6962+tiles");
    let of_gamma = world.log("gamma").report();
    assert_eq!(of_gamma.count(RequestKind::Entries), 0, "{of_gamma:?}");
    assert_eq!(of_gamma.count(RequestKind::Checkpoint), 0, "{of_gamma:?}");
}

#[test]
fn a_second_run_reads_nothing_twice() {
    let world = world([
        log("alpha", LogKind::Rfc6962, 700),
        log("beta", LogKind::Static, 700),
    ]);
    let folder = Folder::new();
    folder.catch_up(options(&world));
    let logs = world.logs();
    for log in &logs {
        log.reset_report();
    }
    let again = folder.catch_up(options(&world));
    assert_eq!(again.entries, 0);
    for log in &logs {
        let report = log.report();
        assert_eq!(
            report.count(RequestKind::Entries) + report.tiles(),
            0,
            "{report:?}"
        );
        log.grow(100);
        log.reset_report();
    }
    let grown = folder.catch_up(options(&world));
    assert_eq!(grown.entries, 200);
    for log in &logs {
        check_proved(&grown, log);
    }
    folder.check_whole(&logs);
}

#[test]
fn an_idle_log_costs_heads_and_nothing_else() {
    let world = world([
        log("alpha", LogKind::Rfc6962, 300),
        log("beta", LogKind::Static, 300),
    ]);
    let folder = Folder::new();
    let running = folder.start(options(&world));
    running.wait("both to be read", |logs| {
        logs.len() == 2 && logs.values().all(|log| log.verified == 300)
    });
    for log in world.logs() {
        log.reset_report();
    }
    std::thread::sleep(Duration::from_millis(800));
    for log in world.logs() {
        let report = log.report();
        let heads = report.count(RequestKind::Sth) + report.count(RequestKind::Checkpoint);
        assert!(heads >= 2, "{report:?}");
        assert_eq!(report.total(), heads, "{report:?}");
    }
    running.stop();
}

#[test]
fn growing_logs_are_followed_and_their_consistency_asked_for() {
    let world = world([
        log("alpha", LogKind::Rfc6962, 100).rate(200.0),
        log("beta", LogKind::Static, 100).rate(200.0),
    ]);
    let folder = Folder::new();
    let running = folder.start(options(&world));
    running.wait("both to grow", |logs| {
        logs.len() == 2 && logs.values().all(|log| log.verified > 500)
    });
    for log in world.logs() {
        log.set_rate(0.0);
    }
    let sizes: Vec<u64> = world.logs().iter().map(|log| log.size()).collect();
    running.wait("both to be read", |logs| {
        logs.values().map(|log| log.verified).sum::<u64>() == sizes.iter().sum::<u64>()
    });
    let summary = running.stop();
    for log in world.logs() {
        check_proved(&summary, &log);
    }
    assert!(world.log("alpha").report().count(RequestKind::Consistency) > 0);
    folder.check_whole(&world.logs());
}

#[test]
fn a_large_log_is_read_from_its_tail_and_the_backfill_meets_it() {
    let world = world([
        log("alpha", LogKind::Rfc6962, 40_000).page(1_000, false),
        log("beta", LogKind::Static, 40_000),
    ]);
    let folder = Folder::new();
    let running = folder.start(options(&world));
    running.wait("the tail of both", |logs| {
        logs.len() == 2 && logs.values().all(|log| log.tree_size > 0)
    });
    for log in world.logs() {
        log.grow(1_500);
    }
    running.wait("everything", |logs| {
        logs.values().all(|log| log.verified == 41_500)
    });
    let summary = running.stop();
    for log in world.logs() {
        check_proved(&summary, &log);
        assert_eq!(of(&summary, &log).ranges, [[0, 41_500]]);
    }
    folder.check_whole(&world.logs());
}

#[test]
fn a_log_is_followed_by_hand_without_any_list() {
    let world = world([
        log("alpha", LogKind::Rfc6962, 600),
        log("beta", LogKind::Static, 600),
    ]);
    let folder = Folder::new();
    let summary = folder.catch_up(FollowOptions {
        list: None,
        logs: world.logs().iter().map(single).collect(),
        ..options(&world)
    });
    for log in world.logs() {
        check_proved(&summary, &log);
    }
    assert_eq!(of(&summary, &world.log("beta")).api, "static-ct-api");
    let agents = world.log("alpha").report().user_agents;
    assert!(
        agents.keys().all(|agent| agent.starts_with("tamis/")),
        "{agents:?}"
    );
}

#[test]
fn a_partial_tile_is_read_after_a_while_and_not_again_and_again() {
    let world = world([log("beta", LogKind::Static, 512)]);
    let log = world.log("beta");
    let folder = Folder::new();
    let mut options = options(&world);
    options.partial_delay = Duration::from_secs(2);
    let running = folder.start(options);
    running.wait("what is full", |logs| {
        logs.values().any(|log| log.verified == 512)
    });
    log.reset_report();
    for _ in 0..10 {
        log.grow(5);
        std::thread::sleep(Duration::from_millis(120));
    }
    let early = log.report().count(RequestKind::PartialDataTile);
    running.wait("the part", |logs| logs.values().any(|log| log.verified == 562));
    let report = log.report();
    assert!(
        early <= 1 && report.count(RequestKind::PartialDataTile) <= 3,
        "{early}: {report:?}"
    );
    running.stop();
    folder.check_whole([&log]);
}

#[test]
fn issuances_that_only_static_logs_have_are_counted() {
    let world = world([
        log("alpha", LogKind::Rfc6962, 900),
        log("beta", LogKind::Static, 900),
    ]);
    let folder = Folder::new();
    let static_only = |logs: &[&str]| {
        let summary = folder.catch_up(FollowOptions {
            list: None,
            logs: logs.iter().map(|name| single(&world.log(name))).collect(),
            ..options(&world)
        });
        summary.status.static_only
    };
    let of_beta_alone = static_only(&["beta"]);
    let snapshot = folder.snapshot();
    assert_eq!(of_beta_alone, snapshot.stats().totals.issuances);
    let of_both = static_only(&["alpha", "beta"]);
    let snapshot = folder.snapshot();
    let beta = world.log("beta").url();
    let beta = snapshot
        .logs()
        .iter()
        .find(|log| log.name == beta)
        .unwrap()
        .number;
    let mut alone = std::collections::HashSet::new();
    for (_, sha256, _) in world.log("beta").expected() {
        for record in snapshot.by_sha256(&sha256).unwrap() {
            if record.positions.iter().all(|at| at.log == beta) {
                alone.insert((record.issuance, record.serial));
            }
        }
    }
    assert!(
        of_both > 0 && of_both < of_beta_alone,
        "{of_both} of {of_beta_alone}"
    );
    assert_eq!(of_both, alone.len() as u64);
}

#[test]
fn logs_of_one_operator_share_its_pace() {
    let world = world((0..4).map(|nth| {
        log(&format!("log{nth}"), LogKind::Rfc6962, 2_000)
            .operator("Together")
            .page(32, false)
    }));
    let folder = Folder::new();
    let summary = folder.catch_up(options(&world));
    for log in world.logs() {
        check_proved(&summary, &log);
        assert!(log.report().concurrency_max <= 16, "{:?}", log.report());
    }
}
