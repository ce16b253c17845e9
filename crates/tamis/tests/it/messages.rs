//! What is said when something is missing or wrong: the path, the reason, and what to do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::output::{certificate, element};
use crate::run::{Home, Run, tamis, testdata};

const QUESTIONS: [&[&str]; 6] = [
    &["names", "com"],
    &["search", "com"],
    &["show", "1"],
    &["stats"],
    &["verify"],
    &["compact"],
];

#[test]
fn a_folder_without_an_index_says_what_it_is() {
    let home = Home::new();
    fs::create_dir(home.path("empty")).unwrap();
    home.file("foreign/notes.txt", b"nothing");
    home.file("a-file", b"nothing");
    for (folder, told) in [
        (
            "missing",
            &["no index here", "no such folder", "tamis ct import", "--data"][..],
        ),
        (
            "empty",
            &["no index here", "is empty", "tamis ct import", "--data"],
        ),
        ("foreign", &["no index here", "tamis ct import", "--data"]),
        (
            "a-file",
            &["no index here", "it is a file", "--data", "tamis ct inspect"],
        ),
        (
            "a-file/below",
            &["Not a directory", "a part of the path is a file"],
        ),
    ] {
        let path = home.path(folder);
        let before = fs::read_dir(home.path("foreign")).unwrap().count();
        for question in QUESTIONS {
            let run = Run::of(tamis(&["ct"]).args(question).arg("--data").arg(&path));
            let run = run.says(2, told).says(2, &[path.to_str().unwrap()]);
            assert_eq!(
                (run.out.as_str(), run.err.lines().count()),
                ("", 1),
                "{question:?}"
            );
        }
        assert_eq!(fs::read_dir(home.path("foreign")).unwrap().count(), before);
    }
    assert!(!home.path("missing").exists());
}

#[test]
fn import_says_why_a_folder_cannot_hold_an_index() {
    let home = Home::new();
    let file = home.file("a-file", b"nothing");
    home.file("foreign/notes.txt", b"nothing");
    let import = |folder: &str| {
        let mut command = tamis(&["ct", "import"]);
        command.arg(testdata("ct/sct/test-cert.pem"));
        Run::of(command.arg("--data").arg(home.path(folder)))
    };
    let told = [
        "cannot be the folder of an index",
        file.to_str().unwrap(),
        "is a file",
        "--data",
    ];
    import("a-file").says(2, &told);
    import("a-file/below/it").says(2, &told);
    assert_eq!(fs::read(&file).unwrap(), b"nothing");
    import("foreign").says(0, &["foreign holds other files"]);
    assert_eq!(import("foreign").code(0).err, "", "told once");
    assert_eq!(import("new/deep").code(0).err, "");
}

/// Starts `command` as a user for whom modes count. `None` where that cannot be.
fn as_nobody(home: &Home, mut command: Command) -> Option<Run> {
    let secret = home.path("secret");
    if !secret.exists() {
        home.file("secret", b"");
    }
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&secret).is_ok() {
        const NOBODY: u32 = 65_534;
        fs::set_permissions(home.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
        if command.output().is_err() {
            eprintln!("SKIPPED: root may do everything, and nobody may not start the binary");
            return None;
        }
    }
    Some(Run::of(&mut command))
}

