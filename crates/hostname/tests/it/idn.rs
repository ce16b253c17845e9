//! IDN against the vectors of the web platform and of Punycode.

use serde_json::Value;
use tamis_hostname::{Identifier, Repairs, read, to_unicode};

use crate::host;

const TO_ASCII: &str = include_str!("../../../../testdata/names/wpt_toascii.json");
const PUNYCODE: &str = include_str!("../../../../testdata/names/punycode.json");

/// Inputs that the web platform refuses and that we mend or keep, with the reason.
const MENDED: [(&str, &str, &str); 2] = [
    (
        "xn--a.ß",
        "xn--a.xn--zca",
        "an A-label that does not decode is kept, whatever stands beside it",
    ),
    (
        "\u{1680}lookout.net",
        "lookout.net",
        "white space at an end is removed",
    ),
];

/// Outputs of the web platform that are no host names: an empty label, a byte outside the alphabet.
fn is_host(output: &str) -> bool {
    !output.contains("..") && !output.contains('=')
}

#[test]
fn to_ascii_of_the_web_platform() {
    let vectors: Vec<Value> = serde_json::from_str(TO_ASCII).unwrap();
    let mut count = 0;
    for vector in vectors.iter().filter(|vector| vector.is_object()) {
        let input = vector["input"].as_str().unwrap();
        let mended = MENDED
            .iter()
            .find(|(mended, ..)| *mended == input)
            .map(|(_, host, _)| *host);
        let output = vector["output"].as_str().filter(|output| is_host(output));
        assert_eq!(host(input).as_deref(), mended.or(output), "{input:?}");
        count += 1;
    }
    assert_eq!(count, 87);
}

#[test]
fn punycode_both_ways() {
    let vectors: Vec<Value> = serde_json::from_str(PUNYCODE).unwrap();
    let mut count = 0;
    for vector in &vectors {
        let decoded = vector["decoded"].as_str().unwrap().to_ascii_lowercase();
        if decoded.is_ascii() || decoded.contains([' ', '♥']) {
            continue; // No IDNA label: Punycode alone encodes it.
        }
        let a_label = format!("xn--{}", vector["encoded"].as_str().unwrap().to_ascii_lowercase());
        let Identifier::Host(name) = read(decoded.as_bytes()) else {
            panic!("{decoded:?} is no host");
        };
        assert_eq!(name.host(), a_label);
        assert_eq!(
            name.repairs(),
            Repairs::ULABEL | (name.repairs() & Repairs::LONG_LABEL)
        );
        assert_eq!(to_unicode(&a_label), decoded);
        count += 1;
    }
    assert!(count > 15, "{count}");
}
