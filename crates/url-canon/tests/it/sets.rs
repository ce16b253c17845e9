//! Rule sets: documents, versions beside each other, and lists of others taken over.

use std::sync::Arc;

use serde_json::{Value, json};
use tamis_url_canon::rules::{Imported, ListKind, NEVER_GLOBAL, import};
use tamis_url_canon::{BookError, Canonicalizer, Loaded, Matcher, Profile, RuleBook, RuleSet, SetError};

use crate::{shared, testdata};

fn key(sets: &[&RuleSet], url: &str) -> String {
    let matcher = Arc::new(Matcher::new(sets).unwrap());
    let mut canonicalizer = Canonicalizer::new(Profile::Default).with_sets(matcher);
    canonicalizer
        .canon(url.as_bytes())
        .unwrap()
        .equivalence
        .to_owned()
}

fn document(change: impl FnOnce(&mut Value)) -> Result<RuleSet, SetError> {
    let mut document = json!({ "tamis_url_rules": 1, "name": "n", "version": "1" });
    change(&mut document);
    RuleSet::parse(document.to_string().as_bytes())
}

#[test]
fn faults_of_a_document_are_named() {
    type Change = fn(&mut Value);
    let faults: &[(Change, &str)] = &[
        (|d| d["tamis_url_rules"] = json!(2), "version 2"),
        (|d| d["name"] = json!("a b"), "name \"a b\""),
        (|d| d["version"] = json!(""), "version \"\""),
        (|d| d["unknown"] = json!(1), "unknown field"),
        (|d| d["names"] = json!(["ref"]), "would drop \"ref\" everywhere"),
        (|d| d["names"] = json!(["REF"]), "everywhere"),
        (|d| d["names"] = json!(["*"]), "everywhere"),
        (|d| d["names"] = json!(["s*"]), "everywhere"),
        (|d| d["names"] = json!(["/[a-z]+/"]), "everywhere"),
        (|d| d["names"] = json!(["/(/"]), "cannot be used"),
        (|d| d["names"] = json!(["/(x{1000}){1000}/"]), "cannot be used"),
        (
            |d| d["sites"] = json!([{ "hosts": ["*"], "names": ["id"] }]),
            "everywhere",
        ),
        (|d| d["sites"] = json!([{ "hosts": ["a..b"] }]), "no host"),
        (
            |d| d["sites"] = json!([{ "hosts": ["e.com"], "on": ["userinfo"] }]),
            "cannot be switched",
        ),
        (
            |d| d["sites"] = json!([{ "hosts": ["e.com"], "off": ["host-case"] }]),
            "cannot be switched",
        ),
        (
            |d| d["wrappers"] = json!([{ "hosts": ["*"], "target": "(x)" }]),
            "wrapper",
        ),
        (
            |d| d["wrappers"] = json!([{ "hosts": ["e.com"], "target": "x" }]),
            "wrapper",
        ),
        (
            |d| d["shaped"] = json!([{ "name": "a", "value": "round" }]),
            "unknown variant",
        ),
    ];
    document(|_| {}).unwrap();
    for (change, told) in faults {
        let error = document(change).unwrap_err().to_string();
        assert!(error.contains(told), "{told}: {error}");
    }
}

#[test]
fn no_name_that_means_something_is_dropped_everywhere() {
    for name in NEVER_GLOBAL {
        assert!(document(|d| d["names"] = json!([name])).is_err(), "{name}");
        let site = document(|d| d["sites"] = json!([{ "hosts": ["e.com"], "names": [name] }])).unwrap();
        assert_eq!(key(&[&site], &format!("http://e.com/?{name}=1")), "http://e.com/");
        assert_eq!(
            key(&[&site], &format!("http://f.com/?{name}=1")),
            format!("http://f.com/?{name}=1")
        );
    }
}

