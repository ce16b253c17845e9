//! Real entries, the list and its changes, archives, and the command.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tamis_ct_log::key::PublicKey;
use tamis_ct_log::log_list::{ListError, LogList, Refused, accept};
use tamis_ct_log::merkle::{CompactRange, Hash};
use tamis_ct_log::{Input, head::Checkpoint, input::Scratch};
use tamis_testbed::ctlog::{
    ListChange, ListSignature, ListedState, LogKind, LogOptions, World, WorldOptions,
};

use super::client::Client;
use super::{RULES, at, checkpoint, key, sth, world};

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/ct")
        .join(path)
}

fn list(world: &World, client: &mut Client) -> Result<LogList, ListError> {
    let list = client.get(&world.list_url()).ok();
    let signature = client.get(&world.list_signature_url()).ok();
    let key = PublicKey::from_pem(world.list_key_pem().as_bytes()).expect("a key");
    LogList::read_signed(&list, &signature, &key)
}

fn names(list: &LogList) -> Vec<&str> {
    list.logs.iter().map(|log| &*log.description).collect()
}

#[test]
fn real_entries_come_first_and_keep_their_certificates() {
    let world = World::start(WorldOptions {
        entries: vec![testdata("static/navigli2025h2")],
        logs: vec![
            LogOptions::new("alpha", LogKind::Rfc6962).entries(300),
            LogOptions::new("beta", LogKind::Static).entries(300),
        ],
        ..WorldOptions::default()
    })
    .expect("a world");
    assert_eq!(world.skipped_entries(), 0);
    let original = std::fs::read(testdata("static/navigli2025h2/tile/data/000")).expect("a tile");
    let hashes = std::fs::read(testdata("static/navigli2025h2/tile/0/000")).expect("a tile");
    let client = &mut Client::of(&world.url());
    // The tile is the first of its log, so each leaf is where it was, and hashes to what it did.
    let beta = world.log("beta");
    assert!(client.get(&at(&beta, "tile/data/000")).ok() == original);
    assert!(client.get(&at(&beta, "tile/0/000")).ok() == hashes);
    checkpoint(&beta, client);
    let names = client.get(&at(&beta, "tile/names/000"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&names.body[..])
        .read_to_string(&mut text)
        .expect("text");
    let upstream = std::fs::read_to_string(testdata("static/navigli2025h2/tile/names/000")).expect("names");
    for (line, upstream) in text.lines().zip(upstream.lines()) {
        let [ours, theirs]: [serde_json::Value; 2] =
            [line, upstream].map(|line| serde_json::from_str(line).expect("an object"));
        assert_eq!(ours["Timestamp"], theirs["Timestamp"]);
        assert_eq!(ours["Subject"]["CommonName"], theirs["Subject"]["CommonName"]);
        let set = |value: &serde_json::Value| -> HashSet<String> {
            serde_json::from_value(value["DNS"].clone()).unwrap_or_default()
        };
        assert_eq!(set(&ours), set(&theirs));
    }
    // The other log has the same certificates under other leaves, with chains made of the issuers' files.
    let body = client
        .get(&at(&world.log("alpha"), "ct/v1/get-entries?start=0&end=255"))
        .ok();
    let reference = std::fs::read(testdata("rfc6962/navigli2025h2_get-entries.json.gz")).expect("a page");
    let chains = |bytes: &[u8]| -> Vec<Vec<Vec<u8>>> {
        let input = Input::open(bytes).expect("entries");
        let chain = |raw: tamis_ct_log::input::RawEntry<'_>| match raw.decode_chain(&mut Scratch::new()) {
            Ok(tamis_ct_log::input::Chain::Certificates(list)) => list.map(<[u8]>::to_vec).collect(),
            other => panic!("{other:?}"),
        };
        input.entries().map(|raw| chain(raw.expect("an entry"))).collect()
    };
    assert!(chains(&body) == chains(&reference));
}

#[test]
fn real_rfc6962_entries_move_to_a_static_log() {
    let world = World::start(WorldOptions {
        entries: vec![testdata("rfc6962/live_ct.json")],
        logs: vec![LogOptions::new("beta", LogKind::Static).entries(60)],
        ..WorldOptions::default()
    })
    .expect("a world");
    let beta = world.log("beta");
    let client = &mut Client::of(&world.url());
    let tile = client.get(&at(&beta, "tile/data/000.p/60")).ok();
    let input = Input::open(&tile).expect("a tile");
    let mut range = CompactRange::empty(0).expect("a range");
    for (index, raw) in (0..).zip(input.entries()) {
        let raw = raw.expect("an entry");
        let mut scratch = Scratch::new();
        let leaf = raw.decode(&mut scratch).expect("an entry").leaf.expect("a leaf");
        assert_eq!(leaf.leaf_index(), Ok(Some(index)));
        range.push(Hash(leaf.hash())).expect("below the limit");
    }
    assert_eq!(range.root(), Some(beta.root()));
}

