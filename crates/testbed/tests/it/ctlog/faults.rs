//! Each fault is met as a reader would meet it, and counted as often as it was shown.

use std::io::Read as _;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use tamis_ct_log::answers;
use tamis_ct_log::head::{Checkpoint, HeadError, Relation, SignedTreeHead};
use tamis_ct_log::input::Scratch;
use tamis_ct_log::key::SignatureError;
use tamis_ct_log::merkle::{
    Hash, HashTile, TileError, range_from_tiles, tiles_for_range, verify_consistency,
};
use tamis_ct_log::{Input, paths};
use tamis_testbed::ctlog::{Fault, FaultRule, Log, LogKind, LogOptions, RequestKind, World};

use super::client::{Client, Response};
use super::{at, checkpoint, key, sth, world};

/// A world of one RFC 6962 log, one static log and a client.
fn scene(entries: u64) -> (World, Log, Log, Client) {
    let world = world(vec![
        LogOptions::new("alpha", LogKind::Rfc6962).entries(entries),
        LogOptions::new("beta", LogKind::Static).entries(entries),
    ]);
    let (alpha, beta) = (world.log("alpha"), world.log("beta"));
    let client = Client::of(&world.url());
    (world, alpha, beta, client)
}

#[track_caller]
fn check_shown(log: &Log, fault: &Fault, times: u64) {
    assert_eq!(log.shown_count(fault), times, "{}", fault.name());
}

/// The leaf hashes of the entries in a body.
fn leaf_hashes(body: &[u8]) -> Vec<Hash> {
    let input = Input::open(body).expect("entries");
    let mut scratch = Scratch::new();
    let hash = |raw: tamis_ct_log::input::RawEntry<'_>| {
        let entry = raw.decode(&mut scratch).expect("an entry");
        Hash(entry.leaf.expect("a leaf").hash())
    };
    input
        .entries()
        .map(|raw| raw.expect("a whole entry"))
        .map(hash)
        .collect()
}

fn head_of(log: &Log, client: &mut Client) -> Response {
    client.get(&at(log, paths::SIGNED_TREE_HEAD))
}

#[test]
fn requests_are_refused_with_and_without_a_time() {
    let (_world, log, _, mut client) = scene(5);
    for retry_after_s in [None, Some(7)] {
        let fault = Fault::TooManyRequests {
            probability: 1.0,
            retry_after_s,
        };
        log.set_fault(FaultRule::from(fault).times(1));
        let answer = head_of(&log, &mut client);
        assert_eq!(answer.status, 429);
        assert_eq!(answer.header("Retry-After"), retry_after_s.map(|_| "7"));
        assert_eq!(head_of(&log, &mut client).status, 200);
    }
    let fault = Fault::TooManyRequests {
        probability: 0.5,
        retry_after_s: None,
    };
    check_shown(&log, &fault, 2);
    log.set_fault(fault.clone());
    let refused = (0..200)
        .filter(|_| head_of(&log, &mut client).status == 429)
        .count();
    assert!((60..140).contains(&refused), "{refused}");
    check_shown(&log, &fault, 2 + refused as u64);
    assert_eq!(log.report().status(429), 2 + refused as u64);
}

#[test]
fn a_rate_is_kept() {
    let (_world, log, _, mut client) = scene(5);
    // Slow enough for the test to be much faster on any machine.
    let fault = Fault::RateLimit {
        per_s: 0.001,
        retry_after_s: Some(1_000),
    };
    log.set_fault(fault.clone());
    let statuses: Vec<_> = (0..4).map(|_| head_of(&log, &mut client).status).collect();
    assert_eq!(statuses, [200, 429, 429, 429]);
    check_shown(&log, &fault, 3);
}

#[test]
fn errors_and_web_pages_come_instead_of_answers() {
    let (_world, log, _, mut client) = scene(5);
    let fault = Fault::ServerError { status: 502 };
    log.set_fault(FaultRule::from(fault.clone()).times(1));
    assert_eq!(head_of(&log, &mut client).status, 502);
    check_shown(&log, &fault, 1);
    for (status, times) in [(200, 1), (503, 2)] {
        let fault = Fault::HtmlPage { status };
        log.set_fault(FaultRule::from(fault.clone()).times(1));
        let answer = head_of(&log, &mut client);
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("Content-Type"), Some("text/html; charset=utf-8"));
        let error = SignedTreeHead::from_json(&answer.body).expect_err("no head");
        assert!(error.is_retryable(), "{error}");
        check_shown(&log, &fault, times);
    }
}

