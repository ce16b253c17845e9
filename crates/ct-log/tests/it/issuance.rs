//! That a precertificate and its certificate meet, and nothing else does.

use std::collections::HashMap;

use tamis_ct_log::certificate::{self, ReadOptions};
use tamis_ct_log::{Deviation, Reading};

use crate::{all_certificates, identifiers, read, readings, testdata};

fn sct(file: &str) -> Vec<u8> {
    testdata(&format!("ct/sct/{file}"))
}

/// The reading of an input with one certificate.
fn one(bytes: &[u8]) -> Reading {
    let [reading] = <[Reading; 1]>::try_from(readings(bytes)).unwrap();
    reading
}

#[test]
fn precertificates_of_the_issuer_itself_meet_their_certificates() {
    for kind in ["", "with-intermediate-"] {
        let precert = sct(&format!("test-embedded-{kind}pre-cert.pem"));
        let precert = one(&precert);
        let certificate = one(&sct(&format!("test-embedded-{kind}cert.pem")));
        assert!(precert.precert && !certificate.precert);
        assert!(precert.deviations.contains(Deviation::PrecertWithoutIssuer));
        assert_eq!(precert.issuance, certificate.issuance, "{kind}");
        assert_ne!(precert.fingerprint, certificate.fingerprint);
        assert!(certificate.sct_timestamp_ms.is_some());
    }
}

#[test]
fn precertificates_of_a_signing_certificate_meet_theirs_through_it() {
    for (kind, signer) in [
        ("with-preca-", "ca-pre-cert.pem"),
        ("with-intermediate-preca-", "intermediate-pre-cert.pem"),
    ] {
        let precert = sct(&format!("test-embedded-{kind}pre-cert.pem"));
        let certificate = one(&sct(&format!("test-embedded-{kind}cert.pem")));

        let alone = one(&precert);
        assert_ne!(alone.issuance, certificate.issuance);
        assert!(alone.deviations.contains(Deviation::PrecertWithoutIssuer));

        let bundle = [precert.clone(), sct(signer)].concat();
        let [through, signer_reading] = <[Reading; 2]>::try_from(readings(&bundle)).unwrap();
        assert_eq!(through.issuance, certificate.issuance, "{kind}");
        assert!(through.deviations.contains(Deviation::PrecertSigningCertificate));
        assert!(!signer_reading.precert);

        // The same chain as DER files in a row, and as an add-pre-chain body.
        let pem = |bytes: &[u8]| {
            let input = tamis_ct_log::Input::open(bytes).unwrap();
            let mut scratch = tamis_ct_log::input::Scratch::new();
            let raw = input.entries().next().unwrap().unwrap();
            raw.decode(&mut scratch).unwrap().submitted.unwrap().to_vec()
        };
        let (precert_der, signer_der) = (pem(&precert), pem(&sct(signer)));
        let row = readings(&[precert_der.clone(), signer_der.clone()].concat());
        assert_eq!(row[0].issuance, certificate.issuance);
        let base64 = |der: &[u8]| base64_simd::STANDARD.encode_to_string(der);
        let body = format!(
            "{{\"chain\":[\"{}\", \"{}\"]}}",
            base64(&precert_der),
            base64(&signer_der)
        );
        let in_body = one(body.as_bytes());
        assert_eq!(in_body.issuance, certificate.issuance);

        // Another certificate in its place changes nothing.
        let mut reading = Reading::new();
        let options = ReadOptions::default();
        certificate::read(&precert_der, Some(&precert_der), &options, &mut reading).unwrap();
        assert_eq!(reading.issuance, alone.issuance);
        assert!(reading.deviations.is_empty(), "{:?}", reading.deviations);
    }
}

#[test]
fn the_leaf_of_an_entry_meets_the_submitted_precertificate() {
    let input = testdata("ct/rfc6962/live_ct.json");
    let input = tamis_ct_log::Input::open(&input).unwrap();
    let mut scratch = tamis_ct_log::input::Scratch::new();
    let (mut entry_reading, mut own_reading) = (Reading::new(), Reading::new());
    let mut count = 0;
    for raw in input.entries() {
        let raw = raw.unwrap();
        let entry = raw.decode(&mut scratch).unwrap();
        entry.read(&ReadOptions::default(), &mut entry_reading).unwrap();
        if !entry_reading.precert {
            continue;
        }
        let submitted = entry.submitted.unwrap();
        certificate::read(submitted, None, &ReadOptions::default(), &mut own_reading).unwrap();
        assert!(own_reading.precert);
        assert_eq!(own_reading.issuance, entry_reading.issuance);
        assert_eq!(own_reading.fingerprint, entry_reading.fingerprint);
        count += 1;
    }
    assert_eq!(count, 14);
}

