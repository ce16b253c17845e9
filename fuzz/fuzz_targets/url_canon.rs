//! Any bytes: what is parsed and printed stays, a key is its own key, and every profile ends.
//!
//! There is no peer here: those that build in seconds differ from the standard in corners (the `url` crate
//! lets no `..` remove `/h:`, as if it were a drive). The properties of the crate hold the parser to ada's.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_url_canon::{Canonicalizer, Profile, SafeBrowsing, Url};

fuzz_target!(|raw: &[u8]| {
    if let Ok(url) = Url::parse(raw) {
        assert_eq!(Url::parse(url.href().as_bytes()).as_ref(), Ok(&url));
        let base = Url::parse(b"https://u:p@e.com:81/a/b?c#d").unwrap();
        let joined = base.join(raw).unwrap();
        assert_eq!(Url::parse(joined.href().as_bytes()), Ok(joined));
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
