//! Rule sets compiled to one matcher, and what it says about one URL.
//!
//! # Invariants
//! A host is looked up once for all sets; a name costs a filter and, rarely, a table. Exceptions are
//! looked at only when something would be dropped, for that is when they matter.

use std::cell::OnceCell;

use regex::bytes::Regex;
use regex_syntax::hir::{Hir, HirKind};

use super::document::{RuleSet, SetError, Shaped, anchored, switch_off, switch_on};
use super::hosts::{HostIndex, HostPattern};
use super::names::Names;
use crate::parse::{HostKind, Url};
use crate::rule::RuleBits;

/// Rules that hold on some hosts, or an exception from all rules there.
#[derive(Debug, Clone, Default)]
struct Entry {
    rest: Option<Regex>,
    names: Names,
    on: RuleBits,
    off: RuleBits,
    routes: bool,
    target: Option<Regex>,
}

#[derive(Debug, Clone, Default)]
struct Exempt {
    rest: Option<Regex>,
    /// None: everything stays.
    names: Option<Names>,
}

/// Some rule sets, compiled to be asked about URLs.
#[derive(Debug, Clone, Default)]
pub struct Matcher {
    id: String,
    names: Names,
    path_parameters: Names,
    entries: Vec<Entry>,
    /// Entries that matter for a URL with a query: all.
    hosts: HostIndex,
    /// Those that matter for one without, too.
    hosts_without_query: HostIndex,
    exempt: Vec<Exempt>,
    exempt_hosts: HostIndex,
}

impl Matcher {
    /// Compiles sets, whose order does not matter.
    ///
    /// # Errors
    /// What [`RuleSet::check`] finds.
    pub fn new(sets: &[&RuleSet]) -> Result<Self, SetError> {
        let mut ids = Vec::new();
        let (mut names, mut shaped, mut path): (Vec<String>, Vec<Shaped>, Vec<Shaped>) = Default::default();
        let mut matcher = Self::default();
        for set in sets {
            set.check()?;
            ids.push(set.id());
            names.extend(set.names.iter().cloned());
            shaped.extend(set.shaped.iter().cloned());
            path.extend(set.path_parameters.iter().cloned());
            matcher.add(set)?;
        }
        ids.sort();
        ids.dedup();
        matcher.id = ids.join("+");
        matcher.names = Names::new(&names, &shaped)?;
        matcher.path_parameters = Names::new(&[], &path)?;
        Ok(matcher)
    }

    fn add(&mut self, set: &RuleSet) -> Result<(), SetError> {
        for exception in &set.exceptions {
            let number = number(self.exempt.len());
            self.exempt.push(Exempt {
                rest: exception.rest.as_deref().map(anchored).transpose()?,
                names: match exception.names.as_slice() {
                    [] => None,
                    names => Some(Names::new(names, &[])?),
                },
            });
            index(&mut self.exempt_hosts, &exception.hosts, number)?;
        }
        for site in &set.sites {
            let entry = Entry {
                rest: site.rest.as_deref().map(anchored).transpose()?,
                names: Names::new(&site.names, &site.shaped)?,
                on: site
                    .on
                    .iter()
                    .map(|rule| switch_on(rule))
                    .collect::<Result<_, _>>()?,
                off: site
                    .off
                    .iter()
                    .map(|rule| switch_off(rule))
                    .collect::<Result<_, _>>()?,
                routes: site.routes,
                target: None,
            };
            self.push(entry, &site.hosts)?;
        }
        for wrapper in &set.wrappers {
            let entry = Entry {
                target: Some(anchored(&wrapper.target)?),
                ..Entry::default()
            };
            self.push(entry, &wrapper.hosts)?;
        }
        Ok(())
    }

    fn push(&mut self, entry: Entry, hosts: &[String]) -> Result<(), SetError> {
        let number = number(self.entries.len());
        index(&mut self.hosts, hosts, number)?;
        let target = entry
            .target
            .as_ref()
            .is_some_and(|regex| !needs_query(regex.as_str()));
        if entry.routes || target || !entry.on.is_empty() || !entry.off.is_empty() {
            index(&mut self.hosts_without_query, hosts, number)?;
        }
        self.entries.push(entry);
        Ok(())
    }

