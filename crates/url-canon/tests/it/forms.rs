//! Safe Browsing, fingerprints, batches, and what hostile sizes cost.

use tamis_url_canon::{
    Batch, Canonicalizer, Fingerprinter, Profile, Reject, SafeBrowsing, URL_BYTES_MAX, expected_collisions,
};

use crate::{lines, testdata};

#[test]
fn safe_browsing_as_its_documents_say() {
    // https://developers.google.com/safe-browsing/v4/urls-hashing
    let canonical: &[(&[u8], &str)] = &[
        (b"http://host/%25%32%35", "http://host/%25"),
        (b"http://host/%25%32%35%25%32%35", "http://host/%25%25"),
        (b"http://host/%2525252525252525", "http://host/%25"),
        (b"http://host/asdf%25%32%35asd", "http://host/asdf%25asd"),
        (b"http://host/%%%25%32%35asd%%", "http://host/%25%25%25asd%25%25"),
        (b"http://www.google.com/", "http://www.google.com/"),
        (
            b"http://%31%36%38%2e%31%38%38%2e%39%39%2e%32%36/%2E%73%65%63%75%72%65/%77%77%77%2E%65%62%61%79%2E%63%6F%6D/",
            "http://168.188.99.26/.secure/www.ebay.com/",
        ),
        (
            b"http://host%23.com/%257Ea%2521b%2540c%2523d%2524e%25f%255E00%252611%252A22%252833%252944_55%252B",
            "http://host%23.com/~a!b@c%23d$e%25f^00&11*22(33)44_55+",
        ),
        (b"http://3279880203/blah", "http://195.127.0.11/blah"),
        (b"http://www.google.com/blah/..", "http://www.google.com/"),
        (b"www.google.com/", "http://www.google.com/"),
        (b"www.google.com", "http://www.google.com/"),
        (b"http://www.evil.com/blah#frag", "http://www.evil.com/blah"),
        (b"http://www.GOOgle.com/", "http://www.google.com/"),
        (b"http://www.google.com.../", "http://www.google.com/"),
        (b"http://www.google.com/foo\tbar\rbaz\n2", "http://www.google.com/foobarbaz2"),
        (b"http://www.google.com/q?", "http://www.google.com/q?"),
        (b"http://www.google.com/q?r?", "http://www.google.com/q?r?"),
        (b"http://www.google.com/q?r?s", "http://www.google.com/q?r?s"),
        (b"http://evil.com/foo#bar#baz", "http://evil.com/foo"),
        (b"http://evil.com/foo;", "http://evil.com/foo;"),
        (b"http://evil.com/foo?bar;", "http://evil.com/foo?bar;"),
        (b"http://\x01\x80.com/", "http://%01%80.com/"),
        (b"http://notrailingslash.com", "http://notrailingslash.com/"),
        (b"http://www.gotaport.com:1234/", "http://www.gotaport.com/"),
        (b"  http://www.google.com/  ", "http://www.google.com/"),
        (b"http:// leadingspace.com/", "http://%20leadingspace.com/"),
        (b"http://%20leadingspace.com/", "http://%20leadingspace.com/"),
        (b"%20leadingspace.com/", "http://%20leadingspace.com/"),
        (b"https://www.securesite.com/", "https://www.securesite.com/"),
        (b"http://host.com/ab%23cd", "http://host.com/ab%23cd"),
        (b"http://host.com//twoslashes?more//slashes", "http://host.com/twoslashes?more//slashes"),
        // What a browser asks for.
        (b"http://evil.com\\@good.com/", "http://evil.com/@good.com/"),
    ];
    for (input, want) in canonical {
        let form = SafeBrowsing::of(input).map(|form| form.canonical());
        assert_eq!(form.as_deref(), Some(*want), "{}", input.escape_ascii());
    }
    let expressions = |url: &str| {
        let mut found = SafeBrowsing::of(url.as_bytes()).unwrap().expressions();
        found.sort();
        found
    };
    assert_eq!(
        expressions("http://a.b.c/1/2.html?param=1"),
        sorted(vec![
            "a.b.c/1/2.html?param=1",
            "a.b.c/1/2.html",
            "a.b.c/",
            "a.b.c/1/",
            "b.c/1/2.html?param=1",
            "b.c/1/2.html",
            "b.c/",
            "b.c/1/",
        ])
    );
    assert_eq!(
        expressions("http://a.b.c.d.e.f.g/1.html"),
        sorted(vec![
            "a.b.c.d.e.f.g/1.html",
            "a.b.c.d.e.f.g/",
            "c.d.e.f.g/1.html",
            "c.d.e.f.g/",
            "d.e.f.g/1.html",
            "d.e.f.g/",
            "e.f.g/1.html",
            "e.f.g/",
            "f.g/1.html",
            "f.g/",
        ])
    );
    assert_eq!(
        expressions("http://1.2.3.4/1/"),
        sorted(vec!["1.2.3.4/1/", "1.2.3.4/"])
    );
    assert_eq!(SafeBrowsing::of(b""), None);
    assert_eq!(SafeBrowsing::of(b"http://./"), None);
}

fn sorted(mut want: Vec<&str>) -> Vec<&str> {
    want.sort_unstable();
    want
}

