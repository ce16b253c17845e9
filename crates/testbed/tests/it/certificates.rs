//! Every certificate parses, says what its issuance says, and agrees with its precertificate.

use crate::entries;
use std::collections::{BTreeMap, BTreeSet};
use tamis_testbed::{Corpus, CorpusOptions, Entry, Kind};
use x509_parser::prelude::*;

const POISON: &str = "1.3.6.1.4.1.11129.2.4.3";
const SCT_LIST: &str = "1.3.6.1.4.1.11129.2.4.2";

fn parse(der: &[u8]) -> X509Certificate<'_> {
    let (rest, certificate) = X509Certificate::from_der(der).expect("DER of a certificate");
    assert!(rest.is_empty());
    certificate
}

fn has_extension(certificate: &X509Certificate<'_>, id: &str) -> bool {
    certificate
        .extensions()
        .iter()
        .any(|extension| extension.oid.to_id_string() == id)
}

#[track_caller]
fn check_entry(entry: &Entry) {
    let certificate = parse(&entry.der);
    let issuance = &entry.issuance;
    let names = certificate
        .subject_alternative_name()
        .expect("one SAN")
        .expect("a SAN")
        .value;
    let (mut dns, mut ip, mut others) = (Vec::new(), None, Vec::new());
    for name in &names.general_names {
        match name {
            GeneralName::DNSName(name) => dns.push((*name).to_owned()),
            GeneralName::IPAddress(address) => ip = <[u8; 4]>::try_from(*address).ok(),
            other => others.push(other),
        }
    }
    assert_eq!(dns, issuance.names);
    assert_eq!(ip, issuance.ip);
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(certificate.raw_serial(), issuance.serial);
    assert_eq!(
        certificate.validity().not_before.timestamp(),
        issuance.not_before as i64
    );
    assert_eq!(
        certificate.validity().not_after.timestamp(),
        issuance.not_after as i64
    );
    let organisation = certificate
        .subject()
        .iter_organization()
        .next()
        .map(|value| value.as_str().expect("UTF-8"));
    assert_eq!(organisation, issuance.organisation.as_deref());
    let common_name = certificate
        .subject()
        .iter_common_name()
        .next()
        .map(|value| value.as_str().expect("UTF-8"));
    assert_eq!(common_name, issuance.common_name.as_deref());
    assert!(certificate.public_key().parsed().is_ok());
    let is_precertificate = entry.kind == Kind::Precertificate;
    assert_eq!(has_extension(&certificate, POISON), is_precertificate);
    assert_eq!(has_extension(&certificate, SCT_LIST), !is_precertificate);
    assert!(certificate.extensions().iter().all(
        |extension| !extension.parsed_extension().unsupported() || extension.oid.to_id_string() == POISON
    ));
}

#[test]
fn certificates_parse_and_say_what_was_issued() {
    let entries = entries(1, 3000);
    entries.iter().for_each(check_entry);
    let bytes: usize = entries.iter().map(|entry| entry.der.len()).sum();
    let mean = bytes / entries.len();
    assert!((1000..1600).contains(&mean), "{mean} B a certificate");
    let distinct: BTreeSet<_> = entries.iter().map(|entry| entry.issuance.issuer).collect();
    assert!(distinct.len() > 40, "{} issuers", distinct.len());
}

/// The TBS of a certificate without the extension `id`, taken apart and joined by x509-parser's
/// ranges, to be independent of the writer.
fn tbs_without(der: &[u8], id: &str) -> Vec<u8> {
    let certificate = parse(der);
    let tbs = certificate.tbs_certificate.as_ref();
    let extension = certificate
        .extensions()
        .iter()
        .find(|extension| extension.oid.to_id_string() == id);
    let value = extension.expect("the extension").value;
    // The extension's SEQUENCE ends where its value ends; its start is found by its own length.
    let value_end = value.as_ptr() as usize - tbs.as_ptr() as usize + value.len();
    let start = (0..value_end)
        .rev()
        .find(|start| {
            tbs[*start] == 0x30
                && X509Extension::from_der(&tbs[*start..]).is_ok_and(|(rest, found)| {
                    tbs.len() - rest.len() == value_end && found.oid.to_id_string() == id
                })
        })
        .expect("start of the extension");
    [&tbs[..start], &tbs[value_end..]].concat()
}

