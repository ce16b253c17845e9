//! Every command in every format, what it answers when there is nothing, and how it refuses misuse.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::run::{Home, Run, tamis, testdata, text, texts};

fn home() -> Home {
    Home::with(&[
        testdata("ct/rfc6962/live_ct.json"),
        testdata("ct/static/navigli2025h2/tile/data/000"),
    ])
}

fn csv_rows(run: &Run) -> Vec<Vec<String>> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(run.out.as_bytes())
        .records()
        .map(|record| record.unwrap().iter().map(str::to_owned).collect())
        .collect()
}

/// The same answer in each format: as many rows, with the same first column.
#[track_caller]
fn same_rows(home: &Home, args: &[&str], columns: &[&str], list: impl Fn(Value) -> Value) {
    let of = |format: &str| Run::of(home.command(args).args(["--format", format])).code(0);
    let rows = of("ndjson").rows();
    assert!(rows.len() > 1, "{args:?}");
    assert_eq!(list(of("json").json()), json!(rows), "{args:?}");
    let csv = csv_rows(&of("csv"));
    assert_eq!(csv[0], columns, "{args:?}");
    assert_eq!(csv.len(), rows.len() + 1, "{args:?}");
    let table = of("table");
    let lines: Vec<&str> = table.out.lines().collect();
    assert_eq!(lines.len(), rows.len() + 1, "{args:?}: {}", table.out);
    let header = columns
        .iter()
        .map(|column| column.replace('_', " ").to_uppercase());
    let mut at = 0;
    for title in header {
        at += lines[0][at..]
            .find(&title)
            .unwrap_or_else(|| panic!("{args:?}: no {title} in {}", lines[0]));
    }
    for ((row, csv), line) in rows.iter().zip(&csv[1..]).zip(&lines[1..]) {
        assert_eq!(csv[0], text(row, columns[0]), "{args:?}");
        assert!(line.contains(text(row, columns[0])), "{args:?}: {line}");
    }
    assert!(
        !table.out.contains('\u{1b}'),
        "{args:?}: colours without a terminal"
    );
}

/// The same document in each format.
#[track_caller]
fn same_document(home: &Home, args: &[&str], keys: &[&str]) -> Value {
    let run = |format: &str| {
        let mut command = if matches!(args[0], "inspect") {
            tamis(&[&["ct"], args].concat())
        } else {
            home.command(args)
        };
        Run::of(command.args(["--format", format])).code(0)
    };
    let document = run("json").json();
    assert_eq!(run("ndjson").rows(), std::slice::from_ref(&document), "{args:?}");
    let csv = csv_rows(&run("csv"));
    assert_eq!(csv[0], ["key", "value"], "{args:?}");
    let table = run("table").out;
    for key in keys {
        assert!(document.get(key).is_some(), "{args:?}: no {key} in {document}");
        assert!(
            csv.iter().any(|row| row[0] == *key),
            "{args:?}: no {key} in {csv:?}"
        );
        let told = key.replace('_', " ");
        assert!(
            table.lines().any(|line| line.starts_with(&told)),
            "{args:?}: no {told} in {table}"
        );
    }
    document
}

#[test]
fn names_in_every_format() {
    let columns = ["name", "wildcard", "first_seen", "last_seen", "issuances"];
    same_rows(&home(), &["names", "com"], &columns, |rows| rows);
}

#[test]
fn search_in_every_format() {
    let columns = ["name", "issuer", "not_before", "not_after", "first_seen", "id"];
    same_rows(&home(), &["search", "com"], &columns, |page| {
        assert_eq!(page["partial"], json!(false));
        page["results"].clone()
    });
}

