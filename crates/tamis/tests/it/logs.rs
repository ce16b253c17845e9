//! Entries of real logs: every framing and every order gives the same index.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::run::{Home, Run, inflate, tamis, testdata, text, texts};

const TILE: &str = "ct/static/navigli2025h2/tile/data/000";
const PAGE: &str = "ct/rfc6962/navigli2025h2_get-entries.json.gz";

/// One line of the names tile: what the log itself read out of an entry.
struct Told {
    seconds: u64,
    /// Host name and whether it was `*.host`.
    names: BTreeSet<(String, bool)>,
}

fn names_tile() -> Vec<Told> {
    let bytes = std::fs::read(testdata("ct/static/navigli2025h2/tile/names/000")).unwrap();
    let text = if bytes.starts_with(&[0x1f, 0x8b]) {
        inflate(&bytes)
    } else {
        bytes
    };
    let told: Vec<Told> = String::from_utf8(text)
        .unwrap()
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let listed = line["DNS"].as_array().into_iter().flatten();
            let common = Some(&line["Subject"]["CommonName"]);
            Told {
                seconds: line["Timestamp"].as_u64().unwrap() / 1_000,
                names: listed
                    .chain(common)
                    .filter_map(Value::as_str)
                    .map(|name| match name.strip_prefix("*.") {
                        Some(host) => (host.to_lowercase(), true),
                        None => (name.to_lowercase(), false),
                    })
                    .collect(),
            }
        })
        .collect();
    assert_eq!(told.len(), 256);
    told
}

fn is_under(name: &str, domain: &str) -> bool {
    name == domain
        || name
            .strip_suffix(domain)
            .is_some_and(|front| front.ends_with('.'))
}

/// What `names` must answer, but for the issuances, which the names tile does not tell apart.
fn expected_names(told: &[Told], domain: &str) -> Vec<Value> {
    let mut by_name: BTreeMap<&str, (bool, bool, u64)> = BTreeMap::new();
    for entry in told {
        for (name, wildcard) in entry.names.iter().filter(|(name, _)| is_under(name, domain)) {
            let known = by_name.entry(name).or_insert((false, false, u64::MAX));
            known.0 |= !wildcard;
            known.1 |= wildcard;
            known.2 = known.2.min(entry.seconds);
        }
    }
    by_name
        .into_iter()
        .map(|(name, (exact, wildcard, first))| {
            json!({ "name": name, "exact": exact, "wildcard": wildcard, "first_seen": rfc3339(first) })
        })
        .collect()
}

fn rfc3339(seconds: u64) -> String {
    let time = time::OffsetDateTime::from_unix_timestamp(seconds as i64).unwrap();
    time.format(&time::format_description::well_known::Rfc3339)
        .unwrap()
}

/// What is compared of the answers of `names`, sorted by name.
fn told_names(rows: &[Value]) -> Vec<Value> {
    let mut rows: Vec<Value> = rows
        .iter()
        .map(|row| json!({ "name": row["name"], "exact": row["exact"], "wildcard": row["wildcard"], "first_seen": row["first_seen"] }))
        .collect();
    rows.sort_by_key(|row| text(row, "name").to_owned());
    rows
}

/// Every top-level domain of the tile, and domains with few and many names.
fn domains(told: &[Told]) -> BTreeSet<String> {
    let mut domains = BTreeSet::new();
    for (name, _) in told.iter().flat_map(|entry| &entry.names) {
        let labels: Vec<&str> = name.split('.').collect();
        domains.insert(labels.last().unwrap().to_string());
        domains.insert(labels[labels.len().saturating_sub(2)..].join("."));
    }
    domains
}

#[test]
fn names_are_those_that_the_log_itself_read() {
    let home = Home::with(&[testdata(TILE)]);
    let told = names_tile();
    // The command for a few, the library behind it for all.
    let all = domains(&told);
    assert!(all.len() > 100, "{} domains", all.len());
    let snapshot = tamis_ct_index::Snapshot::open(&home.data(), &tamis_ct_index::Options::default()).unwrap();
    for domain in &all {
        let mut query = tamis_ct_index::query::NamesQuery::under(domain);
        query.paging.limit = 100_000;
        let found: BTreeSet<String> = snapshot
            .names(&query)
            .unwrap()
            .items
            .into_iter()
            .map(|item| item.name)
            .collect();
        let expected: BTreeSet<String> = expected_names(&told, domain)
            .iter()
            .map(|row| text(row, "name").to_owned())
            .collect();
        assert_eq!(found, expected, "{domain}");
    }
    for domain in [
        "com",
        "org",
        "net",
        "gamen.net",
        "jccsmatrei.top",
        "car-hotissue.com",
        "drive-platform.io",
    ] {
        let expected = expected_names(&told, domain);
        assert!(!expected.is_empty(), "{domain}");
        assert_eq!(told_names(&home.ask(&["names", domain])), expected, "{domain}");
    }
}