#[test]
fn a_file_that_holds_nothing_is_named() {
    let options = WorldOptions {
        entries: vec![testdata("README.md")],
        ..WorldOptions::default()
    };
    let error = World::start(options).err().expect("no entries");
    assert!(format!("{error:#}").contains("README.md"), "{error:#}");
}

#[test]
fn lists_change_as_real_ones_do() {
    let world = world(vec![
        LogOptions::new("alpha", LogKind::Rfc6962).entries(5),
        LogOptions::new("beta", LogKind::Static).entries(6),
        LogOptions::new("gamma", LogKind::Rfc6962).entries(7),
    ]);
    let client = &mut Client::of(&world.url());
    let change = |change| world.change_list(&change).expect("a change");
    let first = list(&world, client).expect("a list");

    change(ListChange::State {
        log: "alpha".to_owned(),
        state: ListedState::Readonly,
    });
    let next = list(&world, client).expect("a list");
    let ending = accept(Some(&first), &next, &RULES)
        .expect("a change that may be")
        .ending;
    assert_eq!(ending, [world.log("alpha").log_id()]);

    change(ListChange::AddLog(Box::new(
        LogOptions::new("delta", LogKind::Static).entries(8),
    )));
    let next = list(&world, client).expect("a list");
    let started = accept(Some(&first), &next, &RULES)
        .expect("a change that may be")
        .started;
    assert_eq!(started, [world.log("delta").log_id()]);
    assert_eq!(checkpoint(&world.log("delta"), client).size(), 8);

    change(ListChange::LoseMost { keep: 1 });
    let lost = list(&world, client).expect("a list");
    assert!(matches!(
        accept(Some(&first), &lost, &RULES),
        Err(Refused::LosesMost { .. })
    ));
    change(ListChange::LoseNone);

    change(ListChange::Timestamp {
        ms: Some(1_600_000_000_000),
    });
    let old = list(&world, client).expect("a list");
    assert!(matches!(
        accept(Some(&first), &old, &RULES),
        Err(Refused::Older { .. })
    ));
    change(ListChange::Timestamp { ms: None });

    change(ListChange::Placeholder(true));
    change(ListChange::EmptyOperator(true));
    change(ListChange::UnknownFields(true));
    let odd = list(&world, client).expect("a list");
    assert_eq!(odd.skipped, []);
    assert_eq!(odd.logs.len(), 5);
    let followed = |list: &LogList| accept(Some(&first), list, &RULES).map(|change| change.started.len());
    assert_eq!(followed(&odd), Ok(1), "delta, and no placeholder");

    change(ListChange::Mimics { count: 2, only: true });
    let mimics = list(&world, client).expect("a list that is signed well");
    assert!(names(&mimics).iter().any(|name| name.starts_with("Mimic")));
    assert!(accept(Some(&first), &mimics, &RULES).is_err());
}

#[test]
fn a_list_is_signed_wrongly() {
    let world = world(vec![LogOptions::new("alpha", LogKind::Rfc6962)]);
    let client = &mut Client::of(&world.url());
    for signature in [ListSignature::OtherKey, ListSignature::Broken] {
        world
            .change_list(&ListChange::Signature(signature))
            .expect("a change");
        assert!(
            matches!(list(&world, client), Err(ListError::Signature(_))),
            "{signature:?}"
        );
    }
    world
        .change_list(&ListChange::Signature(ListSignature::Missing))
        .expect("a change");
    assert_eq!(client.get(&world.list_signature_url()).status, 404);
    world
        .change_list(&ListChange::Signature(ListSignature::Good))
        .expect("a change");
    list(&world, client).expect("a good list");
}

#[test]
fn an_archive_holds_a_log_that_verifies() {
    let world = world(vec![
        LogOptions::new("beta", LogKind::Static).entries(600),
        LogOptions::new("oak", LogKind::Rfc6962)
            .entries(300)
            .state(ListedState::Retired),
    ]);
    let folder = tempfile::tempdir().expect("a folder");
    for (name, data) in [
        (
            "beta",
            ["tile/data/000", "tile/data/001", "tile/data/002.p/88"].as_slice(),
        ),
        ("oak", &["tile/data/000", "tile/data/001.p/44"]),
    ] {
        let log = world.log(name);
        let files = log.write_archive(folder.path()).expect("an archive");
        assert_eq!(files, [folder.path().join(format!("ct_{name}/000.zip"))]);
        let file = std::fs::File::open(&files[0]).expect("a file");
        let mut archive = zip::ZipArchive::new(file).expect("a zip file");
        let mut read = |name: &str| {
            let mut content = Vec::new();
            archive
                .by_name(name)
                .expect(name)
                .read_to_end(&mut content)
                .expect("content");
            content
        };
        let text = read("checkpoint");
        let head = Checkpoint::parse(&text)
            .expect("a checkpoint")
            .verify(&key(&log))
            .expect("it verifies");
        let mut range = CompactRange::empty(0).expect("a range");
        for path in data {
            let tile = read(path);
            for raw in Input::open(&tile).expect("a tile").entries() {
                let raw = raw.expect("an entry");
                let mut scratch = Scratch::new();
                let leaf = raw.decode(&mut scratch).expect("an entry").leaf.expect("a leaf");
                range.push(Hash(leaf.hash())).expect("below the limit");
            }
        }
        assert_eq!(range.root(), Some(head.tree().root));
        let metadata: serde_json::Value = serde_json::from_slice(&read("log.v3.json")).expect("JSON");
        assert_eq!(metadata["key"], log.key_base64());
        assert_eq!(read("tile/0/000").len(), 8_192);
        assert!(
            archive
                .file_names()
                .filter(|name| name.starts_with("issuer/"))
                .count()
                > 10
        );
    }
}

