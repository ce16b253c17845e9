//! What no reader can do without, on bodies that lie in memory: no sockets, no index.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use tamis_ct_log::certificate::ReadOptions;
use tamis_ct_log::input::Scratch;
use tamis_ct_log::{Input, Reading};

use crate::{Served, process_cpu};

/// Processor time for hashing and reading all entries of these logs.
pub(crate) fn cost(logs: &[&Served], entries: u64) -> Duration {
    let mut bodies = Vec::new();
    for log in logs {
        let mut at = 0;
        while at < entries {
            let (path, step) = if log.url.ends_with("/mon/") {
                (tile(at / 256, entries), 256)
            } else {
                (
                    format!("ct/v1/get-entries?start={at}&end={}", (at + 255).min(entries - 1)),
                    256,
                )
            };
            bodies.push(fetch(&format!("{}{path}", log.url)));
            at += step;
        }
    }
    let options = ReadOptions::default();
    let (mut scratch, mut reading) = (Scratch::new(), Reading::default());
    let start = process_cpu();
    let mut count = 0;
    for body in &bodies {
        let input = Input::open(body).expect("a page");
        for raw in input.entries() {
            let raw = raw.expect("an entry");
            let (hash, entry) = raw.decode_hashed(&mut scratch);
            entry
                .expect("an entry")
                .read(&options, &mut reading)
                .expect("a certificate");
            count += u64::from(hash.is_some());
        }
    }
    assert_eq!(count, entries * logs.len() as u64);
    process_cpu().saturating_sub(start)
}

fn tile(index: u64, entries: u64) -> String {
    let mut path = format!("{:03}", index % 1_000);
    let mut rest = index / 1_000;
    while rest > 0 {
        path = format!("x{:03}/{path}", rest % 1_000);
        rest /= 1_000;
    }
    let width = (entries - index * 256).min(256);
    let part = if width < 256 {
        format!(".p/{width}")
    } else {
        String::new()
    };
    format!("tile/data/{path}{part}")
}

/// The body of an answer; nothing here is hostile.
fn fetch(url: &str) -> Vec<u8> {
    let rest = url.strip_prefix("http://").expect("http");
    let (host, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("the simulator");
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .expect("asked");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answered");
    let head = answer
        .windows(4)
        .position(|end| end == b"\r\n\r\n")
        .expect("a head");
    assert!(
        answer.starts_with(b"HTTP/1.1 200"),
        "{url}: {}",
        String::from_utf8_lossy(&answer[..head])
    );
    answer.split_off(head + 4)
}
