//! Logs that contradict what they signed: caught, told, and read on.

use tamis_engine::follow::{LieKind, LogStatus};
use tamis_testbed::ctlog::{Fault, FaultRule, Log, LogKind, RequestKind};

use crate::run::{Folder, log, of, options, single, world};

fn kinds(status: &LogStatus) -> Vec<LieKind> {
    status.lies.iter().map(|lie| lie.kind).collect()
}

/// Every entry but one is in the index.
#[track_caller]
fn check_all_but(folder: &Folder, log: &Log, wrong: u64) {
    let snapshot = folder.snapshot();
    for (index, sha256, _) in log.expected() {
        let found = snapshot.by_sha256(&sha256).unwrap();
        assert!(!found.is_empty() || index == wrong, "{index}");
    }
}

#[test]
fn a_flipped_bit_is_found_to_the_leaf_and_reading_goes_on() {
    for kind in [LogKind::Rfc6962, LogKind::Static, LogKind::Hybrid] {
        for index in [0, 700, 1_499] {
            let world = world([log("liar", kind, 1_500).fault(Fault::BitFlip { index })]);
            let liar = world.log("liar");
            let folder = Folder::new();
            let running = folder.start(options(&world));
            running.wait("the lie", |logs| {
                logs.values().any(|log| log.read == 1_500 && !log.lies.is_empty())
            });
            liar.grow(600);
            running.wait("what comes behind it", |logs| {
                logs.values().any(|log| log.read == 2_100 && log.unproved == 0)
            });
            let summary = running.stop();
            let status = of(&summary, &liar);
            assert_eq!(kinds(status), [LieKind::Entry], "{kind:?} {index}: {status:#?}");
            assert_eq!(status.lies[0].leaves, [index, index + 1]);
            assert_eq!((status.verified, status.backlog), (index, 0));
            check_all_but(&folder, &liar, index);
        }
    }
}

#[test]
fn a_bit_that_was_flipped_once_heals() {
    for kind in [LogKind::Rfc6962, LogKind::Static] {
        let flip = FaultRule::from(Fault::BitFlip { index: 300 }).times(1);
        let world = world([log("liar", kind, 1_000).fault(flip)]);
        let liar = world.log("liar");
        let folder = Folder::new();
        let summary = folder.catch_up(options(&world));
        let status = of(&summary, &liar);
        assert_eq!(kinds(status), [LieKind::Entry]);
        assert!(status.lies[0].healed, "{status:#?}");
        assert_eq!(status.verified, 1_000);
        check_all_but(&folder, &liar, u64::MAX);
    }
}

#[test]
fn heads_by_another_key_are_not_believed() {
    for kind in [LogKind::Rfc6962, LogKind::Static] {
        let world = world([log("liar", kind, 500)]);
        let liar = world.log("liar");
        let folder = Folder::new();
        let running = folder.start(options(&world));
        running.wait("it to be read", |logs| {
            logs.values().any(|log| log.verified == 500)
        });
        liar.set_fault(Fault::WrongKey);
        liar.grow(100);
        running.wait("it to be caught", |logs| {
            logs.values()
                .any(|log| !log.lies.is_empty() && log.status == "waiting")
        });
        liar.clear_faults();
        running.wait("it to be honest again", |logs| {
            logs.values().any(|log| log.verified == 600)
        });
        let summary = running.stop();
        assert_eq!(kinds(of(&summary, &liar)), [LieKind::Signature]);
    }
}

