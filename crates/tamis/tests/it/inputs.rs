//! Files are what is in them, whatever they are called; what is broken costs itself and is told.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;

use serde_json::json;

use crate::logs::bare_entries;
use crate::run::{Home, Run, deflate, inflate, tamis, testdata, text};

fn tile() -> Vec<u8> {
    fs::read(testdata("ct/static/navigli2025h2/tile/data/000")).unwrap()
}

fn page() -> Vec<u8> {
    inflate(&fs::read(testdata("ct/rfc6962/navigli2025h2_get-entries.json.gz")).unwrap())
}

fn pem() -> Vec<u8> {
    fs::read(testdata("ct/sct/test-embedded-cert.pem")).unwrap()
}

fn der() -> Vec<u8> {
    fs::read(testdata("certs/odd_real/google_cert.der")).unwrap()
}

#[test]
fn names_of_files_mean_nothing() {
    let everything: [(&str, Vec<u8>, u64); 7] = [
        ("tile.pem", tile(), 256),
        ("page.der", page(), 256),
        ("page.json", deflate(&page()), 256),
        ("tile.json.txt", deflate(&tile()), 256),
        ("pem.json", pem(), 1),
        ("der", der(), 1),
        (
            "old-label.gz",
            {
                let text = String::from_utf8(pem()).unwrap();
                text.replace(" CERTIFICATE-----", " X509 CERTIFICATE-----")
                    .into_bytes()
            },
            1,
        ),
    ];
    let all = Home::new();
    for (name, bytes, count) in &everything {
        let home = Home::new();
        let file = home.file(name, bytes);
        assert_eq!(home.import(&[&file])["certificates"], json!(count), "{name}");
        let parsed = Run::of(tamis(&["ct", "parse"]).arg(&file)).code(0).rows();
        assert_eq!(parsed.len() as u64, *count, "{name}");
        all.file(&format!("mixed/{name}"), bytes);
    }
    // The whole folder at once, with what does not belong there.
    all.file("mixed/README.md", b"# not a certificate\n");
    all.file("mixed/deep/er/page", &page());
    let summary = all.import(&[all.path("mixed")]);
    assert_eq!(summary["certificates"], json!(5 * 256 + 3));
    assert_eq!(summary["files_passed_over"], json!(1));
    assert_eq!(
        summary["new_issuances"].as_u64().unwrap()
            + summary["copies"].as_u64().unwrap()
            + summary["duplicates"].as_u64().unwrap(),
        5 * 256 + 3
    );
    let alone = Home::with(&[
        all.path("mixed/tile.pem"),
        all.path("mixed/der"),
        all.path("mixed/pem.json"),
    ]);
    let compared = |home: &Home| [home.ask(&["names", "com"]), home.ask(&["names", "net"])];
    assert_eq!(compared(&all), compared(&alone));
}

#[test]
fn stdin_is_an_input_like_any_other() {
    for bytes in [tile(), page(), deflate(&page())] {
        let home = Home::new();
        let run = Run::fed(&mut home.command(&["import", "--format", "json", "-"]), &bytes).code(0);
        assert_eq!(run.json()["certificates"], json!(256));
        let parsed = Run::fed(&mut tamis(&["ct", "parse", "-"]), &bytes).code(0).rows();
        assert_eq!(parsed.len(), 256);
        assert_eq!(parsed[0]["file"], json!("-"));
    }
    let home = Home::new();
    Run::fed(&mut home.command(&["import", "-"]), b"").says(1, &["-:", "it is empty"]);
}

