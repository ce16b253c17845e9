//! "Which names exist under this domain?": distinct names with their first and last appearance.

use crate::Result;
use crate::key::{KeyRange, display};
use crate::query::cursor::Place;
use crate::query::scan::{Scan, Step};
use crate::query::{Page, Paging, check_limit};
use crate::record::{NAME_SELF, NAME_WILDCARD};
use crate::snapshot::Snapshot;

/// Distinct host names in ranges of keys.
#[derive(Debug, Clone)]
pub struct NamesQuery {
    /// Ranges, in the order of the answer.
    pub ranges: Vec<KeyRange>,
    /// Only names first seen at or after this time (seconds since 1970).
    pub since: Option<i64>,
    /// Limit, cursor and deadline.
    pub paging: Paging,
}

/// One name and what its issuances tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameItem {
    /// The name, without `*.`.
    pub name: String,
    /// Some certificate is for the name itself.
    pub exact: bool,
    /// Some certificate is for `*.name`.
    pub wildcard: bool,
    /// When its first issuance was first seen, seconds since 1970.
    pub first_seen: i64,
    /// When its newest issuance was first seen.
    pub last_seen: i64,
    /// Distinct issuances.
    pub issuances: u64,
    /// The deadline cut the name's issuances short: the next page goes on with the same name.
    pub unfinished: bool,
}

impl NamesQuery {
    /// Names at or below a host name or a top-level domain.
    pub fn under(host: &str) -> Self {
        let ranges = vec![
            KeyRange::exact(&crate::key::Identifier::Host(host)),
            KeyRange::below(host),
        ];
        Self {
            ranges,
            since: None,
            paging: Paging::default(),
        }
    }
}

impl Snapshot {
    /// Answers one page of names.
    pub fn names(&self, query: &NamesQuery) -> Result<Page<NameItem>> {
        let limit = check_limit(query.paging.limit)?;
        let mut scan = Scan::open(self.view(), query.ranges.clone(), &query.paging)?;
        let mut page = Page {
            items: Vec::new(),
            next: None,
            partial: false,
            scanned: 0,
            faults: Vec::new(),
        };
        let mut open: Option<(Vec<u8>, NameItem)> = None;
        let mut last: Option<Place> = None;
        // The rest of a name that an earlier page began is not judged by its part of the dates.
        let resumed = scan.resumed_name();
        let wanted = |item: &NameItem| {
            query.since.is_none_or(|since| item.first_seen >= since) || resumed.as_ref() == Some(&item.name)
        };
        loop {
            match scan.step()? {
                Step::Row(row) => {
                    let attrs = &row.attrs;
                    match &mut open {
                        Some((key, item)) if *key == row.key => add(item, attrs),
                        _ => {
                            page.items
                                .extend(open.take().map(|(_, item)| item).filter(wanted));
                            if page.items.len() >= limit {
                                page.next = last.map(|place| place.encode());
                                break;
                            }
                            let mut item = begin(&row.key, attrs);
                            add(&mut item, attrs);
                            open = Some((row.key.clone(), item));
                        }
                    }
                    last = Some(Place {
                        range: row.range,
                        key: row.key,
                        issuance: attrs.issuance,
                    });
                }
                Step::OutOfTime => {
                    page.partial = true;
                    page.items.extend(open.take().map(|(_, item)| NameItem {
                        unfinished: true,
                        ..item
                    }));
                    page.next = last
                        .map(|place| place.encode())
                        .or_else(|| query.paging.cursor.clone());
                    break;
                }
                Step::End => {
                    page.items
                        .extend(open.take().map(|(_, item)| item).filter(wanted));
                    break;
                }
            }
        }
        (page.scanned, page.faults) = scan.finish();
        Ok(page)
    }
}

fn begin(key: &[u8], attrs: &crate::row::RowAttrs) -> NameItem {
    NameItem {
        name: display(key),
        exact: false,
        wildcard: false,
        first_seen: attrs.first_seen,
        last_seen: attrs.first_seen,
        issuances: 0,
        unfinished: false,
    }
}

fn add(item: &mut NameItem, attrs: &crate::row::RowAttrs) {
    item.exact |= attrs.bits & NAME_SELF != 0;
    item.wildcard |= attrs.bits & NAME_WILDCARD != 0;
    item.first_seen = item.first_seen.min(attrs.first_seen);
    item.last_seen = item.last_seen.max(attrs.first_seen);
    item.issuances += 1;
}

impl NameItem {
    /// Unites two parts of one name that a deadline split over pages.
    pub fn join(&mut self, later: &Self) {
        self.exact |= later.exact;
        self.wildcard |= later.wildcard;
        self.first_seen = self.first_seen.min(later.first_seen);
        self.last_seen = self.last_seen.max(later.last_seen);
        self.issuances += later.issuances;
        self.unfinished = later.unfinished;
    }
}
