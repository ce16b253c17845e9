//! What reading costs beside x509-parser in the same run: `cargo bench -p tamis-ct-log`.
//!
//! Rounds of both sides alternate, so that a busy machine slows both; medians are printed with their
//! ratio, and the best round of each, which other work on the machine disturbs least. The peer yields owned names, common names, serial number and dates, without any hash.

use std::hint::black_box;
use std::time::Instant;

use tamis_ct_log::certificate::{self, Hashes, ReadOptions};
use tamis_ct_log::input::Scratch;
use tamis_ct_log::{Input, Reading};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

const BODY_GZ: &[u8] = include_bytes!("../../../testdata/ct/rfc6962/navigli2025h2_get-entries.json.gz");
const LIVE: &[u8] = include_bytes!("../../../testdata/ct/rfc6962/live_ct.json");
const TILE: &[u8] = include_bytes!("../../../testdata/ct/static/navigli2025h2/tile/data/000");
const ROUNDS: usize = 301;

fn main() {
    // `cargo test --benches` passes no `--bench`: one round shows that it runs.
    let rounds = if std::env::args().any(|argument| argument == "--bench") {
        ROUNDS
    } else {
        1
    };
    let body = inflated();
    let mut certificates = submitted(&body);
    certificates.extend(submitted(LIVE));
    let bytes: usize = certificates.iter().map(Vec::len).sum();
    println!(
        "{} certificates of {} bytes on average; nanoseconds each",
        certificates.len(),
        bytes / certificates.len()
    );
    let bench = Bench {
        rounds,
        units: certificates.len(),
    };
    let both = ReadOptions::default();
    let neither = ReadOptions {
        hashes: Hashes::Neither,
        ..both
    };
    let (mut one, mut other) = (Reading::new(), Reading::new());
    let mut peer = || certificates.iter().map(|der| x509_parser_names(der)).sum();
    bench.compare(
        "certificate, names alone",
        &mut || read_all(&certificates, &neither, &mut one),
        &mut peer,
    );
    bench.compare(
        "certificate, two hashes",
        &mut || read_all(&certificates, &both, &mut other),
        &mut peer,
    );

    let bench = Bench { rounds, units: 256 };
    let (mut scratch, mut reading) = (Scratch::new(), Reading::new());
    let mut peer = || serde_json_peer(&body);
    let mut ours = |bytes: &[u8], options: &ReadOptions| entries(bytes, options, &mut scratch, &mut reading);
    bench.compare(
        "get-entries, names alone",
        &mut || ours(&body, &neither),
        &mut peer,
    );
    bench.compare("get-entries, two hashes", &mut || ours(&body, &both), &mut peer);
    bench.compare("get-entries, framing alone", &mut || frame(&body), &mut peer);
    bench.compare("data tile, names alone", &mut || ours(TILE, &neither), &mut peer);
    bench.compare("data tile, two hashes", &mut || ours(TILE, &both), &mut peer);
}

struct Bench {
    rounds: usize,
    units: usize,
}

impl Bench {
    fn compare(&self, what: &str, ours: &mut dyn FnMut() -> usize, peer: &mut dyn FnMut() -> usize) {
        // `cargo bench -- "data tile"` runs the ones with this in their names.
        let mut only = std::env::args()
            .skip(1)
            .filter(|argument| !argument.starts_with("--"));
        if only.next().is_some_and(|only| !what.contains(&only)) {
            return;
        }
        let (mut our_times, mut peer_times) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            our_times.push(timed(ours));
            peer_times.push(timed(peer));
        }
        let (ours, peer) = (self.each(&mut our_times), self.each(&mut peer_times));
        let ratio = peer.median / ours.median;
        println!(
            "{what:26} {:7.0} (best {:6.0})   peer {:7.0} (best {:6.0})   ratio {ratio:5.1}",
            ours.median, ours.best, peer.median, peer.best
        );
    }

    #[expect(clippy::cast_precision_loss, reason = "times fit")]
    fn each(&self, times: &mut [u128]) -> Times {
        times.sort_unstable();
        let per_unit = |time: Option<&u128>| time.map_or(0.0, |&time| time as f64 / self.units as f64);
        Times {
            median: per_unit(times.get(times.len() / 2)),
            best: per_unit(times.first()),
        }
    }
}

/// Nanoseconds per certificate or entry.
struct Times {
    median: f64,
    best: f64,
}

fn timed(work: &mut dyn FnMut() -> usize) -> u128 {
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_nanos()
}

fn inflated() -> Vec<u8> {
    Input::open(BODY_GZ)
        .map(|input| input.bytes().to_vec())
        .unwrap_or_default()
}

fn submitted(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut scratch = Scratch::new();
    let Ok(input) = Input::open(bytes) else {
        return Vec::new();
    };
    let raw = input.entries().flatten();
    raw.filter_map(|raw| raw.decode(&mut scratch).ok()?.submitted.map(<[u8]>::to_vec))
        .collect()
}

fn read_all(certificates: &[Vec<u8>], options: &ReadOptions, reading: &mut Reading) -> usize {
    let mut names = 0;
    for der in certificates {
        let read = certificate::read(black_box(der), None, options, reading);
        names += read.map_or(0, |()| reading.names().len());
    }
    names
}

fn entries(bytes: &[u8], options: &ReadOptions, scratch: &mut Scratch, reading: &mut Reading) -> usize {
    let Ok(input) = Input::open(black_box(bytes)) else {
        return 0;
    };
    let mut names = 0;
    for raw in input.entries().flatten() {
        let read = raw.decode(scratch).and_then(|entry| entry.read(options, reading));
        names += read.map_or(0, |()| reading.names().len());
    }
    names
}

fn frame(bytes: &[u8]) -> usize {
    Input::open(black_box(bytes)).map_or(0, |input| input.entries().count())
}

fn x509_parser_names(der: &[u8]) -> usize {
    let Ok((_, certificate)) = X509Certificate::from_der(black_box(der)) else {
        return 0;
    };
    let mut names: Vec<String> = Vec::new();
    if let Ok(Some(extension)) = certificate.subject_alternative_name() {
        names.extend(
            extension
                .value
                .general_names
                .iter()
                .filter_map(|name| match name {
                    GeneralName::DNSName(name) => Some((*name).to_owned()),
                    _ => None,
                }),
        );
    }
    names.extend(
        certificate
            .subject()
            .iter_common_name()
            .filter_map(|name| name.as_str().ok().map(str::to_owned)),
    );
    black_box(certificate.raw_serial().to_vec());
    black_box((
        certificate.validity().not_before.timestamp(),
        certificate.validity().not_after.timestamp(),
    ));
    black_box(names).len()
}

/// Owned JSON, both fields decoded whole, then the same names.
fn serde_json_peer(body: &[u8]) -> usize {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(black_box(body)) else {
        return 0;
    };
    let Some(entries) = value.get("entries").and_then(serde_json::Value::as_array) else {
        return 0;
    };
    let decode = |entry: &serde_json::Value, field| {
        base64_simd::STANDARD
            .decode_to_vec(entry.get(field)?.as_str()?)
            .ok()
    };
    let mut names = 0;
    for entry in entries {
        let (Some(leaf), Some(extra)) = (decode(entry, "leaf_input"), decode(entry, "extra_data")) else {
            continue;
        };
        let der = match leaf.get(11) {
            Some(0) => leaf.get(15..),
            _ => extra.get(3..),
        };
        names += der.map_or(0, x509_parser_names);
    }
    names
}
