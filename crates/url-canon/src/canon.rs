//! From bytes to what to fetch and what to compare by.

use crate::key::Writer;
use crate::parse::{Parser, Reject, Url};
use crate::profile::Profile;
use crate::rule::{Rule, RuleBits};
use crate::sets::Site;

/// Makes keys under one profile, one URL after the other, without allocating for each.
#[derive(Debug)]
pub struct Canonicalizer {
    profile: Profile,
    rules: RuleBits,
    parser: Parser,
    writer: Writer,
    url: Url,
    key: Vec<u8>,
}

/// What came out for one URL; it borrows the buffers of its [`Canonicalizer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Canonical<'a> {
    /// What was given, as a browser would ask for it: for fetching, never for comparing.
    pub fetch_url: &'a str,
    /// What to compare by: classes A and B of the profile.
    pub key: &'a str,
    /// The rules that changed something on the way to the key.
    pub fired: RuleBits,
}

impl Canonicalizer {
    /// One for a profile.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            rules: profile.rules(),
            parser: Parser::default(),
            writer: Writer::default(),
            url: Url::default(),
            key: Vec::new(),
        }
    }

    /// The key of one URL.
    ///
    /// # Errors
    /// [`Reject`] says why there is none.
    pub fn canon(&mut self, input: &[u8]) -> Result<Canonical<'_>, Reject> {
        let parsed = self.parser.parse(input, None, &mut self.url)?;
        let site = Site {
            classic: self.profile == Profile::Classic,
            ..Site::default()
        };
        let written = self.writer.write(&self.url, self.rules, &site, &mut self.key)?;
        Ok(Canonical {
            fetch_url: self.url.href(),
            // Keys are ASCII.
            key: std::str::from_utf8(&self.key).unwrap_or_default(),
            fired: parsed.union(written),
        })
    }

    /// Turns a rule on that the profile leaves off.
    #[must_use]
    pub fn with(mut self, rule: Rule) -> Self {
        self.rules = self.rules.with(rule);
        self
    }
}
