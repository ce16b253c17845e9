//! What holds for every URL. `TAMIS_URL_CASES` sets how many are tried for each; a million takes minutes.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tamis_url_canon::{Canonicalizer, Matcher, Profile, RuleSet, Url};

use crate::testdata;

fn cases() -> ProptestConfig {
    let cases = std::env::var("TAMIS_URL_CASES")
        .ok()
        .and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(2_000),
        failure_persistence: None,
        max_global_rejects: u32::MAX,
        ..ProptestConfig::default()
    }
}

/// Pieces that parsers stumble over.
const PIECES: &[&str] = &[
    "%",
    "%4",
    "%41",
    "%2e",
    "%2E",
    "%2f",
    "%25",
    "%00",
    "%ff",
    "%C3%A9",
    "%zz",
    "%20",
    "%27",
    "%7c",
    "%5B",
    "%u00e9",
    ".",
    "..",
    "/",
    "//",
    "\\",
    "?",
    "#",
    "&",
    "&&",
    "=",
    ";",
    "+",
    ":",
    "@",
    "[",
    "]",
    "|",
    "^",
    "'",
    "\"",
    "<",
    ">",
    "`",
    "{",
    "}",
    " ",
    "\t",
    "\n",
    "\0",
    "é",
    "ß",
    "\u{ff0e}",
    "\u{3002}",
    "\u{200d}",
    "a",
    "B",
    "x=1",
    "a=2",
    "utm_x=1",
    "0",
    "0x7f",
    "127",
    "www.",
    "com",
    "co.uk",
    "xn--",
    "-",
    "_",
    "~",
    "!",
    "$",
    "(",
    ")",
    "*",
    ",",
    "http:",
    "file:",
    "c|",
    "c:",
    "%43|",
    ";jsessionid=",
    "url?url=http",
    "http%3A%2F%2Fe.com",
    "/path",
    "0123456789abcdef0123456789abcdef",
    "gclid=1",
    "#!/a",
    "#/b",
];

fn pieces(count: usize) -> impl Strategy<Value = String> {
    vec(select(PIECES), 0..count).prop_map(|pieces| pieces.concat())
}

fn url() -> impl Strategy<Value = Vec<u8>> {
    let scheme = select(vec![
        "http://", "https://", "HTTP://", "http:", "ftp://", "ws://", "file://", "file:", "x://", "x:",
        "x:/", "", "mailto:",
    ]);
    let host = select(vec![
        "e.com",
        "E.com.",
        "e.com..",
        "[::1]",
        "[2001:DB8::0:1]",
        "127.1",
        "faß.de",
        "u:p@e.com",
        "e.com:80",
        "e.com:81",
        "www.e.co.uk",
        "",
        "%65.com",
        "shop.de",
        "iis.example",
    ]);
    (
        scheme,
        prop_oneof![3 => host.prop_map(str::to_owned), 1 => pieces(6)],
        pieces(10),
        pieces(10),
    )
        .prop_map(|(scheme, host, path, query)| format!("{scheme}{host}/{path}?{query}").into_bytes())
}

fn any_url() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![6 => url(), 2 => pieces(16).prop_map(String::into_bytes), 1 => vec(any::<u8>(), 0..64)]
}

fn with_sets() -> Canonicalizer {
    let sets: Vec<RuleSet> = ["tracking", "sessions", "sites"]
        .iter()
        .map(|name| std::fs::read(testdata(&format!("urls/rules/{name}.json"))).unwrap())
        .map(|json| RuleSet::parse(&json).unwrap())
        .collect();
    let matcher = Matcher::new(&sets.iter().collect::<Vec<_>>()).unwrap();
    Canonicalizer::new(Profile::Default).with_sets(Arc::new(matcher))
}