#[test]
fn documents_in_every_format() {
    let home = home();
    let sha256 = texts(&home.ask(&["search", "seo.gamen.net"])[0], "sha256").remove(0);
    let show = |format: &str| home.ct(&["show", &sha256, "--format", format]).code(0);
    // A serial number may be that of several certificates, so one is a list of one, too.
    let shown = show("json").json()[0].clone();
    assert_eq!(show("json").json(), json!([shown]));
    assert_eq!(show("ndjson").rows(), std::slice::from_ref(&shown));
    assert_eq!(shown["fingerprints"][0]["sha256"], json!(sha256));
    let csv = csv_rows(&show("csv"));
    assert_eq!(
        csv[0],
        ["id", "serial", "issuer", "not_before", "not_after", "names"]
    );
    assert_eq!(csv[1][1], text(&shown, "serial"));
    for told in ["serial ", "fingerprints ", "positions ", "names "] {
        assert!(
            show("table").out.lines().any(|line| line.starts_with(told)),
            "no {told}"
        );
    }
    let stats = same_document(&home, &["stats"], &["issuances", "name_rows", "segments", "logs"]);
    assert!(stats["issuances"].as_u64().unwrap() > 100);
    assert_eq!(stats["certificates"], json!(296));
    let report = same_document(&home, &["verify"], &["files", "bytes", "name_rows", "faults"]);
    assert_eq!(report["name_rows"], stats["name_rows"]);
    same_document(&home, &["compact"], &["merges", "segments", "rows_folded"]);
    assert_eq!(
        home.ct(&["stats", "--format", "json"]).json()["certificates"],
        json!(296)
    );
    let page = testdata("ct/rfc6962/navigli2025h2_get-entries.json.gz");
    let told = same_document(
        &home,
        &["inspect", page.to_str().unwrap()],
        &["kind", "bytes", "entries"],
    );
    assert_eq!(told["kind"], json!("log entries (get-entries JSON)"));
    assert_eq!(told["entries"], json!(256));
    assert_eq!(told["compressed"], json!(true));
    let manifest = home.data().join("MANIFEST");
    let told = same_document(
        &home,
        &["inspect", manifest.to_str().unwrap()],
        &["kind", "bytes", "facts"],
    );
    assert!(text(&told, "kind").contains("manifest"), "{told}");
}

#[test]
fn import_in_every_format() {
    let page = testdata("ct/rfc6962/navigli2025h2_get-entries.json.gz");
    for format in ["table", "json", "ndjson", "csv"] {
        let home = Home::new();
        let run = Run::of(home.command(&["import", "--format", format]).arg(&page)).code(0);
        match format {
            "table" => {
                for told in [
                    "entries ",
                    "certificates ",
                    "new issuances ",
                    "names ",
                    "duplicates ",
                    "oddities ",
                ] {
                    assert!(run.out.contains(told), "no {told}in {}", run.out);
                }
            }
            "json" => assert_eq!(run.json()["entries"], json!(256)),
            "ndjson" => {
                let rows = run.rows();
                let name = page.to_str().unwrap();
                assert_eq!(
                    rows[0],
                    json!({ "file": name, "certificates": 256, "rejected": 0, "refused": null, "durable": true })
                );
                assert_eq!(rows[1]["entries"], json!(256));
                assert_eq!(rows.len(), 2);
            }
            _ => assert!(csv_rows(&run).contains(&vec!["entries".to_owned(), "256".to_owned()])),
        }
    }
}

#[test]
fn parse_in_every_format() {
    let path = testdata("ct/sct/test-embedded-pre-cert.pem");
    let run = |format: &str| Run::of(tamis(&["ct", "parse", "--format", format]).arg(&path)).code(0);
    let rows = run("ndjson").rows();
    assert_eq!(run("json").json(), json!(rows));
    let keys = [
        "file",
        "index",
        "sha256",
        "precert",
        "names",
        "other_names",
        "ips",
        "emails",
        "common_names",
        "issuer",
        "organization",
        "serial",
        "not_before",
        "not_after",
        "registrable_domains",
        "deviations",
    ];
    for key in keys {
        assert!(rows[0].get(key).is_some(), "no {key} in {}", rows[0]);
    }
    assert_eq!(rows[0]["file"], json!(path.to_str().unwrap()));
    assert_eq!(rows[0]["precert"], json!(true));
    assert_eq!(rows[0]["not_before"], json!("2012-06-01T00:00:00Z"));
    assert_eq!(csv_rows(&run("csv"))[1][0], path.to_str().unwrap());
    assert!(run("table").out.contains("NOT BEFORE"));
}

