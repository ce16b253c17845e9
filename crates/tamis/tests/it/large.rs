//! Certificates of any legal size: told, and never more memory than there is.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::run::{Home, Run, text, texts};

/// Address space of the child, in KiB. An import of one small certificate takes about a third of it.
const ADDRESS_SPACE_KIB: u32 = 1_000_000;
/// Memory that it may really use, in KiB: a few times the largest entry.
const RESIDENT_KIB: u64 = 150_000;

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let mut out = vec![tag];
    if content.len() < 0x80 {
        out.push(content.len() as u8);
    } else {
        let digits: Vec<u8> = length.into_iter().skip_while(|&byte| byte == 0).collect();
        out.push(0x80 | digits.len() as u8);
        out.extend(digits);
    }
    out.extend_from_slice(content);
    out
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    der(0x30, &parts.concat())
}

/// A certificate whose alternative names are these. The signature is empty.
fn certificate(names: impl Iterator<Item = String>) -> Vec<u8> {
    let common_name = |name: &str| {
        let attribute = sequence(&[der(0x06, &[0x55, 0x04, 0x03]), der(0x0c, name.as_bytes())]);
        sequence(&[der(0x31, &attribute)])
    };
    let algorithm = sequence(&[der(0x06, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02])]);
    let validity = sequence(&[der(0x17, b"260101000000Z"), der(0x17, b"270101000000Z")]);
    let mut listed = Vec::new();
    for name in names {
        listed.extend(der(0x82, name.as_bytes()));
    }
    let alternative = sequence(&[der(0x06, &[0x55, 0x1d, 0x11]), der(0x04, &der(0x30, &listed))]);
    let tbs = sequence(&[
        der(0xa0, &der(0x02, &[2])),
        der(0x02, &[0x5a, 0x17]),
        algorithm.clone(),
        common_name("Large CA"),
        validity,
        common_name("first.large.example"),
        sequence(&[algorithm.clone(), der(0x03, &[0])]),
        der(0xa3, &sequence(&[alternative])),
    ]);
    sequence(&[tbs, algorithm, der(0x03, &[0])])
}

fn imported_within_memory(names: u32) {
    let home = Home::new();
    let bytes = certificate((0..names).map(|number| format!("host-{number:07}.large.example")));
    assert!(bytes.len() < 1 << 24, "a log takes no larger one");
    let file = home.file("large.der", &bytes);
    // The shell only sets the limit; the binary takes its place.
    let mut limited = Command::new("sh");
    limited
        .args([
            "-c",
            &format!("ulimit -v {ADDRESS_SPACE_KIB} && exec \"$@\""),
            "sh",
        ])
        .arg(env!("CARGO_BIN_EXE_tamis"))
        .args(["ct", "import", "--format", "json", "--data"])
        .arg(home.data())
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = limited.spawn().unwrap();
    // What the kernel keeps of the peak is gone with the process, so it is asked until then.
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = resident_kib(child.id()).unwrap_or(0).max(peak);
    }
    assert!(
        (1..RESIDENT_KIB).contains(&peak),
        "{peak} KiB for {} bytes",
        bytes.len()
    );
    let run = Run::ended(format!("{limited:?}"), child.wait_with_output().unwrap())
        .says(0, &["names-truncated", "--names-max"]);
    let summary = run.json();
    assert_eq!(summary["certificates"], json!(1));
    assert_eq!(summary["oddities"]["names-truncated"], json!(1));
    let first = home.ask(&["names", "host-0000000.large.example"]);
    assert_eq!(first[0]["issuances"], json!(1));
    let id = text(&home.ask(&["search", "host-0000999.large.example"])[0], "id").to_owned();
    let shown = home.ask(&["show", &id]).remove(0);
    assert_eq!(shown["names_total"], json!(names + 1));
    assert_eq!(texts(&shown, "names").len(), 1_000);
    assert_eq!(texts(&shown, "deviations"), ["names-truncated"]);
    assert_eq!(home.ask(&["names", "large.example"]).len(), 1_000);
    home.assert_whole();

    let all = Home::new();
    let wanted = names.min(20_000);
    all.import(&[file.to_str().unwrap(), "--names-max", &wanted.to_string()]);
    let found = all.ask(&["names", "large.example"]).len() as u32;
    assert_eq!(found, wanted.min(names + 1), "as many as asked for");
}

/// The most memory that a process held so far.
fn resident_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[test]
fn twenty_thousand_names() {
    imported_within_memory(20_000);
}

#[test]
fn as_many_names_as_fit_into_an_entry() {
    imported_within_memory(500_000);
}

#[test]
fn a_larger_limit_adds_the_names_that_were_cut() {
    let home = Home::new();
    let names = (0..3_000).map(|number| format!("host-{number:07}.large.example"));
    let file = home.file("cut.der", &certificate(names));
    let file = file.to_str().unwrap();
    assert_eq!(home.import(&[file])["total_name_rows"], json!(1_000));
    home.ct(&["search", "host-0002500.large.example"]).code(1);
    let again = home.import(&["--names-max", "5000", "--flush-rows", "10", file]);
    assert_eq!(
        (&again["new_name_rows"], &again["total_name_rows"]),
        (&json!(2_001), &json!(3_001))
    );
    assert_eq!(home.ask(&["search", "host-0002500.large.example"]).len(), 1);
    assert_eq!(home.ask(&["names", "large.example"]).len(), 3_001);
    let third = home.import(&["--names-max", "5000", file]);
    assert_eq!(
        (&third["duplicates"], &third["total_name_rows"]),
        (&json!(1), &json!(3_001))
    );
    // A smaller limit takes nothing away.
    assert_eq!(home.import(&[file])["duplicates"], json!(1));
    home.assert_whole();
}
