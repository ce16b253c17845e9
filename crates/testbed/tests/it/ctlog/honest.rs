//! What logs without faults serve: it verifies, and it is what they say that they hold.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};
use tamis_ct_log::answers;
use tamis_ct_log::input::Scratch;
use tamis_ct_log::log_list::{Follow, LogList};
use tamis_ct_log::merkle::{
    CompactRange, Hash, HashTile, Tree, range_from_tiles, range_left_of, tiles_for_range, verify_consistency,
    verify_inclusion,
};
use tamis_ct_log::{Input, paths};
use tamis_testbed::ctlog::{ListedState, Log, LogKind, LogOptions, RequestKind};

use super::client::Client;
use super::{RULES, at, checkpoint, key, sth, world};

/// Every entry of a body: its leaf hash, the index that it has or says, and the certificate's fingerprint.
fn entries(body: &[u8]) -> Vec<(Hash, Option<u64>, [u8; 32])> {
    let input = Input::open(body).expect("entries");
    let mut scratch = Scratch::new();
    let mut found = Vec::new();
    for raw in input.entries() {
        let raw = raw.expect("a whole entry");
        let entry = raw.decode(&mut scratch).expect("an entry");
        let leaf = entry.leaf.expect("a leaf");
        let index = leaf.leaf_index().expect("sound extensions");
        let sha256 = Sha256::digest(entry.submitted.expect("a certificate")).into();
        found.push((Hash(leaf.hash()), index, sha256));
    }
    found
}

/// Reads the log from `range` on to `tree` with get-entries, verifies it, and gives the fingerprints.
fn follow(log: &Log, client: &mut Client, range: &mut CompactRange, tree: &Tree) -> Vec<[u8; 32]> {
    let mut found = Vec::new();
    while range.end() < tree.size {
        let body = client
            .get(&at(log, &paths::entries(range.end(), tree.size - 1)))
            .ok();
        let page = entries(&body);
        assert!(!page.is_empty());
        for (hash, index, sha256) in page {
            assert_eq!(index, None);
            range.push(hash).expect("below the limit");
            found.push(sha256);
        }
    }
    assert_eq!(range.root(), Some(tree.root));
    found
}

fn expected(log: &Log) -> Vec<[u8; 32]> {
    log.expected().map(|(_, sha256, _)| sha256).collect()
}

#[test]
fn an_rfc6962_log_verifies_from_the_first_entry_on() {
    let world = world(vec![
        LogOptions::new("alpha2026h2", LogKind::Rfc6962)
            .entries(700)
            .page(200, false),
        LogOptions::new("rsa", LogKind::Rfc6962).entries(3).rsa(),
    ]);
    let log = world.log("alpha2026h2");
    let client = &mut Client::of(&world.url());
    let head = sth(&log, client);
    assert_eq!((head.size(), head.tree().root), (700, log.root()));
    let mut range = CompactRange::empty(0).expect("a range");
    let mut found = follow(&log, client, &mut range, head.tree());
    log.grow(45);
    let grown = sth(&log, client);
    assert_eq!(grown.size(), 745);
    let proof = client.get(&at(&log, &paths::consistency(700, 745))).ok();
    let proof = answers::consistency(&proof).expect("a proof");
    verify_consistency(head.tree(), grown.tree(), &proof).expect("it grew");
    found.extend(follow(&log, client, &mut range, grown.tree()));
    assert!(found == expected(&log), "other certificates than the log holds");
    assert_eq!(sth(&world.log("rsa"), client).size(), 3);
    assert_eq!(log.report().count(RequestKind::Entries), 5);
    world.verify().expect("all roots are those of the leaves");
}

#[test]
fn proofs_of_inclusion_verify_and_start_a_tail() {
    let world = world(vec![LogOptions::new("alpha", LogKind::Rfc6962).entries(300)]);
    let log = world.log("alpha");
    let client = &mut Client::of(&world.url());
    let head = sth(&log, client);
    for index in [0, 1, 255, 256, 299] {
        let leaf = log.leaf_hash(index).expect("a leaf");
        let body = client.get(&at(&log, &paths::proof_by_hash(&leaf, 300))).ok();
        let (found, path) = answers::proof_by_hash(&body).expect("a proof");
        assert_eq!(found, index);
        let mut range = range_left_of(index, &leaf, &path, head.tree()).expect("it verifies");
        follow(&log, client, &mut range, head.tree());
        let url = at(
            &log,
            &format!("ct/v1/get-entry-and-proof?leaf_index={index}&tree_size=300"),
        );
        let answer = client.get(&url).json();
        let path: Vec<Hash> = serde_json::from_value::<Vec<String>>(answer["audit_path"].clone())
            .expect("hashes")
            .iter()
            .map(|hash| Hash::from_base64(hash).expect("a hash"))
            .collect();
        verify_inclusion(index, &leaf, &path, head.tree()).expect("it verifies");
        let body = serde_json::json!({ "entries": [answer] }).to_string();
        assert_eq!(entries(body.as_bytes())[0].0, leaf);
    }
    let roots = client.get(&at(&log, paths::ROOTS)).ok();
    assert!(!answers::roots(&roots).expect("roots").is_empty());
}

