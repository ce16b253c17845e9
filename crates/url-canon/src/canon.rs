//! From bytes to what to fetch and what to compare by.

use std::sync::Arc;

use crate::compat;
use crate::key::Writer;
use crate::parse::{Parser, Reject, Scheme, Url};
use crate::profile::Profile;
use crate::rule::{Rule, RuleBits};
use crate::sets::{Hits, Matcher, Site};

/// Wrappers around wrappers that are taken off; more is an attack or a loop.
const UNWRAP_MAX: usize = 4;

/// Makes keys under one profile, one URL after the other, without allocating for each.
#[derive(Debug)]
pub struct Canonicalizer {
    profile: Profile,
    rules: RuleBits,
    /// Rules that may act; all but where an explanation tries them one by one.
    pub(crate) mask: RuleBits,
    matcher: Option<Arc<Matcher>>,
    id: String,
    parser: Parser,
    writer: Writer,
    url: Url,
    key: Vec<u8>,
    equivalence: Vec<u8>,
    inner: Inner,
    found: Vec<u32>,
    hits: Hits,
}

/// Buffers of unwrapping.
#[derive(Debug, Default)]
struct Inner {
    url: Url,
    target: Vec<u8>,
    parser: Parser,
}

/// What came out for one URL; it borrows the buffers of its [`Canonicalizer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Canonical<'a> {
    /// What was given, as a browser would ask for it: for fetching, never for comparing.
    pub fetch_url: &'a str,
    /// What to compare by: classes A and B of the profile.
    pub key: &'a str,
    /// The key with class C rules where a rule set allows them; the key itself without rule sets.
    pub equivalence: &'a str,
    /// The rules that changed something on the way to the key.
    pub fired: RuleBits,
    /// The rules that changed something from the key to the equivalence.
    pub fired_equivalence: RuleBits,
}