#[test]
fn issuances_are_counted_once_for_each_serial_number() {
    let home = Home::with(&[testdata(TILE), testdata(PAGE)]);
    let parsed = Run::of(tamis(&["ct", "parse"]).arg(testdata(TILE)))
        .code(0)
        .rows();
    assert_eq!(parsed.len(), 256);
    let mut serials: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for certificate in &parsed {
        let seen = certificate["timestamp"].as_str().unwrap();
        let seen = time::OffsetDateTime::parse(seen, &time::format_description::well_known::Rfc3339)
            .unwrap()
            .unix_timestamp() as u64;
        for name in texts(certificate, "names") {
            let host = name.strip_prefix("*.").unwrap_or(&name).to_owned();
            let first = serials
                .entry(host)
                .or_default()
                .entry(text(certificate, "serial").to_owned())
                .or_insert(u64::MAX);
            *first = seen.min(*first);
        }
    }
    for row in home
        .ask(&["names", "com"])
        .iter()
        .chain(&home.ask(&["names", "net"]))
    {
        let issuances = &serials[text(row, "name")];
        assert_eq!(row["issuances"], json!(issuances.len()), "{row}");
        assert_eq!(
            row["last_seen"],
            json!(rfc3339(*issuances.values().max().unwrap())),
            "{row}"
        );
    }
    let distinct: BTreeSet<&str> = parsed.iter().map(|row| text(row, "serial")).collect();
    assert_eq!(home.totals()[0], ("issuances".to_owned(), json!(distinct.len())));
}

/// Everything the commands say about the entries of the tile, but for where they were found and in
/// which order.
fn picture(home: &Home) -> Vec<Value> {
    let mut picture = Vec::new();
    for domain in ["com", "net", "io", "top", "org"] {
        picture.extend(home.ask(&["names", domain]));
        let rows = home.ask(&["search", domain, "--limit", "1000"]);
        for mut row in rows {
            // Numbers and hashes mean something in their folder only.
            for key in ["id", "issuance"] {
                row.as_object_mut().unwrap().remove(key).unwrap();
            }
            picture.push(row);
        }
    }
    let mut some = home.ask(&["search", "com", "--limit", "1000"]);
    some.sort_by_key(|row| texts(row, "sha256"));
    for row in some.into_iter().take(8) {
        let sha256 = texts(&row, "sha256").remove(0);
        let mut shown = home.ask(&["show", &sha256]).remove(0);
        for key in ["id", "issuance", "positions"] {
            shown.as_object_mut().unwrap().remove(key).unwrap();
        }
        picture.push(shown);
    }
    let certificates = home.totals();
    picture.extend(
        certificates
            .into_iter()
            .filter(|(key, _)| !matches!(key.as_str(), "log_positions" | "logs"))
            .map(|(key, value)| json!({ key: value })),
    );
    home.assert_whole();
    // Certificates of one name come in the order of their hashes, which differ from folder to folder.
    picture.sort_by_key(Value::to_string);
    picture
}

/// Tells the first difference instead of hundreds of facts.
#[track_caller]
fn assert_same(left: &[Value], right: &[Value], what: &str) {
    for (left, right) in left.iter().zip(right) {
        assert_eq!(left, right, "{what}");
    }
    assert_eq!(left.len(), right.len(), "{what}");
}

#[test]
fn tiles_and_get_entries_give_the_same_index_in_any_order() {
    let (tile, page) = (testdata(TILE), testdata(PAGE));
    let expected = picture(&Home::with(&[&tile]));
    assert!(expected.len() > 200, "{} facts", expected.len());
    for paths in [vec![&page], vec![&tile, &page], vec![&page, &tile]] {
        let together = Home::with(&paths);
        assert_same(&picture(&together), &expected, &format!("{paths:?} at once"));
        let one_by_one = Home::new();
        for path in &paths {
            one_by_one.import(&[path]);
        }
        assert_same(&picture(&one_by_one), &expected, &format!("{paths:?} one by one"));
    }
}

#[test]
fn a_second_import_moves_nothing() {
    let args = [
        "--log".into(),
        "navigli2025h2".into(),
        "--start".into(),
        "0".into(),
        testdata(PAGE),
    ];
    let home = Home::new();
    let first = home.import(&args);
    assert_eq!(first["entries"], json!(256));
    assert_eq!(first["certificates"], json!(256));
    assert_eq!(
        first["new_issuances"].as_u64().unwrap() + first["copies"].as_u64().unwrap(),
        256
    );
    let before = home.totals();
    for again in [
        &args[..],
        &[testdata(TILE), "--log".into(), "navigli2025h2".into()],
    ] {
        let second = home.import(again);
        assert_eq!(second["entries"], json!(256));
        assert_eq!(second["new_issuances"], json!(0), "{second}");
        assert_eq!(second["copies"], json!(0), "{second}");
        assert_eq!(second["new_name_rows"], json!(0), "{second}");
        assert_eq!(second["duplicates"], json!(256), "{second}");
        assert_eq!(home.totals(), before);
    }
}

