//! Framings have the lengths that RFC 6962 and static-ct-api prescribe.

use crate::entries;
use tamis_testbed::framing::{data_tile, get_entries_body, push_extra_data, push_leaf, push_pem};
use tamis_testbed::{Corpus, CorpusOptions, Kind};

fn u24(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) << 16 | usize::from(bytes[1]) << 8 | usize::from(bytes[2])
}

#[test]
fn get_entries_bodies_hold_leaf_and_chain() {
    let entries = entries(1, 300);
    let issuers = Corpus::new(CorpusOptions::spread_over(1, 300, 180)).issuers();
    let body: serde_json::Value =
        serde_json::from_slice(&get_entries_body(&entries, &issuers)).expect("JSON");
    let found = body["entries"].as_array().expect("an array");
    assert_eq!(found.len(), entries.len());
    let decode = |value: &serde_json::Value| {
        base64_simd::STANDARD
            .decode_to_vec(value.as_str().expect("a string"))
            .expect("base64")
    };
    for (found, entry) in found.iter().zip(&entries) {
        let (leaf, extra) = (decode(&found["leaf_input"]), decode(&found["extra_data"]));
        assert_eq!(leaf[2..10], entry.timestamp_ms.to_be_bytes());
        let (certificate_at, content) = match entry.kind {
            Kind::Certificate => (12, &entry.der),
            Kind::Precertificate => (12 + 32, &entry.precertificate_tbs),
        };
        assert_eq!(
            usize::from(leaf[11]),
            usize::from(entry.kind == Kind::Precertificate)
        );
        assert_eq!(u24(&leaf[certificate_at..]), content.len());
        assert_eq!(leaf.len(), certificate_at + 3 + content.len() + 2);
        let chain_at = if entry.kind == Kind::Precertificate {
            3 + entry.der.len()
        } else {
            0
        };
        let chain_bytes = u24(&extra[chain_at..]);
        assert_eq!(extra.len(), chain_at + 3 + chain_bytes);
        assert!((2000..3500).contains(&chain_bytes), "{chain_bytes}");
        let (mut again, mut extra_again) = (Vec::new(), Vec::new());
        push_leaf(entry, &issuers, &mut again);
        push_extra_data(entry, &issuers, &mut extra_again);
        assert!(again == leaf && extra_again == extra);
    }
}

#[test]
fn tiles_hold_their_entries_and_nothing_else() {
    let entries = entries(1, 256);
    let issuers = Corpus::new(CorpusOptions::spread_over(1, 256, 180)).issuers();
    let tile = data_tile(&entries, &issuers);
    let mut at = 0;
    for (position, entry) in entries.iter().enumerate() {
        assert_eq!(tile[at..at + 8], entry.timestamp_ms.to_be_bytes());
        let is_precertificate = tile[at + 9] == 1;
        assert_eq!(is_precertificate, entry.kind == Kind::Precertificate);
        at += 10 + if is_precertificate { 32 } else { 0 };
        at += 3 + u24(&tile[at..]);
        assert_eq!(tile[at..at + 5], [0, 8, 0, 0, 5]);
        assert_eq!(tile[at + 5..at + 10], (position as u64).to_be_bytes()[3..]);
        at += 10;
        if is_precertificate {
            assert!(tile[at + 3..].starts_with(&entry.der));
            at += 3 + u24(&tile[at..]);
        }
        assert_eq!(tile[at..at + 2], [0, 64]);
        at += 2 + 64;
    }
    assert_eq!(at, tile.len());
}

#[test]
fn pem_is_the_certificate() {
    let entry = &entries(5, 1)[0];
    let mut pem = Vec::new();
    push_pem(entry, &mut pem);
    let (_, block) = x509_parser::pem::parse_x509_pem(&pem).expect("PEM");
    assert_eq!(block.contents, entry.der);
}
