//! Certificates that want to cost more than they are worth.

use proptest::prelude::*;
use tamis_ct_log::certificate::{self, Hashes, ReadOptions};
use tamis_ct_log::{Deviation, Input, Name, Reading};

use crate::{all_certificates, identifiers, read, testdata};

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut bytes = vec![tag];
    match length {
        0..0x80 => bytes.push(length as u8),
        _ => {
            let digits: Vec<u8> = length
                .to_be_bytes()
                .into_iter()
                .skip_while(|&digit| digit == 0)
                .collect();
            bytes.push(0x80 | digits.len() as u8);
            bytes.extend(digits);
        }
    }
    bytes.extend(content);
    bytes
}

/// A certificate with these alternative names, given as elements.
fn with_names(names: &[u8]) -> Vec<u8> {
    let san = [element(6, &[0x55, 0x1d, 0x11]), element(4, &element(0x30, names))].concat();
    certificate_with(&element(0x30, &san))
}

/// A certificate with this list of extensions.
fn certificate_with(extensions: &[u8]) -> Vec<u8> {
    let algorithm = element(0x30, &element(6, &[0x2a, 3]));
    let validity = element(
        0x30,
        &[element(0x17, b"250101000000Z"), element(0x17, b"260101000000Z")].concat(),
    );
    let key = element(0x30, &[algorithm.clone(), element(3, &[0, 1])].concat());
    let tbs = [
        element(0xa0, &[2, 1, 2]),
        element(2, &[7]),
        algorithm.clone(),
        element(0x30, &[]),
        validity,
        element(0x30, &[]),
        key,
        element(0xa3, &element(0x30, extensions)),
    ];
    element(
        0x30,
        &[element(0x30, &tbs.concat()), algorithm, element(3, &[0, 1])].concat(),
    )
}

#[test]
fn twenty_thousand_names() {
    let names: Vec<u8> = (0..20_000)
        .flat_map(|number| element(0x82, format!("h{number}.example.com").as_bytes()))
        .collect();
    let der = with_names(&names);
    let reading = read(&der);
    assert_eq!((reading.names().len(), reading.names_total()), (1_000, 20_000));
    assert!(reading.deviations.contains(Deviation::NamesTruncated));
    let first = reading.names().next().unwrap();
    assert_eq!(
        first,
        Name::Host {
            host: "h0.example.com",
            exact: true,
            wildcard: false
        }
    );

    let mut all = Reading::new();
    let options = ReadOptions {
        names_max: 50_000,
        ..ReadOptions::default()
    };
    certificate::read(&der, None, &options, &mut all).unwrap();
    assert_eq!((all.names().len(), all.names_total()), (20_000, 20_000));
    assert!(all.deviations.is_empty());
}

#[test]
fn one_name_many_times() {
    let names: Vec<u8> = (0..20_000)
        .flat_map(|number| {
            element(
                0x82,
                if number % 2 == 0 {
                    b"a.example"
                } else {
                    b"*.A.example"
                },
            )
        })
        .collect();
    let reading = read(&with_names(&names));
    assert_eq!(identifiers(&reading), ["host:a.example", "wildcard:a.example"]);
    assert_eq!(reading.names_total(), 1);
}

#[test]
fn the_largest_certificate_that_tls_can_carry() {
    // As many names as fit, each as short as a name can be.
    let names: Vec<u8> = element(0x82, b"a").repeat(5_592_000);
    let der = with_names(&names);
    assert!(der.len() > 16_000_000 && der.len() < 1 << 24);
    assert_eq!(read(&der).names_total(), 1);
    // One name that is all of it.
    let der = with_names(&element(0x82, &vec![b'a'; 16_700_000]));
    let reading = read(&der);
    assert_eq!(reading.names_total(), 1);
    // As many extensions as fit.
    let poison = element(
        0x30,
        &[
            element(6, &[0x2b, 6, 1, 4, 1, 0xd6, 0x79, 2, 4, 3]),
            element(4, &[5, 0]),
        ]
        .concat(),
    );
    let other = element(0x30, &[element(6, &[0x2b, 6]), element(4, &[])].concat());
    let pair = [poison, other].concat();
    let reading = read(&certificate_with(&pair.repeat((1 << 24) / pair.len() - 10)));
    assert!(reading.precert && reading.deviations.contains(Deviation::DuplicateExtension));
}

