//! Patterns of hosts, and an index that finds those which hold for a host by its suffixes.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use tamis_hostname::PublicSuffixes;

use super::document::SetError;
use super::names::{Filter, ShortHasher};

/// Which hosts a rule holds for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostPattern {
    /// `*`
    Any,
    /// `=example.com`: this host.
    Exact(String),
    /// `example.com`: it and all below it.
    Below(String),
    /// `example.*`: it under any public suffix, and all below that.
    Entity(String),
}

impl HostPattern {
    pub(super) fn parse(text: &str) -> Result<Self, SetError> {
        let refused = || SetError::Host(text.to_owned());
        let fits = |host: &str| {
            let label = |label: &str| !label.is_empty();
            host.split('.').all(label)
                && host
                    .bytes()
                    .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_'))
        };
        if text == "*" {
            return Ok(Self::Any);
        }
        let (host, make): (&str, fn(String) -> Self) = if let Some(host) = text.strip_prefix('=') {
            (host, Self::Exact)
        } else if let Some(host) = text.strip_suffix(".*") {
            (host, Self::Entity)
        } else {
            (text, Self::Below)
        };
        if fits(host) {
            Ok(make(host.to_owned()))
        } else {
            Err(refused())
        }
    }
}

type Table = HashMap<Vec<u8>, Vec<u32>, BuildHasherDefault<ShortHasher>>;

/// From a host to the numbers of the rules that hold for it.
#[derive(Debug, Clone, Default)]
pub(super) struct HostIndex {
    any: Vec<u32>,
    exact: Table,
    below: Table,
    /// By the first label of what stands before the suffix, with all of that.
    entities: HashMap<Vec<u8>, Vec<(String, u32)>, BuildHasherDefault<ShortHasher>>,
    /// All keys of the tables.
    filter: Filter,
    /// The last two labels of the hosts in the tables, and the labels of the entities: most hosts end here.
    first_look: Filter,
}

/// Labels at the end of a host among which an entity can stand: public suffixes have no more than five.
const LABELS_LOOKED_AT: usize = 7;

impl HostIndex {
    pub(super) fn add(&mut self, pattern: HostPattern, number: u32) {
        let (table, host) = match pattern {
            HostPattern::Any => return self.any.push(number),
            HostPattern::Exact(host) => (&mut self.exact, host),
            HostPattern::Below(host) => (&mut self.below, host),
            HostPattern::Entity(entity) => {
                let last = entity.rsplit('.').next().unwrap_or_default().as_bytes().to_vec();
                self.filter.add(&last);
                self.first_look.add(&last);
                self.entities.entry(last).or_default().push((entity, number));
                return;
            }
        };
        self.filter.add(host.as_bytes());
        let mut dots = memchr::memrchr_iter(b'.', host.as_bytes());
        let pair = dots.nth(1).map_or(0, |dot| dot + 1);
        self.first_look
            .add(host.as_bytes().get(pair..).unwrap_or_default());
        table.entry(host.into_bytes()).or_default().push(number);
    }

    /// Rules for all hosts.
    pub(super) fn any(&self) -> &[u32] {
        &self.any
    }

    /// Whether rules for a host are worth looking for.
    #[inline]
    fn may_have(&self, host: &[u8]) -> bool {
        let has =
            |range: std::ops::Range<usize>| self.first_look.may_have(host.get(range).unwrap_or_default());
        let dot_before = |end: usize| host.get(..end)?.iter().rposition(|&byte| byte == b'.');
        let Some(mut end) = dot_before(host.len()) else {
            return has(0..host.len());
        };
        // The last two labels, then each label but the last.
        let mut dot = dot_before(end);
        if has(dot.map_or(0, |dot| dot + 1)..host.len()) {
            return true;
        }
        for _ in 0..LABELS_LOOKED_AT {
            if has(dot.map_or(0, |dot| dot + 1)..end) {
                return true;
            }
            let Some(at) = dot else { return false };
            end = at;
            dot = dot_before(end);
        }
        false
    }

    /// The same for a host of which it is known where the last three labels start. Hosts of more labels,
    /// and of one, are looked at again.
    #[inline]
    fn may_have_labels(&self, host: &[u8], starts: [usize; 3]) -> bool {
        let [last, second, third] = starts;
        let has = |from: usize, to: usize| self.first_look.may_have(host.get(from..to).unwrap_or_default());
        if last == 0 || third > 0 {
            return self.may_have(host);
        }
        has(second, host.len()) || has(second, last - 1) || second > 0 && has(0, second - 1)
    }

    /// Appends the rules for a host, without those for all. Where its labels start can be given.
    #[inline]
    pub(super) fn find(&self, host: &[u8], starts: Option<[usize; 3]>, found: &mut Vec<u32>) {
        if self.first_look.is_empty() {
            return;
        }
        let may_have = match starts {
            Some(starts) => self.may_have_labels(host, starts),
            None => self.may_have(host),
        };
        if may_have {
            self.walk(host, found);
        }
    }

    fn walk(&self, bytes: &[u8], found: &mut Vec<u32>) {
        let host = std::str::from_utf8(bytes).unwrap_or_default();
        let mut start = 0;
        loop {
            let suffix = bytes.get(start..).unwrap_or_default();
            let dot = memchr::memchr(b'.', suffix);
            if self.filter.may_have(suffix) {
                found.extend(self.below.get(suffix).into_iter().flatten());
                if start == 0 {
                    found.extend(self.exact.get(suffix).into_iter().flatten());
                }
            }
            let Some(dot) = dot else { return };
            let label = suffix.get(..dot).unwrap_or_default();
            if self.filter.may_have(label)
                && let Some(entities) = self.entities.get(label)
            {
                let behind = host.get(start + dot + 1..).unwrap_or_default();
                let before = host.get(..start + dot).unwrap_or_default();
                find_entities(before, behind, host, entities, found);
            }
            start += dot + 1;
        }
    }
}

/// `before.behind` is the host: an entity holds if `behind` is its public suffix.
fn find_entities(before: &str, behind: &str, host: &str, entities: &[(String, u32)], found: &mut Vec<u32>) {
    if PublicSuffixes::shipped().suffix(host) != behind {
        return;
    }
    for (entity, number) in entities {
        let rest = before.strip_suffix(entity.as_str());
        if rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.')) {
            found.push(*number);
        }
    }
}
