//! The Public Suffix List: which part of a name a registry hands out.
//!
//! # Invariants
//! Every rule and every parent of a rule is a node, so a look-up walks from the last label leftwards and
//! stops at the first suffix that no rule knows. The prevailing rule is an exception, else the longest,
//! else `*` (<https://github.com/publicsuffix/list/wiki/Format>).
//!
//! # Limits
//! `*` is understood as a whole leftmost label, the only place where the list uses it. Lists over
//! [`LIST_BYTES_MAX`] are refused.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use crate::idn;
use crate::scan::scan;

/// The shipped list; `data/README.md` says which one.
const SHIPPED: &str = include_str!("../data/public_suffix_list.dat");

/// The list has 0.3 MB; one far above that is something else.
const LIST_BYTES_MAX: usize = 16 << 20;

static SHIPPED_SUFFIXES: LazyLock<PublicSuffixes> = LazyLock::new(|| {
    PublicSuffixes::parse(SHIPPED).expect("the shipped list is read by a test of this crate")
});

/// Why a text is no Public Suffix List.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A line that is neither empty, a comment nor a rule. The rest of the list was not read.
    #[error("line {line} is no rule of a public suffix list: {rule:?}")]
    Rule {
        /// Counted from 1.
        line: usize,
        /// The rule as it stands there, cut if it is long.
        rule: String,
    },
    /// Not one rule: an error page or an empty download. Keep the list you have.
    #[error("it holds no rule of a public suffix list")]
    Empty,
    /// The rules are not those of the public: a list of words or of hosts, say.
    #[error(
        "of the {top_level} top-level domains in it, the shipped list knows {known}, and {rules} are rules: it may be a list of words or hosts"
    )]
    Implausible {
        /// Last labels of all rules.
        top_level: usize,
        /// Those of them that the shipped list knows.
        known: usize,
        /// Those of them that are rules themselves.
        rules: usize,
    },
    /// The text is longer than a list can be.
    #[error("the public suffix list has {bytes} bytes; the limit is {bytes_max}")]
    TooLong {
        /// The length of the text.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
}

/// Public suffixes, and from them the part of a name that somebody registered.
///
/// Both sections of the list count: `github.io` is a public suffix as much as `co.uk`.
#[derive(Clone, Debug)]
pub struct PublicSuffixes {
    nodes: HashMap<Box<str>, Node, BuildHasherDefault<SuffixHasher>>,
}

/// What the list says about one suffix.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// The suffix itself is a rule.
    rule: bool,
    /// `!suffix` is a rule.
    exception: bool,
    /// `*.suffix` is a rule.
    wildcard: bool,
    /// A longer suffix is a node.
    parent: bool,
}