#[test]
fn deep_nesting_costs_nothing() {
    let mut nested = [0x30, 0x80].repeat(200_000);
    nested.extend([0, 0].repeat(200_000));
    let mut reading = Reading::new();
    let options = ReadOptions::default();
    let _ = certificate::read(&nested, None, &options, &mut reading);
    let reading = read(&with_names(
        &[element(0xa4, &nested), element(0x82, b"b.example")].concat(),
    ));
    assert_eq!(identifiers(&reading), ["host:b.example"]);
    assert_eq!(reading.skipped_names, 1);
}

#[test]
fn odd_names_keep_what_they_say() {
    let principal = [
        element(6, &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 20, 2, 3]),
        element(0xa0, &element(0x0c, b"u@corp.local")),
    ];
    let names = [
        element(0x82, b"http://shop.example.com/path"),
        element(0x82, b"www.example.com\0.evil.example"),
        element(0x82, b"192.0.2.7"),
        element(0x82, b"x@example.com"),
        element(0x82, b""),
        element(0x87, &[192, 0, 2, 1]),
        element(0x87, &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        element(0x87, &[1, 2, 3]),
        element(0x81, b"me@Example.com"),
        element(0x86, b"https://example.com/a"),
        element(0xa0, &principal.concat()),
        element(0x88, &[0x2a, 3]),
    ];
    let reading = read(&with_names(&names.concat()));
    let expected = [
        "email:me@example.com",
        "email:x@example.com",
        "host:shop.example.com",
        "ip:192.0.2.1",
        "ip:192.0.2.7",
        "ip:2001:db8::1",
        "other:010203",
        "other:http://shop.example.com/path",
        "other:https://example.com/a",
        "other:u@corp.local",
        "other:www.example.com\\x00.evil.example",
    ];
    assert_eq!(identifiers(&reading), expected);
    assert_eq!(reading.skipped_names, 2);
    let deviations: Vec<&str> = reading.deviations.iter().map(Deviation::as_str).collect();
    assert_eq!(
        deviations,
        ["name-empty", "ip-odd-length", "name-repaired", "name-not-host"]
    );
}

/// `[2]` with the bit for "constructed": as an explicit tag would give, as BER may cut it, or by mistake.
#[test]
fn constructed_names_are_read_by_the_string_within() {
    let cases: [(Vec<u8>, &[&str], &[&str]); 8] = [
        (
            element(0xa2, &element(0x16, b"www.example.com")),
            &["host:www.example.com"],
            &["name-constructed"],
        ),
        (
            element(
                0xa2,
                &[element(0x16, b"www."), element(0x04, b"example.com")].concat(),
            ),
            &["host:www.example.com"],
            &["name-constructed"],
        ),
        (
            element(0xa2, b"www.example.com"),
            &["host:www.example.com"],
            &["name-constructed"],
        ),
        (
            element(0xa1, &element(0x0c, b"me@Example.com")),
            &["email:me@example.com"],
            &["name-constructed"],
        ),
        (
            element(0xa6, &element(0x16, b"https://a.example/")),
            &["other:https://a.example/"],
            &["name-constructed"],
        ),
        (
            element(0xa7, &element(0x04, &[192, 0, 2, 1])),
            &["ip:192.0.2.1"],
            &["name-constructed"],
        ),
        (
            element(0xa2, &element(0x30, &element(0x16, b"a.example"))),
            &["other:0\\x0B\\x16\\x09a.example"],
            &["name-not-host", "name-constructed"],
        ),
        (element(0xa2, b""), &[], &["name-empty", "name-constructed"]),
    ];
    for (name, expected, told) in cases {
        // What stands behind it is not touched.
        let reading = read(&with_names(&[name.clone(), element(0x82, b"z.example")].concat()));
        let expected: Vec<&str> = expected.iter().copied().chain(["host:z.example"]).collect();
        let mut found = identifiers(&reading);
        found.sort_by_key(|name| name == "host:z.example");
        assert_eq!(found, expected, "{name:02x?}");
        let deviations: Vec<&str> = reading.deviations.iter().map(Deviation::as_str).collect();
        let named: Vec<&str> = deviations
            .iter()
            .copied()
            .filter(|one| told.contains(one))
            .collect();
        assert_eq!(named, told, "{name:02x?}: {deviations:?}");
        assert_eq!(deviations.len(), told.len(), "{name:02x?}: {deviations:?}");
    }
}

