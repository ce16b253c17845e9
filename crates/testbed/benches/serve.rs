//! What a simulated log costs: entries a second over one kept connection, by both interfaces, beside the
//! same bytes sent by a thread that only writes. The difference is what the simulator takes from a reader
//! that shares its cores.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use tamis_testbed::ctlog::{LogKind, LogOptions, World, WorldOptions};

const ENTRIES: u64 = 51_200;
const PAGE: u64 = 256;
const ROUNDS: u32 = 8;

fn main() {
    // `cargo test --benches` passes no `--bench`: one tile shows that it runs.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let entries = if is_bench { ENTRIES } else { PAGE };
    let started = Instant::now();
    let world = World::start(WorldOptions {
        logs: vec![
            LogOptions::new("pages", LogKind::Rfc6962).entries(entries),
            LogOptions::new("tiles", LogKind::Static).entries(entries),
        ],
        ..WorldOptions::default()
    })
    .expect("a world");
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "made 2 logs of {entries} entries in {seconds:.2} s, resident {} MB",
        resident_mb()
    );
    let pages = (0..entries / PAGE).map(|page| {
        format!(
            "/pages/ct/v1/get-entries?start={}&end={}",
            page * PAGE,
            page * PAGE + PAGE - 1
        )
    });
    let tiles = (0..entries / PAGE).map(|tile| format!("/tiles/mon/tile/data/{tile:03}"));
    for (name, paths) in [
        ("get-entries", pages.collect::<Vec<_>>()),
        ("data tiles", tiles.collect()),
    ] {
        let address = world.url().replace("http://", "");
        let before = cpu_seconds();
        let (seconds, bytes) = read_all(&address, &paths);
        let cpu = cpu_seconds() - before;
        let read = (entries * u64::from(ROUNDS)) as f64;
        println!(
            "{name:12} {:6.3} µs an entry, {:6.3} of both cores, {:9.0} entries/s, {:5.0} MB/s, {:.0} B an entry",
            seconds * 1e6 / read,
            cpu * 1e6 / read,
            read / seconds,
            bytes as f64 / seconds / 1e6,
            bytes as f64 / read,
        );
        let before = cpu_seconds();
        let bare = bare_socket(bytes / u64::from(ROUNDS) / paths.len() as u64, paths.len());
        println!(
            "{:12} {:6.3} µs an entry, {:6.3} of both cores: the socket alone",
            "",
            bare * 1e6 / read,
            (cpu_seconds() - before) * 1e6 / read
        );
    }
}

/// Reads all paths over one connection; seconds and bytes.
fn read_all(address: &str, paths: &[String]) -> (f64, u64) {
    let mut stream = TcpStream::connect(address).expect("the world listens");
    let started = Instant::now();
    let (mut bytes, mut part, mut head) = (0, vec![0; 256 << 10], Vec::new());
    for path in (0..ROUNDS).flat_map(|_| paths) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a request");
        head.clear();
        let (head_bytes, length) = loop {
            let count = stream.read(&mut part).expect("an answer");
            assert!(count > 0, "the world hung up");
            head.extend_from_slice(&part[..count]);
            if let Some(at) = head.windows(4).position(|window| window == b"\r\n\r\n") {
                let text = String::from_utf8_lossy(&head[..at]);
                assert!(text.starts_with("HTTP/1.1 200"), "{text}");
                let length = text.split("Content-Length: ").nth(1).expect("a length");
                let length = length
                    .lines()
                    .next()
                    .expect("a line")
                    .parse::<usize>()
                    .expect("a number");
                break (at + 4, length);
            }
        };
        let mut left = length - (head.len() - head_bytes);
        while left > 0 {
            left -= stream.read(&mut part).expect("a body");
        }
        bytes += length as u64;
    }
    (started.elapsed().as_secs_f64(), bytes)
}

/// Seconds for as many bodies of zeros as were read.
fn bare_socket(body_bytes: u64, bodies: usize) -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let count = bodies * ROUNDS as usize;
    let writer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let body = vec![0; body_bytes as usize];
        let mut request = [0];
        for _ in 0..count {
            stream.read_exact(&mut request).expect("a request");
            stream.write_all(&body).expect("a body");
        }
    });
    let mut stream = TcpStream::connect(address).expect("it listens");
    let started = Instant::now();
    let mut part = vec![0; 256 << 10];
    for _ in 0..count {
        stream.write_all(&[1]).expect("a request");
        let mut left = body_bytes as usize;
        while left > 0 {
            left -= stream.read(&mut part).expect("a body");
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    writer.join().expect("the writer ends");
    seconds
}

/// Of the whole process, in hundredths of a second.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = after_name.split(' ').skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|kb| kb.parse::<u64>().ok())
        .unwrap_or(0)
        / 1_000
}