impl PublicSuffixes {
    /// The list that this crate ships, read at the first call (about 2 ms).
    #[must_use]
    pub fn shipped() -> &'static Self {
        &SHIPPED_SUFFIXES
    }

    /// Reads the text of a list, for callers that keep a newer one.
    ///
    /// # Errors
    /// [`Error`] tells the first line that cannot be understood; no half-read list is returned.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > LIST_BYTES_MAX {
            return Err(Error::TooLong {
                bytes: text.len(),
                bytes_max: LIST_BYTES_MAX,
            });
        }
        let mut suffixes = Self {
            nodes: HashMap::default(),
        };
        for (index, line) in text.lines().enumerate() {
            // The format ends a rule at the first white space.
            let rule = line.split_whitespace().next().unwrap_or_default();
            if rule.is_empty() || rule.starts_with("//") {
                continue;
            }
            suffixes.add(rule).ok_or_else(|| Error::Rule {
                line: index + 1,
                rule: rule.chars().take(100).collect(),
            })?;
        }
        if suffixes.nodes.is_empty() {
            Err(Error::Empty)
        } else {
            Ok(suffixes)
        }
    }

    /// Refuses a list that [`PublicSuffixes::parse`] takes because any words are rules of some kind.
    ///
    /// In a public list, most top-level domains are those that the shipped one knows, and some of them
    /// are rules. A list that is years older or newer than the shipped one passes.
    ///
    /// # Errors
    /// [`Error::Implausible`] says what was counted.
    pub fn check_plausible(&self) -> Result<(), Error> {
        let (mut top_level, mut known, mut rules) = (0, 0, 0);
        for (suffix, node) in &self.nodes {
            if !suffix.contains('.') {
                top_level += 1;
                known += usize::from(Self::shipped().nodes.contains_key(suffix));
                rules += usize::from(node.rule);
            }
        }
        if 2 * known >= top_level && rules > 0 {
            return Ok(());
        }
        Err(Error::Implausible {
            top_level,
            known,
            rules,
        })
    }

    /// The registrable domain of a canonical host: its public suffix and one label more.
    ///
    /// `None` for a host that is a public suffix itself, and for one that starts with a dot.
    #[must_use]
    pub fn registrable<'h>(&self, host: &'h str) -> Option<&'h str> {
        let before_suffix = host.get(..self.suffix_start(host).checked_sub(1)?)?;
        let start = memchr::memrchr(b'.', before_suffix.as_bytes()).map_or(0, |dot| dot + 1);
        (!host.starts_with('.')).then(|| host.get(start..))?
    }

    /// The public suffix of a canonical host; its last label if no rule knows it.
    #[must_use]
    pub fn suffix<'h>(&self, host: &'h str) -> &'h str {
        host.get(self.suffix_start(host)..).unwrap_or(host)
    }

    fn suffix_start(&self, host: &str) -> usize {
        let mut best = None;
        let mut above = Node {
            parent: true,
            ..Node::default()
        };
        let mut above_start = host.len();
        let dots = memchr::memrchr_iter(b'.', host.as_bytes());
        for start in dots.map(|dot| dot + 1).chain([0]) {
            let node = host
                .get(start..)
                .and_then(|suffix| self.nodes.get(suffix))
                .copied();
            let node = node.unwrap_or_default();
            if node.exception {
                return above_start;
            }
            if best.is_none() || above.wildcard || node.rule {
                best = Some(start);
            }
            if !node.parent && !node.wildcard {
                break;
            }
            (above, above_start) = (node, start);
        }
        best.unwrap_or_default()
    }

    fn add(&mut self, rule: &str) -> Option<()> {
        if rule == "*" {
            // The default rule, spelled out.
            return Some(());
        }
        let (kind, suffix) = match (rule.strip_prefix('!'), rule.strip_prefix("*.")) {
            (Some(suffix), _) => (
                Node {
                    exception: true,
                    ..Node::default()
                },
                suffix,
            ),
            (_, Some(suffix)) => (
                Node {
                    wildcard: true,
                    ..Node::default()
                },
                suffix,
            ),
            _ => (
                Node {
                    rule: true,
                    ..Node::default()
                },
                rule,
            ),
        };
        let suffix = idn::to_ascii(suffix)?;
        if !scan(suffix.as_bytes()).is_canonical() {
            return None;
        }
        self.node(&suffix).include(kind);
        for dot in memchr::memchr_iter(b'.', suffix.as_bytes()) {
            self.node(suffix.get(dot + 1..)?).parent = true;
        }
        Some(())
    }

    fn node(&mut self, suffix: &str) -> &mut Node {
        self.nodes.entry(suffix.into()).or_default()
    }
}

impl Node {
    fn include(&mut self, other: Self) {
        self.rule |= other.rule;
        self.exception |= other.exception;
        self.wildcard |= other.wildcard;
        self.parent |= other.parent;
    }
}

/// A multiplicative hash of short strings, several times as fast as the standard one.
///
/// Only the list's own suffixes are stored, so nobody outside can fill one bucket.
#[derive(Clone, Default)]
struct SuffixHasher(u64);

impl SuffixHasher {
    /// The odd constant nearest to 2^64 divided by the golden ratio.
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(Self::MULTIPLIER);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for SuffixHasher {
    /// Words that may overlap cover every byte: no loop over the last few.
    fn write(&mut self, bytes: &[u8]) {
        let length = bytes.len() as u64;
        if let Some(last) = bytes.last_chunk() {
            for word in bytes.as_chunks().0 {
                self.mix(u64::from_le_bytes(*word));
            }
            self.mix(u64::from_le_bytes(*last) ^ length);
        } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            let halves = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            self.mix(u64::from(halves.0) << 32 ^ u64::from(halves.1) ^ length);
        } else {
            self.mix(
                bytes
                    .iter()
                    .fold(length, |word, &byte| word << 8 | u64::from(byte)),
            );
        }
    }

    fn write_u8(&mut self, _end_of_str: u8) {
        // `str` adds a byte to tell ("ab", "c") from ("a", "bc"); our keys are single strings.
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, PublicSuffixes};