#[test]
fn a_new_version_waits_until_it_is_activated() {
    let first = document(|d| d["names"] = json!(["aa"])).unwrap();
    let second = document(|d| {
        d["version"] = json!("2");
        d["names"] = json!(["bb"]);
    })
    .unwrap();
    let mut book = RuleBook::default();
    let drops = |book: &RuleBook| {
        let matcher = Arc::new(book.matcher().unwrap());
        let mut canonicalizer = Canonicalizer::new(Profile::Default).with_sets(matcher);
        let id = canonicalizer.id().to_owned();
        (
            id,
            canonicalizer
                .canon(b"http://e.com/?aa=1&bb=2")
                .unwrap()
                .equivalence
                .to_owned(),
        )
    };
    assert_eq!(book.load(first.clone()).unwrap(), Loaded::New);
    assert_eq!(
        drops(&book).1,
        "http://e.com/?aa=1&bb=2",
        "loading alone changes nothing"
    );
    assert_eq!(book.activate("n", "1").unwrap(), None);
    assert_eq!(
        drops(&book),
        ("default/1 n@1".to_owned(), "http://e.com/?bb=2".to_owned())
    );
    assert_eq!(book.load(second).unwrap(), Loaded::New);
    assert_eq!(drops(&book).0, "default/1 n@1", "a reload changes nothing");
    assert_eq!(book.load(first).unwrap(), Loaded::Known);
    let changed = document(|d| d["names"] = json!(["cc"])).unwrap();
    assert!(matches!(book.load(changed), Err(BookError::Changed { .. })));
    assert!(matches!(
        book.activate("n", "3"),
        Err(BookError::NotLoaded { .. })
    ));
    assert_eq!(book.activate("n", "2").unwrap().as_deref(), Some("1"));
    assert_eq!(
        drops(&book),
        ("default/1 n@2".to_owned(), "http://e.com/?aa=1".to_owned())
    );
    assert_eq!(book.deactivate("n").as_deref(), Some("2"));
    assert_eq!(drops(&book).1, "http://e.com/?aa=1&bb=2");
}

#[test]
fn documents_survive_being_written() {
    for name in ["tracking", "sessions", "sites"] {
        let json = std::fs::read(testdata(&format!("urls/rules/{name}.json"))).unwrap();
        let set = RuleSet::parse(&json).unwrap();
        assert_eq!(RuleSet::parse(set.to_json().unwrap().as_bytes()).unwrap(), set);
    }
}

fn taken(kind: ListKind, text: &[u8]) -> Imported {
    let imported = import(kind, text, "list", "1").unwrap();
    let json = imported.set.to_json().unwrap();
    assert_eq!(RuleSet::parse(json.as_bytes()).unwrap(), imported.set);
    imported
}

#[test]
fn the_list_of_clearurls() {
    let Some(path) = shared("rules/clearurls_data.min.json") else {
        return;
    };
    let imported = taken(ListKind::ClearUrls, &std::fs::read(path).unwrap());
    let left: Vec<_> = imported
        .left_out
        .iter()
        .map(|(rule, why)| format!("{rule}: {why}"))
        .collect();
    // 730 rules, some of them for a host that is blocked as a whole.
    assert!(imported.taken > 800, "{} taken", imported.taken);
    assert!(left.len() < 60, "{}:\n{}", left.len(), left.join("\n"));
    let set = &imported.set;
    for (url, want) in [
        ("http://e.com/?utm_source=a&x=1", "http://e.com/?x=1"),
        ("http://e.com/?fbclid=a", "http://e.com/"),
        (
            "https://www.amazon.co.uk/dp/1?pf_rd_p=1&psc=1&ref_=x",
            "https://www.amazon.co.uk/dp/1?",
        ),
        (
            "https://www.amazon.example.com/?qid=1",
            "https://www.amazon.example.com/?qid=1",
        ),
        (
            "https://www.google.de/url?sa=t&url=http%3A%2F%2Fe.com%2F&usg=x",
            "http://e.com/",
        ),
        (
            "https://github.com/x?utm_source=a",
            "https://github.com/x?utm_source=a",
        ),
        (
            "https://notyoutube.com/?feature=a",
            "https://notyoutube.com/?feature=a",
        ),
        (
            "https://m.youtube.com/watch?v=1&feature=a",
            "https://m.youtube.com/watch?v=1",
        ),
    ] {
        let got = key(&[set], url);
        if let Some(start) = want.strip_suffix('?') {
            assert!(got.starts_with(start) && !got.contains("pf_rd_p"), "{url}: {got}");
        } else {
            assert_eq!(got, want, "{url}");
        }
    }
}

