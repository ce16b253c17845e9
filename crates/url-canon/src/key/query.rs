//! Queries: parameters cut at `&`, spelled one way, dropped where a rule says so, sorted by name.

use std::ops::Range;

use super::escape::{self, Place};
use crate::parse::{Scheme, Url};
use crate::rule::{Rule, RuleBits};
use crate::sets::Site;

/// Writes queries, with buffers that are used again.
#[derive(Debug, Default)]
pub(crate) struct Queries {
    parameters: Vec<Parameter>,
    sorted: Vec<u8>,
    /// The place of the query just written, with its `?`, in the key.
    place: Range<usize>,
    /// A rule set would drop some of its parameters.
    droppable: bool,
}

/// Where a parameter lies in the output. URLs are far shorter than 4 GiB.
#[derive(Debug, Clone, Copy)]
struct Parameter {
    start: u32,
    name_end: u32,
    end: u32,
    /// A rule set would drop it.
    droppable: bool,
}

impl Parameter {
    fn new([start, name_end, end]: [usize; 3], droppable: bool) -> Self {
        let [start, name_end, end] = [start, name_end, end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        Self {
            start,
            name_end,
            end,
            droppable,
        }
    }

    #[inline]
    fn name(self, out: &[u8]) -> &[u8] {
        out.get(self.start as usize..self.name_end as usize)
            .unwrap_or_default()
    }

    fn bytes(self, out: &[u8]) -> &[u8] {
        out.get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// Under what a query is written.
#[derive(Clone, Copy)]
pub(super) struct Under<'a> {
    pub(super) rules: RuleBits,
    pub(super) site: &'a Site<'a>,
}

impl Queries {
    /// Forgets the last URL.
    pub(super) fn clear(&mut self) {
        self.droppable = false;
    }

    /// Whether a rule set would drop parameters of the query just written.
    pub(crate) fn droppable(&self) -> bool {
        self.droppable
    }

    /// Copies the key just written without the parameters that a rule set drops.
    pub(crate) fn copy_without_dropped(&self, key: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(key.get(..self.place.start).unwrap_or_default());
        let mut mark = b'?';
        // The places are those of before sorting; after it, the order alone is that of the key.
        let mut at = self.place.start + 1;
        for parameter in &self.parameters {
            let length = (parameter.end - parameter.start) as usize;
            if !parameter.droppable {
                out.push(mark);
                mark = b'&';
                out.extend_from_slice(key.get(at..at + length).unwrap_or_default());
            }
            at += length + 1;
        }
        out.extend_from_slice(key.get(self.place.end..).unwrap_or_default());
    }

    /// Appends `?` and the query, or nothing.
    pub(super) fn write(
        &mut self,
        url: &Url,
        range: Range<usize>,
        under: Under<'_>,
        out: &mut Vec<u8>,
        fired: &mut RuleBits,
    ) {
        let rules = under.rules;
        let query = url.bytes(range);
        if matches!(url.scheme_kind(), Scheme::File | Scheme::Other) {
            out.push(b'?');
            escape::append(query, Place::Other, rules, out, fired);
            return;
        }
        let start = out.len();
        if !query.is_empty() || !rules.has(Rule::EmptyQuery) {
            out.push(b'?');
        }
        if !query.is_empty() {
            self.parameters.clear();
            if !(url.query_is_clean() && self.copy(query, under, out)) {
                self.parameters(query, under, out, fired);
            }
            if rules.has(Rule::SortParameters) {
                self.sort(start + 1, out, fired);
            }
        }
        if rules.has(Rule::EmptyQuery) && out.len() <= start + 1 {
            out.truncate(start);
            fired.set(Rule::EmptyQuery);
        }
        self.place = start..out.len();
    }

    /// Appends a query that needs no other spelling, and notes its parameters. False, and nothing is done,
    /// if it has to be taken apart.
    fn copy(&mut self, query: &[u8], under: Under<'_>, out: &mut Vec<u8>) -> bool {
        let apart = [Rule::DropParameters, Rule::BlankValues, Rule::CaseFold];
        if apart.into_iter().any(|rule| under.rules.has(rule)) {
            return false;
        }
        let (offset, mut start, mut equals) = (out.len(), 0, None);
        let marks = query
            .iter()
            .enumerate()
            .filter(|&(_, &byte)| byte == b'&' || byte == b'=')
            .map(|(at, &byte)| (at, byte));
        for (at, mark) in marks.chain([(query.len(), b'&')]) {
            if mark == b'=' {
                equals = equals.or(Some(at));
                continue;
            }
            if at == start && under.rules.has(Rule::EmptyParameters) {
                self.parameters.clear();
                self.droppable = false;
                return false;
            }
            let name_end = equals.take().unwrap_or(at);
            let name = query.get(start..name_end).unwrap_or_default();
            let value = query.get(name_end + 1..at).unwrap_or_default();
            let droppable = under.site.drops(name, value);
            self.droppable |= droppable;
            let place = [start, name_end, at].map(|at| offset + at);
            self.parameters.push(Parameter::new(place, droppable));
            start = at + 1;
        }
        out.extend_from_slice(query);
        true
    }

    fn parameters(&mut self, query: &[u8], under: Under<'_>, out: &mut Vec<u8>, fired: &mut RuleBits) {
        let Under { rules, site } = under;
        let first = out.len();
        let mut rest = query;
        loop {
            let end = memchr::memchr(b'&', rest).unwrap_or(rest.len());
            let (part, tail) = rest.split_at(end);
            if part.is_empty() && rules.has(Rule::EmptyParameters) {
                fired.set(Rule::EmptyParameters);
            } else {
                let before = out.len();
                if before > first || !self.parameters.is_empty() {
                    out.push(b'&');
                }
                let start = out.len();
                escape::append(part, Place::Query, rules, out, fired);
                let name = memchr::memchr(b'=', out.get(start..).unwrap_or_default());
                let name_end = name.map_or(out.len(), |at| start + at);
                let name = out.get(start..name_end).unwrap_or_default();
                let value = out.get(name_end + 1..);
                let droppable = site.drops(name, value.unwrap_or_default());
                if droppable && rules.has(Rule::DropParameters) {
                    fired.set(Rule::DropParameters);
                    out.truncate(before);
                } else if rules.has(Rule::BlankValues) && value.is_some_and(<[u8]>::is_empty) {
                    fired.set(Rule::BlankValues);
                    out.truncate(before);
                } else {
                    self.droppable |= droppable;
                    if rules.has(Rule::CaseFold) {
                        super::fold_case(out, start, fired);
                    }
                    let place = [start, name_end, out.len()];
                    self.parameters.push(Parameter::new(place, droppable));
                }
            }
            match tail.get(1..) {
                Some(tail) => rest = tail,
                None => return,
            }
        }
    }

    /// Sorts by name; equal names keep their order.
    fn sort(&mut self, start: usize, out: &mut Vec<u8>, fired: &mut RuleBits) {
        if self.parameters.is_sorted_by(|a, b| a.name(out) <= b.name(out)) {
            return;
        }
        fired.set(Rule::SortParameters);
        // The place breaks ties, so this is stable, and unlike a stable sort it needs no memory.
        self.parameters
            .sort_unstable_by(|a, b| a.name(out).cmp(b.name(out)).then(a.start.cmp(&b.start)));
        self.sorted.clear();
        for (index, parameter) in self.parameters.iter().enumerate() {
            if index > 0 {
                self.sorted.push(b'&');
            }
            self.sorted.extend_from_slice(parameter.bytes(out));
        }
        out.truncate(start);
        out.extend_from_slice(&self.sorted);
    }
}