/// The vectors that bindings in other languages are held to as well. `UPDATE_GOLDEN=1` writes them
/// anew from the inputs in the file; a key that changes needs a new version of its profile.
#[test]
fn shared_vectors() {
    let secret: [u8; 16] = std::array::from_fn(|index| u8::try_from(index).unwrap());
    let mut fresh = String::new();
    let cases = lines("urls/vectors.jsonl");
    for case in &cases {
        let profile: Profile = case["profile"].as_str().unwrap().parse().unwrap();
        let mut canonicalizer = Canonicalizer::new(profile);
        let id = canonicalizer.id().to_owned();
        let fingerprinter = Fingerprinter::new(&secret, &id);
        let input = case["input"].as_str().unwrap();
        let key = canonicalizer
            .canon(input.as_bytes())
            .ok()
            .map(|canonical| canonical.key.to_owned());
        let print = key
            .as_ref()
            .map(|key| fingerprinter.of(key.as_bytes()).to_string());
        let vector = serde_json::json!({
            "input": input, "profile": profile.name(), "id": id, "key": key, "fingerprint": print,
        });
        fresh.push_str(&format!("{vector}\n"));
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(testdata("urls/vectors.jsonl"), &fresh).unwrap();
    }
    let fresh: Vec<serde_json::Value> = fresh
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(cases, fresh);
}

#[test]
fn fingerprints_are_siphash_2_4_128() {
    // The reference's vector for an input of 00 01 … 0e under the key 00 01 … 0f, here with the zero byte
    // that parts id and key: `\x00`, then 01 … 0e.
    let secret: [u8; 16] = std::array::from_fn(|index| u8::try_from(index).unwrap());
    let key: Vec<u8> = (1..=14).collect();
    let print = Fingerprinter::new(&secret, "").of(&key);
    assert_eq!(print.to_string(), "5493e99933b0a8117e08ec0f97cfc3d9");
    assert_eq!(print.first_64_bits(), 0x11a8_b033_99e9_9354);
    let other = Fingerprinter::new(&[1; 16], "").of(&key);
    assert_ne!(print, other);
}

#[test]
fn what_64_bits_cost() {
    let billion = expected_collisions(1_000_000_000, 64);
    assert!((0.027..0.0272).contains(&billion), "{billion}");
    assert!(expected_collisions(1_000_000_000, 128) < 1e-19);
    assert!(expected_collisions(1, 64) == 0.0 && expected_collisions(0, 64) == 0.0);
}

#[test]
fn a_batch_is_one_after_the_other() {
    let urls: &[&[u8]] = &[b"http://e.com/?b&a", b"x", b"HTTP://E.com", b"", b"http://\xff/"];
    let mut canonicalizer = Canonicalizer::new(Profile::Default);
    let fingerprinter = Fingerprinter::new(&[3; 16], canonicalizer.id());
    let mut batch = Batch::default();
    for _ in 0..2 {
        batch.fill(urls.iter().copied(), &mut canonicalizer, &fingerprinter);
        assert_eq!(batch.len(), urls.len());
        for (entry, url) in batch.iter().zip(urls) {
            let one = canonicalizer.canon(url).map(|canonical| canonical.key.to_owned());
            assert_eq!(entry.map(|(key, _)| key.to_owned()), one);
            if let (Ok((key, print)), Ok(_)) = (entry, one) {
                assert_eq!(print, fingerprinter.of(key.as_bytes()));
            }
        }
    }
}

#[test]
fn sizes_have_a_limit_and_nothing_is_cut() {
    let mut canonicalizer = Canonicalizer::new(Profile::Default);
    let url = |length: usize| {
        let mut url = b"http://e.com/".to_vec();
        url.resize(length, b'a');
        url
    };
    let key = canonicalizer.canon(&url(60_000)).unwrap().key.len();
    assert_eq!(key, 60_000);
    assert!(canonicalizer.canon(&url(URL_BYTES_MAX)).is_ok());
    let reject = canonicalizer.canon(&url(URL_BYTES_MAX + 1)).unwrap_err();
    assert_eq!(
        reject,
        Reject::TooLong {
            bytes: URL_BYTES_MAX + 1
        }
    );
    // Three bytes each when they are escaped.
    let long = ["http://e.com/", &"é".repeat(20_000)].concat();
    assert!(matches!(
        canonicalizer.canon(long.as_bytes()),
        Err(Reject::TooLong { .. })
    ));
}

/// Inputs on which something quadratic would take minutes.
#[test]
fn hostile_shapes_are_linear() {
    let fill = |start: &str, piece: &str| {
        let count = (URL_BYTES_MAX - start.len()) / piece.len();
        [start, &piece.repeat(count)].concat()
    };
    let inputs = [
        fill("http://e.com/?", "a&"),
        fill("http://e.com/?", "&"),
        fill("http://e.com/?", "b=1&a=2&"),
        fill("http://e.com/?", "utm_a&"),
        fill("http://e.com/", "../"),
        fill("http://e.com/", "%2e/"),
        fill("http://e.com/", "a/../"),
        fill("http://e.com/", "/"),
        fill("http://e.com/", ";"),
        fill("http://e.com/%", "25"),
        fill("http://e.com/", "%"),
        fill("http://e.com/", "%2541"),
        fill("http://", "a."),
        fill("http://", "1."),
        fill("http://", "@"),
        fill("http://", "%41"),
        fill("http://", "xn--a."),
        fill("http://[", "1:"),
        fill("http://e.com/", "%ED%A0%80"),
        fill("", "http://"),
        fill("http://", "ü."),
    ];
    for input in inputs {
        for profile in Profile::ALL {
            for _ in 0..3 {
                let _ = Canonicalizer::new(profile).canon(input.as_bytes());
            }
        }
        let _ = SafeBrowsing::of(input.as_bytes()).map(|form| form.expressions().len());
    }
}
