//! How logs stand while they are followed and after: tables, JSON, CSV, Prometheus.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Following, follow_list, standing, world};
use crate::run::{Home, Run};

const LOGS: [&str; 3] = [
    "alpha,entries=700",
    "beta,kind=static,entries=600,operator=Beta",
    "gamma,kind=hybrid,entries=300",
];

fn is_read(logs: &BTreeMap<String, Value>) -> bool {
    logs.len() == 3
        && logs
            .values()
            .all(|log| log["status"] == "caught_up" && log["verified_position"] != 0)
}

/// All formats say the same of the same logs.
#[track_caller]
fn check_formats(home: &Home) -> Run {
    let listed = home.ct(&["logs", "--format", "json"]).code(0).json();
    let ids = |rows: &[Value]| -> Vec<Value> {
        let row = |row: &Value| {
            let keys = [
                "description",
                "url",
                "log_id",
                "tree_size",
                "verified_position",
                "status",
                "lies",
            ];
            keys.iter().map(|key| row[key].clone()).collect()
        };
        rows.iter().map(row).collect()
    };
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 3);
    assert_eq!(
        ids(&home.ct(&["logs", "--format", "ndjson"]).code(0).rows()),
        ids(listed)
    );
    let csv = home.ct(&["logs", "--format", "csv"]).code(0).out;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 4, "{csv}");
    assert!(
        lines[0].starts_with("description,operator,url,log_id,api,tree_size,verified_position,"),
        "{csv}"
    );
    let columns = lines[0].split(',').count();
    for (line, log) in lines[1..].iter().zip(listed) {
        assert_eq!(line.split(',').count(), columns, "{csv}");
        let numbers = format!(",{},{},", log["tree_size"], log["verified_position"]);
        assert!(line.contains(&numbers), "{numbers} in {line}");
    }
    let table = home.ct(&["logs"]).code(0);
    let lines: Vec<&str> = table.out.lines().collect();
    assert_eq!(lines.len(), 4, "{}", table.out);
    assert!(
        lines[0].starts_with("LOG ") && lines[0].contains("BEHIND"),
        "{}",
        table.out
    );
    assert!(
        lines.iter().all(|line| line.chars().count() < 80),
        "{}",
        table.out
    );
    table
}

#[test]
fn logs_are_told_while_they_are_followed_and_after() {
    let home = Home::new();
    let _world = world(&home, &LOGS);
    let mut following = Following::start(&mut follow_list(&home, &[]));
    following.wait(&home, "all to be read", is_read);
    let table = check_formats(&home);
    assert!(
        table.out.contains("caught up") && !table.err.contains("nobody follows"),
        "{table:?}"
    );
    let (run, _) = following.end(Signal::TERM);
    run.code(0);
    let table = check_formats(&home);
    assert!(table.out.contains("not followed"), "{table:?}");
    assert!(table.err.contains("nobody follows these logs now"), "{table:?}");
}

#[test]
fn a_folder_without_logs_says_so() {
    let home = Home::with(&[crate::run::testdata("ct/sct/test-embedded-cert.pem")]);
    let run = home
        .ct(&["logs", "--format", "json"])
        .says(1, &["tamis ct follow"]);
    assert_eq!(run.json(), Value::Array(Vec::new()));
}

#[test]
fn a_flipped_bit_is_shown_with_its_leaf_and_stops_nothing() {
    let home = Home::new();
    let world = world(&home, &LOGS);
    let faults = ["alpha", "beta", "gamma"].map(|name| world.log(name));
    for log in &faults {
        log.set_fault(tamis_testbed::ctlog::Fault::BitFlip { index: 123 });
    }
    Run::of(&mut follow_list(&home, &["--until-caught-up"])).code(0);
    let logs = standing(&home);
    for log in &faults {
        let status = &logs[&log.url()];
        let lie = &status["lies"][0];
        assert_eq!((&lie["kind"], &lie["healed"]), (&json!("entry"), &json!(false)));
        assert_eq!(lie["leaves"], json!([123, 124]));
        assert_eq!(
            [&status["verified_position"], &status["backlog"]],
            [123, 0],
            "{status:#}"
        );
        assert_eq!(status["read"], log.size());
        assert!(lie["at"].as_str().unwrap().ends_with('Z'), "{lie}");
    }
    let table = home.ct(&["logs"]).code(0);
    assert_eq!(
        table.err.matches("leaf 123 was served").count(),
        3,
        "{}",
        table.err
    );
    home.assert_whole();
}