#[test]
fn pages_are_capped_and_aligned() {
    let (_world, log, _, mut client) = scene(600);
    let mut count = |start: u64| {
        let body = client.get(&at(&log, &paths::entries(start, 599))).ok();
        leaf_hashes(&body).len()
    };
    assert_eq!(count(0), 256);
    log.set_fault(Fault::PageCap {
        entries: 32,
        aligned: false,
    });
    assert_eq!((count(5), count(590)), (32, 10));
    log.set_fault(Fault::PageCap {
        entries: 32,
        aligned: true,
    });
    assert_eq!((count(5), count(64)), (27, 32));
    log.set_fault(Fault::PageCap {
        entries: 1_000,
        aligned: false,
    });
    assert_eq!(
        count(0),
        600 - 344,
        "a larger cap is no fault, and the log's own holds"
    );
    check_shown(
        &log,
        &Fault::PageCap {
            entries: 0,
            aligned: false,
        },
        3,
    );
}

#[test]
fn long_ranges_and_large_bodies_are_refused() {
    let (_world, log, _, mut client) = scene(300);
    let mut status = |start, end| client.get(&at(&log, &paths::entries(start, end))).status;
    let long = Fault::RefuseLongRange {
        entries: 64,
        status: 400,
    };
    log.set_fault(long.clone());
    assert_eq!((status(0, 64), status(0, 63)), (400, 200));
    check_shown(&log, &long, 1);
    log.clear_faults();
    let large = Fault::RefuseLargeBody {
        bytes: 100_000,
        status: 403,
    };
    log.set_fault(large.clone());
    assert_eq!((status(0, 255), status(0, 0)), (403, 200));
    check_shown(&log, &large, 1);
}

#[test]
fn a_replica_lags_and_the_front_end_leads() {
    let (_world, alpha, beta, mut client) = scene(300);
    let fault = Fault::Lagging { leaves: 40 };
    alpha.set_fault(FaultRule::from(fault.clone()).every(2));
    let sizes: Vec<_> = (0..4).map(|_| sth(&alpha, &mut client).size()).collect();
    assert_eq!(sizes, [300, 260, 300, 260]);
    check_shown(&alpha, &fault, 2);
    beta.set_fault(FaultRule::from(fault.clone()).times(1));
    let (old, new) = (checkpoint(&beta, &mut client), checkpoint(&beta, &mut client));
    assert_eq!(
        (old.size(), new.size(), new.relation(&old)),
        (260, 300, Relation::Lagging)
    );
    assert_eq!(
        client.get(&at(&beta, "tile/0/001.p/4")).status,
        200,
        "that tree was published"
    );
    let behind = Fault::EntriesBehind { leaves: 100 };
    alpha.set_fault(behind.clone());
    beta.set_fault(behind.clone());
    let page = client.get(&at(&alpha, &paths::entries(150, 299))).ok();
    assert_eq!(leaf_hashes(&page).len(), 50);
    assert_eq!(client.get(&at(&alpha, &paths::entries(200, 299))).status, 400);
    assert_eq!(client.get(&at(&alpha, &paths::entries(0, 9))).status, 200);
    check_shown(&alpha, &behind, 2);
    assert_eq!(client.get(&at(&beta, "tile/data/001.p/44")).status, 404);
    check_shown(&beta, &behind, 1);
}

#[test]
fn another_key_signs() {
    let (_world, alpha, beta, mut client) = scene(5);
    for log in [&alpha, &beta] {
        log.set_fault(FaultRule::from(Fault::WrongKey).times(1));
    }
    let body = head_of(&alpha, &mut client).ok();
    let error = SignedTreeHead::from_json(&body)
        .expect("a head")
        .verify(&key(&alpha));
    assert!(matches!(
        error,
        Err(HeadError::Signature(SignatureError::Invalid { .. }))
    ));
    let body = client.get(&at(&beta, paths::CHECKPOINT)).ok();
    let error = Checkpoint::parse(&body)
        .expect("a checkpoint")
        .verify(&key(&beta));
    assert!(matches!(
        error,
        Err(HeadError::Signature(SignatureError::Invalid { .. }))
    ));
    sth(&alpha, &mut client);
    check_shown(&alpha, &Fault::WrongKey, 1);
    check_shown(&beta, &Fault::WrongKey, 1);
}