fn set_modes(path: &std::path::Path, file: u32, folder: u32) {
    let mode = if path.is_dir() { folder } else { file };
    if path.is_dir() {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        for entry in fs::read_dir(path).unwrap() {
            set_modes(&entry.unwrap().path(), file, folder);
        }
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_that_may_only_be_read_is_read() {
    let home = Home::with(&[testdata("ct/rfc6962/live_ct.json")]);
    set_modes(&home.data(), 0o444, 0o555);
    for question in [&["names", "com"][..], &["search", "com"], &["stats"], &["verify"]] {
        if let Some(run) = as_nobody(&home, home.command(question)) {
            assert_eq!(run.code(0).err, "", "{question:?}");
        }
    }
    let mut import = home.command(&["import"]);
    import.arg(testdata("ct/sct/test-cert.pem"));
    for command in [import, home.command(&["compact"])] {
        if let Some(run) = as_nobody(&home, command) {
            run.says(
                2,
                &[
                    home.data().to_str().unwrap(),
                    "ermission denied",
                    "check the owner and the mode",
                ],
            );
        }
    }
    set_modes(&home.data(), 0o000, 0o000);
    for question in QUESTIONS {
        if let Some(run) = as_nobody(&home, home.command(question)) {
            run.says(
                2,
                &[
                    home.data().to_str().unwrap(),
                    "ermission denied",
                    "check the owner and the mode",
                ],
            );
        }
    }
    set_modes(&home.data(), 0o644, 0o755);
}

#[test]
fn what_is_no_list_of_suffixes_is_refused() {
    let home = Home::new();
    let certificate = testdata("ct/sct/test-cert.pem");
    let shipped = fs::read(testdata("../crates/hostname/data/public_suffix_list.dat")).unwrap();
    let half = shipped.len() / 2;
    let mut cases: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("empty", Vec::new(), &["it is empty"]),
        ("comments", b"// no rule\n\n".to_vec(), &["no rule"]),
        ("page", b"\n<!DOCTYPE html>\n<p>502".to_vec(), &["web page"]),
        (
            "binary",
            [&b"com\nnet\n\0"[..], &[7; 99]].concat(),
            &["line 3", "binary"],
        ),
        ("latin1", b"com\nm\xfcnchen\n".to_vec(), &["line 2", "UTF-8"]),
        ("json", b"{\n \"a\": 1}".to_vec(), &["line 1", "{"]),
        ("readme", b"# Title\n\nSome words.\n".to_vec(), &["line 1", "#"]),
        (
            "words",
            b"alpha\nbeta\ngamma rays\ncom\n".to_vec(),
            &["top-level domains"],
        ),
        (
            "hosts",
            b"www.example.com\nexample.org\n".to_vec(),
            &["top-level domains"],
        ),
        ("pem", fs::read(&certificate).unwrap(), &["line "]),
        ("torn", [&shipped[..half], b"\n\0"].concat(), &["binary"]),
    ];
    cases.push(("large", b"com\n".repeat(5 << 20), &["bytes"]));
    for (name, bytes, told) in cases {
        let list = home.file(name, &bytes);
        for command in ["import", "parse"] {
            let mut run = home.command(&[command]);
            let run = Run::of(run.arg("--psl").arg(&list).arg(&certificate));
            let run = run
                .says(2, &[name, "no public suffix list", "publicsuffix.org"])
                .says(2, told);
            assert_eq!(run.out, "", "{name}");
        }
    }
    assert!(!home.data().exists(), "a wrong list makes no index");
    let list = home.file("good", &shipped);
    Run::of(
        home.command(&["import"])
            .arg("--psl")
            .arg(&list)
            .arg(&certificate),
    )
    .code(0);
    Run::of(
        home.command(&["import"])
            .arg("--psl")
            .arg(home.path(""))
            .arg(&certificate),
    )
    .says(
        2,
        &["read the public suffix list", "Is a directory", "name a file"],
    );
}

#[test]
fn counts_and_nouns_agree() {
    let home = Home::new();
    let names = [element(0x82, &[b"a.example"]), element(0x82, &[b"b.example"])];
    let one = home.file("one.der", &certificate("One", &names));
    let page = testdata("ct/rfc6962/navigli2025h2_get-entries.json.gz");
    for (file, told) in [
        (one, "warning: 1 certificate has more names than are indexed"),
        (page, " certificates have more names than are indexed"),
    ] {
        let run = Run::of(home.command(&["import", "--names-max", "1"]).arg(file)).code(0);
        assert!(
            run.err.contains(told) && run.err.contains("--names-max"),
            "{}",
            run.err
        );
    }
}

#[test]
fn a_full_stdout_is_told() {
    let home = Home::with(&[testdata("ct/rfc6962/live_ct.json")]);
    let file = testdata("ct/sct/test-cert.pem");
    let file = file.to_str().unwrap();
    for args in [
        &["names", "com"][..],
        &["search", "com"],
        &["show", "0"],
        &["stats"],
        &["parse", file],
    ] {
        for format in ["table", "json", "ndjson", "csv"] {
            let full = fs::File::create("/dev/full").unwrap();
            let mut command = home.command(args);
            let run = command
                .args(["--format", format])
                .stdout(full)
                .stderr(Stdio::piped());
            let output = run.spawn().unwrap().wait_with_output().unwrap();
            Run::ended(format!("{args:?} {format}"), output)
                .says(2, &["write to stdout", "No space left", "free some space"]);
        }
    }
}

#[test]
fn nothing_found_says_what_was_looked_for() {
    let home = Home::with(&[testdata("ct/rfc6962/live_ct.json")]);
    for (args, told) in [
        (&["search", "a b"][..], "only names with exactly this text"),
        (&["search", "com", "--after", "2090-01-01"], "without filters"),
        (&["show", "zz"], "tamis ct search NAME"),
    ] {
        home.ct(args).says(1, &[args[1], told]);
    }
}