/// One text is one text, whichever field it stood in: what a terminal would obey is written out.
#[test]
fn hidden_characters_have_one_spelling_in_every_field() {
    let principal = [
        element(6, &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 20, 2, 3]),
        element(0xa0, &element(0x0c, b"a\x1b[31m b")),
    ];
    for name in [
        element(0x81, b"a\x1b[31m b"),
        element(0x82, b"a\x1b[31m b"),
        element(0x86, b"a\x1b[31m b"),
        element(0xa0, &principal.concat()),
    ] {
        let reading = read(&with_names(&name));
        assert_eq!(identifiers(&reading), ["other:a\\x1B[31m b"], "{name:02x?}");
    }
    let reading = read(&with_names(&element(0x81, "\u{202e}moc@x y".as_bytes())));
    assert_eq!(identifiers(&reading), ["other:\\u{202E}moc@x y"]);
}

#[test]
fn broken_outside_but_names_inside() {
    let der = testdata("certs/odd_real/google_cert.der");
    let whole = read(&der);
    // The start of the certificate is gone: no structure, but the list of names is there.
    let mut reading = Reading::new();
    certificate::read(&der[200..], None, &ReadOptions::default(), &mut reading).unwrap();
    assert!(reading.deviations.contains(Deviation::Unparsed));
    assert!(reading.fingerprint.is_some());
    assert_eq!(identifiers(&reading), identifiers(&whole));
    // Garbage in a log's entry is a certificate without names, and anywhere else none.
    let garbage = [0x42u8; 100];
    assert!(certificate::read(&garbage, None, &ReadOptions::default(), &mut reading).is_err());
    let leaf = [
        &[0u8; 2][..],
        &1_700_000_000_000u64.to_be_bytes(),
        &[0, 0, 0, 0, 100],
        &garbage,
        &[0, 0],
    ]
    .concat();
    let text = base64_simd::STANDARD.encode_to_string(&leaf);
    let [reading] = <[Reading; 1]>::try_from(crate::readings(
        format!("{{\"leaf_input\":\"{text}\"}}").as_bytes(),
    ))
    .unwrap();
    assert!(reading.deviations.contains(Deviation::Unparsed) && reading.fingerprint.is_some());
    assert_eq!(reading.names_total(), 0);
}

#[test]
fn a_bad_field_loses_itself_alone() {
    let der = with_names(&element(0x82, b"a.example"));
    let date = memchr::memmem::find(&der, b"250101000000Z").unwrap();
    let mut bad_date = der.clone();
    bad_date[date + 2] = b'9';
    let reading = read(&bad_date);
    assert_eq!(
        (reading.not_before, reading.not_after),
        (None, Some(1_767_225_600))
    );
    assert_eq!(identifiers(&reading), ["host:a.example"]);
    let mut not_a_date = der.clone();
    not_a_date[date - 2] = 0x13;
    assert_eq!(identifiers(&read(&not_a_date)), ["host:a.example"]);
    let mut bad_serial = der;
    let serial = memchr::memmem::find(&bad_serial, &[2, 1, 7, 0x30]).unwrap();
    bad_serial[serial] = 0x42;
    let reading = read(&bad_serial);
    assert_eq!(
        (reading.serial_hex().as_str(), reading.not_after),
        ("7", Some(1_767_225_600))
    );
    assert!(reading.deviations.contains(Deviation::SerialWrongTag));
}

#[test]
fn certificates_may_be_cut_at_every_length() {
    let options = ReadOptions {
        hashes: Hashes::Neither,
        ..ReadOptions::default()
    };
    let mut reading = Reading::new();
    for (from, der) in all_certificates() {
        let is_odd = from.contains("odd_real") || from.contains("scts") || from.contains("all_supported");
        for length in (0..der.len()).step_by(if is_odd { 1 } else { 37 }) {
            let _ = certificate::read(&der[..length], None, &options, &mut reading);
            let _ = Input::open(&der[..length]);
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        crate::read_any(&bytes);
    }

    #[test]
    fn no_change_makes_it_panic(
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let all = all_certificates_once();
        let mut der = which.get(all).1.clone();
        for (at, byte) in changes {
            let at = at.index(der.len());
            der[at] = byte;
        }
        crate::read_any(&der);
    }
}

fn all_certificates_once() -> &'static [(String, Vec<u8>)] {
    static ALL: std::sync::OnceLock<Vec<(String, Vec<u8>)>> = std::sync::OnceLock::new();
    ALL.get_or_init(all_certificates)
}