#[test]
fn what_is_no_input_is_rejected_and_the_rest_is_read() {
    let mut huge_line = b"x".repeat(5 << 20);
    huge_line.push(b'\n');
    let mut random = 0x9e37_79b9_u32;
    let garbage: Vec<u8> = (0..200_000)
        .map(|_| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 24) as u8
        })
        .collect();
    let cases: [(&str, &[u8], &str); 6] = [
        ("empty", b"", "it is empty"),
        ("huge-line", &huge_line, "not recognised"),
        ("garbage", &garbage, "not recognised"),
        (
            "error-page",
            b"<html><body>502 Bad Gateway</body></html>",
            "web page",
        ),
        ("other.json", b"{\"a\": 1}", "leaf_input"),
        (
            "broken.gz",
            &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff, 0xff],
            "compressed",
        ),
    ];
    let good = testdata("ct/sct/test-embedded-cert.pem");
    for (name, bytes, told) in cases {
        let home = Home::new();
        let bad = home.file(name, bytes);
        let run = home.try_import(&[&bad, &good]).says(1, &[name, told]);
        assert_eq!(run.json()["certificates"], json!(1), "{name}");
        assert_eq!(run.json()["files_rejected"], json!(1), "{name}");
        home.assert_whole();
        Run::of(tamis(&["ct", "parse"]).arg(&bad)).says(1, &[name, told, "no certificate was read"]);
        let parsed = Run::of(tamis(&["ct", "parse"]).args([&bad, &good])).says(1, &[name, told]);
        assert_eq!(parsed.rows().len(), 1, "{name}: the rest is read");
        Run::of(tamis(&["ct", "inspect"]).arg(&bad)).says(2, &[told]);
    }
    let home = Home::new();
    let missing = home.path("missing");
    let run = home
        .try_import(&[&missing, &good])
        .says(1, &["missing", "No such file"]);
    assert_eq!(run.json()["certificates"], json!(1));
    Run::of(tamis(&["ct", "parse"]).arg(&missing)).says(1, &["missing", "No such file"]);
}

#[test]
fn folders_without_inputs_are_told() {
    let home = Home::new();
    home.file("folder/notes.txt", b"nothing");
    let folder = home.path("folder");
    let folder = folder.to_str().unwrap();
    let read = "get-entries";
    home.try_import(&[folder]).says(
        1,
        &[
            "nothing to import was found",
            folder,
            "1 file passed over",
            read,
            "inspect",
        ],
    );
    Run::of(&mut tamis(&["ct", "parse", folder])).says(1, &["no certificate was read", folder, read]);

    fs::create_dir(home.path("empty")).unwrap();
    let empty = home.path("empty");
    let empty = empty.to_str().unwrap();
    let home = Home::new();
    for format in ["table", "json", "ndjson", "csv"] {
        let run = home
            .ct(&["import", empty, "--format", format])
            .says(1, &["nothing to import was found", empty, "holds no file", read]);
        assert!(
            run.out.contains("files"),
            "{format}: a summary of nothing: {}",
            run.out
        );
    }
    home.try_import(&["/no/such/path"])
        .says(1, &["/no/such/path", "check the path"]);
    assert!(!home.data().exists(), "nothing to read makes no index");
    Run::of(&mut tamis(&["ct", "parse", empty])).says(1, &["no certificate was read", empty, "no file"]);
    // What is there stays and is counted.
    home.import(&[testdata("ct/sct/test-cert.pem")]);
    assert_eq!(
        home.try_import(&[empty]).code(1).json()["total_certificates"],
        json!(1)
    );
}

#[test]
fn inspect_reads_stdin() {
    let inspect = |bytes: &[u8]| Run::fed(&mut tamis(&["ct", "inspect", "-", "--format", "json"]), bytes);
    for (bytes, kind) in [
        (tile(), "data tile (static-ct)"),
        (deflate(&page()), "log entries (get-entries JSON)"),
    ] {
        let told = inspect(&bytes).code(0).json();
        assert_eq!((&told["kind"], &told["entries"]), (&json!(kind), &json!(256)));
    }
    // A file of an index tells the same by a pipe and by its name.
    let home = Home::with(&[testdata("ct/rfc6962/live_ct.json")]);
    let manifest = home.data().join("MANIFEST");
    let bytes = fs::read(&manifest).unwrap();
    let named = Run::of(tamis(&["ct", "inspect", "--format", "json"]).arg(&manifest)).code(0);
    assert_eq!(inspect(&bytes).code(0).out, named.out);
    inspect(&bytes[..50]).says(2, &["stdin is damaged at byte 50"]);
    inspect(b"").says(2, &["-: ", "it is empty"]);
    inspect(b"nothing known").says(2, &["-: ", "not recognised"]);
}