    /// The sets and their versions, sorted: `a@1+b@7`. A part of every key that they take part in.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What holds for a URL. `found` is a buffer.
    pub(crate) fn site<'a>(&'a self, url: &'a Url, found: &'a mut Vec<u32>, hits: &'a Hits) -> Site<'a> {
        found.clear();
        if url.scheme_kind().is_web() {
            let hosts = match url.query_range() {
                Some(_) => &self.hosts,
                None => &self.hosts_without_query,
            };
            if url.host_kind() == HostKind::Domain {
                hosts.find(host(url), url.label_starts(), found);
            }
            found.extend_from_slice(hosts.any());
        }
        if !found.is_empty() {
            let rest = rest(url);
            found.retain(|&number| {
                let entry = self.entries.get(number as usize);
                entry.is_some_and(|entry| entry.rest.as_ref().is_none_or(|regex| regex.is_match(rest)))
            });
        }
        self.resolved(url, found, hits)
    }

    /// What was found before holds for the same URL.
    pub(crate) fn resolved<'a>(&'a self, url: &'a Url, found: &'a [u32], hits: &'a Hits) -> Site<'a> {
        Site {
            classic: false,
            all: Some((self, url, hits)),
            found,
        }
    }

    fn exempt(&self, url: &Url) -> Vec<u32> {
        let mut found = Vec::new();
        if url.host_kind() == HostKind::Domain {
            self.exempt_hosts.find(host(url), None, &mut found);
        }
        found.extend_from_slice(self.exempt_hosts.any());
        let rest = rest(url);
        found.retain(|&number| {
            let exempt = self.exempt.get(number as usize);
            exempt.is_some_and(|exempt| exempt.rest.as_ref().is_none_or(|regex| regex.is_match(rest)))
        });
        found
    }
}

fn host(url: &Url) -> &[u8] {
    let host = url.bytes(url.host_range());
    host.strip_suffix(b".").unwrap_or(host)
}

/// Whether an expression matches only text with a `?`.
fn needs_query(pattern: &str) -> bool {
    fn needs(hir: &Hir) -> bool {
        match hir.kind() {
            HirKind::Literal(literal) => literal.0.contains(&b'?'),
            HirKind::Concat(parts) => parts.iter().any(needs),
            HirKind::Alternation(parts) => parts.iter().all(needs),
            HirKind::Capture(capture) => needs(&capture.sub),
            HirKind::Repetition(repetition) => repetition.min > 0 && needs(&repetition.sub),
            HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => false,
        }
    }
    regex_syntax::parse(pattern).is_ok_and(|hir| needs(&hir))
}

/// Path, query and fragment.
fn rest(url: &Url) -> &[u8] {
    url.as_bytes().get(url.path_range().start..).unwrap_or_default()
}

fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn index(hosts: &mut HostIndex, patterns: &[String], number: u32) -> Result<(), SetError> {
    for pattern in patterns {
        hosts.add(HostPattern::parse(pattern)?, number);
    }
    Ok(())
}

/// What was looked up while a key was written.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    exempt: OnceCell<Vec<u32>>,
}

impl Hits {
    /// Forgets the last URL.
    pub(crate) fn clear(&mut self) {
        self.exempt.take();
    }
}

/// What the active rule sets say about one URL.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Site<'a> {
    /// `utm_*` goes, as the classic profile has it.
    classic: bool,
    all: Option<(&'a Matcher, &'a Url, &'a Hits)>,
    found: &'a [u32],
}

impl<'a> Site<'a> {
    /// The same with the `utm_*` of the classic profile, or without.
    pub(crate) fn classic(self, classic: bool) -> Self {
        Self { classic, ..self }
    }

    /// Whether rules of sites hold here.
    #[inline]
    pub(crate) fn has_entries(&self) -> bool {
        !self.found.is_empty()
    }

    fn entries(&self) -> impl Iterator<Item = &'a Entry> + use<'a> {
        let entries = self.all.map_or(&[][..], |(matcher, ..)| &matcher.entries);
        self.found
            .iter()
            .filter_map(|&number| entries.get(number as usize))
    }

