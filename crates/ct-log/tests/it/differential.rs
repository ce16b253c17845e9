//! Against x509-parser, a strict and independent reader: where it takes a certificate in full, both
//! must have read the same.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tamis_ct_log::certificate::{self, ReadOptions};
use tamis_ct_log::input::Scratch;
use tamis_ct_log::{Deviation, Input, Reading};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::{all_certificates, identifier, identifiers, testdata};

/// What x509-parser reads, if it takes all of the bytes.
struct Theirs {
    serial: Vec<u8>,
    not_before: i64,
    not_after: i64,
    dns: BTreeSet<String>,
}

fn theirs(der: &[u8]) -> Option<Theirs> {
    let (rest, certificate) = X509Certificate::from_der(der).ok()?;
    if !rest.is_empty() {
        return None;
    }
    let mut dns = BTreeSet::new();
    // A list that it does not take, or that comes twice, is no answer.
    for extension in certificate.extensions() {
        let is_san = extension.oid.as_bytes() == [0x55, 0x1d, 17];
        match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(names) => {
                if names
                    .general_names
                    .iter()
                    .any(|name| matches!(name, GeneralName::Invalid(..)))
                {
                    return None;
                }
                let texts = names.general_names.iter().filter_map(|name| match name {
                    GeneralName::DNSName(text) => Some(identifier(text.as_bytes())),
                    _ => None,
                });
                dns.extend(texts.filter(|name| name != "other:"));
            }
            _ if is_san => return None,
            _ => {}
        }
    }
    let validity = certificate.validity();
    Some(Theirs {
        serial: certificate.raw_serial().to_vec(),
        not_before: validity.not_before.timestamp(),
        not_after: validity.not_after.timestamp(),
        dns,
    })
}

/// Compares the two; says whether there was anything to compare.
fn compare(from: &str, der: &[u8]) -> bool {
    let Some(theirs) = theirs(der) else { return false };
    let mut reading = Reading::new();
    let outcome = certificate::read(
        der,
        None,
        &ReadOptions {
            names_max: 100_000,
            ..ReadOptions::default()
        },
        &mut reading,
    );
    outcome.unwrap_or_else(|error| panic!("{from}: {error}"));
    assert_eq!(reading.serial(), theirs.serial, "{from}");
    assert_eq!(
        reading.not_before,
        Some(theirs.not_before),
        "{from}: {:?}",
        reading.deviations
    );
    assert_eq!(
        reading.not_after,
        Some(theirs.not_after),
        "{from}: {:?}",
        reading.deviations
    );
    let ours: BTreeSet<String> = identifiers(&reading).into_iter().collect();
    for name in &theirs.dns {
        assert!(ours.contains(name), "{from}: {name} is missing from {ours:?}");
    }
    let common: BTreeSet<String> = reading
        .common_names()
        .map(|name| identifier(name.as_bytes()))
        .collect();
    for name in ours
        .iter()
        .filter(|name| name.starts_with("host:") || name.starts_with("wildcard:"))
    {
        // Where an extension swallows the list of names, only we look inside it.
        let salvaged = reading.deviations.contains(Deviation::SanSalvaged);
        assert!(
            salvaged || theirs.dns.contains(name) || common.contains(name),
            "{from}: {name} is not in {:?}",
            theirs.dns
        );
    }
    assert!(!reading.deviations.contains(Deviation::Unparsed), "{from}");
    true
}

fn logged_certificates() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for path in [
        "ct/rfc6962/navigli2025h2_get-entries.json.gz",
        "ct/rfc6962/live_ct.json",
        "ct/rfc6962/itko2025_get-roots.json",
    ] {
        let bytes = testdata(path);
        let input = Input::open(&bytes).unwrap();
        let mut scratch = Scratch::new();
        for raw in input.entries() {
            let raw = raw.unwrap();
            let entry = raw.decode(&mut scratch).unwrap();
            all.push((
                format!("{path}#{}", entry.ordinal),
                entry.submitted.unwrap().to_vec(),
            ));
        }
    }
    all
}

fn everything() -> &'static [(String, Vec<u8>)] {
    static ALL: std::sync::OnceLock<Vec<(String, Vec<u8>)>> = std::sync::OnceLock::new();
    ALL.get_or_init(|| [all_certificates(), logged_certificates()].concat())
}

#[test]
fn agrees_on_every_certificate() {
    let compared = everything()
        .iter()
        .filter(|(from, der)| compare(from, der))
        .count();
    let total = everything().len();
    assert!(compared > total * 9 / 10, "{compared} of {total}");
}

proptest! {
    // More with PROPTEST_CASES.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_on_changed_certificates(
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let (from, der) = which.get(everything());
        let mut der = der.clone();
        let mut places = String::new();
        for (at, byte) in changes {
            let at = at.index(der.len());
            let around = at.saturating_sub(6)..(at + 7).min(der.len());
            places += &format!("; {byte:02x} at byte {at} of {}", crate::hex(&der[around]));
            der[at] = byte;
        }
        compare(&format!("{from}{places}"), &der);
    }
}