#[test]
fn a_static_log_verifies_from_tiles() {
    let mut options = LogOptions::new("beta", LogKind::Static).entries(600);
    options.cosignatures = 16;
    let world = world(vec![options]);
    let log = world.log("beta");
    assert_ne!(log.submission_url(), log.monitoring_url());
    let client = &mut Client::of(&world.url());
    let head = checkpoint(&log, client);
    assert_eq!((head.size(), head.tree().root), (600, log.root()));
    for end in [0, 1, 256, 599, 600] {
        let tiles = tiles_for_range(end, 600).expect("tiles");
        let tiles = tiles.iter().map(|id| {
            let body = client.get(&at(&log, &paths::tile(id))).ok();
            HashTile::parse(*id, &body).expect("a tile")
        });
        let tiles: Vec<_> = tiles.collect();
        range_from_tiles(end, head.tree(), &tiles).expect("they verify");
    }
    let mut range = CompactRange::empty(0).expect("a range");
    let mut found = Vec::new();
    for path in ["tile/data/000", "tile/data/001", "tile/data/002.p/88"] {
        for (hash, index, sha256) in entries(&client.get(&at(&log, path)).ok()) {
            assert_eq!(index, Some(range.end()));
            range.push(hash).expect("below the limit");
            found.push(sha256);
        }
    }
    assert_eq!(range.root(), Some(head.tree().root));
    assert!(found == expected(&log), "other certificates than the log holds");
}

#[test]
fn partial_tiles_are_there_for_published_trees_alone() {
    let world = world(vec![LogOptions::new("beta", LogKind::Static).entries(10)]);
    let log = world.log("beta");
    let client = &mut Client::of(&world.url());
    log.grow(20);
    let mut status = |path: &str| client.get(&at(&log, path)).status;
    assert_eq!(status("tile/0/000.p/10"), 200);
    assert_eq!(status("tile/data/000.p/30"), 200);
    assert_eq!(status("tile/0/000.p/20"), 404, "no head had 20 leaves");
    assert_eq!(status("tile/0/000.p/31"), 404);
    assert_eq!(status("tile/0/000"), 404);
    assert_eq!(status("tile/1/000.p/1"), 404);
    log.grow(300);
    assert_eq!(status("tile/0/000"), 200);
    assert_eq!(status("tile/1/000.p/1"), 200);
    assert_eq!(status("tile/0/000.p/30"), 200, "kept until partials are deleted");
    assert_eq!(status("tile/0/001.p/74"), 200);
}

