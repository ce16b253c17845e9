//! The document of a rule set, read and checked.
//!
//! # Format
//! `docs/url-rules.md`.

use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use super::denied::is_denied;
use super::hosts::HostPattern;
use super::names::NamePattern;
use super::shape::Shape;
use crate::rule::{Class, Rule};

/// The first member of each document.
pub(super) const VERSION: u32 = 1;
/// A larger document is something else; the ClearURLs list has 0.1 MB.
const SET_BYTES_MAX: usize = 32 << 20;
/// A compiled expression that needs more memory is refused.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Rules of one origin and version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSet {
    /// The version of the format.
    pub tamis_url_rules: u32,
    /// What the set is called.
    pub name: String,
    /// Its version, a part of every key that it takes part in.
    pub version: String,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Under which licence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub licence: String,
    /// Looked at first: what they match is left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceptions: Vec<Exception>,
    /// Names dropped everywhere: `exact`, `prefix*`, or `/expression/`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Names dropped everywhere if the value has a shape.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shaped: Vec<Shaped>,
    /// `;name=value` in paths, dropped everywhere if the value has a shape.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path_parameters: Vec<Shaped>,
    /// Rules of sites.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<SiteRules>,
    /// URLs that lead to another one which they hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrappers: Vec<Wrapper>,
}

/// A name whose value must have a shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shaped {
    /// The exact name.
    pub name: String,
    /// What the value must look like.
    pub value: Shape,
}

/// URLs that rules leave alone, or names that they leave alone there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// `example.com` and all below it, `=example.com` alone, `example.*` under any public suffix, or `*`.
    pub hosts: Vec<String>,
    /// An expression that what follows the host must match from its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
    /// The names that stay; without any, all do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// Rules that hold on some hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteRules {
    /// As those of an exception.
    pub hosts: Vec<String>,
    /// An expression that what follows the host must match from its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
    /// Names dropped here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Names dropped here if the value has a shape.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shaped: Vec<Shaped>,
    /// Class C rules turned on here: `trailing-slash`, `www`, `scheme-fold`, `case-fold`, `blank-values`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<String>,
    /// Class B rules turned off here, in the key, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub off: Vec<String>,
    /// Fragments that begin with `/` or `!` are routes and stay.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub routes: bool,
}

/// A URL that leads to the URL which it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wrapper {
    /// As those of an exception, but never `*`.
    pub hosts: Vec<String>,
    /// An expression for what follows the host, whose first group is the target, once escaped.
    pub target: String,
}

/// Why a rule set is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// No JSON, or not of this form.
    #[error("no rule set: {0}")]
    Json(#[from] serde_json::Error),
    /// The document is longer than a set can be.
    #[error("the rule set has {bytes} bytes; the limit is {SET_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Written for another version of Tamis.
    #[error("rule sets of version {0} are not known here; this Tamis reads version {VERSION}")]
    Version(u32),
    /// A name or version that cannot stand in the id of a key.
    #[error("{what} {text:?} must be letters, digits, `.`, `-` and `_`, 1 to 64 of them")]
    Label {
        /// `name` or `version`.
        what: &'static str,
        /// What stands there.
        text: String,
    },
    /// A name that would be dropped everywhere and must not be.
    #[error(
        "{pattern:?} would drop {name:?} everywhere, which decides on many sites what the page is; list the sites"
    )]
    NeverGlobal {
        /// What the set says.
        pattern: String,
        /// The name that it takes.
        name: String,
    },
    /// An expression that cannot be compiled.
    #[error("the expression {pattern:?} cannot be used: {source}")]
    Pattern {
        /// The expression.
        pattern: String,
        /// What is wrong.
        source: Box<regex::Error>,
    },
    /// A host that is none.
    #[error("{0:?} is no host: write example.com, =www.example.com, example.* or *")]
    Host(String),
    /// A rule that does not exist or may not be switched there.
    #[error(
        "{0:?} cannot be switched here; `on` takes trailing-slash, www, scheme-fold, case-fold and blank-values, `off` takes rules of class B"
    )]
    Rule(String),
    /// A wrapper without a group, or for all hosts.
    #[error("the wrapper {0:?} needs hosts and an expression with a group for the target")]
    Wrapper(String),
}