#[test]
fn parse_says_what_independent_parsers_say() {
    let path = testdata("ct/sct/expected.jsonl");
    let mut compared = 0;
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let expected: Value = serde_json::from_str(line).unwrap();
        let pyca = &expected["pyca"];
        let der = expected["label"] == "CERTIFICATE" && expected["index"] == json!(0);
        if !der || pyca["parse"] != "ok" {
            continue;
        }
        let file = testdata(&format!("ct/sct/{}", text(&expected, "file")));
        let told = Run::of(tamis(&["ct", "parse"]).arg(&file))
            .code(0)
            .rows()
            .remove(0);
        assert_eq!(told["sha256"], expected["sha256"], "{}", file.display());
        assert_eq!(told["precert"], pyca["precert_poison"], "{}", file.display());
        for key in ["not_before", "not_after"] {
            assert_eq!(told[key], pyca[key], "{}", file.display());
        }
        compared += 1;
    }
    assert!(compared > 20, "{compared} compared");
}

#[test]
fn filters_narrow_and_never_invent() {
    let home = home();
    let all = home.ask(&["search", "com", "--limit", "1000"]);
    let start = |row: &Value| text(row, "not_before").to_owned();
    let mut starts: Vec<String> = all.iter().map(start).collect();
    starts.sort();
    let middle = starts[starts.len() / 2].clone();
    let expected = |keep: &dyn Fn(&Value) -> bool| -> Vec<Value> {
        all.iter().filter(|row| keep(row)).cloned().collect()
    };
    let cases: [(&[&str], Vec<Value>); 6] = [
        (&["--after", &middle], expected(&|row| start(row) >= middle)),
        (&["--before", &middle], expected(&|row| start(row) < middle)),
        (&["--after", &middle, "--before", &middle], Vec::new()),
        (
            &["--issuer", "lEt'S eNcRyPt"],
            expected(&|row| text(row, "issuer").to_lowercase().contains("let's encrypt")),
        ),
        (&["--org", "no such organisation"], Vec::new()),
        (
            &["--not-expired"],
            expected(&|row| text(row, "not_after") >= rfc3339_now().as_str()),
        ),
    ];
    for (filter, expected) in cases {
        let run = Run::of(
            home.command(&["search", "com", "--limit", "1000", "--format", "ndjson"])
                .args(filter),
        );
        assert_eq!(run.rows(), expected, "{filter:?}");
        assert_eq!(run.code, Some(i32::from(expected.is_empty())), "{filter:?}");
    }
    let below = home.ask(&["search", "car-hotissue.com"]);
    let exact = expected_exact(&below, "car-hotissue.com");
    assert!(!exact.is_empty() && exact.len() < below.len());
    assert_eq!(home.ask(&["search", "car-hotissue.com", "--exact"]), exact);
}

fn expected_exact(rows: &[Value], host: &str) -> Vec<Value> {
    let is_host = |row: &&Value| text(row, "name").trim_start_matches("*.") == host;
    rows.iter().filter(is_host).cloned().collect()
}

fn rfc3339_now() -> String {
    time::OffsetDateTime::now_utc()
        .format(&time::format_description::well_known::Rfc3339)
        .unwrap()
}

#[test]
fn since_keeps_names_that_are_new() {
    let home = home();
    let all = home.ask(&["names", "com"]);
    let mut firsts: Vec<&str> = all.iter().map(|row| text(row, "first_seen")).collect();
    firsts.sort_unstable();
    let middle = firsts[firsts.len() / 2];
    let expected: Vec<Value> = all
        .iter()
        .filter(|row| text(row, "first_seen") >= middle)
        .cloned()
        .collect();
    assert!(expected.len() < all.len());
    assert_eq!(home.ask(&["names", "com", "--since", middle]), expected);
    home.ct(&["names", "com", "--since", "1m"]).says(1, &["no names"]);
    assert_eq!(home.ask(&["names", "com", "--limit", "3"]), all[..3]);
}