    /// Whether a parameter goes.
    #[inline]
    pub(crate) fn drops(&self, name: &[u8], value: &[u8]) -> bool {
        if self.classic && name.starts_with(b"utm_") {
            return true;
        }
        let Some((matcher, ..)) = self.all else {
            return false;
        };
        (matcher.names.may_have(name) || self.has_entries()) && self.is_dropped(name, value)
    }

    fn is_dropped(&self, name: &[u8], value: &[u8]) -> bool {
        let Some((matcher, url, hits)) = self.all else {
            return false;
        };
        let named =
            matcher.names.has(name, value) || self.entries().any(|entry| entry.names.has(name, value));
        named && !self.is_exempt(matcher, url, hits, name)
    }

    fn is_exempt(&self, matcher: &Matcher, url: &Url, hits: &Hits, name: &[u8]) -> bool {
        let exempt = hits.exempt.get_or_init(|| matcher.exempt(url));
        exempt.iter().any(|&number| {
            let exempt = matcher.exempt.get(number as usize);
            exempt.is_some_and(|exempt| exempt.names.as_ref().is_none_or(|names| names.has(name, b"")))
        })
    }

    /// Class C rules that the site turns on.
    pub(crate) fn on(&self) -> RuleBits {
        self.entries()
            .fold(RuleBits::NONE, |on, entry| on.union(entry.on))
    }

    /// Class B rules that the site turns off.
    pub(crate) fn off(&self) -> RuleBits {
        self.entries()
            .fold(RuleBits::NONE, |off, entry| off.union(entry.off))
    }

    /// Whether a fragment is a route here.
    pub(crate) fn keeps_fragment(&self, fragment: &[u8]) -> bool {
        matches!(fragment, [b'/' | b'!', ..]) && self.entries().any(|entry| entry.routes)
    }

    /// Whether paths may hold parameters that go.
    pub(crate) fn has_path_parameters(&self) -> bool {
        self.all
            .is_some_and(|(matcher, ..)| !matcher.path_parameters.is_empty())
    }

    /// The target of a wrapper, with its escapes decoded once.
    pub(crate) fn target(&self, target: &mut Vec<u8>) -> bool {
        let Some((matcher, url, hits)) = self.all else {
            return false;
        };
        let rest = rest(url);
        for regex in self.entries().filter_map(|entry| entry.target.as_ref()) {
            let group = regex.captures(rest).and_then(|captures| captures.get(1));
            if let Some(group) = group
                && !self.is_exempt(matcher, url, hits, b"")
            {
                target.clear();
                crate::parse::sets::decode_into(group.as_bytes(), target);
                return true;
            }
        }
        false
    }

    /// Takes `;name=value` out of the path that `out` holds from `start` on.
    pub(crate) fn drop_path_parameters(&self, out: &mut Vec<u8>, start: usize) -> bool {
        let Some((matcher, url, hits)) = self.all else {
            return false;
        };
        let path = out.get(start..).unwrap_or_default();
        if memchr::memchr(b';', path).is_none() {
            return false;
        }
        let mut kept = Vec::with_capacity(path.len());
        for (index, segment) in path.split(|&byte| byte == b'/').enumerate() {
            if index > 0 {
                kept.push(b'/');
            }
            let start = kept.len();
            for (index, part) in segment.split(|&byte| byte == b';').enumerate() {
                let cut = memchr::memchr(b'=', part).unwrap_or(part.len());
                let (name, value) = part.split_at(cut);
                let value = value.get(1..).unwrap_or_default();
                let goes = index > 0 && matcher.path_parameters.has(name, value);
                if goes && !self.is_exempt(matcher, url, hits, name) {
                    continue;
                }
                if index > 0 {
                    kept.push(b';');
                }
                kept.extend_from_slice(part);
            }
            // What is left must not be read as a dot segment.
            if matches!(kept.get(start..), Some(b"." | b"..")) {
                kept.truncate(start);
                kept.extend_from_slice(segment);
            }
        }
        let changed = kept.len() != path.len();
        out.truncate(start);
        out.extend_from_slice(&kept);
        changed
    }
}
