//! Every certificate of the folders, against three independent parsers.
//!
//! Where those of them that gave a value agree, it is the right value; where they disagree, no single
//! answer is. DNS names are compared as what `hostname::read` makes of them.

use std::collections::BTreeSet;

use serde_json::Value;
use tamis_ct_log::Reading;

use crate::{CERTIFICATE_FOLDERS, hex, identifier, identifiers, read_all, testdata};

/// (file, what) that differ on purpose, with the argument.
const EXCEPTIONS: &[(&str, &str, &str)] = &[(
    "invalid_ip.pem",
    "ip",
    "eight bytes are an address and a mask as name constraints have them; a name is one address, so they \
     are kept as text in hex, with a deviation",
)];

#[test]
fn agrees_with_the_parsers_that_agree() {
    let mut failures = Vec::new();
    let mut compared = [0usize; 4];
    for folder in CERTIFICATE_FOLDERS {
        let lines = String::from_utf8(testdata(&format!("{folder}/expected.jsonl"))).unwrap();
        for line in lines.lines() {
            let expected: Value = serde_json::from_str(line).unwrap();
            if !expected["label"].as_str().unwrap().ends_with("CERTIFICATE") {
                continue;
            }
            check(folder, &expected, &mut failures, &mut compared);
        }
    }
    assert!(
        failures.is_empty(),
        "{}\n{} failures",
        failures.join("\n"),
        failures.len()
    );
    let [readings, dns, serials, others] = compared;
    // Most of the certificates have no alternative DNS names.
    assert!(
        readings >= 596 && dns >= 300 && serials >= 590 && others >= 2_600,
        "{compared:?}"
    );
}

fn check(folder: &str, expected: &Value, failures: &mut Vec<String>, compared: &mut [usize; 4]) {
    let file = expected["file"].as_str().unwrap();
    let parses = |parser: &str| expected[parser]["parse"] == "ok";
    if !["pyca", "asn1crypto", "openssl"].into_iter().any(parses) {
        return;
    }
    let found = reading_of(folder, expected);
    let Some(reading) = found else {
        failures.push(format!("{folder}/{file}: no reading"));
        return;
    };
    compared[0] += 1;
    let mut same = |slot: usize, what: &str, ours: String, theirs: BTreeSet<String>| {
        let excepted = EXCEPTIONS
            .iter()
            .any(|(name, field, _)| *name == file && *field == what);
        if theirs.len() != 1 || excepted {
            return;
        }
        compared[slot] += 1;
        if !theirs.contains(&ours) {
            failures.push(format!("{folder}/{file}: {what}: {ours} instead of {theirs:?}"));
        }
    };
    same(1, "dns", ours_as_dns(&reading, expected), dns_values(expected));
    same(2, "serial", reading.serial_hex(), serials(expected));
    same(
        3,
        "not_before",
        format!("{:?}", reading.not_before),
        date(expected, "not_before"),
    );
    same(
        3,
        "not_after",
        format!("{:?}", reading.not_after),
        date(expected, "not_after"),
    );
    for (kind, prefixes) in [
        ("ip", ["ip:"; 2]),
        ("email", ["email:", "other:"]),
        ("uri", ["other:"; 2]),
    ] {
        let ours = identifiers(&reading);
        for theirs in expected["pyca"]["san"][kind].as_array().into_iter().flatten() {
            // They give the bytes; we write out what a terminal would obey.
            let theirs = &*tamis_hostname::escape(theirs.as_str().unwrap());
            let found = prefixes
                .iter()
                .any(|prefix| ours.contains(&format!("{prefix}{theirs}")));
            let known = if found || theirs.is_empty() { theirs } else { "" };
            same(3, kind, known.to_owned(), BTreeSet::from([theirs.to_owned()]));
        }
    }
    if parses("pyca") && expected["pyca"]["issuer"].is_string() {
        let issuer = expected["pyca"]["issuer"].as_str().unwrap().to_owned();
        same(3, "issuer", reading.issuer_display(), BTreeSet::from([issuer]));
        let names: Vec<&str> = reading.common_names().collect();
        if let Some(theirs) = expected["pyca"]["subject_cn"].as_array() {
            let theirs: Vec<&str> = theirs.iter().map(|name| name.as_str().unwrap()).collect();
            same(
                3,
                "subject_cn",
                format!("{names:?}"),
                BTreeSet::from([format!("{theirs:?}")]),
            );
        }
        if let Some(poison) = expected["pyca"]["precert_poison"].as_bool() {
            same(
                3,
                "poison",
                reading.precert.to_string(),
                BTreeSet::from([poison.to_string()]),
            );
        }
    }
}

