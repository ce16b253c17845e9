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
}

/// Where a parameter lies in the output. URLs are far shorter than 4 GiB.
#[derive(Debug, Clone, Copy)]
struct Parameter {
    start: u32,
    name_end: u32,
    end: u32,
}

impl Parameter {
    fn name(self, out: &[u8]) -> &[u8] {
        out.get(self.start as usize..self.name_end as usize)
            .unwrap_or_default()
    }

    fn bytes(self, out: &[u8]) -> &[u8] {
        out.get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

impl Queries {
    /// Appends `?` and the query, or nothing.
    pub(super) fn write(
        &mut self,
        url: &Url,
        range: Range<usize>,
        rules: RuleBits,
        site: &Site<'_>,
        out: &mut Vec<u8>,
        fired: &mut RuleBits,
    ) {
        let query = url.bytes(range);
        if matches!(url.scheme_kind(), Scheme::File | Scheme::Other) {
            out.push(b'?');
            escape::append(query, Place::Other, rules, out, fired);
            return;
        }
        if query.is_empty() {
            if rules.has(Rule::EmptyQuery) {
                fired.set(Rule::EmptyQuery);
            } else {
                out.push(b'?');
            }
            return;
        }
        let start = out.len();
        out.push(b'?');
        self.parameters(query, rules, site, out, fired);
        if rules.has(Rule::SortParameters) {
            self.sort(start + 1, out, fired);
        }
        if rules.has(Rule::EmptyQuery) && out.len() == start + 1 {
            out.truncate(start);
        }
    }

    fn parameters(
        &mut self,
        query: &[u8],
        rules: RuleBits,
        site: &Site<'_>,
        out: &mut Vec<u8>,
        fired: &mut RuleBits,
    ) {
        self.parameters.clear();
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
                if dropped(out, start, name_end, rules, site, fired) {
                    out.truncate(before);
                } else {
                    if rules.has(Rule::CaseFold) {
                        super::fold_case(out, start, fired);
                    }
                    let [start, name_end, end] =
                        [start, name_end, out.len()].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
                    self.parameters.push(Parameter { start, name_end, end });
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

fn dropped(
    out: &[u8],
    start: usize,
    name_end: usize,
    rules: RuleBits,
    site: &Site<'_>,
    fired: &mut RuleBits,
) -> bool {
    let name = out.get(start..name_end).unwrap_or_default();
    let value = out.get(name_end + 1..);
    if rules.has(Rule::DropParameters) && site.drops(name, value.unwrap_or_default()) {
        fired.set(Rule::DropParameters);
        return true;
    }
    if rules.has(Rule::BlankValues) && value.is_some_and(<[u8]>::is_empty) {
        fired.set(Rule::BlankValues);
        return true;
    }
    false
}
