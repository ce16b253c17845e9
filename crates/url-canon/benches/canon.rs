//! What a key costs, as a ratio to the bare parse of ada in the same run.
//!
//! URLs: the real ones beside the repository (`../shared/data`), where they are, and a million made from
//! them or, without them, from hosts of `testdata`. Each figure is the best of some runs, on one core.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench may fail loudly")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tamis_url_canon::rules::{ListKind, import};
use tamis_url_canon::{Canonicalizer, Fingerprinter, Matcher, Parser, Profile, Url};

const RUNS: usize = 5;
const GENERATED: usize = 1_000_000;

fn shared(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data")
        .join(name)
}

fn real() -> Vec<Vec<u8>> {
    let mut urls = Vec::new();
    for name in ["userbait.txt", "openphish_feed.txt", "isaacs_files.txt"] {
        let Ok(bytes) = std::fs::read(shared("urls").join(name)) else {
            println!("SKIPPED: {name} is not there");
            continue;
        };
        let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        urls.extend(lines.map(<[u8]>::to_vec));
    }
    urls
}

/// Hosts of real names, with paths and queries as crawlers meet them.
fn generated() -> Vec<Vec<u8>> {
    let names = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/names/tranco.txt");
    let names = std::fs::read_to_string(names).unwrap();
    let hosts: Vec<&str> = names.lines().filter(|line| !line.is_empty()).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % below
    };
    let words = [
        "news",
        "product",
        "item",
        "a%20b",
        "index.html",
        "2026",
        "caf%C3%A9",
        "img",
        "Search",
        "~user",
    ];
    let parameters = [
        "id", "page", "q", "v", "sort", "lang", "ref", "m", "category", "session", "offset", "gid",
    ];
    let tracking = ["utm_source", "gclid", "fbclid", "utm_campaign"];
    let mut urls = Vec::with_capacity(GENERATED);
    for _ in 0..GENERATED {
        let www = ["", "www.", "m."][next(3)];
        let mut url = format!(
            "{}://{www}{}/",
            ["http", "https"][next(2)],
            hosts[next(hosts.len())]
        );
        for _ in 0..next(4) {
            url.push_str(words[next(words.len())]);
            url.push('/');
        }
        for index in 0..next(5) {
            let mark = if index == 0 { '?' } else { '&' };
            // One parameter of fifty tracks, as in lists of real URLs.
            let name = match next(50) {
                0 => tracking[next(tracking.len())],
                _ => parameters[next(parameters.len())],
            };
            url.push_str(&format!("{mark}{name}={}", next(100_000)));
        }
        urls.push(url.into_bytes());
    }
    urls
}

/// Nanoseconds for each URL, the best of some runs.
fn measure(urls: &[Vec<u8>], mut work: impl FnMut(&[u8]) -> usize) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        let begun = Instant::now();
        let mut sum = 0;
        for url in urls {
            sum += work(black_box(url));
        }
        black_box(sum);
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let each = begun.elapsed().as_nanos() as f64 / urls.len() as f64;
        best = best.min(each);
    }
    best
}

fn compare(what: &str, urls: &[Vec<u8>]) {
    if urls.is_empty() {
        return;
    }
    let bytes: usize = urls.iter().map(Vec::len).sum();
    println!("\n{what}: {} URLs, {} bytes each", urls.len(), bytes / urls.len());
    let texts: Vec<Vec<u8>> = urls
        .iter()
        .filter(|url| std::str::from_utf8(url).is_ok())
        .cloned()
        .collect();
    let ada = measure(&texts, |url| {
        let text = std::str::from_utf8(url).unwrap();
        ada_url::Url::parse(text, None).map_or(0, |url| url.href().len())
    });
    let told = |name: &str, each: f64| {
        println!(
            "  {name:<40} {each:>7.0} ns  {:>5.2} of ada  {:>5.2} M/s",
            each / ada,
            1e3 / each
        );
    };
    told("ada, parse", ada);
    told(
        "url crate, parse",
        measure(&texts, |url| {
            let text = std::str::from_utf8(url).unwrap();
            url::Url::parse(text).map_or(0, |url| url.as_str().len())
        }),
    );
    let (mut parser, mut url) = (Parser::default(), Url::default());
    told(
        "tamis, parse",
        measure(urls, |input| {
            parser
                .parse(input, None, &mut url)
                .map_or(0, |_| url.as_bytes().len())
        }),
    );
    let keyed = |name: &str, mut canonicalizer: Canonicalizer| {
        let each = measure(urls, |input| {
            canonicalizer
                .canon(input)
                .map_or(0, |canonical| canonical.equivalence.len())
        });
        told(name, each);
        each
    };
    keyed("tamis, key under strict", Canonicalizer::new(Profile::Strict));
    let plain = keyed("tamis, key under default", Canonicalizer::new(Profile::Default));
    keyed("tamis, key under classic", Canonicalizer::new(Profile::Classic));
    if let Ok(list) = std::fs::read(shared("rules/clearurls_data.min.json")) {
        let set = import(ListKind::ClearUrls, &list, "clearurls", "1").unwrap().set;
        let matcher = Arc::new(Matcher::new(&[&set]).unwrap());
        let with = keyed(
            "tamis, default with ClearURLs' rules",
            Canonicalizer::new(Profile::Default).with_sets(matcher),
        );
        println!("  rule sets add {:.0} %", (with / plain - 1.0) * 100.0);
    } else {
        println!("  SKIPPED: ClearURLs' list is not there");
    }
    let mut canonicalizer = Canonicalizer::new(Profile::Default);
    let fingerprinter = Fingerprinter::new(&[7; 16], canonicalizer.id());
    let printed = measure(urls, |input| {
        let key = canonicalizer
            .canon(input)
            .map(|canonical| fingerprinter.of(canonical.key.as_bytes()));
        key.map_or(0, |print| usize::from(print.0[0]))
    });
    told("tamis, default with fingerprint", printed);
}

fn main() {
    compare("real URLs", &real());
    compare("generated URLs", &generated());
}