fn get(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn metrics_are_served_where_it_says_and_each_line_parses() {
    let home = Home::new();
    let world = world(&home, &LOGS);
    let mut following = Following::start(&mut follow_list(&home, &["--metrics", "127.0.0.1:0"]));
    let told = following.told();
    let address = told
        .trim()
        .strip_prefix("tamis: metrics are at http://")
        .and_then(|rest| rest.strip_suffix("/metrics"));
    let address = address
        .unwrap_or_else(|| panic!("no address in {told}"))
        .to_owned();
    following.wait(&home, "all to be read", is_read);
    let (head, body) = get(&address, "/metrics");
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.contains("text/plain; version=0.0.4"),
        "{head}"
    );
    let samples = samples(&body);
    for log in world.logs() {
        let of = |name: &str| samples[&(name.to_owned(), format!("log=\"{}\"", log.url()))];
        assert_eq!(of("tamis_follow_tree_size"), log.size() as f64);
        assert_eq!(of("tamis_follow_verified_leaves"), log.size() as f64);
        assert_eq!(of("tamis_follow_backlog_leaves"), 0.0);
    }
    let read: f64 = samples
        .iter()
        .filter(|((name, _), _)| name == "tamis_follow_entries_total")
        .map(|(_, value)| value)
        .sum();
    assert_eq!(read, 1_600.0);
    assert!(get(&address, "/other").0.starts_with("HTTP/1.1 404 "));
    following.end(Signal::TERM).0.code(0);
    // A taken address is told before anything is done.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    Run::of(&mut follow_list(&home, &["--metrics", &address])).says(2, &[&address, "; "]);
}

/// The samples by name and labels of a text in which everything is as Prometheus wants it.
fn samples(text: &str) -> BTreeMap<(String, String), f64> {
    const LABELS: [&str; 7] = [
        "log", "kind", "question", "answer", "protocol", "outcome", "reason",
    ];
    let (mut helped, mut typed, mut samples) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(helped.insert(name) && help.ends_with('.'), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["gauge", "counter", "summary"].contains(&kind), "{line}");
            assert!(
                helped.contains(name) && typed.insert(name, kind).is_none(),
                "{line}"
            );
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = match series.split_once('{') {
                Some((name, labels)) => (name, labels.strip_suffix('}').unwrap()),
                None => (series, ""),
            };
            let family = ["_sum", "_count"]
                .iter()
                .find_map(|end| name.strip_suffix(end))
                .unwrap_or(name);
            let kind = typed.get(family).unwrap_or_else(|| panic!("{line} has no type"));
            assert_eq!(family != name, *kind == "summary", "{line}");
            assert_eq!(name.ends_with("_total"), *kind == "counter", "{line}");
            for label in labels.split(',').filter(|label| !label.is_empty()) {
                let (label, value) = label.split_once('=').unwrap();
                assert!(LABELS.contains(&label), "{line}");
                assert!(
                    value.len() > 2 && value.starts_with('"') && value.ends_with('"'),
                    "{line}"
                );
            }
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line} has no value"));
            let place = (name.to_owned(), labels.to_owned());
            assert!(samples.insert(place, value).is_none(), "{line} comes twice");
        }
    }
    let families: BTreeSet<&str> = typed.keys().copied().collect();
    assert_eq!(families, helped);
    samples
}