/// Name and value pairs of a query as servers read them, sorted by name, values in order.
fn parameters(query: Option<&str>) -> Vec<(String, Option<String>)> {
    let plain = |text: &str| {
        let (mut out, bytes) = (Vec::new(), text.as_bytes());
        let mut at = 0;
        while at < bytes.len() {
            let digits = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
            let escape = digits
                .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
                .and_then(|digits| u8::from_str_radix(digits, 16).ok());
            out.push(match (escape, bytes[at]) {
                (Some(byte), _) => byte,
                (None, b'+') => b' ',
                (None, byte) => byte,
            });
            at += if escape.is_some() { 3 } else { 1 };
        }
        String::from_utf8_lossy(&out).into_owned()
    };
    let parts = query
        .unwrap_or_default()
        .split('&')
        .filter(|part| !part.is_empty());
    let mut parameters: Vec<_> = parts
        .map(|part| match part.split_once('=') {
            Some((name, value)) => (plain(name), Some(plain(value))),
            None => (plain(part), None),
        })
        .collect();
    parameters.sort_by(|a, b| a.0.cmp(&b.0));
    parameters
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_is_parsed_and_printed_stays(input in any_url()) {
        if let Ok(url) = Url::parse(&input) {
            let again = Url::parse(url.href().as_bytes());
            prop_assert_eq!(again, Ok(url));
        }
    }

    /// Ada is the oracle, but for labels `xn--…`, of which it follows an older version of the standard, and
    /// for bases such as `x:e.com`, against which it takes `%#` and the standard nothing but `#…`;
    /// and for bases such as `file:///c:&`, in which it sees a drive.
    #[test]
    fn the_parser_agrees_with_ada(input in any_url(), base in proptest::option::of(url())) {
        let Ok(text) = std::str::from_utf8(&input) else { return Ok(()); };
        let base = base.and_then(|base| Url::parse(&base).ok())
            .filter(|base| !base.has_opaque_path() && base.scheme() != "file" && !base.href().contains("xn--"));
        let ours = match &base {
            Some(base) => base.join(&input),
            None => Url::parse(&input),
        };
        let ada = ada_url::Url::parse(text, base.as_ref().map(Url::href));
        let ours = ours.map(|url| url.href().to_owned()).ok();
        let ada = ada.map(|url| url.href().to_owned()).ok();
        let labels = |url: &Option<String>| url.as_ref().is_some_and(|url| url.contains("xn--"));
        prop_assume!(!labels(&ours) && !labels(&ada) && !text.to_lowercase().contains("xn--"));
        prop_assert_eq!(ours, ada, "{:?} on {:?}", text, base.map(|base| base.href().to_owned()));
    }

    #[test]
    fn a_key_is_its_own_key(input in any_url()) {
        for profile in [Profile::Strict, Profile::Default, Profile::Classic] {
            let mut canonicalizer = Canonicalizer::new(profile);
            let Ok(key) = canonicalizer.canon(&input).map(|canonical| canonical.key.to_owned()) else {
                continue;
            };
            let url = Url::parse(key.as_bytes());
            prop_assert_eq!(url.as_ref().map(Url::href), Ok(key.as_str()), "{}: no URL as it stands", profile);
            let again = canonicalizer.canon(key.as_bytes()).map(|canonical| canonical.key.to_owned());
            prop_assert_eq!(again.as_deref(), Ok(key.as_str()), "{}", profile);
        }
    }

    #[test]
    fn an_equivalence_is_a_url_and_stays(input in any_url()) {
        let mut canonicalizer = with_sets();
        let Ok(equivalence) = canonicalizer.canon(&input).map(|canonical| canonical.equivalence.to_owned()) else {
            return Ok(());
        };
        let url = Url::parse(equivalence.as_bytes());
        prop_assert_eq!(url.as_ref().map(Url::href), Ok(equivalence.as_str()));
        let again = canonicalizer.canon(equivalence.as_bytes()).map(|canonical| canonical.equivalence.to_owned());
        prop_assert_eq!(again.as_deref(), Ok(equivalence.as_str()));
    }

    #[test]
    fn stricter_profiles_merge_less(a in any_url(), b in any_url()) {
        let key = |profile, input: &[u8]| {
            Canonicalizer::new(profile).canon(input).ok().map(|canonical| canonical.key.to_owned())
        };
        let strict = key(Profile::Strict, &a);
        if strict.is_some() && strict == key(Profile::Strict, &b) {
            prop_assert_eq!(key(Profile::Default, &a), key(Profile::Default, &b));
        }
    }

    #[test]
    fn parameters_are_kept_whatever_their_order(
        parameters in vec((select(vec!["a", "b", "A", "%41", "é", "", "a+b"]), proptest::option::of(select(vec!["1", "2", "", "%31", "+"]))), 0..8),
        picks in vec(any::<Index>(), 8),
    ) {
        let print = |parameters: &[(&str, Option<&str>)]| {
            let parts: Vec<String> = parameters.iter().map(|(name, value)| match value {
                Some(value) => format!("{name}={value}"),
                None => (*name).to_owned(),
            }).collect();
            format!("http://e.com/?{}", parts.join("&"))
        };
        let input = print(&parameters);
        let mut canonicalizer = Canonicalizer::new(Profile::Default);
        let key = canonicalizer.canon(input.as_bytes()).unwrap().key.to_owned();
        let (given, kept) = (Url::parse(input.as_bytes()).unwrap(), Url::parse(key.as_bytes()).unwrap());
        prop_assert_eq!(self::parameters(given.query()), self::parameters(kept.query()));
        // Another order of names, with the same order inside each name.
        let mut left = parameters.clone();
        let mut shuffled = Vec::new();
        let same = |a: &str, b: &str| self::parameters(Some(a)).first().map(|p| p.0.clone()) == self::parameters(Some(b)).first().map(|p| p.0.clone());
        while !left.is_empty() {
            let picked = picks[shuffled.len()].index(left.len());
            let name = left[picked].0;
            let first = left.iter().position(|(other, _)| same(other, name)).unwrap_or(picked);
            shuffled.push(left.remove(first));
        }
        let other = canonicalizer.canon(print(&shuffled).as_bytes()).unwrap().key.to_owned();
        prop_assert_eq!(key, other);
    }

    #[test]
    fn every_profile_survives_every_input(input in any_url()) {
        for profile in Profile::ALL {
            let mut canonicalizer = Canonicalizer::new(profile);
            let first = canonicalizer.canon(&input).map(|canonical| canonical.key.to_owned());
            // Buffers that are used again change nothing.
            let again = canonicalizer.canon(&input).map(|canonical| canonical.key.to_owned());
            prop_assert_eq!(first, again);
        }
        if let Some(form) = tamis_url_canon::SafeBrowsing::of(&input) {
            prop_assert!(form.expressions().len() <= 30);
        }
    }

    #[test]
    fn a_trace_ends_at_the_equivalence(input in any_url()) {
        let mut canonicalizer = with_sets();
        let Ok(canonical) = canonicalizer.canon(&input) else { return Ok(()); };
        let (fetch, equivalence) = (canonical.fetch_url.to_owned(), canonical.equivalence.to_owned());
        let steps = canonicalizer.trace(&input).unwrap();
        let mut at = fetch;
        for step in steps.iter().filter(|step| step.before != step.after) {
            if step.before == at { at.clone_from(&step.after); }
        }
        prop_assert_eq!(at, equivalence);
    }
}
