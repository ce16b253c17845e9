//! Entries of real logs, through both protocols.

use std::collections::BTreeSet;

use serde_json::Value;
use tamis_ct_log::certificate::ReadOptions;
use tamis_ct_log::input::{Chain, Kind, Scratch};
use tamis_ct_log::leaf::LeafBody;
use tamis_ct_log::{Deviation, Input, Reading};

use crate::{hex, identifier, identifiers, read, readings, testdata};

const TILE: &str = "ct/static/navigli2025h2/tile/data/000";
const BODY: &str = "ct/rfc6962/navigli2025h2_get-entries.json.gz";

/// Seconds since 1970 of `2014-01-15T14:53:24Z`; a year may have fewer digits.
pub(crate) fn unix_seconds(text: &str) -> i64 {
    let text = format!("{text:0>20}");
    let number = |range: std::ops::Range<usize>| text[range].parse::<i64>().unwrap();
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut days: i64 = (1970..year)
        .map(|year| if is_leap(year) { 366 } else { 365 })
        .sum();
    days -= (year..1970)
        .map(|year| if is_leap(year) { 366 } else { 365 })
        .sum::<i64>();
    let lengths = [
        31,
        if is_leap(year) { 29 } else { 28 },
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    days += lengths
        .iter()
        .take(usize::try_from(month).unwrap() - 1)
        .sum::<i64>()
        + day
        - 1;
    days * 86_400 + number(11..13) * 3_600 + number(14..16) * 60 + number(17..19)
}

#[test]
fn names_tile_equals_our_names() {
    let lines = String::from_utf8(testdata("ct/static/navigli2025h2/tile/names/000")).unwrap();
    let readings = readings(&testdata(TILE));
    assert_eq!((readings.len(), lines.lines().count()), (256, 256));
    for (index, (reading, line)) in readings.iter().zip(lines.lines()).enumerate() {
        let expected: Value = serde_json::from_str(line).unwrap();
        assert_eq!(reading.log_index, Some(index as u64));
        assert_eq!(reading.timestamp_ms, expected["Timestamp"].as_u64());
        let mut names: BTreeSet<String> = BTreeSet::new();
        for dns in expected["DNS"].as_array().into_iter().flatten() {
            names.insert(identifier(dns.as_str().unwrap().as_bytes()));
        }
        for ip in expected["IP"].as_array().into_iter().flatten() {
            names.insert(format!("ip:{}", ip.as_str().unwrap()));
        }
        let common_name = expected["Subject"]["CommonName"].as_str();
        assert_eq!(reading.common_names().next(), common_name, "entry {index}");
        names.extend(common_name.map(|name| identifier(name.as_bytes())));
        assert_eq!(
            identifiers(reading),
            names.into_iter().collect::<Vec<_>>(),
            "entry {index}"
        );
        assert!(
            reading.deviations.is_empty(),
            "entry {index}: {:?}",
            reading.deviations
        );
    }
}

#[test]
fn both_protocols_give_the_same() {
    let (tile, body) = (testdata(TILE), testdata(BODY));
    assert_eq!(Input::open(&tile).unwrap().kind(), Kind::DataTile);
    let input = Input::open(&body).unwrap();
    assert_eq!((input.kind(), input.is_compressed()), (Kind::Entries, true));
    let (tile, body) = (readings(&tile), readings(&body));
    assert_eq!(tile.len(), body.len());
    for (tile, body) in tile.iter().zip(&body) {
        same(tile, body);
    }
}

/// Whether two readings agree in all that is public.
pub(crate) fn same(a: &Reading, b: &Reading) {
    let all = |reading: &Reading| {
        let times = [reading.not_before, reading.not_after];
        let marks = (
            reading.precert,
            reading.timestamp_ms,
            reading.log_index,
            reading.sct_timestamp_ms,
        );
        let keys = (reading.fingerprint, reading.issuance, reading.issuer_key_hash);
        let names: Vec<String> = identifiers(reading);
        let common_names: Vec<String> = reading.common_names().map(str::to_owned).collect();
        let texts = (
            reading.issuer().to_vec(),
            reading.subject_organisation().map(str::to_owned),
        );
        (
            keys,
            times,
            marks,
            names,
            common_names,
            texts,
            reading.serial().to_vec(),
            reading.deviations,
        )
    };
    assert_eq!(all(a), all(b));
}

#[test]
fn leaf_hashes_of_both_protocols_are_those_of_the_tile() {
    let hashes = testdata("ct/static/navigli2025h2/tile/0/000");
    for path in [TILE, BODY] {
        let bytes = testdata(path);
        let input = Input::open(&bytes).unwrap();
        let mut scratch = Scratch::new();
        let mut count = 0;
        for (raw, expected) in input.entries().zip(hashes.chunks_exact(32)) {
            let raw = raw.unwrap();
            let entry = raw.decode(&mut scratch).unwrap();
            assert_eq!(
                hex(&entry.leaf.unwrap().hash()),
                hex(expected),
                "{path} entry {}",
                entry.ordinal
            );
            count += 1;
        }
        assert_eq!(count, 256);
    }
}

#[test]
fn chains_are_read_when_asked_for() {
    let (tile, body) = (testdata(TILE), testdata(BODY));
    let (tile, body) = (Input::open(&tile).unwrap(), Input::open(&body).unwrap());
    let (mut scratch, mut other) = (Scratch::new(), Scratch::new());
    for (tile, body) in tile.entries().zip(body.entries()) {
        let (tile, body) = (tile.unwrap(), body.unwrap());
        let Chain::Fingerprints(fingerprints) = tile.decode_chain(&mut scratch).unwrap() else {
            panic!()
        };
        let Chain::Certificates(certificates) = body.decode_chain(&mut other).unwrap() else {
            panic!()
        };
        let of_body: Vec<[u8; 32]> = certificates.map(|der| read(der).fingerprint.unwrap()).collect();
        assert_eq!(of_body.concat(), fingerprints);
    }
}

#[test]
fn live_entries_agree_with_certstream() {
    let bytes = testdata("ct/rfc6962/live_ct.json");
    let expected: Vec<Value> = serde_json::from_slice(&bytes).unwrap();
    let readings = readings(&bytes);
    assert_eq!((readings.len(), expected.len()), (40, 40));
    let input = Input::open(&bytes).unwrap();
    let mut precerts = 0;
    for ((reading, expected), raw) in readings.iter().zip(&expected).zip(input.entries()) {
        assert_eq!(reading.log_index, expected["cert_index"].as_u64());
        assert_eq!(raw.unwrap().log_url().as_deref(), expected["log_url"].as_str());
        certstream(reading, &expected["expected_full"]);
        precerts += usize::from(reading.precert);
    }
    assert_eq!(precerts, 14);
}

#[test]
fn synthetic_certificates_agree_with_certstream() {
    let expected: Vec<Value> = serde_json::from_slice(&testdata("ct/rfc6962/synthetic.json")).unwrap();
    assert_eq!(expected.len(), 11);
    for expected in &expected {
        let der = base64_simd::STANDARD
            .decode_to_vec(expected["der_b64"].as_str().unwrap())
            .unwrap();
        certstream(&read(&der), &expected["expected_full"]);
    }
}

/// Compares with a message of certstream-server-rust. Its `all_domains` holds every common name, host
/// or not, and no addresses.
fn certstream(reading: &Reading, message: &Value) {
    let message: Value = serde_json::from_str(message.as_str().unwrap()).unwrap();
    let data = &message["data"];
    let leaf = &data["leaf_cert"];
    assert_eq!(reading.precert, data["update_type"] == "PrecertLogEntry");
    assert_eq!(reading.not_before, leaf["not_before"].as_i64());
    assert_eq!(reading.not_after, leaf["not_after"].as_i64());
    let serial = tamis_ct_log::certificate::parse_serial(leaf["serial_number"].as_str().unwrap()).unwrap();
    assert_eq!(
        tamis_ct_log::certificate::canonical_serial(reading.serial()),
        serial
    );
    let fingerprint = leaf["sha256"].as_str().unwrap().replace(':', "").to_lowercase();
    assert_eq!(hex(&reading.fingerprint.unwrap()), fingerprint);
    let common_names: Vec<&str> = reading.common_names().collect();
    let theirs: BTreeSet<String> = leaf["all_domains"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .filter(|name| name.contains('.') || !common_names.contains(name))
        .map(|name| identifier(name.as_bytes()))
        .collect();
    let ours: BTreeSet<String> = identifiers(reading)
        .into_iter()
        .filter(|name| name.starts_with("host:") || name.starts_with("wildcard:"))
        .collect();
    assert_eq!(ours, theirs);
}

#[test]
fn entries_of_the_first_years() {
    let all: Value = serde_json::from_slice(&testdata("ct/rfc6962/ctgo_scanner.json")).unwrap();
    let body = serde_json::to_vec(&all["FourEntries"]).unwrap();
    let four = readings(&body);
    assert_eq!(four.len(), 4);
    let commons: Vec<&str> = four.iter().flat_map(Reading::common_names).collect();
    assert_eq!(
        commons,
        [
            "mail.google.com",
            "www.struleartscentre.purchase-tickets-online.co.uk",
            "www.netkeiba.com",
            "www.oxfordplayhouse.com"
        ]
    );
    // The whole file is JSON with these objects inside, and with bare texts that are none.
    assert_eq!(readings(&testdata("ct/rfc6962/ctgo_scanner.json")).len(), 4);
    for name in ["Entry0", "Entry1", "Entry2", "Entry3"] {
        let leaf = base64_simd::STANDARD
            .decode_to_vec(all[name].as_str().unwrap())
            .unwrap();
        let leaf = tamis_ct_log::leaf::Leaf::parse(&leaf).unwrap();
        match leaf.body {
            LeafBody::X509(der) => assert!(read(der).not_after.is_some()),
            LeafBody::Precert { tbs, .. } => {
                let mut reading = Reading::new();
                let options = ReadOptions::default();
                tamis_ct_log::certificate::read_precert_entry(tbs, None, &options, &mut reading).unwrap();
                assert!(reading.deviations.contains(Deviation::PrecertMissing));
                assert!(reading.not_after.is_some() && reading.fingerprint.is_none());
            }
        }
    }
}

#[test]
fn a_recorded_response_of_a_large_log() {
    let readings = readings(&testdata(
        "ct/rfc6962/recorded/get-entries-start-10000-end-10000.json",
    ));
    let [reading] = readings.as_slice() else {
        panic!("{} readings", readings.len())
    };
    assert!(!reading.precert);
    assert_eq!(reading.common_names().count(), 1);
    assert!(reading.names().len() >= 1);
}

/// A leaf of type x509 with this certificate and these extensions, as a tile has it.
fn x509_tile_leaf(der: &[u8], extensions: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(der.len()).unwrap().to_be_bytes();
    let extensions_length = u16::try_from(extensions.len()).unwrap().to_be_bytes();
    let timestamp = 1_700_000_000_000u64.to_be_bytes();
    [
        &timestamp[..],
        &[0, 0],
        &length,
        der,
        &extensions_length,
        extensions,
        &[0, 0],
    ]
    .concat()
}

#[test]
fn archived_leaves_have_no_index_and_damaged_ones_keep_their_names() {
    let der = testdata("certs/odd_real/google_cert.der");
    let index = [0, 0, 5, 0, 0, 1, 0, 7];
    let tile = [
        x509_tile_leaf(&der, &[]),
        x509_tile_leaf(&der, &index),
        x509_tile_leaf(&der, &index[..5]),
    ];
    let [archived, indexed, damaged] = <[Reading; 3]>::try_from(readings(&tile.concat())).unwrap();
    assert_eq!(
        (archived.log_index, indexed.log_index, damaged.log_index),
        (None, Some(65_543), None)
    );
    assert!(archived.deviations.is_empty() && indexed.deviations.is_empty());
    assert!(damaged.deviations.contains(Deviation::LeafExtensionsUnreadable));
    assert_eq!(identifiers(&damaged), identifiers(&archived));
}

#[test]
fn a_precertificate_in_an_entry_for_certificates_is_told() {
    let pem = testdata("ct/sct/test-embedded-pre-cert.pem");
    let input = Input::open(&pem).unwrap();
    let mut scratch = Scratch::new();
    let raw = input.entries().next().unwrap().unwrap();
    let der = raw.decode(&mut scratch).unwrap().submitted.unwrap().to_vec();
    let [reading] = <[Reading; 1]>::try_from(readings(&x509_tile_leaf(&der, &[]))).unwrap();
    assert!(reading.precert && reading.deviations.contains(Deviation::PoisonInX509Entry));
    let [certificate] =
        <[Reading; 1]>::try_from(readings(&testdata("ct/sct/test-embedded-cert.pem"))).unwrap();
    assert_eq!(reading.issuance, certificate.issuance);
}
