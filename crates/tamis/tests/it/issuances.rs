//! A precertificate and its certificate are one issuance, whichever comes first.

use std::path::PathBuf;

use serde_json::json;

use crate::run::{Home, Run, tamis, testdata, text};

fn sha256_of(path: &PathBuf) -> String {
    let rows = Run::of(tamis(&["ct", "parse"]).arg(path)).code(0).rows();
    text(&rows[0], "sha256").to_owned()
}

/// Imports `precertificate` and `certificate` one after the other, in both orders.
fn meet(precertificate: &PathBuf, certificate: &PathBuf) {
    let prints = [precertificate, certificate].map(sha256_of);
    assert_ne!(prints[0], prints[1]);
    let mut seen = Vec::new();
    for paths in [[precertificate, certificate], [certificate, precertificate]] {
        let home = Home::new();
        assert_eq!(home.import(&[paths[0]])["new_issuances"], json!(1));
        let second = home.import(&[paths[1]]);
        assert_eq!(second["new_issuances"], json!(0), "{paths:?}");
        assert_eq!(second["copies"], json!(1), "{paths:?}");
        let totals = home.totals();
        assert_eq!(
            totals[..3]
                .iter()
                .map(|(_, count)| count.clone())
                .collect::<Vec<_>>(),
            [1, 2, 1]
        );
        let shown = prints.each_ref().map(|print| home.ask(&["show", print]));
        assert_eq!(shown[0], shown[1]);
        let [record] = &shown[0][..] else {
            panic!("one record, not {}", shown[0].len())
        };
        let mut told = record["fingerprints"].as_array().unwrap().clone();
        told.sort_by_key(|print| text(print, "kind").to_owned());
        assert_eq!(
            told,
            [
                json!({ "kind": "certificate", "sha256": prints[1] }),
                json!({ "kind": "precertificate", "sha256": prints[0] }),
            ]
        );
        assert_eq!(home.ask(&["show", text(record, "serial")]), shown[0]);
        assert_eq!(home.ask(&["show", text(record, "issuance")]), shown[0]);
        home.assert_whole();
        let mut record = record.clone();
        for key in ["id", "issuance"] {
            record.as_object_mut().unwrap().remove(key);
        }
        seen.push(record);
    }
    assert_eq!(seen[0], seen[1], "the order shows");
}

#[test]
fn a_pair_is_one_issuance() {
    for name in ["test-embedded", "test-embedded-with-intermediate"] {
        meet(
            &testdata(&format!("ct/sct/{name}-pre-cert.pem")),
            &testdata(&format!("ct/sct/{name}-cert.pem")),
        );
    }
}

/// A Precertificate Signing Certificate (RFC 6962, 3.1) has another name than the issuer of the final
/// certificate: only with it at hand do the two meet.
#[test]
fn a_pair_from_a_signing_certificate_meets_through_its_chain() {
    for (name, signer) in [
        ("test-embedded-with-preca", "ca-pre-cert.pem"),
        (
            "test-embedded-with-intermediate-preca",
            "intermediate-pre-cert.pem",
        ),
    ] {
        let precertificate = testdata(&format!("ct/sct/{name}-pre-cert.pem"));
        let certificate = testdata(&format!("ct/sct/{name}-cert.pem"));
        let home = Home::new();
        let mut chain = std::fs::read(&precertificate).unwrap();
        chain.extend(std::fs::read(testdata(&format!("ct/sct/{signer}"))).unwrap());
        let chain = home.file("chain.pem", &chain);
        // The signing certificate itself is one more.
        assert_eq!(home.import(&[&chain])["new_issuances"], json!(2), "{name}");
        assert_eq!(home.import(&[&certificate])["copies"], json!(1), "{name}");
        let shown = home.ask(&["show", &sha256_of(&precertificate)]);
        assert_eq!(shown, home.ask(&["show", &sha256_of(&certificate)]), "{name}");
        assert_eq!(shown[0]["fingerprints"].as_array().unwrap().len(), 2, "{name}");

        let bare = Home::with(&[&precertificate]);
        assert_eq!(
            bare.import(&[&certificate])["new_issuances"],
            json!(1),
            "{name}: apart without it"
        );
    }
}