    const RULES: &str = "// comment\n\ncom\nuk\nco.uk  trailing words\n*.ck\n!www.ck\nb.c.deep\nGroß.de\n*\n*.a.com\n\
                         x.y.a.com";

    #[track_caller]
    fn check(host: &str, suffix: &str, registrable: Option<&str>) {
        let suffixes = PublicSuffixes::parse(RULES).unwrap();
        assert_eq!(suffixes.suffix(host), suffix, "suffix of {host:?}");
        assert_eq!(suffixes.registrable(host), registrable, "registrable of {host:?}");
    }

    #[test]
    fn the_prevailing_rule_decides() {
        check("com", "com", None);
        check("a.b.example.com", "com", Some("example.com"));
        check("co.uk", "co.uk", None);
        check("www.shop.co.uk", "co.uk", Some("shop.co.uk"));
        check("x.uk", "uk", Some("x.uk"));
        check("ck", "ck", None);
        check("any.ck", "any.ck", None);
        check("b.any.ck", "any.ck", Some("b.any.ck"));
        check("www.ck", "ck", Some("www.ck"));
        check("x.www.ck", "ck", Some("www.ck"));
        check("localhost", "localhost", None);
        check("a.unlisted", "unlisted", Some("a.unlisted"));
        // `c.deep` is on the way to a rule and none itself.
        check("c.deep", "deep", Some("c.deep"));
        check("b.c.deep", "b.c.deep", None);
        check("a.b.c.deep", "b.c.deep", Some("a.b.c.deep"));
        check("a.xn--gro-7ka.de", "xn--gro-7ka.de", Some("a.xn--gro-7ka.de"));
        // `a.com` is no rule, `y.a.com` falls under the wildcard although a longer rule passes through it.
        check("a.com", "com", Some("a.com"));
        check("y.a.com", "y.a.com", None);
        check("z.y.a.com", "y.a.com", Some("z.y.a.com"));
        check("z.x.y.a.com", "x.y.a.com", Some("z.x.y.a.com"));
    }

    #[test]
    fn hosts_that_are_not_canonical_do_no_harm() {
        check("", "", None);
        check(".", "", None);
        check(".com", "com", None);
        check(".example.com", "com", None);
        check("example.com.", "", Some("com."));
        check("COM", "COM", None);
        check("食.com", "com", Some("食.com"));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let parse = |text: &str| PublicSuffixes::parse(text).map(|_| ()).unwrap_err();
        assert_eq!(parse(""), Error::Empty);
        assert_eq!(parse("// only\n// comments\n"), Error::Empty);
        assert_eq!(
            parse("com\n<html>\n"),
            Error::Rule {
                line: 2,
                rule: "<html>".into()
            }
        );
        assert_eq!(
            parse("a..b"),
            Error::Rule {
                line: 1,
                rule: "a..b".into()
            }
        );
        assert_eq!(
            parse("a.*.b"),
            Error::Rule {
                line: 1,
                rule: "a.*.b".into()
            }
        );
        assert_eq!(
            parse("!"),
            Error::Rule {
                line: 1,
                rule: "!".into()
            }
        );
        assert_eq!(
            parse(&"a".repeat((16 << 20) + 1)),
            Error::TooLong {
                bytes: (16 << 20) + 1,
                bytes_max: 16 << 20
            }
        );
    }

    #[test]
    fn words_and_hosts_are_no_list() {
        let check = |text: &str| PublicSuffixes::parse(text).unwrap().check_plausible();
        PublicSuffixes::shipped().check_plausible().unwrap();
        check("net\ngamen.net\ncorp\n").unwrap();
        for (text, top_level, known, rules) in [
            ("This is a text\nabout nothing\nof interest\n", 3, 0, 3),
            ("www.example.com\nwww.example.org\n", 2, 2, 0),
        ] {
            let told = Error::Implausible {
                top_level,
                known,
                rules,
            };
            assert_eq!(check(text), Err(told), "{text}");
        }
    }

    #[test]
    fn the_shipped_list_is_read() {
        let shipped = PublicSuffixes::shipped();
        assert_eq!(shipped.registrable("www.example.co.uk"), Some("example.co.uk"));
        assert_eq!(shipped.registrable("user.github.io"), Some("user.github.io"));
        assert!(shipped.nodes.len() > 10_000);
    }
}