impl RuleSet {
    /// A set without rules.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            tamis_url_rules: VERSION,
            name: name.to_owned(),
            version: version.to_owned(),
            ..Self::default()
        }
    }

    /// Reads and checks a document.
    ///
    /// # Errors
    /// [`SetError`] says what is wrong with it; no half-read set is returned.
    pub fn parse(json: &[u8]) -> Result<Self, SetError> {
        if json.len() > SET_BYTES_MAX {
            return Err(SetError::TooLong { bytes: json.len() });
        }
        let set: Self = serde_json::from_slice(json)?;
        set.check()?;
        Ok(set)
    }

    /// The document, for people too.
    ///
    /// # Errors
    /// None that a set can cause.
    pub fn to_json(&self) -> Result<String, SetError> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// `name@version`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    /// Checks all that can be wrong.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), SetError> {
        if self.tamis_url_rules != VERSION {
            return Err(SetError::Version(self.tamis_url_rules));
        }
        label("name", &self.name)?;
        label("version", &self.version)?;
        for pattern in &self.names {
            never_global(pattern)?;
        }
        let shaped = self
            .sites
            .iter()
            .flat_map(|site| &site.shaped)
            .chain(&self.shaped);
        for shaped in shaped.chain(&self.path_parameters) {
            NamePattern::parse(&shaped.name)?;
        }
        for exception in &self.exceptions {
            hosts_and_rest(&exception.hosts, exception.rest.as_deref())?;
            exception
                .names
                .iter()
                .try_for_each(|name| NamePattern::parse(name).map(drop))?;
        }
        for site in &self.sites {
            hosts_and_rest(&site.hosts, site.rest.as_deref())?;
            for name in &site.names {
                NamePattern::parse(name)?;
                if site.hosts.iter().any(|host| host == "*") {
                    never_global(name)?;
                }
            }
            site.on.iter().try_for_each(|rule| switch_on(rule).map(drop))?;
            site.off.iter().try_for_each(|rule| switch_off(rule).map(drop))?;
        }
        for wrapper in &self.wrappers {
            hosts_and_rest(&wrapper.hosts, None)?;
            let groups = anchored(&wrapper.target)?.captures_len();
            if groups < 2 || wrapper.hosts.is_empty() || wrapper.hosts.iter().any(|host| host == "*") {
                return Err(SetError::Wrapper(wrapper.target.clone()));
            }
        }
        Ok(())
    }
}

fn label(what: &'static str, text: &str) -> Result<(), SetError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if (1..=64).contains(&text.len()) && text.bytes().all(fits) {
        return Ok(());
    }
    Err(SetError::Label {
        what,
        text: text.chars().take(100).collect(),
    })
}

/// Refuses a pattern that takes a name which must stay.
pub(super) fn never_global(pattern: &str) -> Result<(), SetError> {
    let compiled = NamePattern::parse(pattern)?;
    let taken = match &compiled {
        NamePattern::Exact(name) => is_denied(&String::from_utf8_lossy(name)).then_some(pattern),
        other => super::NEVER_GLOBAL
            .iter()
            .find(|name| other.matches(name.as_bytes()))
            .copied(),
    };
    match taken {
        Some(name) => Err(SetError::NeverGlobal {
            pattern: pattern.to_owned(),
            name: name.to_owned(),
        }),
        None => Ok(()),
    }
}

fn hosts_and_rest(hosts: &[String], rest: Option<&str>) -> Result<(), SetError> {
    hosts
        .iter()
        .try_for_each(|host| HostPattern::parse(host).map(drop))?;
    rest.map_or(Ok(()), |rest| anchored(rest).map(drop))
}

/// An expression that holds from the start, without regard to case.
pub(super) fn anchored(pattern: &str) -> Result<Regex, SetError> {
    compile(&format!("^(?:{pattern})"), true).map_err(|source| SetError::Pattern {
        pattern: pattern.to_owned(),
        source: Box::new(source),
    })
}

pub(super) fn compile(pattern: &str, any_case: bool) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .unicode(false)
        .case_insensitive(any_case)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
}

pub(super) fn switch_on(name: &str) -> Result<Rule, SetError> {
    let allowed = [
        Rule::TrailingSlash,
        Rule::Www,
        Rule::SchemeFold,
        Rule::CaseFold,
        Rule::BlankValues,
    ];
    allowed
        .into_iter()
        .find(|rule| rule.name() == name)
        .ok_or_else(|| SetError::Rule(name.to_owned()))
}

pub(super) fn switch_off(name: &str) -> Result<Rule, SetError> {
    let mut rules = Rule::ALL.iter().copied();
    rules
        .find(|rule| rule.class() == Class::B && rule.name() == name)
        .ok_or_else(|| SetError::Rule(name.to_owned()))
}
