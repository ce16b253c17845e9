//! The vectors of the web platform tests: every one, or an argued exception.

use serde_json::Value;
use tamis_url_canon::{HostKind, Reject, Url};

use crate::{shared, testdata};

/// Hosts that the vectors refuse and the standard now takes: a domain of ASCII is lower-cased and its
/// labels `xn--…` are not decoded. `wpt_toascii.json`, which is newer, wants it so (`xn--a` stays `xn--a`).
const UNDECODABLE_LABELS: &[&str] = &[
    "http://a.b.c.xn--pokxncvks",
    "http://10.0.0.xn--pokxncvks",
    "http://a.b.c.XN--pokxncvks",
    "http://a.b.c.Xn--pokxncvks",
    "http://10.0.0.XN--pokxncvks",
    "http://10.0.0.xN--pokxncvks",
    "file://xn--/p",
    "https://xn--/",
];

fn parse(input: &str, base: Option<&str>) -> Result<Url, Reject> {
    match base {
        Some(base) => Url::parse(base.as_bytes())?.join(input.as_bytes()),
        None => Url::parse(input.as_bytes()),
    }
}

/// The parts as the vectors name them.
fn parts(url: &Url) -> Vec<(&'static str, String)> {
    let port = url.port().map_or_else(String::new, |port| port.to_string());
    let hostname = url.host().unwrap_or_default().to_owned();
    let host = match url.port() {
        Some(port) => format!("{hostname}:{port}"),
        None => hostname.clone(),
    };
    let with = |mark: &str, part: Option<&str>| match part {
        Some(part) if !part.is_empty() => format!("{mark}{part}"),
        _ => String::new(),
    };
    vec![
        ("href", url.href().to_owned()),
        ("protocol", format!("{}:", url.scheme())),
        ("username", url.username().to_owned()),
        ("password", url.password().to_owned()),
        ("host", host),
        ("hostname", hostname),
        ("port", port),
        ("pathname", url.path().to_owned()),
        ("search", with("?", url.query())),
        ("hash", with("#", url.fragment())),
    ]
}

#[test]
fn url_vectors() {
    let text = std::fs::read_to_string(testdata("urls/wpt_urltestdata.json")).unwrap();
    let vectors: Vec<Value> = serde_json::from_str(&text).unwrap();
    let (mut checked, mut excepted, mut wrong) = (0, 0, Vec::new());
    for vector in vectors.iter().filter(|vector| vector.is_object()) {
        let input = vector["input"].as_str().unwrap();
        let base = vector["base"].as_str();
        checked += 1;
        let fails = vector.get("failure").is_some();
        match parse(input, base) {
            Ok(_) if fails && UNDECODABLE_LABELS.contains(&input) => excepted += 1,
            Ok(url) if fails => {
                wrong.push(format!(
                    "{input:?} on {base:?}: {} instead of a failure",
                    url.href()
                ));
            }
            Err(_) if fails => {}
            Err(error) => wrong.push(format!("{input:?} on {base:?}: {error}")),
            Ok(url) => {
                for (name, is) in parts(&url) {
                    if let Some(want) = vector.get(name).filter(|want| **want != is) {
                        wrong.push(format!("{input:?} on {base:?}: {name} {is:?}, not {want}"));
                    }
                }
                assert_eq!(Url::parse(url.href().as_bytes()).as_ref(), Ok(&url), "{input:?}");
            }
        }
    }
    assert!(checked > 850, "{checked}");
    assert_eq!(
        excepted,
        UNDECODABLE_LABELS.len(),
        "an exception is needed no more"
    );
    assert!(
        wrong.is_empty(),
        "{} of {checked}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn to_ascii_vectors() {
    let text = std::fs::read_to_string(testdata("names/wpt_toascii.json")).unwrap();
    let vectors: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut checked = 0;
    for vector in vectors.iter().filter(|vector| vector.is_object()) {
        let input = vector["input"].as_str().unwrap();
        let got = Url::parse(format!("https://{input}/x").as_bytes()).ok();
        assert_eq!(
            got.as_ref().and_then(Url::host),
            vector["output"].as_str(),
            "{input:?}"
        );
        assert!(
            got.is_none_or(|url| url.host_kind() == HostKind::Domain),
            "{input:?}"
        );
        checked += 1;
    }
    assert!(checked > 80, "{checked}");
}

#[test]
fn real_urls_as_ada_reads_them() {
    let Some(path) = shared("urls/oracle_whatwg_ada.jsonl") else {
        return;
    };
    let text = std::fs::read_to_string(path).unwrap();
    let mut checked = 0;
    for case in text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
    {
        let got = Url::parse(case["input"].as_str().unwrap().as_bytes());
        assert_eq!(got.as_ref().ok().map(Url::href), case["href"].as_str(), "{case}");
        if let Ok(url) = got {
            for (name, is) in parts(&url) {
                if let Some(want) = case.get(name).and_then(Value::as_str) {
                    assert_eq!(is, want, "{name} of {case}");
                }
            }
        }
        checked += 1;
    }
    assert!(checked > 900, "{checked}");
}
