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

const ROUNDS: usize = 15;
const DEFAULT: &str = "tamis, key under default";
const WITH_SETS: &str = "tamis, default with ClearURLs' rules";
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
        // Two of five have a query, as in lists of real URLs.
        let parameters_max = if next(5) < 2 { 1 + next(4) } else { 0 };
        for index in 0..parameters_max {
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

/// A peer or a profile at work on one URL.
type Work<'a> = (&'static str, Box<dyn FnMut(&[u8]) -> usize + 'a>);

/// Nanoseconds for each URL. Rounds of all alternate, so that a busy machine slows them alike; the best
/// round of each counts.
fn measure(urls: &[Vec<u8>], works: &mut [Work<'_>]) -> Vec<f64> {
    let mut best = vec![f64::MAX; works.len()];
    for _ in 0..ROUNDS {
        for (best, (_, work)) in best.iter_mut().zip(works.iter_mut()) {
            let begun = Instant::now();
            let sum: usize = urls.iter().map(|url| work(black_box(url))).sum();
            black_box(sum);
            #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
            let each = begun.elapsed().as_nanos() as f64 / urls.len() as f64;
            *best = best.min(each);
        }
    }
    best
}

fn key<'a>(name: &'static str, mut canonicalizer: Canonicalizer) -> Work<'a> {
    let work = move |url: &[u8]| {
        canonicalizer
            .canon(url)
            .map_or(0, |canonical| canonical.equivalence.len())
    };
    (name, Box::new(work))
}

fn text(url: &[u8]) -> &str {
    std::str::from_utf8(url).unwrap_or_default()
}

/// Ada first, the default profile and the one with rule sets last but one.
fn works<'a>() -> Vec<Work<'a>> {
    let (mut parser, mut url) = (Parser::default(), Url::default());
    let mut canonicalizer = Canonicalizer::new(Profile::Default);
    let fingerprinter = Fingerprinter::new(&[7; 16], canonicalizer.id());
    let mut works: Vec<Work<'_>> = vec![
        (
            "ada, parse",
            Box::new(move |url| ada_url::Url::parse(text(url), None).map_or(0, |url| url.href().len())),
        ),
        (
            "url crate, parse",
            Box::new(move |url| url::Url::parse(text(url)).map_or(0, |url| url.as_str().len())),
        ),
        (
            "tamis, parse",
            Box::new(move |input| {
                parser
                    .parse(input, None, &mut url)
                    .map_or(0, |_| url.as_bytes().len())
            }),
        ),
        key("tamis, key under strict", Canonicalizer::new(Profile::Strict)),
        key("tamis, key under classic", Canonicalizer::new(Profile::Classic)),
        (
            "tamis, default with fingerprint",
            Box::new(move |url| {
                let key = canonicalizer.canon(url);
                key.map_or(0, |key| usize::from(fingerprinter.of(key.key.as_bytes()).0[0]))
            }),
        ),
        key(DEFAULT, Canonicalizer::new(Profile::Default)),
    ];
    match std::fs::read(shared("rules/clearurls_data.min.json")) {
        Ok(list) => {
            let set = import(ListKind::ClearUrls, &list, "clearurls", "1").unwrap().set;
            let matcher = Arc::new(Matcher::new(&[&set]).unwrap());
            works.push(key(
                WITH_SETS,
                Canonicalizer::new(Profile::Default).with_sets(matcher),
            ));
        }
        Err(_) => println!("SKIPPED: ClearURLs' list is not there"),
    }
    works
}

fn compare(what: &str, urls: &[Vec<u8>]) {
    if urls.is_empty() {
        return;
    }
    let bytes: usize = urls.iter().map(Vec::len).sum();
    println!("\n{what}: {} URLs, {} bytes each", urls.len(), bytes / urls.len());
    let mut works = works();
    // `cargo bench … -- TEXT` measures what is called so, and ada, which all is compared to.
    if let Some(wanted) = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'))
    {
        works.retain(|(name, _)| name.contains(&wanted) || name.starts_with("ada"));
    }
    let each = measure(urls, &mut works);
    let of = |wanted: &str| {
        works
            .iter()
            .zip(&each)
            .find(|((name, _), _)| *name == wanted)
            .map(|(_, each)| *each)
    };
    for ((name, _), each_of) in works.iter().zip(&each) {
        let ratio = each_of / each[0];
        println!(
            "  {name:<40} {each_of:>6.0} ns {ratio:>6.2} of ada {:>6.2} M/s",
            1e3 / each_of
        );
    }
    if let (Some(plain), Some(with)) = (of(DEFAULT), of(WITH_SETS)) {
        println!("  rule sets add {:.0} %", (with / plain - 1.0) * 100.0);
    }
}

fn main() {
    compare("real URLs", &real());
    compare("generated URLs", &generated());
}
