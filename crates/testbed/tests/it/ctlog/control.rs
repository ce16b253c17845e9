//! Orders and questions over the network.

use std::io::Read as _;

use serde_json::{Value, json};
use tamis_testbed::ctlog::{Fault, LogKind, LogOptions, RequestKind};

use super::client::Client;
use super::{at, checkpoint, sth, world};

#[track_caller]
fn order(client: &mut Client, base: &str, path: &str, body: &Value) -> Value {
    client
        .post(&format!("{base}/_sim/{path}"), &body.to_string())
        .json()
}

#[test]
fn a_log_grows_by_order() {
    let world = world(vec![LogOptions::new("alpha", LogKind::Rfc6962).entries(5)]);
    let client = &mut Client::of(&world.url());
    let done = order(client, &world.url(), "grow", &json!({ "log": "alpha", "by": 7 }));
    assert_eq!(done["size"], 12);
    assert_eq!(sth(&world.log("alpha"), client).size(), 12);
    let refused = client.post(&format!("{}/_sim/grow", world.url()), r#"{"log":"beta","by":7}"#);
    assert_eq!(refused.status, 400);
    assert!(String::from_utf8_lossy(&refused.body).contains("beta"));
}

#[test]
fn an_idle_log_that_is_polled_shows_no_tile_request() {
    let world = world(vec![LogOptions::new("beta", LogKind::Static).entries(300)]);
    let log = world.log("beta");
    let client = &mut Client::of(&world.url());
    for _ in 0..3 {
        checkpoint(&log, client);
    }
    let report = log.report();
    assert_eq!((report.count(RequestKind::Checkpoint), report.tiles()), (3, 0));
    let agent = "User-Agent: test (https://example.com/contact)\r\n";
    client
        .get_with(&at(&log, "tile/0/001.p/44"), agent)
        .expect("an answer")
        .ok();
    client
        .get_with(&at(&log, "tile/0/009"), agent)
        .expect("an answer");
    let url = format!("{}/_sim/report?log=beta", world.url());
    let report = client.get(&url).json();
    assert_eq!(
        report["requests"],
        json!({ "checkpoint": 3, "level_tile": 1, "partial_level_tile": 1 })
    );
    assert_eq!(report["statuses"], json!({ "200": 4, "404": 1 }));
    assert_eq!(report["user_agents"]["test (https://example.com/contact)"], 2);
    assert_eq!(report["concurrency_max"], 1);
    assert!(report["gap_us_min"].as_u64().expect("a gap") > 0);
    assert!(report["bytes"].as_u64().expect("bytes") > 44 * 32);
    client.post(&url, "").json();
    assert_eq!(client.get(&url).json()["requests"], json!({}));
}

#[test]
fn the_truth_says_what_each_log_holds() {
    let world = world(vec![LogOptions::new("alpha", LogKind::Rfc6962).entries(20)]);
    let log = world.log("alpha");
    let client = &mut Client::of(&world.url());
    let url = format!("{}/_sim/truth?log=alpha&start=5&count=100", world.url());
    let truth = client.get(&url).json();
    assert_eq!(
        (truth["size"].as_u64(), truth["root"].as_str()),
        (Some(20), Some(&*log.root().to_string()))
    );
    let entries = truth["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 15);
    for (entry, (index, sha256, names)) in entries.iter().zip(log.expected().skip(5)) {
        let hex: String = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(entry["index"], index);
        assert_eq!(entry["sha256"], hex);
        assert_eq!(entry["names"], json!(names));
        assert_eq!(
            entry["leaf_hash"],
            log.leaf_hash(index).expect("a leaf").to_string()
        );
    }
}

#[test]
fn faults_come_and_go_by_order() {
    let world = world(vec![LogOptions::new("alpha", LogKind::Rfc6962).entries(5)]);
    let log = world.log("alpha");
    let base = world.url();
    let client = &mut Client::of(&base);
    order(
        client,
        &base,
        "fault",
        &json!({ "log": "alpha", "set": "server_error,status=503,times=2" }),
    );
    let url = at(&log, "ct/v1/get-sth");
    let statuses: Vec<_> = (0..3).map(|_| client.get(&url).status).collect();
    assert_eq!(statuses, [503, 503, 200]);
    let rule = json!({ "fault": { "html_page": { "status": 200 } }, "on": ["sth"] });
    order(client, &base, "fault", &json!({ "log": "alpha", "add": rule }));
    assert!(client.get(&url).ok().starts_with(b"<!DOCTYPE html>"));
    let faults = client.get(&format!("{base}/_sim/faults?log=alpha")).json();
    assert_eq!(faults["shown"], json!({ "html_page": 1, "server_error": 2 }));
    assert_eq!(faults["rules"].as_array().map(Vec::len), Some(2));
    order(
        client,
        &base,
        "faults/clear",
        &json!({ "log": "alpha", "kind": "html_page" }),
    );
    assert_eq!(sth(&log, client).size(), 5);
    assert_eq!(log.shown_count(&Fault::HtmlPage { status: 200 }), 1);
}

#[test]
fn a_rate_is_set_by_order() {
    let world = world(vec![LogOptions::new("alpha", LogKind::Rfc6962).entries(1)]);
    let client = &mut Client::of(&world.url());
    order(
        client,
        &world.url(),
        "rate",
        &json!({ "log": "alpha", "per_s": 2_000.0 }),
    );
    while world.log("alpha").size() < 10 {
        std::thread::yield_now();
    }
    order(
        client,
        &world.url(),
        "rate",
        &json!({ "log": "alpha", "per_s": 0.0 }),
    );
    world.verify().expect("what grew verifies");
}

#[test]
fn bodies_are_compressed_for_who_takes_that() {
    let mut options = LogOptions::new("beta", LogKind::Static).entries(300);
    options.gzip = true;
    let world = world(vec![options]);
    let client = &mut Client::of(&world.url());
    let url = at(&world.log("beta"), "tile/data/000");
    let plain = client.get(&url);
    assert_eq!(plain.header("Content-Encoding"), None);
    let answer = client
        .get_with(&url, "Accept-Encoding: gzip, identity\r\n")
        .expect("an answer");
    assert_eq!(answer.header("Content-Encoding"), Some("gzip"));
    let mut inflated = Vec::new();
    flate2::read::GzDecoder::new(&answer.body[..])
        .read_to_end(&mut inflated)
        .expect("gzip");
    assert_eq!(inflated, plain.ok());
}

#[test]
fn what_is_no_request_is_refused() {
    let world = world(vec![LogOptions::new("alpha", LogKind::Rfc6962).entries(1)]);
    let address = world.url().replace("http://", "");
    for (request, status) in [
        ("nonsense\r\n\r\n".to_owned(), "400"),
        (
            "GET / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n".to_owned(),
            "413",
        ),
        (format!("GET /{} HTTP/1.1\r\n", "a".repeat(40_000)), "413"),
        (
            "DELETE /alpha/ct/v1/get-sth HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(),
            "405",
        ),
        (
            "GET /nobody/ HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(),
            "404",
        ),
    ] {
        let mut stream = std::net::TcpStream::connect(&address).expect("it listens");
        std::io::Write::write_all(&mut stream, request.as_bytes()).expect("a request");
        // The server may hang up with some of the request unread, which cuts its answer short.
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {status}"));
    }
    // Two requests at once are answered one after the other.
    let mut stream = std::net::TcpStream::connect(&address).expect("it listens");
    let twice = "GET /alpha/ct/v1/get-sth HTTP/1.1\r\n\r\nHEAD /alpha/ct/v1/get-sth HTTP/1.0\r\n\r\n";
    std::io::Write::write_all(&mut stream, twice.as_bytes()).expect("requests");
    let mut answers = String::new();
    stream.read_to_string(&mut answers).expect("answers");
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
    assert_eq!(world.log("alpha").report().count(RequestKind::Sth), 2);
}