/// What an independent tool makes of real URLs with the same list. It decodes nothing and sorts nothing, so
/// what is compared is which parameters are left.
#[test]
fn clearurls_drops_what_another_tool_drops() {
    let (Some(list), Some(oracle)) = (
        shared("rules/clearurls_data.min.json"),
        shared("rules/oracle_clearurls.jsonl"),
    ) else {
        return;
    };
    let set = taken(ListKind::ClearUrls, &std::fs::read(list).unwrap()).set;
    let (mut same, mut other) = (0, Vec::new());
    let text = std::fs::read_to_string(oracle).unwrap();
    for case in text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
    {
        let (input, want) = (
            case["input"].as_str().unwrap(),
            case["expected"].as_str().unwrap(),
        );
        let with = |sets: &[&RuleSet], url: &str| {
            let matcher = Arc::new(Matcher::new(sets).unwrap());
            let mut canonicalizer = Canonicalizer::new(Profile::Default).with_sets(matcher);
            canonicalizer
                .canon(url.as_bytes())
                .map(|canonical| canonical.equivalence.to_owned())
        };
        let (got, want) = (with(&[&set], input), with(&[], want));
        if got.is_ok() && got == want {
            same += 1;
        } else {
            other.push(format!("{input}\n    got  {got:?}\n    want {want:?}"));
        }
    }
    eprintln!("{} the same; others:\n{}", same, other.join("\n"));
    assert!(same >= 40, "{same} the same; others:\n{}", other.join("\n"));
}

#[test]
fn the_list_of_brave() {
    let Some(path) = shared("rules/brave_clean-urls.json") else {
        return;
    };
    let imported = taken(ListKind::Brave, &std::fs::read(path).unwrap());
    assert!(imported.taken > 300, "{} taken", imported.taken);
    for (name, why) in &imported.left_out {
        assert!(why.contains("what the page is"), "{name}: {why}");
    }
    let set = &imported.set;
    for (url, want) in [
        (
            "https://www.facebook.com/x?__cft__[0]=a&ref=b&story=1",
            "https://www.facebook.com/x?story=1",
        ),
        (
            "https://e.com/x?__cft__[0]=a&ref=b",
            "https://e.com/x?__cft__%5B0%5D=a&ref=b",
        ),
        ("https://dice.fm/event/1?pid=2", "https://dice.fm/event/1"),
        ("https://dice.fm/other?pid=2", "https://dice.fm/other?pid=2"),
        ("https://app.hive.co/?h_sid=1", "https://app.hive.co/?h_sid=1"),
        ("https://e.com/?h_sid=1", "https://e.com/"),
    ] {
        assert_eq!(key(&[set], url), want, "{url}");
    }
}

#[test]
fn removeparam_rules() {
    let list = b"! a comment\n\
        $removeparam=gclid2\n\
        $removeparam=ref\n\
        $removeparam=/^zz_[a-z]+/\n\
        ||shop.example^$removeparam=ref\n\
        ||news.*/story/$removeparam=from\n\
        $removeparam=src,domain=a.example|b.example\n\
        $removeparam=trk9,domain=~keep.example\n\
        @@||e.com/x^$removeparam=gclid2\n\
        ||all.example^$removeparam\n\
        $removeparam=~id\n\
        $removeparam=xx,xmlhttprequest\n\
        $removeparam=pp,document,xmlhttprequest\n\
        ||e.com^$removeparam=q,method=get\n\
        example.com##.ad\n";
    let imported = taken(ListKind::AdGuard, list);
    for (url, want) in [
        ("http://f.com/?gclid2=1&a=1", "http://f.com/?a=1"),
        ("http://e.com/x?gclid2=1", "http://e.com/x?gclid2=1"),
        ("http://e.com/xy?gclid2=1", "http://e.com/xy"),
        ("http://f.com/?ref=1", "http://f.com/?ref=1"),
        ("http://www.shop.example/?ref=1", "http://www.shop.example/"),
        ("http://f.com/?zz_ab=1&zz=2", "http://f.com/?zz=2"),
        ("http://news.co.uk/story/1?from=x", "http://news.co.uk/story/1"),
        ("http://news.co.uk/1?from=x", "http://news.co.uk/1?from=x"),
        ("http://b.example/?src=1", "http://b.example/"),
        ("http://c.example/?src=1", "http://c.example/?src=1"),
        ("http://keep.example/?trk9=1", "http://keep.example/?trk9=1"),
        ("http://f.com/?trk9=1", "http://f.com/"),
        ("http://all.example/?x=1", "http://all.example/?x=1"),
        ("http://f.com/?xx=1&pp=2", "http://f.com/?xx=1"),
    ] {
        assert_eq!(key(&[&imported.set], url), want, "{url}");
    }
    let left: Vec<&str> = imported.left_out.iter().map(|(rule, _)| rule.as_str()).collect();
    assert_eq!(left.len(), 5, "{left:?}");
}