#[test]
fn wildcards_that_cover_a_host_are_found() {
    let home = home();
    let names = home.ask(&["names", "io"]);
    let name = names.iter().find(|row| row["wildcard"] == json!(true)).unwrap();
    let host = text(name, "name");
    let found = home.ask(&["search", "--wildcards-covering", &format!("any.{host}")]);
    assert!(
        found
            .iter()
            .all(|row| row["name"] == json!(host) || row["name"] == json!(format!("*.{host}"))),
        "{found:?}"
    );
    home.ct(&["search", "--wildcards-covering", &format!("too.deep.{host}")])
        .code(1);
    home.ct(&["search", "--wildcards-covering", "localhost"])
        .says(2, &["single label"]);
}

#[test]
fn addresses_and_mail_addresses_are_found() {
    let home = Home::new();
    // The folder holds lists of revoked certificates, too.
    home.try_import(&[testdata("certs/pyca")])
        .says(1, &["certificate revocation list"]);
    let mut asked = 0;
    let parsed = Run::of(tamis(&["ct", "parse"]).arg(testdata("certs/pyca")))
        .says(1, &["certificate revocation list"])
        .rows();
    for row in &parsed {
        for identifier in texts(row, "ips").iter().chain(&texts(row, "emails")) {
            let found = home.ask(&["search", identifier]);
            assert!(
                found
                    .iter()
                    .any(|item| texts(item, "sha256").contains(&text(row, "sha256").to_owned())),
                "{identifier}: {found:?}"
            );
            asked += 1;
        }
    }
    assert!(asked > 5, "{asked} identifiers");
}

#[test]
fn nothing_found_is_told_apart_from_failure() {
    let home = home();
    home.ct(&["names", "example.invalid"])
        .says(1, &["no names at or below example.invalid"]);
    home.ct(&["search", "example.invalid"])
        .says(1, &["no certificates for example.invalid"]);
    home.ct(&["show", &"00".repeat(32)])
        .says(1, &["no SHA-256, serial number or id"]);
    for format in ["json", "ndjson", "csv", "table"] {
        let run = Run::of(&mut home.command(&["names", "example.invalid", "--format", format])).code(1);
        let expected = match format {
            "json" => "[]\n",
            "csv" => "name,wildcard,first_seen,last_seen,issuances\n",
            _ => "",
        };
        assert_eq!(run.out, expected, "{format}");
        let run = Run::of(&mut home.command(&["show", &"00".repeat(32), "--format", format])).code(1);
        let expected = match format {
            "json" => "[]\n",
            "csv" => "id,serial,issuer,not_before,not_after,names\n",
            _ => "",
        };
        assert_eq!(run.out, expected, "{format}");
    }
    let empty = Home::new();
    for command in [
        &["names", "com"][..],
        &["search", "com"],
        &["show", "1"],
        &["stats"],
        &["verify"],
        &["compact"],
    ] {
        empty.ct(command).says(2, &["no index here", "tamis ct import"]);
    }
    assert!(!empty.data().exists(), "a question makes no index");
}

#[test]
fn misuse_fails_with_a_hint() {
    let home = home();
    let cases: [(&[&str], &[&str]); 14] = [
        (
            &["names", "192.0.2.1"],
            &["no domain", "tamis ct search 192.0.2.1"],
        ),
        (&["names", "a b"], &["no domain name", "example.com"]),
        (&["names", "com", "--since", "yesterday"], &["30d"]),
        (&["names", "com", "--limit", "0"], &["--limit"]),
        (&["search", "com", "--limit", "0"], &["limit"]),
        (
            &["search", "com", "--exact", "--wildcards-covering"],
            &["--wildcards-covering"],
        ),
        (
            &["search", "com", "--cursor", "x"],
            &["not a cursor", "start again without"],
        ),
        (&["names", "com", "--format", "xml"], &["table", "ndjson"]),
        (&["names"], &["<DOMAIN>"]),
        (&["import", "--start", "5", "x.pem"], &["--log"]),
        (&["import", "--log", "", "x.pem"], &["--log"]),
        (&["show", " "], &["names nothing", "SHA-256"]),
        (&["inspect", "/"], &["is a folder", "tamis ct stats"]),
        (&["nonsense"], &["unrecognized subcommand"]),
    ];
    for (args, hints) in cases {
        let run = home.ct(args).says(2, hints);
        assert_eq!(run.out, "", "{args:?}");
    }
    Run::of(&mut tamis(&["ct", "inspect", "/no/such/file"])).says(2, &["/no/such/file"]);
}