#[test]
fn a_fork_is_signed_and_has_no_proof() {
    let (_world, log, _, mut client) = scene(300);
    let known = sth(&log, &mut client);
    log.set_fault(FaultRule::from(Fault::Fork { extra: 0 }).times(1));
    let forked = sth(&log, &mut client);
    assert_eq!(known.relation(&forked), Relation::Fork);
    log.set_fault(FaultRule::from(Fault::Fork { extra: 20 }).times(1));
    let forked = sth(&log, &mut client);
    assert_eq!((known.relation(&forked), forked.size()), (Relation::Grown, 320));
    let proof = client.get(&at(&log, &paths::consistency(300, 320))).ok();
    let proof = answers::consistency(&proof).expect("a proof");
    verify_consistency(known.tree(), forked.tree(), &proof).expect_err("no extension");
    check_shown(&log, &Fault::Fork { extra: 0 }, 2);
    log.grow(30);
    let grown = sth(&log, &mut client);
    let proof = client.get(&at(&log, &paths::consistency(300, 330))).ok();
    let proof = answers::consistency(&proof).expect("a proof");
    verify_consistency(known.tree(), grown.tree(), &proof).expect("the true tree goes on");
}

#[test]
fn a_flipped_bit_leaves_proofs_valid_and_entries_wrong() {
    let (_world, alpha, beta, mut client) = scene(300);
    let fault = Fault::BitFlip { index: 77 };
    for log in [&alpha, &beta] {
        log.set_fault(fault.clone());
        let path = if log.name() == "alpha" {
            paths::entries(0, 255)
        } else {
            "tile/data/000".to_owned()
        };
        let hashes = leaf_hashes(&client.get(&at(log, &path)).ok());
        for (index, hash) in (0..).zip(hashes) {
            assert_eq!(Some(hash) == log.leaf_hash(index), index != 77, "{index}");
        }
        check_shown(log, &fault, 1);
    }
    client.get(&at(&alpha, &paths::entries(78, 200))).ok();
    check_shown(&alpha, &fault, 1);
    let old = sth(&alpha, &mut client);
    alpha.grow(10);
    let new = sth(&alpha, &mut client);
    let proof = client.get(&at(&alpha, &paths::consistency(300, 310))).ok();
    verify_consistency(
        old.tree(),
        new.tree(),
        &answers::consistency(&proof).expect("a proof"),
    )
    .expect("the tree has the leaf right");
}

#[test]
fn tiles_are_wrong() {
    let (_world, _, log, mut client) = scene(600);
    let head = checkpoint(&log, &mut client);
    let bad = Fault::BadHashTile { level: 0, index: 2 };
    log.set_fault(bad.clone());
    let tiles = tiles_for_range(600, 600).expect("tiles").into_iter().map(|id| {
        let body = client.get(&at(&log, &paths::tile(&id))).ok();
        HashTile::parse(id, &body).expect("a tile")
    });
    let tiles: Vec<_> = tiles.collect();
    let error = range_from_tiles(600, head.tree(), &tiles).expect_err("a wrong tile");
    assert!(matches!(error, TileError::Root { .. }), "{error}");
    check_shown(&log, &bad, 1);

    let reordered = Fault::ReorderedDataTile { index: 1 };
    log.set_fault(reordered.clone());
    let hashes = leaf_hashes(&client.get(&at(&log, "tile/data/001")).ok());
    assert_eq!(
        (Some(hashes[0]), Some(hashes[1])),
        (log.leaf_hash(257), log.leaf_hash(256))
    );
    assert_eq!(Some(hashes[2]), log.leaf_hash(258));
    check_shown(&log, &reordered, 1);
    log.clear_faults();

    let elsewhere = Fault::WrongLeafIndex { index: 0 };
    log.set_fault(elsewhere.clone());
    let tile = client.get(&at(&log, "tile/data/000")).ok();
    let input = Input::open(&tile).expect("a tile");
    let first = input.entries().next().expect("an entry").expect("a whole one");
    let mut scratch = Scratch::new();
    let leaf = first
        .decode(&mut scratch)
        .expect("an entry")
        .leaf
        .expect("a leaf");
    assert!(leaf.check_index(0).is_err());
    check_shown(&log, &elsewhere, 1);
}