#[test]
fn the_command_serves_and_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = Command::new(env!("CARGO_BIN_EXE_tamis-testbed"))
        .args([
            "ctlog",
            "--log",
            "alpha,entries=9",
            "--log",
            "beta,kind=static,entries=4",
        ])
        .args(["--fault", "alpha=server_error,status=500,times=1", "--dir"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let said: serde_json::Value = serde_json::from_str(&line).expect("one line of JSON");
    let url = said["url"].as_str().expect("an address");
    let client = &mut Client::of(url);
    let file = |name: &str| std::fs::read(folder.path().join(name)).expect(name);
    assert_eq!(
        client.get(said["log_list"].as_str().expect("an address")).ok(),
        file("log_list.json")
    );
    assert_eq!(
        client.get(said["key"].as_str().expect("an address")).ok(),
        file("log_list_key.pem")
    );
    assert_eq!(file("log_list.sig"), file("log_list.json.sig"));
    let key = PublicKey::from_pem(&file("log_list_key.pem")).expect("a key");
    let list = LogList::read_signed(&file("log_list.json"), &file("log_list.sig"), &key).expect("a list");
    assert_eq!((list.logs.len(), list.skipped.len()), (2, 0));
    let sth = format!("{url}/alpha/ct/v1/get-sth");
    assert_eq!(client.get(&sth).status, 500);
    assert_eq!(client.get(&sth).json()["tree_size"], 9);
    let order = r#"{"state":{"log":"alpha","state":"retired"}}"#;
    assert_eq!(client.post(&format!("{url}/_sim/list"), order).status, 200);
    assert!(String::from_utf8_lossy(&file("log_list.json")).contains("\"retired\""));
    // As a signal would: nothing has to be put away.
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(std::net::TcpStream::connect(url.replace("http://", "")).is_err());
}

#[test]
fn a_world_is_read_from_a_file() {
    let text = r#"{"seed": 3, "logs": [{"name": "oak", "entries": 2, "state": "readonly",
        "faults": [{"fault": {"lagging": {"leaves": 1}}, "every": 2}]}]}"#;
    let options: WorldOptions = serde_json::from_str(text).expect("a world");
    let world = World::start(options).expect("a world");
    let client = &mut Client::of(&world.url());
    let oak = world.log("oak");
    let sizes: Vec<_> = (0..2).map(|_| sth(&oak, client).size()).collect();
    assert_eq!((sizes, oak.state()), (vec![2, 1], ListedState::Readonly));
    assert!(serde_json::from_str::<WorldOptions>(r#"{"sed": 3}"#).is_err());
}

#[test]
fn a_command_line_that_makes_no_sense_is_refused() {
    for (arguments, hint) in [
        (["--log", "alpha,size=9"], "size"),
        (["--fault", "alpha=tea"], "tea"),
        (["--fault", "nobody=stall"], "nobody"),
        (["--log", "a/b"], "a/b"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tamis-testbed"))
            .arg("ctlog")
            .args(arguments)
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn an_rsa_log_and_one_with_a_fixed_clock() {
    let world = World::start(WorldOptions {
        clock_ms: Some(1_790_000_000_000),
        logs: vec![LogOptions::new("rsa", LogKind::Static).rsa().entries(4)],
        ..WorldOptions::default()
    })
    .expect("a world");
    let log = world.log("rsa");
    let client = &mut Client::of(&world.url());
    assert_eq!(checkpoint(&log, client).timestamp_ms(), 1_790_000_000_000);
    log.grow(1);
    assert_eq!(checkpoint(&log, client).size(), 5);
    let tile = client.get(&at(&log, "tile/data/000.p/5")).ok();
    let input = Input::open(&tile).expect("a tile");
    let last = input.entries().last().expect("entries").expect("a whole one");
    let mut scratch = Scratch::new();
    let leaf = last.decode(&mut scratch).expect("an entry").leaf.expect("a leaf");
    assert_eq!(leaf.timestamp_ms, 1_790_000_000_000);
}
