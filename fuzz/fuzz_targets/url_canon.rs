//! Any bytes: what is parsed and printed stays, a key is its own key, every profile ends, and the parser
//! agrees with that of the `url` crate where both take an absolute web URL.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_url_canon::{Canonicalizer, Profile, SafeBrowsing, Url};

fuzz_target!(|raw: &[u8]| {
    if let Ok(url) = Url::parse(raw) {
        assert_eq!(Url::parse(url.href().as_bytes()).as_ref(), Ok(&url));
        let base = Url::parse(b"https://u:p@e.com:81/a/b?c#d").unwrap();
        let joined = base.join(raw).unwrap();
        assert_eq!(Url::parse(joined.href().as_bytes()), Ok(joined));
        agrees_with_peer(raw, &url);
    }
    for profile in Profile::ALL {
        let mut canonicalizer = Canonicalizer::new(profile);
        let Ok(canonical) = canonicalizer.canon(raw) else {
            continue;
        };
        let key = canonical.key.to_owned();
        if !profile.is_compatibility() {
            assert_eq!(Url::parse(key.as_bytes()).unwrap().href(), key);
            assert_eq!(canonicalizer.canon(key.as_bytes()).unwrap().key, key);
        }
    }
    if let Some(form) = SafeBrowsing::of(raw) {
        assert!(form.expressions().len() <= 30);
    }
});

/// The peer decodes labels `xn--…` and refuses some, and escapes `^` in paths not yet.
fn agrees_with_peer(raw: &[u8], url: &Url) {
    let Ok(text) = std::str::from_utf8(raw) else {
        return;
    };
    if !url.scheme_kind().is_web() || url.host().is_none_or(|host| host.contains("xn--")) {
        return;
    }
    if let Ok(peer) = url::Url::parse(text) {
        assert_eq!(peer.as_str().replace('^', "%5E"), url.href().replace('^', "%5E"), "{text:?}");
    }
}
