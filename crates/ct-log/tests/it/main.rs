//! What the crate reads, against real data and against what other parsers read from the same bytes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod differential;
mod expected;
mod hostile;
mod inputs;
mod issuance;
mod lists;
mod logs;
mod verify;

use std::path::PathBuf;

use tamis_ct_log::certificate::ReadOptions;
use tamis_ct_log::input::Scratch;
use tamis_ct_log::{EntryError, Input, Name, Reading};

/// The bytes of a file below `testdata/`.
fn testdata(path: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of the files in a folder below `testdata/`, but for notes and expectations.
fn files(folder: &str) -> Vec<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(folder);
    let entries = std::fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".pem") || name.ends_with(".der"))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "{folder} is empty");
    names
}

/// The folders of certificates.
const CERTIFICATE_FOLDERS: [&str; 5] = [
    "certs/ctgo_invalid",
    "certs/odd_real",
    "certs/pyca",
    "certs/zlint",
    "ct/sct",
];

/// What became of every entry of an input.
fn read_all(bytes: &[u8]) -> Vec<Result<Reading, EntryError>> {
    let input = Input::open(bytes).unwrap_or_else(|error| panic!("{error}"));
    let mut scratch = Scratch::new();
    let options = ReadOptions::default();
    let entries = input.entries().map(|raw| {
        let mut reading = Reading::new();
        raw?.decode(&mut scratch)?.read(&options, &mut reading)?;
        Ok(reading)
    });
    entries.collect()
}

/// The readings of an input without errors.
fn readings(bytes: &[u8]) -> Vec<Reading> {
    read_all(bytes)
        .into_iter()
        .map(|reading| reading.unwrap_or_else(|error| panic!("{error}")))
        .collect()
}

/// A certificate on its own.
fn read(der: &[u8]) -> Reading {
    let mut reading = Reading::new();
    tamis_ct_log::certificate::read(der, None, &ReadOptions::default(), &mut reading).unwrap();
    reading
}

/// Every identifier, as `host:`, `wildcard:`, `ip:`, `email:` or `other:` and its text, sorted.
fn identifiers(reading: &Reading) -> Vec<String> {
    let mut all = Vec::new();
    for name in reading.names() {
        match name {
            Name::Host {
                host,
                exact,
                wildcard,
            } => {
                assert!(exact || wildcard);
                all.extend(exact.then(|| format!("host:{host}")));
                all.extend(wildcard.then(|| format!("wildcard:{host}")));
            }
            Name::Ip(ip) => all.push(format!("ip:{ip}")),
            Name::Email(email) => all.push(format!("email:{email}")),
            Name::Other(text) => all.push(format!("other:{text}")),
        }
    }
    all.sort();
    all
}

/// The identifier that a raw dNSName reads as, in the form of [`identifiers`].
fn identifier(raw: &[u8]) -> String {
    match tamis_hostname::read(raw) {
        tamis_hostname::Identifier::Host(host) if host.wildcard() => format!("wildcard:{}", host.host()),
        tamis_hostname::Identifier::Host(host) => format!("host:{}", host.host()),
        tamis_hostname::Identifier::Ip(ip) => format!("ip:{ip}"),
        tamis_hostname::Identifier::Email(email) => format!("email:{email}"),
        tamis_hostname::Identifier::Other(text) => format!("other:{text}"),
    }
}

/// Bytes as lower-case hex.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The DER of every certificate in the folders, with where it is from.
fn all_certificates() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for folder in CERTIFICATE_FOLDERS {
        for file in files(folder) {
            let path = format!("{folder}/{file}");
            let bytes = testdata(&path);
            let Ok(input) = Input::open(&bytes) else { continue };
            let mut scratch = Scratch::new();
            for raw in input.entries().flatten() {
                let Ok(entry) = raw.decode(&mut scratch) else {
                    continue;
                };
                all.push((
                    format!("{path}#{}", raw.ordinal()),
                    entry.submitted.unwrap().to_vec(),
                ));
            }
        }
    }
    all
}

/// Whatever these bytes are, as certificate, leaf, tile entry and input.
fn read_any(bytes: &[u8]) {
    let options = ReadOptions::default();
    let mut reading = Reading::new();
    let _ = tamis_ct_log::certificate::read(bytes, Some(bytes), &options, &mut reading);
    let _ = tamis_ct_log::certificate::read_precert_entry(bytes, None, &options, &mut reading);
    let _ = (
        reading.issuer_display(),
        reading.issuer_organisation(),
        reading.serial_hex(),
    );
    let _ = tamis_ct_log::leaf::Leaf::parse(bytes).map(|leaf| (leaf.hash(), leaf.leaf_index()));
    let _ = tamis_ct_log::leaf::TileLeaf::parse(bytes);
    let _ = tamis_ct_log::certificate::logged_tbs(bytes, Some(bytes));
    let _ = tamis_ct_log::certificate::embedded_scts(bytes).map(tamis_ct_log::sct::Sct::list);
    let Ok(input) = Input::open(bytes) else { return };
    let mut scratch = Scratch::new();
    for raw in input.entries().flatten() {
        let _ = raw
            .decode(&mut scratch)
            .map(|entry| entry.read(&options, &mut reading));
        let _ = raw.decode_chain(&mut scratch).is_ok();
    }
}