#[test]
fn help_and_completions_and_manuals_are_there() {
    for args in [
        &["--help"][..],
        &["ct", "--help"],
        &["ct", "search", "--help"],
        &["--version"],
    ] {
        let run = Run::of(tamis(args).env("NO_COLOR", "1")).code(0);
        assert!(!run.out.is_empty() && !run.out.contains('\u{1b}'), "{args:?}");
    }
    assert!(
        Run::of(&mut tamis(&["completions", "bash"]))
            .code(0)
            .out
            .contains("tamis")
    );
    let home = Home::new();
    Run::of(tamis(&["man"]).arg(home.path("man"))).code(0);
    assert!(home.path("man/tamis-ct-search.1").exists());
}

/// A public suffix list that is newer than the one shipped.
#[test]
fn another_list_of_suffixes_is_used() {
    let home = Home::new();
    let list = home.file("list.dat", b"net\ngamen.net\n");
    let list = list.to_str().unwrap();
    let tile = testdata("ct/static/navigli2025h2/tile/data/000");
    let domains = |args: &[&str]| {
        let rows = Run::of(tamis(&[&["ct", "parse"], args].concat()).arg(&tile))
            .code(0)
            .rows();
        let mut rows = rows.into_iter();
        let row = rows.find(|row| texts(row, "names").contains(&"git.invoice.gamen.net".to_owned()));
        texts(&row.unwrap(), "registrable_domains")
    };
    assert_eq!(domains(&[]), ["gamen.net"]);
    assert_eq!(domains(&["--psl", list]), ["invoice.gamen.net"]);
    home.ct(&["import", "--psl", "/no/such/list", tile.to_str().unwrap()])
        .says(2, &["/no/such/list", "No such file"]);
}

/// A reader that went away: its end of the pipe is closed before anything is written.
#[test]
fn a_reader_that_went_away_is_no_error() {
    let home = home();
    let page = testdata("ct/rfc6962/navigli2025h2_get-entries.json.gz");
    let page = page.to_str().unwrap();
    let sha256 = texts(&home.ask(&["search", "seo.gamen.net"])[0], "sha256").remove(0);
    for args in [
        &["completions", "bash"][..],
        &["--help"],
        &["ct", "search", "--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let run = Run::of(tamis(args).stdout(writer));
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{args:?}");
    }
    let commands: [&[&str]; 8] = [
        &["names", "com"],
        &["search", "com"],
        &["show", &sha256],
        &["stats"],
        &["verify"],
        &["inspect", page],
        &["parse", page],
        &["import", page],
    ];
    for args in commands {
        for format in ["table", "json", "ndjson", "csv"] {
            let fresh = Home::new();
            let mut command = match args[0] {
                "inspect" | "parse" => tamis(&[&["ct"], args].concat()),
                "import" => fresh.command(args),
                _ => home.command(args),
            };
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let child = command
                .args(["--format", format])
                .stdout(writer)
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let output = child.wait_with_output().unwrap();
            let err = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{args:?} {format}: {err}");
            assert_eq!(err, "", "{args:?} {format}");
            if args[0] == "import" {
                assert_eq!(fresh.totals()[1].1, json!(256), "{format}: the import went on");
            }
        }
    }
}

/// `tamis … 2>&1 | head`: talk that nobody hears stops no work.
#[test]
fn nobody_has_to_listen_to_the_talk() {
    let home = Home::new();
    let garbage = home.file("garbage", b"no certificate");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let page = testdata("ct/rfc6962/navigli2025h2_get-entries.json.gz");
    let mut command = home.command(&["import"]);
    let status = command
        .args([&garbage, &page])
        .stdout(Stdio::null())
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1), "the garbage is rejected");
    assert_eq!(home.totals()[1].1, json!(256));
}

