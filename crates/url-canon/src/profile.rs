//! Profiles: named, versioned sets of rules.

use std::fmt;
use std::str::FromStr;

use crate::rule::{Class, Rule, RuleBits};

/// Which rules make a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Profile {
    /// Class A: the same URL in one spelling.
    Strict,
    /// Classes A and B: what servers answer alike.
    #[default]
    Default,
    /// The rules that crawlers have long used, with repeated parameters kept in order.
    Classic,
    /// The keys of w3lib's `canonicalize_url`.
    W3lib,
    /// The keys of the Python package `surt`.
    Surt,
    /// The keys of crawler-commons' `BasicURLNormalizer`.
    CrawlerCommons,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 6] = [
        Self::Strict,
        Self::Default,
        Self::Classic,
        Self::W3lib,
        Self::Surt,
        Self::CrawlerCommons,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Default => "default",
            Self::Classic => "classic",
            Self::W3lib => "w3lib",
            Self::Surt => "surt",
            Self::CrawlerCommons => "crawler-commons",
        }
    }

    /// Grows whenever a key could change; it is part of every fingerprint.
    #[must_use]
    pub fn version(self) -> u32 {
        1
    }

    /// Whether another tool's keys are reproduced, by its rules instead of ours.
    #[must_use]
    pub fn is_compatibility(self) -> bool {
        matches!(self, Self::W3lib | Self::Surt | Self::CrawlerCommons)
    }

    /// Its rules; none for the profiles of other tools.
    #[must_use]
    pub fn rules(self) -> RuleBits {
        let up_to = |class| {
            Rule::ALL
                .iter()
                .copied()
                .filter(move |rule| rule.class() <= class)
        };
        match self {
            Self::Strict => up_to(Class::A).collect(),
            Self::Default => up_to(Class::B).collect(),
            // The original says nothing of userinfo, so it stays.
            Self::Classic => [Rule::DropParameters, Rule::BlankValues, Rule::TrailingSlash]
                .into_iter()
                .chain(up_to(Class::B))
                .collect::<RuleBits>()
                .without(Rule::Userinfo),
            _ => RuleBits::NONE,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No profile has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no profile is called {0:?}; there are strict, default, classic, w3lib, surt and crawler-commons")]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.name() == name)
            .ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}
