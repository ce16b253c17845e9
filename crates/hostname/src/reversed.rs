//! Names in the order of the index: `com.example.www`, and the ranges that a subdomain scan reads.
//!
//! # Invariants
//! Reversing is by label and is its own inverse. Names below `p` are exactly the keys that start with
//! `p.`: `-` (0x2D) sorts before `.` (0x2E), so `com.imfht-x` lies between `com.imfht` and
//! `com.imfht.www` and belongs to neither range.

/// Appends the labels of `host` to `out` in reverse order: `www.example.com` gives `com.example.www`.
pub fn reverse_into(host: &str, out: &mut Vec<u8>) {
    out.reserve(host.len() + 1);
    for label in host.as_bytes().rsplit(|&byte| byte == b'.') {
        // Labels are short: a loop over their bytes beats a call of memcpy.
        out.extend(label.iter().copied());
        out.push(b'.');
    }
    out.pop();
}

/// The host of a reversed key: `com.example.www` gives `www.example.com`.
///
/// Bytes that are no UTF-8, which only a damaged key holds, become U+FFFD.
#[must_use]
pub fn unreverse(reversed: &[u8]) -> String {
    let reversed = String::from_utf8_lossy(reversed);
    let mut host = Vec::with_capacity(reversed.len());
    reverse_into(&reversed, &mut host);
    // Labels are cut at dots only, so the text stays UTF-8.
    String::from_utf8(host).unwrap_or_default()
}

/// The keys of a host and of everything below it: exactly `p`, and `[p., p/)`.
///
/// Two ranges, never one walk from the first to the last: siblings such as `p-x` sort between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubdomainRange {
    below_start: Vec<u8>,
    below_end: Vec<u8>,
}

impl SubdomainRange {
    /// The ranges of a canonical `host` (not reversed). An empty host selects nothing but the empty key.
    #[must_use]
    pub fn new(host: &str) -> Self {
        let mut below_start = Vec::with_capacity(host.len() + 1);
        reverse_into(host, &mut below_start);
        let mut below_end = below_start.clone();
        below_start.push(b'.');
        below_end.push(b'/');
        Self {
            below_start,
            below_end,
        }
    }

    /// Whether a reversed name is the host or below it.
    #[must_use]
    pub fn contains(&self, reversed: &[u8]) -> bool {
        reversed == self.exact() || reversed.starts_with(&self.below_start)
    }

    /// The reversed host itself, `p`.
    #[must_use]
    pub fn exact(&self) -> &[u8] {
        self.below_start.split_last().map_or(&[], |(_, exact)| exact)
    }

    /// The first key that can lie below the host, `p.`.
    #[must_use]
    pub fn below_start(&self) -> &[u8] {
        &self.below_start
    }

    /// The first key behind all that lie below the host, `p/`; itself excluded.
    #[must_use]
    pub fn below_end(&self) -> &[u8] {
        &self.below_end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{SubdomainRange, reverse_into, unreverse};

    fn reverse(host: &str) -> Vec<u8> {
        let mut reversed = Vec::new();
        reverse_into(host, &mut reversed);
        reversed
    }

    #[track_caller]
    fn check(host: &str, reversed: &str) {
        assert_eq!(String::from_utf8(reverse(host)).unwrap(), reversed);
        assert_eq!(unreverse(reversed.as_bytes()), host);
    }

    #[test]
    fn labels_are_reversed() {
        check("www.example.com", "com.example.www");
        check("localhost", "localhost");
        check("", "");
        check("a.bc.def", "def.bc.a");
        check("_sip._tcp.x-y.de", "de.x-y._tcp._sip");
    }

    #[test]
    fn reversing_appends() {
        let mut out = b"key:".to_vec();
        reverse_into("a.b", &mut out);
        assert_eq!(out, b"key:b.a");
    }

    #[test]
    fn damaged_keys_are_shown() {
        assert_eq!(unreverse(b"com.ex\xffample.a"), "a.ex\u{fffd}ample.com");
    }

    #[test]
    fn bounds_are_those_of_the_keys() {
        let range = SubdomainRange::new("imfht.com");
        assert_eq!(range.exact(), b"com.imfht");
        assert_eq!(range.below_start(), b"com.imfht.");
        assert_eq!(range.below_end(), b"com.imfht/");
    }

    /// What a scan of sorted keys between the bounds returns, as hosts.
    fn scan(sorted: &[Vec<u8>], range: &SubdomainRange) -> Vec<String> {
        let below = range.below_start()..range.below_end();
        let selected = sorted
            .iter()
            .filter(|key| *key == range.exact() || below.contains(&key.as_slice()));
        selected.map(|key| unreverse(key)).collect()
    }

    fn sorted<'a>(hosts: impl IntoIterator<Item = &'a str>) -> Vec<Vec<u8>> {
        let mut keys: Vec<_> = hosts.into_iter().map(reverse).collect();
        keys.sort();
        keys
    }