#[test]
fn questions_that_name_nothing_are_misuse_and_mailboxes_have_no_case() {
    let home = Home::new();
    home.import(&[testdata("certs/pyca/custom__san_email_dns_ip_dirname_uri.pem")]);
    home.import(&[testdata("ct/rfc6962/live_ct.json")]);
    for (query, hint) in [
        ("", "names nothing"),
        ("../..", "names nothing"),
        ("192.0.2.0/24", "range of addresses"),
    ] {
        home.ct(&["search", query]).says(2, &[hint]);
    }
    let found = home.ask(&["search", "User@Cryptography.io"]);
    assert_eq!(found, home.ask(&["search", "user@cryptography.io"]));
    assert!(!found.is_empty());
    home.ct(&["names", "com", "--limit", "1"])
        .says(0, &["there are more names"]);
}

#[test]
fn every_command_takes_the_folder() {
    let home = Home::new();
    home.import(&[testdata("ct/rfc6962/live_ct.json")]);
    let file = testdata("ct/sct/test-cert.pem");
    let file = file.to_str().unwrap();
    for args in [
        &["parse", file][..],
        &["inspect", file],
        &["names", "org"],
        &["search", "org"],
        &["stats"],
        &["verify"],
        &["compact"],
    ] {
        home.ct(args).code(0);
    }
}

/// Every byte of the segments is told once by what it is for, and once by its tier.
#[test]
fn stats_tell_what_each_purpose_and_each_tier_costs() {
    let home = Home::new();
    let corpus = crate::corpus::Corpus::write(&home.path("corpus"), 2_400, 3);
    let mut arguments = corpus.arguments().to_vec();
    arguments.extend(["--flush-rows", "100"]);
    home.import(&arguments);
    let stats = || home.ct(&["stats", "--format", "json"]).code(0).json();
    let sum = |stats: &Value, list: &str, key: &str| -> u64 {
        let items = stats[list].as_array().unwrap().iter();
        items.map(|item| item[key].as_u64().unwrap()).sum()
    };
    let check = |stats: &Value| {
        for list in ["costs", "tiers", "regions"] {
            assert_eq!(
                json!(sum(stats, list, "bytes")),
                stats["segment_bytes"],
                "{stats}"
            );
        }
        assert_eq!(
            json!(sum(stats, "tiers", "segments")),
            stats["segments"],
            "{stats}"
        );
        let costs = stats["costs"].as_array().unwrap();
        assert!(
            costs
                .iter()
                .all(|cost| cost["bytes_per_issuance"].as_f64() > Some(0.0))
        );
    };
    let flushed = stats();
    check(&flushed);
    let tiers = flushed["tiers"].as_array().unwrap();
    assert_eq!(
        (tiers.len(), &tiers[0]["kind"], &tiers[0]["tier"]),
        (1, &json!("flushes"), &json!(0))
    );
    assert_eq!(tiers[0]["runs"], flushed["segments"]);
    home.ct(&["compact"]).code(0);
    let merged = stats();
    check(&merged);
    let told: Vec<(&Value, &Value, &Value)> = merged["tiers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tier| (&tier["kind"], &tier["tier"], &tier["runs"]))
        .collect();
    let expected = ["names", "records", "look-ups"].map(json_text);
    assert_eq!(
        told,
        expected.each_ref().map(|(kind, tier, runs)| (kind, tier, runs))
    );
    let table = home.ct(&["stats"]).code(0).out;
    for part in ["a name row", "an issuance", "1 look-ups"] {
        assert!(table.contains(part), "{table}");
    }
}

fn json_text(kind: &str) -> (Value, Value, Value) {
    (json!(kind), json!(1), json!(1))
}