#[test]
fn hostile_text_never_reaches_the_terminal() {
    let home = Home::new();
    let file = home.file("a\u{1b}]0;owned\u{7}", b"\x1b[31mred");
    let run = home.try_import(&[&file]).code(1);
    assert!(
        !run.err.contains('\u{1b}') && !run.err.contains('\u{7}'),
        "{:?}",
        run.err
    );
    let run = Run::of(tamis(&["ct", "parse"]).arg(&file)).code(1);
    assert!(
        !run.err.contains('\u{1b}') && !run.err.contains('\u{7}'),
        "{:?}",
        run.err
    );
}

#[test]
fn links_that_lead_round_end() {
    let home = Home::new();
    home.file("loop/a.pem", &pem());
    for name in ["one", "two", "deep"] {
        symlink(home.path("loop"), home.path("loop").join(name)).unwrap();
    }
    symlink("nowhere", home.path("loop/dangling")).unwrap();
    let run = home
        .try_import(&[home.path("loop")])
        .says(1, &["dangling", "No such file"]);
    assert_eq!(run.json()["certificates"], json!(1), "each folder is read once");
}

/// As a user who may not read them, if the tests run as one who may read all.
#[test]
fn what_may_not_be_read_is_told() {
    let home = Home::new();
    home.file("folder/closed/a.pem", &pem());
    let secret = home.file("folder/secret.pem", &pem());
    home.file("folder/open.pem", &pem());
    fs::set_permissions(home.path("folder/closed"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = home.command(&["import", "--format", "json"]);
    command.arg(home.path("folder"));
    if fs::read(&secret).is_ok() {
        const NOBODY: u32 = 65_534;
        for path in ["", "folder", "folder/open.pem"] {
            fs::set_permissions(home.path(path), fs::Permissions::from_mode(0o777)).unwrap();
        }
        command.uid(NOBODY).gid(NOBODY);
        if command.output().is_err() {
            eprintln!("SKIPPED: root may read everything, and nobody may not start the binary");
            return;
        }
    }
    let run = Run::of(&mut command).says(1, &["closed", "secret.pem", "Permission denied"]);
    fs::set_permissions(home.path("folder/closed"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(run.json()["certificates"], json!(1));
    assert_eq!(run.json()["files_rejected"], json!(2));
}

#[test]
fn one_broken_block_among_good_ones_is_all_that_is_lost() {
    let good = String::from_utf8(pem()).unwrap();
    let block = &good[good.find("-----BEGIN").unwrap()..];
    let other = fs::read_to_string(testdata("ct/sct/test-cert.pem")).unwrap();
    let broken = "-----BEGIN CERTIFICATE-----\nMIIB!!!!not base64!!!!\n-----END CERTIFICATE-----\n";
    let home = Home::new();
    let file = home.file("some.pem", format!("{block}{broken}{other}").as_bytes());
    let run = home.try_import(&[&file]).says(1, &["some.pem: entry 1 at byte"]);
    assert_eq!(run.json()["certificates"], json!(2));
    assert_eq!(run.json()["rejected"], json!(1));
    let reasons = run.json()["rejected_because"].as_object().unwrap().clone();
    assert_eq!(reasons.values().collect::<Vec<_>>(), [&json!(1)], "{reasons:?}");
    let parsed = Run::of(tamis(&["ct", "parse"]).arg(&file))
        .says(1, &["entry 1 at byte"])
        .rows();
    assert_eq!(
        parsed.iter().map(|row| row["index"].clone()).collect::<Vec<_>>(),
        [0, 2]
    );
}

#[test]
fn whole_entries_of_a_cut_off_file_are_kept() {
    let page = page();
    let tile = tile();
    let gz = deflate(&page);
    for (name, bytes, cut) in [
        ("page", &page, page.len() / 2),
        ("tile", &tile, tile.len() / 2),
        ("gz", &gz, gz.len() / 2),
    ] {
        let home = Home::new();
        let file = home.file(name, &bytes[..cut]);
        let run = home.try_import(&[&file]).says(1, &[name, "entry"]);
        let kept = run.json()["certificates"].as_u64().unwrap();
        assert!((100..200).contains(&kept), "{name}: {kept}");
        assert_eq!(run.json()["rejected"], json!(1), "{name}");
        home.assert_whole();
        // With the rest, it is as if nothing had happened.
        let rest = home.file("rest", bytes);
        assert_eq!(home.import(&[&rest])["certificates"], json!(256), "{name}");
        let undisturbed = Home::with(&[&rest]);
        assert_eq!(home.totals(), undisturbed.totals(), "{name}");
        assert_eq!(
            home.ask(&["names", "com"]),
            undisturbed.ask(&["names", "com"]),
            "{name}"
        );
    }
}

/// Counting goes wrong where a file before is not whole: better no number than a wrong one.
#[test]
fn entries_are_not_counted_on_behind_a_file_that_is_not_whole() {
    let (entries, _) = bare_entries();
    let part = |range: std::ops::Range<usize>| json!({ "entries": &entries[range] }).to_string();
    let cut = &part(0..10)[..20_000];
    for (name, broken) in [
        ("cut", cut),
        ("page", "<html>429 Too Many Requests</html>"),
        ("empty", ""),
    ] {
        let home = Home::new();
        home.file(&format!("logs/1-{name}"), broken.as_bytes());
        home.file("logs/2-whole", part(10..20).as_bytes());
        home.file("logs/3-tile", &tile());
        let args = |path: &str, start: &str| {
            let path = home.path(path).into_os_string();
            [path, "--log".into(), "x".into(), "--start".into(), start.into()]
        };
        let run = home
            .try_import(&args("logs", "0"))
            .says(1, &["2-whole", "--start"]);
        // The tile says where its entries are.
        let kept = run.json()["certificates"].as_u64().unwrap();
        assert!((256..266).contains(&kept), "{name}: {kept}");
        home.import(&args("logs/2-whole", "1010"));
        let stats = home.ct(&["stats", "--format", "json"]).json();
        assert_eq!(
            stats["logs"][0]["ranges"],
            json!([[0, 256], [1010, 1020]]),
            "{name}"
        );
    }
}

/// Certificates beside the pages of a log are no entries of it.
#[test]
fn certificates_that_are_no_entries_get_no_place_in_a_log() {
    let home = Home::new();
    let issuer = home.file("logs/0-issuer", &der());
    let (entries, _) = bare_entries();
    home.file(
        "logs/1-page",
        json!({ "entries": entries }).to_string().as_bytes(),
    );
    home.import(&[
        home.path("logs").to_str().unwrap(),
        "--log",
        "x",
        "--start",
        "1000",
    ]);
    let stats = home.ct(&["stats", "--format", "json"]).json();
    assert_eq!(stats["logs"][0]["ranges"], json!([[1000, 1040]]));
    let parsed = Run::of(tamis(&["ct", "parse"]).arg(issuer))
        .code(0)
        .rows()
        .remove(0);
    let shown = home.ask(&["show", text(&parsed, "sha256")]);
    assert_eq!(shown[0]["positions"], json!([]));
}

#[test]
fn a_folder_that_cannot_hold_an_index_is_told() {
    let home = Home::new();
    home.file("data", b"a file, not a folder");
    home.try_import(&[testdata("ct/sct/test-cert.pem")])
        .says(2, &["cannot be the folder of an index", "data", "--data"]);
}
