//! Reading pauses when something is behind, says what, and goes on by itself.

use std::time::Duration;

use tamis_engine::follow::{Pressure, PressureLimits};
use tamis_testbed::ctlog::{Fault, FaultRule, LogKind, RequestKind};

use crate::run::{Folder, check_proved, log, options, world};

#[test]
fn entries_that_cannot_be_proved_stop_reading_until_they_can() {
    let world = world([log("alpha", LogKind::Rfc6962, 40_000).page(1_000, false)]);
    let alpha = world.log("alpha");
    alpha.set_fault(FaultRule::from(Fault::ServerError { status: 500 }).on(&[RequestKind::Proof]));
    let folder = Folder::new();
    let mut options = options(&world);
    options.pressure.unproved = 10_000;
    let running = folder.start(options);
    running.wait_for("a pause", |status| status.paused == Some(Pressure::Verification));
    running.wait("it to be told", |logs| logs["alpha"].status == "paused");
    let read = |entries: &mut u64| *entries = alpha.report().count(RequestKind::Entries);
    let (mut before, mut after) = (0, 0);
    std::thread::sleep(Duration::from_millis(300));
    read(&mut before);
    std::thread::sleep(Duration::from_millis(700));
    read(&mut after);
    assert_eq!(before, after, "no entry is asked for while it pauses");
    alpha.clear_faults();
    running.wait("everything", |logs| logs["alpha"].verified == 40_000);
    check_proved(&running.stop(), &alpha);
    folder.check_whole([&alpha]);
}

#[test]
fn a_full_disk_stops_reading_before_it_is_full() {
    let world = world([log("alpha", LogKind::Static, 500)]);
    let folder = Folder::new();
    let mut options = options(&world);
    options.pressure = PressureLimits {
        disk: 0.0,
        ..PressureLimits::default()
    };
    let running = folder.start(options);
    running.wait_for("a pause", |status| status.paused == Some(Pressure::Disk));
    let summary = running.stop();
    assert!(summary.entries <= 500);
}

#[test]
fn a_full_filter_stops_reading_where_that_is_asked_for() {
    let world = world([log("alpha", LogKind::Static, 3_000)]);
    let alpha = world.log("alpha");
    let folder = Folder::new();
    folder.catch_up(options(&world));
    alpha.grow(100);
    let mut options = options(&world);
    // By now the filter holds some of the keys that it is made for.
    options.pressure.filter = Some(0.0);
    let running = folder.start(options);
    running.wait_for("a pause", |status| status.paused == Some(Pressure::Filter));
    running.stop();
}