#[test]
fn forks_are_told_with_both_heads_and_the_known_branch_is_kept() {
    for kind in [LogKind::Rfc6962, LogKind::Static] {
        for extra in [0, 40] {
            let world = world([log("liar", kind, 500)]);
            let liar = world.log("liar");
            let folder = Folder::new();
            let running = folder.start(options(&world));
            running.wait("it to be read", |logs| {
                logs.values().any(|log| log.verified == 500)
            });
            liar.set_fault(FaultRule::from(Fault::Fork { extra }).times(2));
            while liar.shown_count(&Fault::Fork { extra }) < 2 {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            // A larger branch whose tiles nobody serves is told apart by the next head that holds.
            liar.grow(100);
            running.wait("the fork", |logs| logs.values().any(|log| !log.lies.is_empty()));
            running.wait("the known branch to go on", |logs| {
                logs.values().any(|log| log.verified == 600)
            });
            let summary = running.stop();
            let status = of(&summary, &liar);
            assert_eq!(kinds(status), [LieKind::Fork], "{kind:?} {extra}");
            let leaves = status.lies[0].leaves;
            assert!(
                leaves == [500, 500 + extra] || leaves == [500 + extra, 600],
                "{leaves:?}"
            );
            let evidence = std::fs::read_dir(folder.path().join("follow/evidence")).unwrap();
            assert_eq!(evidence.count(), 1);
            folder.check_whole([&liar]);
        }
    }
}

#[test]
fn tiles_of_hashes_that_are_wrong_are_told() {
    let world = world([log("liar", LogKind::Static, 1_000)]);
    let liar = world.log("liar");
    let folder = Folder::new();
    let running = folder.start(options(&world));
    running.wait("it to be read", |logs| {
        logs.values().any(|log| log.verified == 1_000)
    });
    liar.set_fault(Fault::BadHashTile { level: 1, index: 0 });
    liar.grow(30);
    running.wait("it to be caught", |logs| {
        logs.values().any(|log| !log.lies.is_empty())
    });
    liar.clear_faults();
    running.wait("the rest", |logs| logs.values().any(|log| log.verified == 1_030));
    let summary = running.stop();
    let caught = kinds(of(&summary, &liar));
    assert!(
        caught
            .iter()
            .all(|kind| matches!(kind, LieKind::Proof | LieKind::Fork)),
        "{caught:?}"
    );
    folder.check_whole([&liar]);
}

#[test]
fn entries_in_another_order_are_told_by_index_and_by_hash() {
    let world = world([log("liar", LogKind::Static, 1_000).fault(Fault::ReorderedDataTile { index: 1 })]);
    let liar = world.log("liar");
    let folder = Folder::new();
    let summary = folder.catch_up(options(&world));
    let status = of(&summary, &liar);
    assert!(kinds(status).contains(&LieKind::LeafIndex), "{status:#?}");
    let wrong: Vec<_> = status
        .lies
        .iter()
        .filter(|lie| lie.kind == LieKind::Entry)
        .collect();
    assert_eq!(wrong.len(), 2, "{status:#?}");
    assert_eq!((wrong[0].leaves, wrong[1].leaves), ([256, 257], [257, 258]));
    assert_eq!((status.read, status.backlog), (1_000, 0));
}

#[test]
fn entries_that_say_that_they_belong_elsewhere() {
    let world = world([log("liar", LogKind::Static, 600).fault(Fault::WrongLeafIndex { index: 1 })]);
    let liar = world.log("liar");
    let folder = Folder::new();
    let summary = folder.catch_up(options(&world));
    let status = of(&summary, &liar);
    assert!(kinds(status).contains(&LieKind::LeafIndex), "{status:#?}");
    assert!(kinds(status).contains(&LieKind::Entry), "{status:#?}");
    assert_eq!((status.read, status.backlog), (600, 0));
}

#[test]
fn issuers_are_fetched_once_for_all_logs_and_wrong_ones_are_not_kept() {
    let world = world([
        log("alpha", LogKind::Static, 600),
        log("beta", LogKind::Static, 600),
    ]);
    let folder = Folder::new();
    // Named by hand they are not asked for their roots, which are kept in the same place.
    let mut both = options(&world);
    both.list = None;
    both.logs = world.logs().iter().map(single).collect();
    let running = folder.start(both);
    running.wait("both", |logs| {
        logs.len() == 2 && logs.values().all(|log| log.verified == 600)
    });
    std::thread::sleep(std::time::Duration::from_millis(500));
    running.stop();
    let kept = std::fs::read_dir(folder.path().join("follow/issuers"))
        .unwrap()
        .count() as u64;
    let asked: u64 = world
        .logs()
        .iter()
        .map(|log| log.report().count(RequestKind::Issuer))
        .sum();
    assert!(kept > 0);
    assert_eq!(kept, asked, "each once");

    let liar = world.log("alpha");
    liar.set_fault(Fault::WrongIssuer);
    let fresh = Folder::new();
    let mut only = options(&world);
    only.list = None;
    only.logs = vec![single(&liar)];
    let running = fresh.start(only);
    running.wait("it to be caught", |logs| {
        logs.values()
            .any(|log| log.lies.iter().any(|lie| lie.kind == LieKind::Issuer))
    });
    running.stop();
    let kept = std::fs::read_dir(fresh.path().join("follow/issuers"));
    assert_eq!(kept.map_or(0, Iterator::count), 0);
}
