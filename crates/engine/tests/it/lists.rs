//! Lists of logs as they change, and those that are not taken.

use tamis_engine::follow::{Error, FollowOptions, Status};
use tamis_testbed::ctlog::{ListChange, ListSignature, ListedState, LogKind};

use crate::run::{Folder, check_proved, log, options, single, world};

fn error_of(status: &Status) -> String {
    let list = status.list.as_ref();
    list.and_then(|list| list.error.clone()).unwrap_or_default()
}

#[test]
fn logs_come_and_go_while_it_runs() {
    let world = world([
        log("alpha", LogKind::Rfc6962, 400),
        log("beta", LogKind::Static, 400),
    ]);
    let folder = Folder::new();
    let running = folder.start(options(&world));
    running.wait("both", |logs| {
        logs.len() == 2 && logs.values().all(|log| log.verified == 400)
    });
    let fresh = log("gamma", LogKind::Static, 300);
    world.change_list(&ListChange::AddLog(Box::new(fresh))).unwrap();
    running.wait("the new one", |logs| {
        logs.get("gamma").is_some_and(|log| log.verified == 300)
    });
    world.log("alpha").grow(50);
    let end = |name: &str, state| {
        let change = ListChange::State {
            log: name.to_owned(),
            state,
        };
        world.change_list(&change).unwrap();
    };
    end("alpha", ListedState::Readonly);
    running.wait("the end of one", |logs| {
        logs.get("alpha")
            .is_some_and(|log| log.status == "finished" && log.verified == 450)
    });
    end("beta", ListedState::RetiredWithoutTree);
    running.wait("the other to be left", |logs| {
        logs.get("beta").is_some_and(|log| log.status == "stopped")
    });
    running.stop();
    folder.check_whole(&world.logs());
}

#[test]
fn placeholders_mimics_and_logs_in_other_states_are_not_asked() {
    let world = world([
        log("alpha", LogKind::Rfc6962, 300),
        log("pending", LogKind::Rfc6962, 300).state(ListedState::Pending),
        log("rejected", LogKind::Rfc6962, 300).state(ListedState::Rejected),
        log("retired", LogKind::Static, 300).state(ListedState::RetiredWithoutTree),
    ]);
    for change in [
        ListChange::Placeholder(true),
        ListChange::EmptyOperator(true),
        ListChange::UnknownFields(true),
    ] {
        world.change_list(&change).unwrap();
    }
    let folder = Folder::new();
    let summary = folder.catch_up(options(&world));
    check_proved(&summary, &world.log("alpha"));
    for name in ["pending", "rejected", "retired"] {
        assert_eq!(world.log(name).report().total(), 0, "{name}");
    }
    let passed = summary.status.list.unwrap().not_followed;
    assert!(passed.len() >= 4, "{passed:?}");
}

#[test]
fn lists_that_are_wrong_leave_the_last_good_one() {
    let world = world([
        log("alpha", LogKind::Rfc6962, 200),
        log("beta", LogKind::Static, 200),
        log("gamma", LogKind::Static, 200),
    ]);
    let folder = Folder::new();
    let running = folder.start(options(&world));
    running.wait("all", |logs| {
        logs.len() == 3 && logs.values().all(|log| log.verified == 200)
    });
    let check = |bad: ListChange, good: ListChange, told: &str| {
        world.change_list(&bad).unwrap();
        running.wait_for(told, |status| error_of(status).contains(told));
        world.log("alpha").grow(10);
        let size = world.log("alpha").size();
        running.wait("it to be followed still", |logs| {
            logs.get("alpha").is_some_and(|log| log.verified == size)
        });
        world.change_list(&good).unwrap();
        running.wait_for("the list to be good again", |status| error_of(status).is_empty());
    };
    check(
        ListChange::Signature(ListSignature::OtherKey),
        ListChange::Signature(ListSignature::Good),
        "not signed by the key",
    );
    check(
        ListChange::Signature(ListSignature::Missing),
        ListChange::Signature(ListSignature::Good),
        "no signature",
    );
    check(
        ListChange::LoseMost { keep: 1 },
        ListChange::LoseNone,
        "keeps 1 of 3",
    );
    check(
        ListChange::Mimics { count: 2, only: true },
        ListChange::Mimics {
            count: 0,
            only: false,
        },
        "names no log to follow",
    );
    check(
        ListChange::Timestamp {
            ms: Some(1_700_000_000_000),
        },
        ListChange::Timestamp { ms: None },
        "older than the last good one",
    );
    running.stop();
}

#[test]
fn the_last_good_list_outlives_a_restart() {
    let world = world([log("alpha", LogKind::Rfc6962, 200)]);
    let folder = Folder::new();
    folder.catch_up(options(&world));
    world
        .change_list(&ListChange::Signature(ListSignature::Broken))
        .unwrap();
    world.log("alpha").grow(100);
    let summary = folder.catch_up(options(&world));
    check_proved(&summary, &world.log("alpha"));
    assert!(
        error_of(&summary.status).contains("not signed"),
        "{:?}",
        summary.status.list
    );

    let error = Folder::new().start(options(&world)).outcome().unwrap_err();
    assert!(matches!(error, Error::NoList { .. }), "{error}");
}

#[test]
fn a_log_named_by_hand_stays_whatever_the_list_says() {
    let world = world([
        log("alpha", LogKind::Rfc6962, 200).state(ListedState::Rejected),
        log("beta", LogKind::Static, 200),
    ]);
    let folder = Folder::new();
    let summary = folder.catch_up(FollowOptions {
        logs: vec![single(&world.log("alpha"))],
        ..options(&world)
    });
    for log in world.logs() {
        check_proved(&summary, &log);
    }
}

#[test]
fn public_logs_are_not_asked_by_nobody() {
    let world = world([log("alpha", LogKind::Rfc6962, 10)]);
    let mut options = options(&world);
    options.logs = vec![single(&world.log("alpha"))];
    options.logs[0].url = "https://ct.example.net/log/".to_owned();
    let error = Folder::new().start(options).outcome().unwrap_err();
    assert!(error.to_string().contains("--contact"), "{error}");
}
