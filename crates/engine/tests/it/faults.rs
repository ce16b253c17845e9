//! Logs that fail, and lose nothing by it.

use std::time::Duration;

use tamis_testbed::ctlog::{Fault, FaultRule, LogKind, LogOptions, RequestKind};

use crate::run::{Folder, check_proved, log, of, options, world};

/// Reads a log with a fault to its end: whole and proved, with the fault shown.
#[track_caller]
fn check(kind: LogKind, fault: impl Into<FaultRule>) {
    let rule: FaultRule = fault.into();
    let shown = rule.fault.clone();
    check_log(log("faulty", kind, 1_500).fault(rule), &shown);
}

#[track_caller]
fn check_log(options_of_log: LogOptions, shown: &Fault) {
    let world = world([options_of_log]);
    let log = world.log("faulty");
    let folder = Folder::new();
    let summary = folder.catch_up(options(&world));
    assert_eq!(summary.failing, []);
    assert!(
        log.shown_count(shown) > 0,
        "{shown:?} was not shown: {:?}",
        log.report()
    );
    check_proved(&summary, &log);
    folder.check_whole([&log]);
}

fn rule(fault: Fault) -> FaultRule {
    FaultRule::from(fault)
}

const ENTRIES: &[RequestKind] = &[
    RequestKind::Entries,
    RequestKind::DataTile,
    RequestKind::PartialDataTile,
];

#[test]
fn refusals_without_a_hint() {
    for kind in [LogKind::Rfc6962, LogKind::Static] {
        let fault = Fault::TooManyRequests {
            probability: 0.3,
            retry_after_s: None,
        };
        check(kind, fault);
    }
}

#[test]
fn refusals_that_say_how_long_to_wait() {
    let fault = Fault::TooManyRequests {
        probability: 1.0,
        retry_after_s: Some(1),
    };
    check(LogKind::Rfc6962, rule(fault).times(2));
}

#[test]
fn a_rate_limit_is_kept_to() {
    let fault = Fault::RateLimit {
        per_s: 8.0,
        retry_after_s: None,
    };
    check(LogKind::Rfc6962, fault);
}

#[test]
fn server_errors_and_pages_of_proxies() {
    check(
        LogKind::Rfc6962,
        rule(Fault::ServerError { status: 500 }).chance(0.3),
    );
    check(
        LogKind::Rfc6962,
        rule(Fault::HtmlPage { status: 200 }).chance(0.3),
    );
    check(LogKind::Static, rule(Fault::HtmlPage { status: 502 }).chance(0.3));
    check(LogKind::Static, rule(Fault::HtmlPage { status: 200 }).chance(0.3));
}

#[test]
fn heads_fail_like_everything_else() {
    let heads = &[RequestKind::Sth, RequestKind::Checkpoint];
    check(
        LogKind::Rfc6962,
        rule(Fault::ServerError { status: 500 }).on(heads).times(3),
    );
    check(
        LogKind::Static,
        rule(Fault::HtmlPage { status: 200 }).on(heads).times(3),
    );
}

#[test]
fn bodies_that_break_off_keep_what_came() {
    let cut = rule(Fault::CutBody { per_mille: 600 }).on(ENTRIES).chance(0.5);
    check(LogKind::Rfc6962, cut.clone());
    check(LogKind::Static, cut);
    check(
        LogKind::Rfc6962,
        rule(Fault::Reset { after_bytes: 100_000 })
            .on(ENTRIES)
            .chance(0.4),
    );
    check(LogKind::Static, rule(Fault::Reset { after_bytes: 0 }).chance(0.2));
}

#[test]
fn pages_are_learned() {
    for (entries, aligned) in [(32, false), (100, true), (1, false)] {
        let world =
            world([log("faulty", LogKind::Rfc6962, 1_200).fault(Fault::PageCap { entries, aligned })]);
        let log = world.log("faulty");
        let folder = Folder::new();
        let summary = folder.catch_up(options(&world));
        check_proved(&summary, &log);
        let least = 1_200_u64.div_ceil(entries);
        let asked = log.report().count(RequestKind::Entries);
        assert!(asked <= least + least / 4 + 20, "{asked} of {least}");
        assert!(
            of(&summary, &log).page <= entries.max(2),
            "{:?}",
            of(&summary, &log)
        );
    }
}