impl Canonicalizer {
    /// One for a profile, without rule sets.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        let mut new = Self {
            profile,
            rules: profile.rules(),
            mask: Rule::ALL.iter().copied().collect(),
            matcher: None,
            id: String::new(),
            parser: Parser::default(),
            writer: Writer::default(),
            url: Url::default(),
            key: Vec::new(),
            equivalence: Vec::new(),
            inner: Inner::default(),
            found: Vec::new(),
            hits: Hits::default(),
        };
        new.name_it();
        new
    }

    /// Adds rule sets. Those of other tools' profiles do not know them and stay as they are.
    #[must_use]
    pub fn with_sets(mut self, matcher: Arc<Matcher>) -> Self {
        self.matcher = Some(matcher);
        self.name_it();
        self
    }

    /// Turns a rule on that the profile leaves off, for all sites.
    #[must_use]
    pub fn with(mut self, rule: Rule) -> Self {
        self.rules = self.rules.with(rule);
        self.name_it();
        self
    }

    /// Turns a rule off. Rules of the parser (class A up to `percent-encode`) cannot be.
    #[must_use]
    pub fn without(mut self, rule: Rule) -> Self {
        self.rules = self.rules.without(rule);
        self.name_it();
        self
    }

    fn name_it(&mut self) {
        self.id = format!("{}/{}", self.profile.name(), self.profile.version());
        let usual = self.profile.rules();
        for (sign, rules) in [('+', self.rules.minus(usual)), ('-', usual.minus(self.rules))] {
            for rule in rules.iter() {
                self.id.push(sign);
                self.id.push_str(rule.name());
            }
        }
        if let Some(matcher) = &self.matcher {
            self.id.push(' ');
            self.id.push_str(matcher.id());
        }
    }

    /// Turns a rule on for a try; [`Canonicalizer::restore`] takes the result.
    pub(crate) fn switch_on(&mut self, rule: Rule) -> RuleBits {
        let usual = self.rules;
        self.rules = usual.with(rule);
        usual
    }

    /// Ends a try.
    pub(crate) fn restore(&mut self, rules: RuleBits) {
        self.rules = rules;
    }

    /// What makes the keys: profile, its version, rules switched by hand, rule sets and their versions.
    /// Keys of two ids are not to be compared, and fingerprints hold the id for that reason.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The profile.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The key of one URL.
    ///
    /// # Errors
    /// [`Reject`] says why there is none.
    pub fn canon(&mut self, input: &[u8]) -> Result<Canonical<'_>, Reject> {
        let parsed = self.parser.parse(input, None, &mut self.url);
        if self.profile.is_compatibility() {
            return self.canon_as_others(input, parsed);
        }
        let mut fired = parsed?;
        self.hits.clear();
        let classic = self.profile == Profile::Classic;
        let site = match &self.matcher {
            Some(matcher) => matcher.site(&self.url, &mut self.found, &self.hits),
            None => Site::default(),
        };
        let site = site.classic(classic);
        let site_has_more = site.has_path_parameters();
        let off = if site.has_entries() {
            site.off()
        } else {
            RuleBits::NONE
        };
        let rules = self.rules.minus(off).only(self.mask);
        fired = fired.union(self.writer.write(&self.url, rules, &site, &mut self.key)?);
        let mut fired_equivalence = None;
        if self.matcher.is_some() {
            if site.has_entries() && self.mask.has(Rule::Unwrap) && site.target(&mut self.inner.target) {
                fired_equivalence = self.unwrap()?;
            }
            let may_differ = site_has_more || self.writer.droppable() || !self.found.is_empty();
            if fired_equivalence.is_none() && may_differ {
                fired_equivalence = self.equivalence(rules)?;
            }
        }
        let key = ascii(&self.key);
        let equivalence = match fired_equivalence {
            Some(_) => ascii(&self.equivalence),
            None => key,
        };
        Ok(Canonical {
            fetch_url: self.url.href(),
            key,
            equivalence,
            fired,
            fired_equivalence: fired_equivalence.unwrap_or_default().minus(fired),
        })
    }

    fn canon_as_others(
        &mut self,
        input: &[u8],
        parsed: Result<RuleBits, Reject>,
    ) -> Result<Canonical<'_>, Reject> {
        if let Err(reject @ Reject::TooLong { .. }) = parsed {
            return Err(reject);
        }
        compat::key(self.profile, input, &mut self.key)?;
        let key = std::str::from_utf8(&self.key).unwrap_or_default();
        Ok(Canonical {
            // Other tools make keys of what no browser would fetch.
            fetch_url: if parsed.is_ok() { self.url.href() } else { "" },
            key,
            equivalence: key,
            fired: parsed.unwrap_or_default(),
            fired_equivalence: RuleBits::NONE,
        })
    }

    /// Writes the equivalence of a URL that is no wrapper, if it can differ from the key.
    fn equivalence(&mut self, rules: RuleBits) -> Result<Option<RuleBits>, Reject> {
        let Some(matcher) = &self.matcher else {
            return Ok(None);
        };
        let drops = self.writer.droppable() && self.mask.has(Rule::DropParameters);
        let site = matcher.resolved(&self.url, &self.found, &self.hits);
        let path = site.has_path_parameters() && self.url.path().contains(';');
        if site.on().is_empty() && !path {
            if drops {
                self.writer.copy_without_dropped(&self.key, &mut self.equivalence);
            }
            return Ok(drops.then_some(RuleBits::NONE.with(Rule::DropParameters)));
        }
        let site = site.classic(self.profile == Profile::Classic);
        let rules = rules.union(heuristics(&site).only(self.mask));
        let fired = self
            .writer
            .write(&self.url, rules, &site, &mut self.equivalence)?;
        Ok(Some(fired))
    }

    /// Takes wrappers off and writes the equivalence of what is inside; none if that is no web URL.
    fn unwrap(&mut self) -> Result<Option<RuleBits>, Reject> {
        let Some(matcher) = &self.matcher else {
            return Ok(None);
        };
        let Inner { url, target, parser } = &mut self.inner;
        for _ in 0..UNWRAP_MAX {
            if parser.parse(target, None, url).is_err()
                || !matches!(url.scheme_kind(), Scheme::Http | Scheme::Https)
            {
                break;
            }
            self.hits.clear();
            let site = matcher.site(url, &mut self.found, &self.hits);
            if !site.target(target) {
                let rules = self
                    .rules
                    .minus(site.off())
                    .union(heuristics(&site))
                    .only(self.mask);
                let fired = self.writer.write(url, rules, &site, &mut self.equivalence)?;
                return Ok(Some(fired.with(Rule::Unwrap)));
            }
        }
        // What was found is that of a URL inside.
        self.hits.clear();
        matcher.site(&self.url, &mut self.found, &self.hits);
        Ok(None)
    }
}

/// What rule sets may do to an equivalence.
fn heuristics(site: &Site<'_>) -> RuleBits {
    site.on().with(Rule::DropParameters).with(Rule::PathParameters)
}

/// Keys of ours are ASCII.
fn ascii(key: &[u8]) -> &str {
    std::str::from_utf8(key).unwrap_or_default()
}
