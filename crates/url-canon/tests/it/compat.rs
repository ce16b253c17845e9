//! Keys of other tools: what their published packages say, over real and odd URLs.

use serde_json::Value;
use tamis_url_canon::{Canonicalizer, Profile};

use crate::{lines, shared};

/// Where a package fails, a refusal is right; where it makes a key, that key is.
fn agrees(want: &Value, canonicalizer: &mut Canonicalizer, input: &str) -> Result<(), String> {
    let got = canonicalizer
        .canon(input.as_bytes())
        .map(|canonical| canonical.key.to_owned());
    match (want["key"].as_str(), &got) {
        (Some(want), Ok(got)) if want == got => Ok(()),
        (None, Err(_)) => Ok(()),
        (want, got) => Err(format!("{input:?}\n    want {want:?}\n    got  {got:?}")),
    }
}

/// Texts for which the reproduction is known to differ, with the reason.
const W3LIB_DIFFERS: &[&str] = &[];
const SURT_DIFFERS: &[&str] = &[];

fn check(cases: &[Value], profile: Profile, field: &str, differs: &[&str]) {
    let mut canonicalizer = Canonicalizer::new(profile);
    let mut wrong = Vec::new();
    for case in cases {
        let input = case["input"].as_str().unwrap();
        let verdict = agrees(&case[field], &mut canonicalizer, input);
        match verdict {
            Err(_) if differs.contains(&input) => {}
            Ok(()) if differs.contains(&input) => wrong.push(format!("{input:?} agrees now")),
            Ok(()) => {}
            Err(told) => wrong.push(told),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn keys_of_surt() {
    check(&lines("urls/compat.jsonl"), Profile::Surt, "surt", SURT_DIFFERS);
}

#[test]
fn keys_of_w3lib() {
    check(
        &lines("urls/compat.jsonl"),
        Profile::W3lib,
        "w3lib",
        W3LIB_DIFFERS,
    );
}

#[test]
fn keys_of_w3lib_for_real_urls() {
    let Some(path) = shared("urls/oracle_w3lib.jsonl") else {
        return;
    };
    let text = std::fs::read_to_string(path).unwrap();
    let cases: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|case| serde_json::json!({ "input": case["input"], "w3lib": { "key": case["canonicalize"] } }))
        .collect();
    check(&cases, Profile::W3lib, "w3lib", &[]);
}

#[test]
fn keys_of_crawler_commons() {
    let cases = lines("urls/crawler_commons.jsonl");
    check(&cases, Profile::CrawlerCommons, "crawler_commons", &[]);
}
