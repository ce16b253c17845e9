//! Any bytes are one of the four identifiers, and what a host promises holds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_hostname::{
    HOST_BYTES_MAX, Identifier, PublicSuffixes, Repairs, SubdomainRange, TEXT_BYTES_MAX, read, reverse_into,
    to_unicode, unreverse,
};

fuzz_target!(|raw: &[u8]| match read(raw) {
    Identifier::Host(name) => check_host(name.host(), &name.display(), name.repairs()),
    Identifier::Ip(address) => assert_eq!(read(address.to_string().as_bytes()), Identifier::Ip(address)),
    Identifier::Email(text) => {
        assert!(text.len() <= TEXT_BYTES_MAX);
        assert_eq!(read(text.as_bytes()), Identifier::Email(text.clone()));
    }
    Identifier::Other(text) => {
        assert!(text.len() <= TEXT_BYTES_MAX && !text.chars().any(char::is_control));
        // Cut text can end anywhere, so what is left of it may read as something else.
        if !text.ends_with('…') {
            assert_eq!(read(text.as_bytes()), Identifier::Other(text.clone()));
        }
    }
});

fn check_host(host: &str, display: &str, repairs: Repairs) {
    assert!(!host.is_empty() && host.len() <= HOST_BYTES_MAX);
    assert!(host.split('.').all(|label| !label.is_empty()));
    assert!(
        host.bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.'))
    );
    let Identifier::Host(again) = read(display.as_bytes()) else {
        panic!("{display:?} was a host");
    };
    assert_eq!((again.host(), &*again.display()), (host, display));
    assert_eq!(again.repairs(), repairs & Repairs::PERSISTENT);

    let mut reversed = Vec::new();
    reverse_into(host, &mut reversed);
    assert_eq!(unreverse(&reversed), host);
    let unicode = to_unicode(host);
    assert!(!unicode.chars().any(char::is_control));
    let Identifier::Host(back) = read(unicode.as_bytes()) else {
        panic!("{unicode:?} is {host:?}");
    };
    assert_eq!(back.host(), host);

    let suffixes = PublicSuffixes::shipped();
    assert!(host.ends_with(suffixes.suffix(host)));
    if let Some(domain) = suffixes.registrable(host) {
        assert!(SubdomainRange::new(domain).contains(&reversed));
    }
}
