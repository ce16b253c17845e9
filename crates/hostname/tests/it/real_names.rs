//! Real names all read as hosts and survive the way to a key and back.

use tamis_hostname::{Identifier, Repairs, SubdomainRange, read, reverse_into, unreverse};

const NAMES: [&str; 2] = [
    include_str!("../../../../testdata/names/cisco.txt"),
    include_str!("../../../../testdata/names/tranco.txt"),
];

fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().flat_map(|names| names.lines())
}

fn reverse(host: &str) -> Vec<u8> {
    let mut reversed = Vec::new();
    reverse_into(host, &mut reversed);
    reversed
}

#[test]
fn every_name_is_a_host_as_it_stands() {
    for name in names() {
        let Identifier::Host(host) = read(name.as_bytes()) else {
            panic!("{name:?} is no host");
        };
        assert_eq!((host.host(), host.wildcard()), (name, false));
        assert_eq!(host.repairs() - Repairs::UNDERSCORE, Repairs::empty(), "{name}");
        assert_eq!(unreverse(&reverse(name)), name);
    }
}

#[test]
fn ranges_over_real_keys_select_the_real_subdomains() {
    let mut keys: Vec<_> = names().map(reverse).collect();
    keys.sort();
    let slice = |start: &[u8], end: &[u8]| {
        let at = |bound: &[u8]| keys.partition_point(|key| key.as_slice() < bound);
        keys.get(at(start)..at(end)).unwrap()
    };
    for parent in [
        "com",
        "google.com",
        "apple.com",
        "googleapis.com",
        "net",
        "amazonaws.com",
    ] {
        let range = SubdomainRange::new(parent);
        let suffix = format!(".{parent}");
        let expected = names().filter(|name| name.ends_with(&suffix)).count();
        assert_eq!(
            slice(range.below_start(), range.below_end()).len(),
            expected,
            "{parent}"
        );
        assert!(expected > 0, "{parent} selects something");
    }
}
