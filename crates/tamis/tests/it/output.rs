//! Shapes of answers, and one spelling of hostile text in every command and format.

use serde_json::{Value, json};

use crate::run::{Home, Run, tamis, testdata, text, texts};

/// A DER element of fewer than 65,536 bytes.
pub(crate) fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = content.len();
    let mut bytes = match length {
        0..0x80 => vec![tag, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    bytes.extend(content);
    bytes
}

/// A certificate without a signature, of this organisation's, with these alternative names.
pub(crate) fn certificate(organisation: &str, names: &[Vec<u8>]) -> Vec<u8> {
    let oid = |oid: &[u8]| element(6, &[oid]);
    let algorithm = element(0x30, &[&oid(&[0x2a, 3])]);
    let name = |kind: u8, value: &str| {
        let pair = element(
            0x30,
            &[&oid(&[0x55, 4, kind]), &element(0x0c, &[value.as_bytes()])],
        );
        element(0x31, &[&pair])
    };
    let party = element(0x30, &[&name(10, organisation), &name(3, organisation)]);
    let validity = element(
        0x30,
        &[
            &element(0x17, &[b"250101000000Z"]),
            &element(0x17, &[b"260101000000Z"]),
        ],
    );
    let key = element(0x30, &[&algorithm, &element(3, &[&[0, 1]])]);
    let list = element(0x30, &[&names.concat()]);
    let san = element(0x30, &[&oid(&[0x55, 0x1d, 0x11]), &element(4, &[&list])]);
    let version = element(0xa0, &[&[2, 1, 2]]);
    let extensions = element(0xa3, &[&element(0x30, &[&san])]);
    let serial = element(2, &[&[0x4d, 0x3c]]);
    let tbs = element(
        0x30,
        &[
            &version,
            &serial,
            &algorithm,
            &party,
            &validity,
            &party,
            &key,
            &extensions,
        ],
    );
    element(0x30, &[&tbs, &algorithm, &element(3, &[&[0, 1]])])
}

/// Sets colours, turns text round, hides text, starts lines, opens a formula.
const ORGANISATION: &str = "=1+1\u{1b}[31m\u{202e}gro.live\u{9b}2J\nEvil, \"Inc\" \u{e0041}\\";
const MAIL: &[u8] = b"a\x1b]0;x\x07 b@Example.com";

fn hostile() -> Vec<u8> {
    certificate(
        ORGANISATION,
        &[
            element(0x81, &[MAIL]),
            element(0x81, &[b"Me@Example.com"]),
            element(0x82, &[b"www.example.com"]),
            element(0x82, &["\u{202e}moc.elpmaxe evil".as_bytes()]),
            element(0x82, &[b"www.example.com\0.evil.example"]),
            element(0x86, &[b"https://example.com/\x1b[2Jx"]),
        ],
    )
}

const MAIL_SHOWN: &str = r"a\x1B]0;x\x07 b@Example.com";
const OTHERS_SHOWN: [&str; 4] = [
    MAIL_SHOWN,
    r"\u{202E}moc.elpmaxe evil",
    r"www.example.com\x00.evil.example",
    r"https://example.com/\x1B[2Jx",
];

fn sorted(mut list: Vec<String>) -> Vec<String> {
    list.sort();
    list
}

#[test]
fn hostile_text_has_one_spelling_everywhere() {
    let home = Home::new();
    let file = home.file("evil.der", &hostile());
    home.import(&[&file]);
    let parse = |format: &str| Run::of(tamis(&["ct", "parse", "--format", format]).arg(&file)).code(0);
    let parsed = parse("ndjson").rows().remove(0);
    let sha256 = text(&parsed, "sha256").to_owned();
    let shown = home.ask(&["show", &sha256]).remove(0);
    // Exact in JSON where it is no name.
    assert_eq!(parsed["organization"], json!(ORGANISATION));
    for key in ["organization", "common_names", "issuer", "names"] {
        assert_eq!(parsed[key], shown[key], "{key}");
    }
    let others = sorted(OTHERS_SHOWN.map(str::to_owned).to_vec());
    assert_eq!(sorted(texts(&parsed, "other_names")), others);
    assert_eq!(sorted(texts(&shown, "other_names")), others);
    assert_eq!(shown["emails"], json!(["me@example.com"]));
    // What is shown is found.
    for other in OTHERS_SHOWN.iter().filter(|other| !other.starts_with("https")) {
        let found = home.ask(&["search", other]);
        assert_eq!(found.len(), 1, "{other}");
        assert_eq!(found[0]["name"], json!(other));
        assert_eq!(found[0]["organization"], json!(ORGANISATION));
        let table = home.ct(&["search", other]).code(0).out;
        assert!(table.contains(other), "{table}");
        let csv = home.ct(&["search", other, "--format", "csv"]).code(0).out;
        assert!(csv.contains(other), "{csv}");
    }
    let csv = home.ct(&["show", &sha256, "--format", "csv"]).code(0).out;
    assert!(
        csv.contains(r#"gro.live\x9B2J\x0AEvil\, \""Inc\"" \u{E0041}"#),
        "{csv}"
    );
    let table = home.ct(&["show", &sha256]).code(0).out;
    assert!(table.contains(r#"=1+1\x1B[31m\u{202E}gro.live"#), "{table}");
}

/// No command lets through what a terminal would obey, in any format, on either stream.
#[test]
fn nothing_hidden_is_ever_printed() {
    let home = Home::new();
    let file = home.file("evil.der", &hostile());
    let broken = home.file("evil\u{1b}[2J\u{202e}.der", b"\x1b[31mred");
    home.import(&[&file]);
    let file = file.to_str().unwrap();
    let commands: [&[&str]; 8] = [
        &["parse", file],
        &["parse", broken.to_str().unwrap(), file],
        &["inspect", broken.to_str().unwrap()],
        &["search", "example.com"],
        &["search", OTHERS_SHOWN[1]],
        &["show", "4d3c"],
        &["names", "a\u{1b}[2J\u{202e}b"],
        &["stats"],
    ];
    for args in commands {
        for format in ["table", "json", "ndjson", "csv"] {
            let run = home.ct(&[args, &["--format", format]].concat());
            for out in [&run.out, &run.err] {
                let hidden = |c: char| c != '\n' && tamis_hostname::is_hidden(c);
                assert!(!out.chars().any(hidden), "{args:?} {format}: {out:?}");
            }
            if format == "csv" && args[0] != "inspect" && args[0] != "stats" {
                let mut reader = csv::ReaderBuilder::new()
                    .has_headers(false)
                    .from_reader(run.out.as_bytes());
                assert_eq!(
                    reader.records().count(),
                    run.out.lines().count(),
                    "{args:?}: a record is a line"
                );
            }
        }
    }
}

/// `--format json` has the same shape for none, one and many.
#[test]
fn shapes_do_not_depend_on_how_much_is_found() {
    let home = Home::with(&[testdata("ct/rfc6962/live_ct.json")]);
    let (one, other) = (certificate("One", &[element(0x82, &[b"a.example"])]), hostile());
    home.import(&[home.file("one.der", &one), home.file("other.der", &other)]);
    // Both have this serial number.
    for (what, found) in [("4d3c", 2), ("4d3c00", 0)] {
        let run = home
            .ct(&["show", what, "--format", "json"])
            .code(i32::from(found == 0));
        let list = run.json().as_array().unwrap().clone();
        assert_eq!(list.len(), found, "{what}");
        let lines = home.ct(&["show", what, "--format", "ndjson"]).rows();
        assert_eq!(lines, list, "{what}");
    }
    let sha256 = texts(&home.ask(&["search", "a.example"])[0], "sha256").remove(0);
    let one = home.ct(&["show", &sha256, "--format", "json"]).code(0).json();
    assert_eq!(one.as_array().map(Vec::len), Some(1));
    for (query, code) in [("a.example", 0), ("nothing.example", 1)] {
        let page = home.ct(&["search", query, "--format", "json"]).code(code).json();
        assert!(
            page["results"].is_array() && page["next_cursor"] == Value::Null,
            "{page}"
        );
        assert!(
            home.ct(&["names", query, "--format", "json"])
                .code(code)
                .json()
                .is_array()
        );
    }
}

/// As people write them.
#[test]
fn questions_are_read_with_tolerance() {
    let home = Home::new();
    let names: Vec<Vec<u8>> = [
        (0x82, "xn--bcher-kva.example".as_bytes()),
        (0x82, b"*.shop.example"),
        (0x87, &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        (0x81, b"Me@shop.example"),
    ]
    .map(|(tag, content)| element(tag, &[content]))
    .to_vec();
    home.import(&[home.file("a.der", &certificate("One", &names))]);
    for (query, name) in [
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.EXAMPLE.", "xn--bcher-kva.example"),
        ("*.shop.example", "*.shop.example"),
        ("Shop.Example.", "*.shop.example"),
        ("https://shop.example/path", "*.shop.example"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("ME@shop.EXAMPLE", "me@shop.example"),
    ] {
        let found = home.ask(&["search", query]);
        assert_eq!(found.len(), 1, "{query}");
        assert_eq!(found[0]["name"], json!(name), "{query}");
    }
    for query in ["bücher.example", "*.shop.example", "SHOP.example."] {
        assert_eq!(home.ask(&["names", query]).len(), 1, "{query}");
    }
    home.ct(&["names", "[2001:db8::1]"])
        .says(2, &["tamis ct search [2001:db8::1]"]);
    home.ct(&["names", "me@shop.example"])
        .says(2, &["tamis ct search me@shop.example"]);
}

/// The answers that the README shows are those that `make demo` and its index give; `…` leaves out the rest.
#[test]
fn the_readme_shows_what_is_printed() {
    let home = Home::with(&[testdata("ct/rfc6962/live_ct.json")]);
    let page = testdata("ct/rfc6962/navigli2025h2_get-entries.json.gz");
    let mut import = home.command(&["import", "--log", "navigli2025h2", "--start", "0"]);
    let summary = Run::of(import.arg(page)).code(0).out;
    let readme = std::fs::read_to_string(testdata("../README.md")).unwrap();
    let totals: Vec<&str> = readme.lines().filter(|line| line.starts_with("total ")).collect();
    assert_eq!(totals.len(), 3);
    assert!(
        summary.ends_with(&format!("{}\n", totals.join("\n"))),
        "{summary}"
    );
    let mut asked = 0;
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ tamis ct ") else {
            continue;
        };
        let words: Vec<&str> = command.split_whitespace().collect();
        let words: Vec<&str> = match words.iter().position(|&word| word == "--data") {
            Some(at) => [&words[..at], &words[at + 2..]].concat(),
            None => words,
        };
        let printed = home.ct(&words).code(0).out;
        let shown: Vec<&str> = lines
            .by_ref()
            .take_while(|&line| line != "```" && line != "…")
            .collect();
        let printed: Vec<&str> = printed.lines().take(shown.len()).collect();
        assert_eq!(shown, printed, "{command}");
        asked += 1;
    }
    assert_eq!(asked, 2);
    // A log whose entries came without their places.
    let stats = home.ct(&["stats"]).code(0).out;
    assert!(stats.contains("nimbus") && !stats.contains("()"), "{stats}");
}
