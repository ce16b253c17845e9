//! Pairs that must meet or must not, and bugs of others that must come out right.
//!
//! `testdata/urls/merges.jsonl` and `bugs.jsonl`; a case names its profile, rule sets and rules switched on.

use std::sync::Arc;

use serde_json::Value;
use tamis_url_canon::rules::{ListKind, import};
use tamis_url_canon::{Canonicalizer, Matcher, Profile, Rule, RuleSet, Url};

use crate::{lines, shared, testdata};

/// The canonicalizer that a case asks for; none without the shared list of ClearURLs.
fn canonicalizer(case: &Value) -> Option<Canonicalizer> {
    let profile: Profile = case["profile"].as_str().unwrap_or("default").parse().unwrap();
    let mut canonicalizer = Canonicalizer::new(profile);
    for name in case["with"].as_array().into_iter().flatten() {
        let rule = Rule::ALL.iter().find(|rule| rule.name() == name).unwrap();
        canonicalizer = canonicalizer.with(*rule);
    }
    let Some(names) = case["sets"].as_array() else {
        return Some(canonicalizer);
    };
    let mut sets = Vec::new();
    for name in names.iter().filter_map(Value::as_str) {
        sets.push(match name {
            "clearurls" => {
                let list = std::fs::read(shared("rules/clearurls_data.min.json")?).unwrap();
                import(ListKind::ClearUrls, &list, "clearurls", "1").unwrap().set
            }
            name => {
                let json = std::fs::read(testdata(&format!("urls/rules/{name}.json"))).unwrap();
                RuleSet::parse(&json).unwrap()
            }
        });
    }
    let matcher = Matcher::new(&sets.iter().collect::<Vec<_>>()).unwrap();
    Some(canonicalizer.with_sets(Arc::new(matcher)))
}

#[test]
fn pairs_meet_or_stay_apart() {
    let mut wrong = Vec::new();
    for case in lines("urls/merges.jsonl") {
        let mut canonicalizer = canonicalizer(&case).unwrap();
        let [a, b] = ["a", "b"].map(|name| {
            let input = case[name].as_str().unwrap();
            let canonical = canonicalizer.canon(input.as_bytes());
            canonical.map(|canonical| canonical.equivalence.to_owned())
        });
        let same = a.is_ok() && a == b;
        if a.is_err() || b.is_err() || same != case["same"].as_bool().unwrap() {
            wrong.push(format!("{case}\n    {a:?}\n    {b:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn bugs_of_others_come_out_right() {
    let mut wrong = Vec::new();
    for case in lines("urls/bugs.jsonl") {
        let Some(mut canonicalizer) = canonicalizer(&case) else {
            continue;
        };
        let input = case["input"].as_str().unwrap().as_bytes();
        let href = Url::parse(input).map(|url| url.href().to_owned());
        if let Some(want) = case["href"].as_str() {
            assert_eq!(href.as_deref(), Ok(want), "{case}");
        }
        let result = canonicalizer.canon(input);
        let right = match (&result, case["error"].as_str()) {
            (Err(reject), Some(reason)) => reject.reason() == reason,
            (Ok(canonical), None) => {
                let fired = canonical.fired.union(canonical.fired_equivalence);
                let is = |field: &str, got: &str| case[field].as_str().is_none_or(|want| want == got);
                is("key", canonical.equivalence)
                    && is("fetch_url", canonical.fetch_url)
                    && case["rule"]
                        .as_str()
                        .is_none_or(|rule| fired.iter().any(|fired| fired.name() == rule))
            }
            _ => false,
        };
        if !right {
            wrong.push(format!("{case}\n    {result:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