/// Drops tag and length bytes of the three containers whose lengths change with the extension.
fn body_of(tbs_cut: &[u8]) -> Vec<u8> {
    let (header, rest) = tbs_cut.split_at(4);
    assert_eq!(header[..2], [0x30, 0x82]);
    let at = rest
        .windows(8)
        .rposition(|bytes| bytes[0] == 0xa3 && bytes[1] == 0x82 && bytes[4] == 0x30 && bytes[5] == 0x82);
    let at = at.expect("extensions of more than 255 bytes");
    [&rest[..at], &rest[at + 8..]].concat()
}

#[test]
fn precertificate_certificate_and_leaf_agree() {
    let mut forms: BTreeMap<u64, BTreeMap<Kind, Entry>> = BTreeMap::new();
    for entry in entries(2, 1500) {
        forms
            .entry(entry.issuance.number)
            .or_default()
            .insert(entry.kind, entry);
    }
    let mut pairs = 0;
    for form in forms.values() {
        let (Some(precertificate), Some(certificate)) =
            (form.get(&Kind::Precertificate), form.get(&Kind::Certificate))
        else {
            continue;
        };
        pairs += 1;
        assert_eq!(precertificate.issuance, certificate.issuance);
        let from_precertificate = body_of(&tbs_without(&precertificate.der, POISON));
        let from_certificate = body_of(&tbs_without(&certificate.der, SCT_LIST));
        assert!(
            from_precertificate == from_certificate,
            "TBS differ in issuance {}",
            certificate.issuance.number
        );
        assert!(body_of(&precertificate.precertificate_tbs) == from_certificate);
        assert!(
            TbsCertificate::from_der(&precertificate.precertificate_tbs)
                .is_ok_and(|(rest, _)| rest.is_empty())
        );
    }
    let share = pairs as f64 / forms.len() as f64;
    assert!((0.6..0.8).contains(&share), "{share}");
}

#[test]
fn the_same_seed_makes_the_same_corpus() {
    assert!(entries(9, 400) == entries(9, 400));
    assert!(entries(9, 400) != entries(10, 400));
}

#[test]
fn renewals_keep_names_and_change_the_rest() {
    let mut by_names: BTreeMap<Vec<String>, BTreeMap<u64, Entry>> = BTreeMap::new();
    for entry in entries(3, 20_000) {
        by_names
            .entry(entry.issuance.names.clone())
            .or_default()
            .entry(entry.issuance.number)
            .or_insert(entry);
    }
    let renewed: Vec<_> = by_names
        .values()
        .filter(|issuances| issuances.len() > 1)
        .collect();
    assert!(
        renewed.len() > by_names.len() / 3,
        "{} of {}",
        renewed.len(),
        by_names.len()
    );
    for issuances in renewed.iter().take(500) {
        let serials: BTreeSet<_> = issuances.values().map(|entry| &entry.issuance.serial).collect();
        assert_eq!(serials.len(), issuances.len());
    }
}

#[test]
fn time_and_positions_advance_in_each_log() {
    let options = CorpusOptions {
        logs: 3,
        ..CorpusOptions::spread_over(4, 5000, 180)
    };
    let mut last = BTreeMap::new();
    for entry in Corpus::new(options).take(5000) {
        let (index, timestamp_ms) = last
            .insert(entry.log, (entry.index, entry.timestamp_ms))
            .unwrap_or((u64::MAX, 0));
        assert_eq!(entry.index, index.wrapping_add(1));
        assert!(entry.timestamp_ms >= timestamp_ms);
    }
    assert_eq!(last.len(), 3);
}