#[test]
fn issuers_names_and_metadata_are_served() {
    let world = world(vec![LogOptions::new("beta", LogKind::Static).entries(300)]);
    let log = world.log("beta");
    let client = &mut Client::of(&world.url());
    let tile = client.get(&at(&log, "tile/data/000")).ok();
    let input = Input::open(&tile).expect("a tile");
    let mut issuers = HashSet::new();
    for raw in input.entries() {
        let raw = raw.expect("an entry");
        match raw.decode_chain(&mut Scratch::new()).expect("a chain") {
            tamis_ct_log::input::Chain::Fingerprints(bytes) => {
                issuers.extend(bytes.as_chunks::<32>().0.iter().copied());
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(issuers.len() > 4, "{}", issuers.len());
    for fingerprint in issuers {
        let der = client.get(&at(&log, &paths::issuer(&fingerprint))).ok();
        assert_eq!(<[u8; 32]>::from(Sha256::digest(&der)), fingerprint);
    }
    assert_eq!(client.get(&at(&log, &paths::issuer(&[7; 32]))).status, 404);
    let names = client.get(&at(&log, "tile/names/000"));
    assert_eq!(names.header("Content-Encoding"), Some("gzip"));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&names.body[..]), &mut text)
        .expect("text");
    assert_eq!(text.lines().count(), 256);
    for (line, (_, _, names)) in text.lines().zip(log.expected()) {
        let object: serde_json::Value = serde_json::from_str(line).expect("an object a line");
        let dns: Vec<String> = serde_json::from_value(object["DNS"].clone()).expect("names");
        assert!(names.starts_with(&dns), "{names:?} {dns:?}");
    }
    let metadata = client.get(&at(&log, paths::LOG_METADATA)).json();
    assert_eq!(metadata["key"], log.key_base64());
    assert_eq!(metadata["submission_url"], log.submission_url());
}

#[test]
fn a_hybrid_serves_the_same_entries_both_ways() {
    let world = world(vec![LogOptions::new("hetu", LogKind::Hybrid).entries(300)]);
    let log = world.log("hetu");
    let client = &mut Client::of(&world.url());
    let head = sth(&log, client);
    let pages = follow(
        &log,
        client,
        &mut CompactRange::empty(0).expect("a range"),
        head.tree(),
    );
    let mut range = CompactRange::empty(0).expect("a range");
    let mut found = Vec::new();
    for path in ["tile/data/000", "tile/data/001.p/44"] {
        for (hash, index, sha256) in entries(&client.get(&at(&log, path)).ok()) {
            assert_eq!(index, None, "an RFC 6962 leaf says nothing about its place");
            range.push(hash).expect("below the limit");
            found.push(sha256);
        }
    }
    assert!(pages == found);
    assert_eq!(range.root(), Some(head.tree().root));
    for path in ["checkpoint", "tile/0/000", "tile/names/000"] {
        assert_eq!(client.get(&at(&log, path)).status, 404, "{path}");
    }
}

#[test]
fn logs_share_many_of_their_certificates_and_each_holds_one_once() {
    let log = |name| LogOptions::new(name, LogKind::Rfc6962).entries(1_000);
    let world = world(vec![log("one"), log("two")]);
    let [one, two] =
        ["one", "two"].map(|name| -> HashSet<_> { expected(&world.log(name)).into_iter().collect() });
    assert_eq!((one.len(), two.len()), (1_000, 1_000));
    let shared = one.intersection(&two).count();
    assert!((400..900).contains(&shared), "{shared}");
}

#[test]
fn the_same_options_make_the_same_trees() {
    let make = || world(vec![LogOptions::new("beta", LogKind::Static).entries(50)]);
    let (first, second) = (make(), make());
    assert_eq!(first.log("beta").root(), second.log("beta").root());
    assert_eq!(first.log("beta").log_id(), second.log("beta").log_id());
}

#[test]
fn the_list_is_signed_and_names_the_logs() {
    let world = world(vec![
        LogOptions::new("alpha", LogKind::Rfc6962)
            .operator("Alpha")
            .entries(5),
        LogOptions::new("beta", LogKind::Static).operator("Beta"),
        LogOptions::new("gamma", LogKind::Rfc6962)
            .operator("Alpha")
            .entries(9)
            .state(ListedState::Readonly),
        LogOptions::new("hidden", LogKind::Rfc6962).state(ListedState::Unlisted),
    ]);
    let client = &mut Client::of(&world.url());
    let list = client.get(&world.list_url()).ok();
    let signature = client.get(&world.list_signature_url()).ok();
    let list_key = tamis_ct_log::key::PublicKey::from_pem(world.list_key_pem().as_bytes()).expect("a key");
    let list = LogList::read_signed(&list, &signature, &list_key).expect("it verifies");
    assert_eq!(list.skipped, []);
    assert_eq!(list.logs.len(), 3);
    for name in ["alpha", "beta", "gamma"] {
        let log = world.log(name);
        let listed = list.log(&key(&log).id()).expect("it is listed");
        assert_eq!(listed.monitoring_url(), log.monitoring_url());
        assert_eq!(listed.submission_url(), log.submission_url());
        let follow = listed.follow(&RULES);
        match name {
            "gamma" => assert_eq!(
                follow,
                Follow::ToTheEnd(Tree {
                    size: 9,
                    root: log.root()
                })
            ),
            _ => assert_eq!(follow, Follow::Tail),
        }
    }
    let closed = world.log("gamma");
    assert_eq!(closed.grow(5), 9, "a read-only log takes nothing");
}

#[test]
fn a_world_that_is_dropped_listens_no_more() {
    let world = world(vec![LogOptions::new("alpha", LogKind::Rfc6962).entries(1)]);
    let url = world.url();
    let address = url.strip_prefix("http://").expect("an address").to_owned();
    let mut client = Client::of(&url);
    client.get(&world.list_url()).ok();
    drop(world);
    assert!(std::net::TcpStream::connect(address).is_err());
    assert!(client.get_with(&format!("{url}/log_list.json"), "").is_none());
}
