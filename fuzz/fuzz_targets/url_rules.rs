//! Any bytes as a rule set, and as a list of each kind: refused with an error, or compiled, and then asked.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tamis_url_canon::rules::{ListKind, import};
use tamis_url_canon::{Canonicalizer, Matcher, Profile, RuleSet};

const URLS: &[&[u8]] = &[
    b"http://www.e.com/a;b=c/d/?utm_source=1&id=2&a%5B0%5D=3#/x",
    b"https://google.co.uk/url?q=http%3A%2F%2Fe.com%2F",
    b"http://127.0.0.1/?a",
];

fuzz_target!(|raw: &[u8]| {
    if let Ok(set) = RuleSet::parse(raw) {
        ask(&set);
    }
    for kind in [ListKind::ClearUrls, ListKind::Brave, ListKind::AdGuard] {
        if let Ok(imported) = import(kind, raw, "fuzz", "1") {
            let json = imported.set.to_json().unwrap();
            assert_eq!(RuleSet::parse(json.as_bytes()).unwrap(), imported.set);
            ask(&imported.set);
        }
    }
});

fn ask(set: &RuleSet) {
    let matcher = Arc::new(Matcher::new(&[set]).unwrap());
    let mut canonicalizer = Canonicalizer::new(Profile::Default).with_sets(matcher);
    for url in URLS {
        let _ = canonicalizer.canon(url).map(|canonical| canonical.equivalence.len());
        let _ = canonicalizer.trace(url);
    }
}