#[test]
fn issuers_are_wrong_or_gone() {
    let (_world, _, log, mut client) = scene(20);
    let tile = client.get(&at(&log, "tile/data/000.p/20")).ok();
    let (first, _) = tamis_ct_log::leaf::TileLeaf::parse(&tile).expect("an entry");
    let fingerprint: &[u8; 32] = first.chain_fingerprints.first_chunk().expect("a chain");
    let url = at(&log, &paths::issuer(fingerprint));
    let good = client.get(&url).ok();
    log.set_fault(FaultRule::from(Fault::WrongIssuer).times(1));
    assert_ne!(client.get(&url).ok(), good);
    log.set_fault(FaultRule::from(Fault::MissingIssuer).times(1));
    assert_eq!(client.get(&url).status, 404);
    assert_eq!(client.get(&url).ok(), good);
    check_shown(&log, &Fault::WrongIssuer, 1);
    check_shown(&log, &Fault::MissingIssuer, 1);
}

#[test]
fn partial_tiles_go_away() {
    let (_world, _, log, mut client) = scene(100);
    log.grow(200);
    let mut status = |path: &str| client.get(&at(&log, path)).status;
    assert_eq!(status("tile/data/000.p/100"), 200);
    log.set_fault(Fault::PartialsDeleted);
    assert_eq!(status("tile/data/000.p/100"), 404);
    assert_eq!(status("tile/data/000"), 200);
    assert_eq!(status("tile/data/001.p/44"), 200, "that one is not full yet");
    check_shown(&log, &Fault::PartialsDeleted, 1);
    log.set_fault(FaultRule::from(Fault::PartialsMissing).on(&[RequestKind::PartialDataTile]));
    assert_eq!(status("tile/data/001.p/44"), 404);
    assert_eq!(status("tile/0/001.p/44"), 200);
    check_shown(&log, &Fault::PartialsMissing, 1);
}

#[test]
fn bodies_are_cut_and_connections_reset() {
    let (world, log, _, mut client) = scene(300);
    let url = at(&log, &paths::entries(0, 255));
    let whole = client.get(&url).ok();
    let cut = Fault::CutBody { per_mille: 500 };
    log.set_fault(FaultRule::from(cut.clone()).times(1));
    let answer = client.get(&url);
    assert!(answer.is_cut);
    assert_eq!(answer.body, whole[..whole.len() / 2]);
    check_shown(&log, &cut, 1);
    let mut client = Client::of(&world.url());
    let before = Fault::Reset { after_bytes: 0 };
    log.set_fault(FaultRule::from(before.clone()).times(1));
    assert!(client.get_with(&url, "").is_none());
    let mut client = Client::of(&world.url());
    log.set_fault(FaultRule::from(Fault::Reset { after_bytes: 1_000 }).times(1));
    let within = client.get_with(&url, "");
    assert!(within.is_none_or(|answer| answer.is_cut && answer.body.len() <= 1_000));
    check_shown(&log, &before, 2);
    let mut client = Client::of(&world.url());
    assert_eq!(client.get(&url).ok(), whole);
    assert_eq!(log.report().status(200), 2);
}

#[test]
fn bodies_are_compressed_though_nobody_asked() {
    let (_world, log, _, mut client) = scene(20);
    let url = at(&log, &paths::entries(0, 19));
    let plain = client.get(&url).ok();
    log.set_fault(FaultRule::from(Fault::GzipUnasked).times(1));
    let answer = client.get(&url);
    assert_eq!(answer.header("Content-Encoding"), Some("gzip"));
    let mut inflated = Vec::new();
    GzDecoder::new(&answer.body[..])
        .read_to_end(&mut inflated)
        .expect("gzip");
    assert_eq!(inflated, plain);
    check_shown(&log, &Fault::GzipUnasked, 1);
}

#[test]
fn a_bomb_inflates_to_gigabytes() {
    let (_world, log, _, mut client) = scene(20);
    let fault = Fault::GzipBomb {
        inflated_bytes: 2 << 30,
    };
    log.set_fault(fault.clone());
    let answer = client.get(&at(&log, &paths::entries(0, 19)));
    assert_eq!(answer.header("Content-Encoding"), Some("gzip"));
    assert!(answer.body.len() < 4 << 20, "{}", answer.body.len());
    // What a reader with a limit of 64 MiB sees; all of it is the business of a unit test.
    let read = std::io::copy(
        &mut GzDecoder::new(&answer.body[..]).take(64 << 20),
        &mut std::io::sink(),
    );
    assert_eq!(read.expect("gzip"), 64 << 20);
    let claimed: [u8; 4] = *answer.body.last_chunk().expect("a trailer");
    assert_eq!(u32::from_le_bytes(claimed), 2 << 30);
    check_shown(&log, &fault, 1);
}