#[test]
fn a_real_certificate_meets_its_precertificate() {
    let certificate = one(&testdata("certs/pyca/cryptography-scts.pem"));
    let tbs = testdata("certs/pyca/cryptography-scts-tbs-precert.der");
    let mut reading = Reading::new();
    certificate::read_precert_entry(&tbs, None, &ReadOptions::default(), &mut reading).unwrap();
    assert_eq!(reading.issuance, certificate.issuance);
}

/// Those of one issuance agree in everything but poison, timestamps and signature.
#[test]
fn different_certificates_never_meet() {
    let mut by_issuance: HashMap<[u8; 16], (String, Reading)> = HashMap::new();
    let mut shared = 0;
    for (from, der) in all_certificates() {
        let mut reading = Reading::new();
        if certificate::read(&der, None, &ReadOptions::default(), &mut reading).is_err() {
            continue;
        }
        let fields = |reading: &Reading| {
            let keys = (reading.serial().to_vec(), reading.issuer().to_vec());
            (keys, identifiers(reading), reading.not_before, reading.not_after)
        };
        if let Some((other, first)) = by_issuance.get(&reading.issuance) {
            assert_eq!(fields(first), fields(&reading), "{from} and {other}");
            shared += 1;
        } else {
            by_issuance.insert(reading.issuance, (from, reading));
        }
    }
    assert!(
        shared > 0 && by_issuance.len() > 500,
        "{shared} of {}",
        by_issuance.len()
    );
}

#[test]
fn every_bit_of_the_tbs_counts() {
    let der = all_certificates()
        .into_iter()
        .find(|(from, _)| from.contains("test-embedded-cert"))
        .unwrap()
        .1;
    let original = read(&der);
    // Content of the TBS, up to where the embedded timestamps start.
    let scts = memchr::memmem::find(&der, &[0x2b, 6, 1, 4, 1, 0xd6, 0x79, 2, 4, 2]).unwrap() - 8;
    let headers = 8;
    for at in headers..scts {
        let mut changed = der.clone();
        changed[at] ^= 1;
        let mut reading = Reading::new();
        if certificate::read(&changed, None, &ReadOptions::default(), &mut reading).is_ok() {
            let is_header = reading.issuance == original.issuance;
            // Only the headers around the extensions, whose lengths differ between the two, are free.
            assert!(
                !is_header || reading.deviations != original.deviations || in_list_header(&der, at),
                "byte {at}"
            );
        }
    }
}

fn in_list_header(der: &[u8], at: usize) -> bool {
    let around = |at: usize| {
        der.get(at..at + 3)
            .is_some_and(|window| matches!(window, [0xa3, 0x81 | 0x82, _]))
    };
    (at.saturating_sub(6)..=at).any(around)
}

#[test]
fn the_logged_form_of_a_certificate_is_the_same_issuance() {
    let structural = tamis_ct_log::Deviations::of(&[
        Deviation::Unparsed,
        Deviation::IndefiniteLength,
        Deviation::OverrunLength,
        Deviation::OddTag,
        Deviation::ExtensionUnreadable,
    ]);
    let mut same = 0;
    for (path, der) in all_certificates() {
        let Some(tbs) = certificate::logged_tbs(&der, None) else {
            continue;
        };
        let (mut whole, mut logged) = (Reading::new(), Reading::new());
        certificate::read(&der, None, &ReadOptions::default(), &mut whole).unwrap();
        certificate::read_precert_entry(&tbs, None, &ReadOptions::default(), &mut logged).unwrap();
        if whole.deviations.intersects(structural) {
            continue;
        }
        assert_eq!(logged.issuance, whole.issuance, "{path}");
        assert_eq!(identifiers(&logged), identifiers(&whole), "{path}");
        same += 1;
    }
    assert!(same > 500, "{same}");
}