/// Real entries without a word about where they are, and what they say.
pub(crate) fn bare_entries() -> (Vec<Value>, Vec<Value>) {
    let path = testdata("ct/rfc6962/live_ct.json");
    let parsed = Run::of(tamis(&["ct", "parse"]).arg(&path)).code(0).rows();
    let entries: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let bare = entries.as_array().unwrap().iter();
    let bare =
        bare.map(|entry| json!({ "leaf_input": entry["leaf_input"], "extra_data": entry["extra_data"] }));
    (bare.collect(), parsed)
}

#[test]
fn entries_are_found_by_their_place_in_the_log() {
    // Numbered by hand, over two files; and by the log itself.
    let (entries, parsed) = bare_entries();
    let counted = Home::new();
    let [first, second] = [(&entries[..15], "a.json"), (&entries[15..], "b.json")]
        .map(|(part, name)| counted.file(name, json!({ "entries": part }).to_string().as_bytes()));
    counted.import(&[
        "--log",
        "one",
        "--start",
        "5000",
        first.to_str().unwrap(),
        second.to_str().unwrap(),
    ]);
    let signed = Home::with(&[
        testdata(TILE),
        "--log".into(),
        "one".into(),
        "--start".into(),
        "77".into(),
    ]);
    let tile = Run::of(tamis(&["ct", "parse"]).arg(testdata(TILE)))
        .code(0)
        .rows();
    let cases = [
        (&counted, &parsed, 5000, vec![0, 1, 14, 15, 39]),
        (&signed, &tile, 0, vec![0, 1, 77, 255]),
    ];
    for (home, parsed, start, numbers) in cases {
        for number in numbers {
            let (entry, index) = (&parsed[number], start + number);
            let id = (1_u64 << 48 | index as u64).to_string();
            let shown = home.ask(&["show", &id]).remove(0);
            assert_eq!(shown["serial"], entry["serial"], "entry {number}");
            let place = json!({ "log": "one", "index": index, "timestamp": entry["timestamp"], "id": id });
            let places = shown["positions"].as_array().unwrap();
            assert!(places.contains(&place), "{place} is not in {places:?}");
        }
        let next = (1_u64 << 48 | (start + parsed.len()) as u64).to_string();
        home.ct(&["show", &next])
            .says(1, &[&next, "no SHA-256, serial number or id"]);
        let logs = home.ct(&["stats", "--format", "json"]).json()["logs"].clone();
        assert_eq!(
            logs,
            json!([{ "number": 1, "name": "one", "ranges": [[start, start + parsed.len()]] }])
        );
    }
}

#[test]
fn entries_that_name_their_log_are_found_in_it() {
    let path = testdata("ct/rfc6962/live_ct.json");
    let home = Home::with(&[&path]);
    let entries: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let entries = entries.as_array().unwrap();
    assert_eq!(entries.len(), 40);
    let logs = home.ct(&["stats", "--format", "json"]).json()["logs"].clone();
    let numbers: BTreeMap<&str, u64> = logs
        .as_array()
        .unwrap()
        .iter()
        .map(|log| (text(log, "name"), log["number"].as_u64().unwrap()))
        .collect();
    assert_eq!(numbers.len(), 2, "{logs}");
    for entry in entries {
        let index = entry["cert_index"].as_u64().unwrap();
        let id = (numbers[text(entry, "log_url")] << 48 | index).to_string();
        let shown = home.ask(&["show", &id]).remove(0);
        let places = shown["positions"].as_array().unwrap();
        assert!(
            places
                .iter()
                .any(|place| place["log"] == entry["log_url"] && place["index"] == json!(index)),
            "{places:?}"
        );
    }
}

#[test]
fn the_order_of_import_does_not_show() {
    let paths = [
        testdata(TILE),
        testdata("ct/rfc6962/live_ct.json"),
        testdata("ct/rfc6962/ctgo_scanner.json"),
        testdata("ct/sct/test-embedded-cert.pem"),
        testdata("ct/sct/test-embedded-pre-cert.pem"),
        testdata("certs/odd_real"),
    ];
    let all = |home: &Home| {
        let mut picture = picture(home);
        // Totals count the oddities of the first copy, such as that its chain was not there.
        picture.retain(|fact| fact.get("names").is_some() || fact.get("deviations").is_none());
        picture.extend(
            home.ask(&["search", "org", "--limit", "1000"])
                .into_iter()
                .map(|mut row| {
                    for key in ["id", "issuance"] {
                        row.as_object_mut().unwrap().remove(key);
                    }
                    row
                }),
        );
        picture.sort_by_key(Value::to_string);
        picture
    };
    let mut orders = vec![paths.to_vec(); 3];
    orders[1].reverse();
    orders[2].rotate_left(3);
    let homes: Vec<Home> = orders
        .into_iter()
        .map(|order| {
            let home = Home::new();
            for path in order {
                // Some of the odd certificates are no certificates at all.
                assert_ne!(home.try_import(&[path]).code, Some(2));
            }
            home
        })
        .collect();
    let expected = all(&homes[0]);
    for home in &homes[1..] {
        assert_same(&all(home), &expected, "another order");
    }
}