fn reading_of(folder: &str, expected: &Value) -> Option<Reading> {
    let bytes = testdata(&format!("{folder}/{}", expected["file"].as_str().unwrap()));
    let fingerprint = expected["sha256"].as_str().unwrap();
    read_all(&bytes)
        .into_iter()
        .flatten()
        .find(|reading| hex(&reading.fingerprint.unwrap()) == fingerprint)
}

/// The alternative DNS names of each parser that gave any, as identifiers. Empty ones are no names;
/// what OpenSSL printed and was no UTF-8 came through its text with U+FFFD and is not comparable.
fn dns_sets(expected: &Value) -> Vec<BTreeSet<String>> {
    let lists = [
        &expected["pyca"]["san"]["dns"],
        &expected["asn1crypto"]["san_dns"],
    ];
    let lists = lists.into_iter().filter_map(Value::as_array);
    let mut sets: Vec<Vec<&str>> = lists
        .map(|list| list.iter().map(|name| name.as_str().unwrap()).collect())
        .collect();
    if let Some(text) = expected["openssl"]["san_text"].as_str() {
        sets.push(
            text.split(", ")
                .filter_map(|part| part.strip_prefix("DNS:"))
                .collect(),
        );
    }
    let is_comparable = |name: &&str| !name.contains(char::REPLACEMENT_CHARACTER);
    let identifiers = |names: Vec<&str>| {
        let names = names
            .into_iter()
            .filter(is_comparable)
            .map(|name| identifier(name.as_bytes()));
        names.filter(|name| name != "other:").collect()
    };
    sets.into_iter().map(identifiers).collect()
}

fn dns_values(expected: &Value) -> BTreeSet<String> {
    dns_sets(expected)
        .iter()
        .map(|names| format!("{names:?}"))
        .collect()
}

/// Our identifiers without those that are not from dNSNames, as far as the other parsers tell.
fn ours_as_dns(reading: &Reading, expected: &Value) -> String {
    let from_dns: BTreeSet<String> = dns_sets(expected).into_iter().flatten().collect();
    let common: BTreeSet<String> = reading
        .common_names()
        .map(|name| identifier(name.as_bytes()))
        .collect();
    let is_host = |name: &str| name.starts_with("host:") || name.starts_with("wildcard:");
    let ours: BTreeSet<String> = identifiers(reading)
        .into_iter()
        .filter(|name| from_dns.contains(name) || (is_host(name) && !common.contains(name)))
        .collect();
    format!("{ours:?}")
}

fn serials(expected: &Value) -> BTreeSet<String> {
    ["pyca", "asn1crypto", "openssl"]
        .into_iter()
        .filter_map(|parser| expected[parser]["serial"].as_str())
        .map(|serial| {
            let canonical = tamis_ct_log::certificate::parse_serial(serial).unwrap();
            tamis_ct_log::certificate::signed_hex(&canonical)
        })
        .collect()
}

fn date(expected: &Value, field: &str) -> BTreeSet<String> {
    let text = expected["pyca"][field].as_str();
    text.map(|text| format!("{:?}", Some(crate::logs::unix_seconds(text))))
        .into_iter()
        .collect()
}
