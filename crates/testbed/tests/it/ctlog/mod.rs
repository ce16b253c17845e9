//! Simulated logs as a reader meets them: over sockets, verified by `ct-log`.

mod client;
mod control;
mod faults;
mod honest;
mod real;

use client::Client;
use tamis_ct_log::head::{Checkpoint, SignedTreeHead, VerifiedHead};
use tamis_ct_log::key::PublicKey;
use tamis_ct_log::log_list::FollowRules;
use tamis_ct_log::paths;
use tamis_testbed::ctlog::{Log, LogOptions, World, WorldOptions};

fn world(logs: Vec<LogOptions>) -> World {
    let options = WorldOptions {
        logs,
        ..WorldOptions::default()
    };
    World::start(options).expect("a world")
}

/// What a reader follows that knows that the logs are on its own machine.
const RULES: FollowRules<'_> = FollowRules {
    excluded: &[],
    pending: false,
    loopback: true,
};

fn key(log: &Log) -> PublicKey {
    PublicKey::from_base64(&log.key_base64()).expect("a key")
}

/// The address of something below the log's prefix.
fn at(log: &Log, path: &str) -> String {
    paths::join(&log.url(), path)
}

/// The log's head by RFC 6962, verified.
#[track_caller]
fn sth(log: &Log, client: &mut Client) -> VerifiedHead {
    let body = client.get(&at(log, paths::SIGNED_TREE_HEAD)).ok();
    let head = SignedTreeHead::from_json(&body).expect("a head");
    head.verify(&key(log)).expect("it verifies")
}

/// The log's checkpoint, verified.
#[track_caller]
fn checkpoint(log: &Log, client: &mut Client) -> VerifiedHead {
    let body = client.get(&at(log, paths::CHECKPOINT)).ok();
    let head = Checkpoint::parse(&body).expect("a checkpoint");
    head.verify(&key(log)).expect("it verifies")
}