    #[test]
    fn siblings_with_a_hyphen_neither_cut_nor_join_a_scan() {
        let keys = sorted([
            "imfht.com",
            "imfht-x.com",
            "www.imfht-x.com",
            "a.imfht.com",
            "deep.a.imfht.com",
            "imfht0.com",
            "imfht_.com",
            "imfhtx.com",
            "imfh.com",
            "com",
            "imfht.com.evil.org",
            "ximfht.com",
            "-.imfht.com",
        ]);
        let order: Vec<_> = keys.iter().map(|key| unreverse(key)).collect();
        let position = |host: &str| order.iter().position(|name| name == host);
        assert!(position("imfht.com") < position("imfht-x.com"));
        assert!(
            position("imfht-x.com") < position("a.imfht.com"),
            "the trap: a sibling in between"
        );

        let selected = scan(&keys, &SubdomainRange::new("imfht.com"));
        assert_eq!(
            selected,
            ["imfht.com", "-.imfht.com", "a.imfht.com", "deep.a.imfht.com"]
        );
        let selected = scan(&keys, &SubdomainRange::new("imfht-x.com"));
        assert_eq!(selected, ["imfht-x.com", "www.imfht-x.com"]);
        assert!(scan(&keys, &SubdomainRange::new("absent.com")).is_empty());
    }

    /// Labels over a small alphabet, so that siblings, parents and children meet often.
    fn host() -> impl Strategy<Value = String> {
        "[ab0_-]{1,2}(\\.[ab0_-]{1,2}){0,3}"
    }

    proptest! {
        #[test]
        fn reversing_twice_is_nothing(host in "[a-z0-9_.-]{0,40}") {
            prop_assert_eq!(unreverse(&reverse(&host)), host);
        }

        #[test]
        fn ranges_select_what_ends_with_the_host(
            hosts in proptest::collection::vec(host(), 1..60),
            parent in host(),
        ) {
            let keys = sorted(hosts.iter().map(String::as_str));
            let range = SubdomainRange::new(&parent);
            let below = format!(".{parent}");
            let mut expected: Vec<_> =
                hosts.iter().filter(|host| **host == parent || host.ends_with(&below)).map(|h| reverse(h)).collect();
            expected.sort();
            let selected: Vec<_> = scan(&keys, &range).iter().map(|host| reverse(host)).collect();
            prop_assert_eq!(&selected, &expected);
            let contained: Vec<_> = keys.into_iter().filter(|key| range.contains(key)).collect();
            prop_assert_eq!(contained, expected);
        }

        #[test]
        fn keys_sort_as_lists_of_labels_do_but_for_the_hyphen(a in "[a-z0-9_]{1,3}(\\.[a-z0-9_]{1,3}){0,3}",
            b in "[a-z0-9_]{1,3}(\\.[a-z0-9_]{1,3}){0,3}") {
            let labels = |host: &str| host.rsplit('.').map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(reverse(&a).cmp(&reverse(&b)), labels(&a).cmp(&labels(&b)));
        }
    }
}
