//! Every form an input can have, whole, damaged and cut off.

use std::io::Write as _;

use tamis_ct_log::input::{InputLimits, Kind, Scratch};
use tamis_ct_log::{Error, Input, Reason};

use crate::logs::same;
use crate::{identifiers, read_all, readings, testdata};

const TILE: &str = "ct/static/navigli2025h2/tile/data/000";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn body() -> Vec<u8> {
    Input::open(&testdata("ct/rfc6962/navigli2025h2_get-entries.json.gz"))
        .unwrap()
        .bytes()
        .to_vec()
}

/// What every entry gives: its names, or its error.
fn outcomes(bytes: &[u8]) -> Vec<Result<Vec<String>, Reason>> {
    let all = read_all(bytes).into_iter();
    all.map(|reading| {
        reading
            .map(|reading| identifiers(&reading))
            .map_err(|error| error.reason)
    })
    .collect()
}

#[test]
fn kinds_are_told_by_content() {
    let pem = testdata("ct/sct/test-cert.pem");
    let cases = [
        (testdata(TILE), Kind::DataTile),
        (body(), Kind::Entries),
        (testdata("ct/rfc6962/live_ct.json"), Kind::Entries),
        (testdata("ct/rfc6962/add-chain.json"), Kind::Chain),
        (testdata("ct/rfc6962/add-pre-chain.json"), Kind::Chain),
        (testdata("ct/rfc6962/itko2025_get-roots.json"), Kind::Roots),
        (pem.clone(), Kind::Pem),
        ([&b"\xef\xbb\xbfsome words\r\n"[..], &pem].concat(), Kind::Pem),
        (testdata("certs/odd_real/google_cert.der"), Kind::Der),
        (br#" {"entries": []}"#.to_vec(), Kind::Entries),
    ];
    for (bytes, kind) in cases {
        assert_eq!(Input::open(&bytes).unwrap().kind(), kind);
        let packed = gzip(&bytes);
        let input = Input::open(&packed).unwrap();
        assert_eq!((input.kind(), input.is_compressed()), (kind, true));
        assert_eq!(outcomes(&packed), outcomes(&bytes));
    }
}

#[test]
fn what_is_not_recognised_says_what_was_seen() {
    let cases: [(&[u8], &str, &str); 6] = [
        (b"", "nothing", "empty"),
        (b"<html><h1>429 Too Many Requests", "<html>", "error page"),
        (
            br#"{"error_message": "backend error"}"#,
            "error_message",
            "leaf_input",
        ),
        (b"MIIDvzCCAqegAwIBAgIU", "MIIDvz", "BEGIN CERTIFICATE"),
        (b"\x00\x01\xff", "\\x00\\x01\\xff", "known are"),
        (b"hello", "hello", "known are"),
    ];
    for (bytes, seen, hint) in cases {
        let error = Input::open(bytes).unwrap_err();
        assert!(
            error.to_string().contains(seen) && error.to_string().contains(hint),
            "{error}"
        );
    }
}

#[test]
fn the_shape_of_json_does_not_matter() {
    let body = body();
    let expected = readings(&body);
    let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let escape = |text: &str| text.replace('/', "\\/").replace('=', "\\u003d");
    type Shape<'a> = &'a dyn Fn(&str, &str) -> String;
    let shapes: [(&str, Shape<'_>); 5] = [
        ("compact", &|leaf, extra| {
            format!("{{\"leaf_input\":\"{leaf}\",\"extra_data\":\"{extra}\"}}")
        }),
        ("pretty", &|leaf, extra| {
            format!("{{ \n \"leaf_input\" : \"{leaf}\",\n\t\"extra_data\":\r\n\"{extra}\"\n }}\n")
        }),
        ("nested", &|leaf, extra| {
            let log = "\"log\":{\"name\":\"x \\\"y\\\"\"}";
            format!("{{{log},\"e\":[{{\"leaf_input\":\"{leaf}\",\"x\":null,\"extra_data\":\"{extra}\"}}]}}")
        }),
        ("swapped", &|leaf, extra| {
            format!("{{\"extra_data\":\"{extra}\",\"a\":[1,-2e3,true],\"leaf_input\":\"{leaf}\"}}")
        }),
        ("escaped", &|leaf, extra| {
            format!(
                "{{\"leaf_input\":\"{}\",\"extra_data\":\"{}\"}}",
                escape(leaf),
                escape(extra)
            )
        }),
    ];
    for (name, shape) in shapes {
        let objects = value["entries"].as_array().unwrap().iter();
        let objects: Vec<String> = objects
            .map(|entry| {
                shape(
                    entry["leaf_input"].as_str().unwrap(),
                    entry["extra_data"].as_str().unwrap(),
                )
            })
            .collect();
        for text in [objects.join("\n"), format!("[{}]", objects.join(","))] {
            let got = readings(text.as_bytes());
            assert_eq!(got.len(), expected.len(), "{name}");
            for (got, expected) in got.iter().zip(&expected) {
                same(got, expected);
            }
        }
    }
}

#[test]
fn indexes_beside_an_entry_count() {
    let body = body();
    let value: serde_json::Value = serde_json::from_slice(&testdata("ct/rfc6962/live_ct.json")).unwrap();
    assert!(readings(&body)[3].log_index == Some(3));
    let leaf = value[0]["leaf_input"].as_str().unwrap();
    for (member, index) in [
        ("\"cert_index\":77", Some(77)),
        ("\"leaf_index\":\"78\"", Some(78)),
        ("\"index\":-1", None),
        ("\"x\":1", None),
    ] {
        let text = format!("{{\"leaf_input\":\"{leaf}\",{member}}}");
        let [reading] = <[_; 1]>::try_from(readings(text.as_bytes())).unwrap();
        assert_eq!(reading.log_index, index);
        assert!(
            reading
                .deviations
                .contains(tamis_ct_log::Deviation::PrecertMissing)
        );
    }
}

#[test]
fn one_bad_entry_costs_itself() {
    let body = String::from_utf8(body()).unwrap();
    let good = outcomes(body.as_bytes());
    let needle = "\"leaf_input\": \"AAAA";
    let third = body.match_indices(needle).nth(2).unwrap().0;
    let replace = |with: &str| format!("{}{with}{}", &body[..third], &body[third + needle.len()..]);
    let cases = [
        (
            replace("\"leaf_input\": \"!!!!"),
            Reason::NotBase64 { field: "leaf_input" },
        ),
        (replace("\"leaf_input\": \"AQAA"), Reason::LeafVersion(1)),
        (replace("\"leaf_input\": \"AAEA"), Reason::LeafType(1)),
        (
            replace("\"leaf\": \"AAAA"),
            Reason::Missing { field: "leaf_input" },
        ),
        (
            replace("\"leaf_input\": \"\", \"x\":\"AAAA"),
            Reason::CutOff { field: "version" },
        ),
    ];
    for (damaged, reason) in cases {
        let mut got = outcomes(damaged.as_bytes());
        assert_eq!(got.len(), good.len(), "{reason:?}");
        assert_eq!(got.remove(2), Err(reason));
        assert_eq!([&good[..2], &good[3..]].concat(), got);
    }
}

#[test]
fn unknown_entry_types_are_errors_with_their_place() {
    let leaf = [
        &[0u8, 0][..],
        &1_700_000_000_000u64.to_be_bytes(),
        &[0x80, 0],
        b"{}",
    ]
    .concat();
    let text = base64_simd::STANDARD.encode_to_string(&leaf);
    let body = format!("{{\"entries\":[{{\"leaf_input\":\"{text}\",\"extra_data\":\"\"}}]}}");
    let [error] = <[_; 1]>::try_from(read_all(body.as_bytes())).unwrap();
    let error = error.unwrap_err();
    assert_eq!(
        (error.ordinal, error.offset, error.reason),
        (0, 12, Reason::EntryType(0x8000))
    );

    // In a tile nothing tells where the next entry starts.
    let mut tile = testdata(TILE);
    let second = tile.len() - {
        let (_, rest) = tamis_ct_log::leaf::TileLeaf::parse(&tile).unwrap();
        rest.len()
    };
    tile[second + 9] = 7;
    let all = read_all(&tile);
    assert_eq!(all.len(), 2);
    let error = all[1].as_ref().unwrap_err();
    assert_eq!(
        (error.offset, &error.reason),
        (second as u64, &Reason::EntryType(7))
    );
}

#[test]
fn a_cut_off_body_gives_its_complete_entries_and_one_error() {
    let whole = outcomes(&body());
    let body = body();
    let (tile, pem) = (testdata(TILE), testdata("certs/odd_real/google_chain.pem"));
    let all_pem = outcomes(&pem);
    for (name, bytes, complete, step) in [
        ("json", &body, &whole, 30_011),
        ("tile", &tile, &whole, 9_973),
        ("pem", &pem, &all_pem, 97),
    ] {
        for length in (40..bytes.len()).step_by(step) {
            let Ok(input) = Input::open(&bytes[..length]) else {
                continue;
            };
            let mut got = outcomes(input.bytes());
            let errors = got.iter().filter(|outcome| outcome.is_err()).count();
            assert!(errors <= 1, "{name} at {length}: {errors} errors");
            if errors == 1 {
                let last = got.pop().unwrap();
                assert!(
                    matches!(last, Err(Reason::CutOff { .. })),
                    "{name} at {length}: {last:?}"
                );
            }
            assert!(got.len() < complete.len() || name == "json", "{name} at {length}");
            assert_eq!(got, complete[..got.len()], "{name} at {length}");
        }
    }
    let packed = gzip(&tile);
    let cut = outcomes(&packed[..packed.len() / 2]);
    assert!(cut.len() > 20 && cut.last().unwrap().is_err());
    assert_eq!(cut[..cut.len() - 1], whole[..cut.len() - 1]);
}

#[test]
fn a_tile_may_be_cut_at_every_length() {
    let tile = testdata(TILE);
    let tile = &tile[..6_000];
    for length in 0..tile.len() {
        let Ok(input) = Input::open(&tile[..length]) else {
            continue;
        };
        let errors = input.entries().filter(Result::is_err).count();
        assert!(errors <= 1);
    }
}

#[test]
fn a_bad_line_costs_itself() {
    let value: serde_json::Value = serde_json::from_slice(&testdata("ct/rfc6962/live_ct.json")).unwrap();
    let lines: Vec<String> = value.as_array().unwrap()[..5]
        .iter()
        .map(ToString::to_string)
        .collect();
    let mut broken = lines.clone();
    broken[1].truncate(600);
    broken[3] = "Service unavailable".to_owned();
    let got = outcomes(broken.join("\n").as_bytes());
    let good = outcomes(lines.join("\n").as_bytes());
    assert_eq!(got.len(), 5);
    assert_eq!(
        got[1],
        Err(Reason::CutOff {
            field: "a JSON string"
        })
    );
    assert_eq!(got[3], Err(Reason::Unexpected { expected: "JSON" }));
    assert_eq!([&got[0], &got[2], &got[4]], [&good[0], &good[2], &good[4]]);
}

#[test]
fn pem_in_any_text() {
    let pem = String::from_utf8(testdata("ct/sct/test-cert.pem")).unwrap();
    let start = pem.find("-----BEGIN").unwrap();
    let block = pem[start..].trim_end();
    let plain = outcomes(block.as_bytes());
    assert_eq!(plain.len(), 1);
    let base64: String = block.lines().filter(|line| !line.starts_with("-----")).collect();
    let wrapped = |width: usize, end: &str| {
        let lines: Vec<&str> = base64
            .as_bytes()
            .chunks(width)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        format!(
            "-----BEGIN CERTIFICATE-----{end}{}{end}-----END CERTIFICATE-----",
            lines.join(end)
        )
    };
    let shapes = [
        block.replace('\n', "\r\n"),
        wrapped(7, "\n"),
        wrapped(1_000_000, "\n"),
        wrapped(64, " \n  "),
        block.replace("CERTIFICATE", "X509 CERTIFICATE"),
        block.replace("CERTIFICATE", "TRUSTED CERTIFICATE"),
        format!("Subject: someone\n{block}\nand then some"),
        block.replacen("-----\n", "-----\nComment: a header\n\n", 1),
        format!(
            "-----BEGIN X509 CRL-----\nnot even base64!\n-----END X509 CRL-----\n{block}\n-----BEGIN EC PRIVATE KEY-----\nMHc=\n-----END EC PRIVATE KEY-----"
        ),
    ];
    for shape in &shapes {
        assert_eq!(outcomes(shape.as_bytes()), plain, "{shape}");
    }
    let input = Input::open(shapes[8].as_bytes()).unwrap();
    let mut entries = input.entries();
    assert_eq!((entries.by_ref().count(), entries.skipped()), (1, 2));

    let broken = block.replace(&base64[200..204], "....");
    let mixed = format!("{block}\n{broken}\n-----BEGIN CERTIFICATE-----\nMIID\n{block}\n");
    let not_base64 = Err(Reason::NotBase64 { field: "PEM block" });
    let cut = Err(Reason::CutOff { field: "a PEM block" });
    assert_eq!(
        outcomes(mixed.as_bytes()),
        [plain[0].clone(), not_base64, cut, plain[0].clone()]
    );
}

#[test]
fn der_in_a_row() {
    let der = testdata("certs/odd_real/google_cert.der");
    let one = outcomes(&der);
    assert_eq!(
        outcomes(&[&der[..], b"\r\n", &der].concat()),
        [one[0].clone(), one[0].clone()]
    );
    let with_text = outcomes(&[&der[..], b"tail"].concat());
    assert_eq!(
        with_text,
        [
            one[0].clone(),
            Err(Reason::Unexpected {
                expected: "the start of a certificate"
            })
        ]
    );
    // One that is cut off in its signature still has all its names.
    assert_eq!(
        outcomes(&[&der[..], &der[..der.len() - 40]].concat()),
        [one[0].clone(), one[0].clone()]
    );
}

#[test]
fn what_is_no_certificate_says_what_it_is() {
    use tamis_ct_log::certificate::NotCertificate;
    let crl = testdata("certs/pyca/custom__crl_empty_no_sequence.der");
    let [outcome] = <[_; 1]>::try_from(outcomes(&crl)).unwrap();
    assert_eq!(
        outcome,
        Err(Reason::NotCertificate(NotCertificate::RevocationList))
    );
    let key = testdata("ct/sct/ct-server-key-public.pem");
    assert!(outcomes(&key).is_empty());
    let as_certificate = String::from_utf8(key)
        .unwrap()
        .replace("PUBLIC KEY", "CERTIFICATE");
    let [outcome] = <[_; 1]>::try_from(outcomes(as_certificate.as_bytes())).unwrap();
    assert_eq!(outcome, Err(Reason::NotCertificate(NotCertificate::Key)));
}

#[test]
fn a_compressed_body_over_the_limit_is_refused() {
    let bomb = gzip(&vec![b' '; 4 << 20]);
    let limits = InputLimits {
        inflated_bytes_max: 1 << 20,
    };
    let error = Input::open_within(&bomb, &limits).unwrap_err();
    assert!(
        matches!(error, Error::InflatedTooLarge { limit } if limit == 1 << 20),
        "{error}"
    );
    let damaged = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &[0xff; 20]].concat();
    assert!(matches!(Input::open(&damaged).unwrap_err(), Error::Gzip { .. }));
}

#[test]
fn json_nested_too_deep_is_one_error() {
    let deep = format!("{}\"leaf_input\"", "[".repeat(100_000));
    let [outcome] = <[_; 1]>::try_from(outcomes(deep.as_bytes())).unwrap();
    assert!(matches!(outcome, Err(Reason::TooDeep { .. })));
}

#[test]
fn a_worker_needs_only_a_raw_entry_and_its_own_buffers() {
    let body = body();
    let input = Input::open(&body).unwrap();
    let raw: Vec<_> = input.entries().map(Result::unwrap).collect();
    let halves = raw.split_at(raw.len() / 2);
    let count = |half: &[tamis_ct_log::input::RawEntry<'_>]| {
        let mut scratch = Scratch::new();
        half.iter().filter(|raw| raw.decode(&mut scratch).is_ok()).count()
    };
    let total = std::thread::scope(|scope| {
        let other = scope.spawn(|| count(halves.0));
        count(halves.1) + other.join().unwrap()
    });
    assert_eq!(total, 256);
}

/// Elements of `entries` as a JSON text.
fn element(number: usize) -> String {
    let all = String::from_utf8(body()).unwrap();
    let elements: Vec<&str> = all.split("{\"leaf_input\"").skip(1).collect();
    format!(
        "{{\"leaf_input\"{}}}",
        elements[number].rsplit_once('}').unwrap().0
    )
}

#[test]
fn every_element_of_entries_takes_one_place() {
    let (first, last) = (element(0), element(1));
    let nested = format!("{{\"note\":{first},\"leaf_input\":\"AAAA\",\"extra_data\":\"\"}}");
    let holes = format!("{{\"entries\":[{first},{{}},null,7,\"x\",{nested},{last}],\"more\":[{{}},null]}}");
    let all = read_all(holes.as_bytes());
    let read: Vec<bool> = all.iter().map(Result::is_ok).collect();
    assert_eq!(read, [true, false, false, false, false, false, true], "{all:?}");
    for (place, error) in all
        .iter()
        .enumerate()
        .filter_map(|(place, one)| Some((place, one.as_ref().err()?)))
    {
        assert_eq!(error.ordinal, place as u64);
    }
    assert_eq!(
        all.last().unwrap().as_ref().unwrap().fingerprint,
        readings(last.as_bytes())[0].fingerprint
    );
    let escaped = format!(
        "{{\"entries\":[{}]}}",
        first.replacen("leaf_input", "\\u006ceaf_input", 1)
    );
    assert_eq!(
        readings(escaped.as_bytes())[0].fingerprint,
        readings(first.as_bytes())[0].fingerprint
    );
}