#[test]
fn a_body_says_that_it_is_huge() {
    let (world, log, _, _) = scene(20);
    let fault = Fault::HugeBody { bytes: 600_000_000 };
    log.set_fault(fault.clone());
    let mut stream = std::net::TcpStream::connect(world.url().replace("http://", "")).expect("it listens");
    std::io::Write::write_all(
        &mut stream,
        b"GET /alpha/ct/v1/get-sth HTTP/1.1\r\nHost: a\r\n\r\n",
    )
    .expect("a request");
    let mut start = [0; 400];
    stream.read_exact(&mut start).expect("a head");
    assert!(String::from_utf8_lossy(&start).contains("Content-Length: 600000000\r\n"));
    check_shown(&log, &fault, 1);
}

#[test]
fn answers_take_longer() {
    let (_world, log, _, mut client) = scene(20);
    let url = at(&log, &paths::entries(0, 0));
    let mut at_least = |url: &str, ms: u64| {
        let started = Instant::now();
        client.get(url).ok();
        // Only what a busy machine cannot break is asserted: it was no quicker.
        assert!(started.elapsed() >= Duration::from_millis(ms), "{url}");
    };
    log.set_fault(Fault::Latency { ms: 30 });
    at_least(&url, 30);
    log.clear_faults();
    log.set_fault(Fault::SlowHead { ms: 30 });
    at_least(&at(&log, paths::SIGNED_TREE_HEAD), 30);
    at_least(&url, 0);
    check_shown(&log, &Fault::SlowHead { ms: 0 }, 1);
    log.clear_faults();
    // About 5 kB.
    log.set_fault(Fault::SlowBody { bytes_per_s: 50_000 });
    at_least(&url, 40);
    check_shown(&log, &Fault::SlowBody { bytes_per_s: 0 }, 1);
    check_shown(&log, &Fault::Latency { ms: 0 }, 1);
}

#[test]
fn a_stalled_answer_ends_with_the_world() {
    let (world, log, _, mut client) = scene(5);
    log.set_fault(Fault::Stall);
    let url = at(&log, paths::SIGNED_TREE_HEAD);
    let reader = std::thread::spawn(move || client.get_with(&url, "").is_none());
    while log.shown_count(&Fault::Stall) == 0 {
        std::thread::yield_now();
    }
    drop(world);
    assert!(reader.join().expect("the reader ends"));
}

#[test]
fn an_idle_log_does_not_grow_by_its_rate() {
    let world = world(vec![
        LogOptions::new("busy", LogKind::Rfc6962).entries(1).rate(1_000.0),
        LogOptions::new("idle", LogKind::Rfc6962)
            .entries(1)
            .rate(1_000.0)
            .fault(Fault::Idle),
    ]);
    let (busy, idle) = (world.log("busy"), world.log("idle"));
    while busy.size() < 20 || idle.shown_count(&Fault::Idle) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(idle.size(), 1);
    world.verify().expect("what grew verifies");
}

#[test]
fn every_fault_is_in_the_help() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tamis-testbed"))
        .args(["ctlog", "--help"])
        .output()
        .expect("the binary runs");
    let help = String::from_utf8(output.stdout).expect("text");
    let section = help
        .split("Faults (")
        .nth(1)
        .expect("a section")
        .split("Requests (on=)")
        .next();
    let lines = section.expect("its end").lines().skip(1);
    // Two blanks part what stands on a line.
    let examples = lines
        .flat_map(|line| line.split("  "))
        .map(str::trim)
        .filter(|text| !text.is_empty());
    let mut count = 0;
    for example in examples {
        let spec = example
            .replace(['[', ']'], "")
            .replace("=N", "=1")
            .replace("=P", "=0.5");
        FaultRule::parse(&spec).unwrap_or_else(|error| panic!("{example}: {error:#}"));
        count += 1;
    }
    assert_eq!(count, 29);
}
