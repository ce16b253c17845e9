//! How following ends: by a signal, with everything it read, and by kill -9, with nothing lost or doubled.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::Signal;
use tamis_ct_index::record::CertRecord;
use tamis_ct_index::{Options, Snapshot};
use tamis_testbed::ctlog::{Fault, Log, World};

use super::{Following, assert_read, follow, follow_list, standing, world};
use crate::corpus::Numbers;
use crate::run::{Home, Run};

/// Kills in a run of the tests; `TAMIS_FOLLOW_KILLS` asks for more.
const KILLS: u64 = 6;
/// Rows that stay in memory are looked through one by one: with few of them, looking for each entry is quick.
const TO_THE_END: [&str; 3] = ["--until-caught-up", "--flush-rows", "300"];
/// Within which a stop must come, also where a log hangs: what a supervisor of services waits for.
const STOP: Duration = Duration::from_secs(20);

#[test]
fn a_signal_ends_it_with_what_was_read_also_where_a_log_hangs() {
    let home = Home::new();
    let world = world(
        &home,
        &[
            "alpha,entries=700,rate=50",
            "beta,kind=static,entries=600",
            "hangs,entries=300",
        ],
    );
    world.log("hangs").set_fault(Fault::Stall);
    let mut following = Following::start(&mut follow_list(&home, &[]));
    let read = |logs: &std::collections::BTreeMap<String, serde_json::Value>, log: &Log, least: u64| {
        logs.get(&log.url())
            .is_some_and(|log| log["verified_position"].as_u64() >= Some(least))
    };
    let (alpha, beta) = (world.log("alpha"), world.log("beta"));
    following.wait(&home, "two logs to be read", |logs| {
        read(logs, &alpha, 750) && read(logs, &beta, 600)
    });
    let (run, took) = following.end(Signal::TERM);
    let run = run.code(0);
    assert!(took < STOP, "it took {took:?}");
    assert!(run.err.contains("entries read"), "{}", run.err);
    assert_read(&home, &[beta]);
    let status = &standing(&home)[&alpha.url()];
    let verified = status["verified_position"].as_u64().unwrap();
    assert!(verified >= 750, "{status:#}");
    let snapshot = Snapshot::open(&home.data(), &Options::default()).unwrap();
    for (_, sha256, _) in alpha.expected().take(verified as usize) {
        assert_eq!(snapshot.by_sha256(&sha256).unwrap().len(), 1);
    }
    home.assert_whole();
}

/// Whatever the moment, the index becomes what it would have been.
#[test]
fn killed_follows_lose_nothing_and_double_nothing() {
    let kills =
        std::env::var("TAMIS_FOLLOW_KILLS").map_or(KILLS, |kills| kills.parse().expect("a number of kills"));
    let mut random = Numbers::told("kills of follows");
    let home = Home::new();
    // Two logs, each with precertificate and certificate: four places, which is what an issuance keeps.
    let kind = ["rfc6962", "hybrid"][random.below(2) as usize];
    let alpha = format!("alpha,entries=400,kind={kind}");
    let world = world(&home, &[&alpha, "beta,kind=static,entries=400"]);
    for log in world.logs() {
        // So slow that there is a middle to be killed in.
        log.set_fault(Fault::Latency { ms: 40 });
        log.set_rate(60.0);
    }
    let (mut midway, mut begun) = (0, 0);
    for _ in 0..kills {
        for log in world.logs() {
            log.grow(350);
        }
        let args: [&[&str]; 3] = [&["--flush-rows", "500"], &["--flush-rows", "5000"], &[]];
        let mut command = follow_list(&home, args[random.below(3) as usize]);
        let following = Following::start(&mut command);
        std::thread::sleep(Duration::from_millis(100 + random.below(1_200)));
        let (run, _) = following.end(Signal::KILL);
        assert_eq!(run.code, None, "it ended by itself: {run:?}");
        if home.data().join("MANIFEST").exists() {
            home.assert_whole();
            let logs = standing(&home);
            begun += u64::from(logs.values().any(|log| log["read"] != 0));
            let is_behind = |log: &Log| {
                let read = logs.get(&log.url()).and_then(|log| log["read"].as_u64());
                read.is_none_or(|read| read < log.size())
            };
            midway += u64::from(world.logs().iter().any(is_behind));
        }
    }
    for log in world.logs() {
        log.clear_faults();
        log.set_rate(0.0);
    }
    eprintln!("kills of follows: {kills}, {midway} midway, {begun} with something read");
    assert!(2 * midway > kills && begun > 0, "the delays do not fit");
    Run::of(&mut follow_list(&home, &TO_THE_END)).code(0);
    assert_read(&home, &world.logs());
    assert_like_undisturbed(&home, &world);
}

#[track_caller]
fn assert_like_undisturbed(home: &Home, world: &World) {
    let undisturbed = Home::new();
    let mut command = follow(&undisturbed, &TO_THE_END);
    command.arg("--log-list").arg(home.path("list/log_list.json"));
    command
        .arg("--log-list-key")
        .arg(home.path("list/log_list_key.pem"));
    Run::of(&mut command).code(0);
    assert_eq!(home.totals(), undisturbed.totals());
    let (killed, whole) = (Records::of(home), Records::of(&undisturbed));
    let mut sha256s = BTreeSet::new();
    for log in world.logs() {
        sha256s.extend(log.expected().map(|(_, sha256, _)| sha256));
    }
    for sha256 in &sha256s {
        assert_eq!(killed.one(sha256), whole.one(sha256));
    }
    let tlds: BTreeSet<String> = world
        .logs()
        .iter()
        .flat_map(|log| log.expected().flat_map(|(_, _, names)| names).collect::<Vec<_>>())
        .filter_map(|name| name.rsplit('.').next().map(str::to_owned))
        .filter(|tld| tld.chars().all(|char| char.is_ascii_alphabetic()))
        .collect();
    assert!(tlds.len() > 3, "{tlds:?}");
    for tld in &tlds {
        let args = ["names", tld, "--format", "ndjson"];
        assert_eq!(home.ct(&args).out, undisturbed.ct(&args).out, "{tld}");
    }
}

struct Records {
    snapshot: Snapshot,
}

impl Records {
    fn of(home: &Home) -> Self {
        let snapshot = Snapshot::open(&home.data(), &Options::default()).unwrap();
        Self { snapshot }
    }

    /// The one record with this fingerprint, without its numbers here, which follow the order in which
    /// entries came.
    #[track_caller]
    fn one(&self, sha256: &[u8; 32]) -> (CertRecord, String, BTreeSet<(String, u64, u64)>) {
        let found = self.snapshot.by_sha256(sha256).unwrap();
        let [record] = &found[..] else {
            panic!("{} records of {sha256:?}", found.len())
        };
        let log = |number: u16| {
            let logs = self.snapshot.logs().iter();
            logs.filter(|log| log.number == number)
                .map(|log| log.name.clone())
                .collect::<String>()
        };
        let places: BTreeSet<_> = record
            .positions
            .iter()
            .map(|at| (log(at.log), at.index, at.timestamp_ms))
            .collect();
        assert_eq!(
            places.len(),
            record.positions.len(),
            "a place comes twice: {record:?}"
        );
        let mut plain = record.clone();
        // Hashed under a key of the folder.
        plain.issuance = 0;
        plain.seq = 0;
        plain.copy_of = None;
        plain.issuer = 0;
        plain.positions.clear();
        plain.fingerprints.sort_unstable();
        plain.names.sort_unstable();
        let issuer = self.snapshot.issuer(record.issuer).to_string();
        (plain, issuer, places)
    }
}