#[test]
fn ranges_and_bodies_that_are_refused_are_halved() {
    check(
        LogKind::Rfc6962,
        Fault::RefuseLongRange {
            entries: 10,
            status: 400,
        },
    );
    check(
        LogKind::Rfc6962,
        Fault::RefuseLargeBody {
            bytes: 60_000,
            status: 403,
        },
    );
}

#[test]
fn bombs_and_bodies_without_end_are_refused() {
    let bomb = Fault::GzipBomb {
        inflated_bytes: 3_000_000_000,
    };
    check(LogKind::Static, rule(bomb.clone()).on(ENTRIES).times(2));
    check(LogKind::Rfc6962, rule(bomb).on(&[RequestKind::Sth]).times(2));
    let huge = Fault::HugeBody { bytes: 600_000_000 };
    check(LogKind::Rfc6962, rule(huge).on(ENTRIES).times(2));
}

#[test]
fn compression_that_nobody_asked_for() {
    check(LogKind::Static, Fault::GzipUnasked);
    check(LogKind::Rfc6962, Fault::GzipUnasked);
}

#[test]
fn slow_logs() {
    check(LogKind::Static, rule(Fault::Latency { ms: 100 }));
    check(
        LogKind::Rfc6962,
        rule(Fault::SlowBody {
            bytes_per_s: 1_000_000,
        })
        .times(4),
    );
    check(LogKind::Rfc6962, rule(Fault::SlowHead { ms: 300 }).times(3));
}

#[test]
fn partial_tiles_that_are_gone() {
    let world = world([log("faulty", LogKind::Static, 300).fault(Fault::PartialsDeleted)]);
    let log = world.log("faulty");
    let folder = Folder::new();
    let running = folder.start(options(&world));
    running.wait("the first part", |logs| {
        logs.values().any(|log| log.verified == 300)
    });
    // The head that is known still needs the partial tile when the log has it full already.
    for _ in 0..8 {
        log.grow(100);
        std::thread::sleep(Duration::from_millis(60));
    }
    running.wait("the rest", |logs| logs.values().any(|log| log.verified == 1_100));
    check_proved(&running.stop(), &log);
    folder.check_whole([&log]);
}

#[test]
fn replicas_that_lag_and_heads_that_lead() {
    let lagging = rule(Fault::Lagging { leaves: 200 })
        .on(&[RequestKind::Sth])
        .every(2);
    let world = world([
        log("lags", LogKind::Rfc6962, 1_000).fault(lagging),
        log("leads", LogKind::Rfc6962, 1_000).fault(Fault::EntriesBehind { leaves: 50 }),
    ]);
    let folder = Folder::new();
    let running = folder.start(options(&world));
    running.wait("one of them", |logs| {
        logs.get("lags").is_some_and(|log| log.verified == 1_000)
    });
    world.log("lags").grow(500);
    running.wait("it to grow", |logs| {
        logs.get("lags").is_some_and(|log| log.verified == 1_500)
    });
    running.wait("the other to be read as far as it serves", |logs| {
        logs.get("leads").is_some_and(|log| log.read == 950)
    });
    world.log("leads").clear_faults();
    running.wait("its rest", |logs| {
        logs.get("leads").is_some_and(|log| log.verified == 1_000)
    });
    let summary = running.stop();
    for log in world.logs() {
        check_proved(&summary, &log);
    }
}

#[test]
fn one_log_that_hangs_stops_no_other() {
    let world = world([
        log("hangs", LogKind::Rfc6962, 500).fault(Fault::Stall),
        log("works", LogKind::Static, 500),
    ]);
    let folder = Folder::new();
    let running = folder.start(options(&world));
    running.wait("the other", |logs| {
        logs.get("works").is_some_and(|log| log.verified == 500)
    });
    let summary = running.stop();
    assert_eq!(of(&summary, &world.log("hangs")).read, 0);
}
