//! "Which certificates are for this?": one row per name and issuance, filtered.

use std::collections::HashMap;

use crate::key::{Identifier, KeyRange, KeySpace, display, space_of};
use crate::query::cursor::Place;
use crate::query::scan::{Scan, ScannedRow, Step};
use crate::query::{Page, Paging, check_limit};
use crate::record::{CertRecord, Issuance, NAME_SELF, NAME_WILDCARD};
use crate::row::RowAttrs;
use crate::snapshot::Snapshot;
use crate::view::View;
use crate::{Error, Result};

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target<'a> {
    /// A host name and everything below it, texts such as `*.*.example.com` included.
    Subdomains(&'a str),
    /// Exactly this identifier.
    Exact(Identifier<'a>),
    /// Wildcards that cover this host name (`*.example.com` covers `www.example.com`).
    WildcardsCovering(&'a str),
}

/// Conditions on certificates; all must hold.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    /// Part of the issuer's name, in any case.
    pub issuer: Option<String>,
    /// Part of the subject's organisation, in any case.
    pub organization: Option<String>,
    /// Valid from (not_before, or first seen where that is unknown) at or after this.
    pub after: Option<i64>,
    /// Valid from before this.
    pub before: Option<i64>,
    /// Not expired at this time; an unknown end counts as not expired.
    pub not_expired_at: Option<i64>,
}

/// A search.
#[derive(Debug, Clone)]
pub struct SearchQuery<'a> {
    /// What to look for.
    pub target: Target<'a>,
    /// Conditions.
    pub filters: Filters,
    /// Limit, cursor and deadline.
    pub paging: Paging,
}

/// One certificate under one of its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchItem {
    /// The name, address or text, without `*.`.
    pub name: String,
    /// Kind of the name.
    pub space: KeySpace,
    /// The certificate is for the name itself.
    pub exact: bool,
    /// The certificate is for `*.name`.
    pub wildcard: bool,
    /// Identity of the issuance.
    pub issuance: Issuance,
    /// Issuer as text.
    pub issuer: String,
    /// Organisation of the subject; empty when absent.
    pub organization: String,
    /// Seconds since 1970.
    pub not_before: Option<i64>,
    /// Seconds since 1970.
    pub not_after: Option<i64>,
    /// Seconds since 1970.
    pub first_seen: i64,
    /// Order of discovery.
    pub seq: u64,
}

impl Target<'_> {
    fn ranges(&self) -> Result<Vec<KeyRange>> {
        Ok(match self {
            Self::Subdomains(host) => {
                vec![
                    KeyRange::exact(&Identifier::Host(host)),
                    KeyRange::below(host),
                    KeyRange::texts_below(host),
                ]
            }
            Self::Exact(identifier) => vec![KeyRange::exact(identifier)],
            Self::WildcardsCovering(host) => {
                let (_, parent) = host.split_once('.').ok_or_else(|| {
                    Error::BadQuery(format!("no wildcard covers {host}: it has a single label"))
                })?;
                vec![KeyRange::exact(&Identifier::Host(parent))]
            }
        })
    }

    fn bits(&self) -> u8 {
        match self {
            Self::WildcardsCovering(_) => NAME_WILDCARD,
            _ => NAME_SELF | NAME_WILDCARD,
        }
    }
}

/// Conditions resolved against one view.
struct Conditions<'q> {
    filters: &'q Filters,
    /// By issuer number, when issuers are asked for.
    issuers: Option<Vec<bool>>,
    organization: Option<String>,
    /// Verdicts on organisations, by source and number.
    organizations: HashMap<(usize, u32), bool>,
}

impl<'q> Conditions<'q> {
    fn new(filters: &'q Filters, view: &View) -> Self {
        let issuers = filters.issuer.as_ref().map(|part| {
            let part = part.to_lowercase();
            view.issuers
                .iter()
                .map(|issuer| issuer.to_lowercase().contains(&part))
                .collect()
        });
        let organization = filters.organization.as_ref().map(|part| part.to_lowercase());
        Self {
            filters,
            issuers,
            organization,
            organizations: HashMap::new(),
        }
    }

    fn accept(&mut self, scan: &mut Scan, row: &ScannedRow) -> Result<bool> {
        let attrs = &row.attrs;
        let issuer = |known: &Vec<bool>| known.get(attrs.issuer as usize).copied().unwrap_or(false);
        if !self.dates(attrs) || !self.issuers.as_ref().is_none_or(issuer) {
            return Ok(false);
        }
        let Some(part) = &self.organization else {
            return Ok(true);
        };
        let key = (row.source, attrs.organization);
        if let Some(&verdict) = self.organizations.get(&key) {
            return Ok(verdict);
        }
        let verdict = scan.organization(row)?.to_lowercase().contains(part);
        self.organizations.insert(key, verdict);
        Ok(verdict)
    }

    fn dates(&self, attrs: &RowAttrs) -> bool {
        let start = attrs.not_before.unwrap_or(attrs.first_seen);
        self.filters.after.is_none_or(|after| start >= after)
            && self.filters.before.is_none_or(|before| start < before)
            && self
                .filters
                .not_expired_at
                .is_none_or(|now| attrs.not_after.is_none_or(|end| end >= now))
    }
}

impl Snapshot {
    /// Answers one page of a search.
    pub fn search(&self, query: &SearchQuery<'_>) -> Result<Page<SearchItem>> {
        let limit = check_limit(query.paging.limit)?;
        let mut scan = Scan::open(self.view(), query.target.ranges()?, &query.paging)?;
        let mut conditions = Conditions::new(&query.filters, self.view());
        let mut page = Page {
            items: Vec::new(),
            next: None,
            partial: false,
            scanned: 0,
            faults: Vec::new(),
        };
        let mut last: Option<Place> = None;
        let mut range = usize::MAX;
        loop {
            match scan.step()? {
                Step::Row(row) => {
                    if row.range != range {
                        // Sources are numbered anew in each range.
                        range = row.range;
                        conditions.organizations.clear();
                    }
                    if row.attrs.bits & query.target.bits() != 0 && conditions.accept(&mut scan, &row)? {
                        if page.items.len() >= limit {
                            page.next = last.map(|place| place.encode());
                            break;
                        }
                        page.items.push(item(&mut scan, &row)?);
                    }
                    last = Some(Place {
                        range: row.range,
                        key: row.key,
                        issuance: row.attrs.issuance,
                    });
                }
                Step::OutOfTime => {
                    page.partial = true;
                    page.next = last
                        .map(|place| place.encode())
                        .or_else(|| query.paging.cursor.clone());
                    break;
                }
                Step::End => break,
            }
        }
        (page.scanned, page.faults) = scan.finish();
        Ok(page)
    }

    /// The certificate of a search item.
    pub fn certificate_of(&self, item: &SearchItem) -> Result<Option<CertRecord>> {
        let records = self.by_issuance(item.issuance)?;
        let holds = |record: &CertRecord| record.names.iter().any(|(key, _)| display(key) == item.name);
        let position = records.iter().position(holds).unwrap_or(0);
        Ok(records.into_iter().nth(position))
    }
}

fn item(scan: &mut Scan, row: &ScannedRow) -> Result<SearchItem> {
    let attrs = &row.attrs;
    Ok(SearchItem {
        name: display(&row.key),
        space: space_of(&row.key),
        exact: attrs.bits & NAME_SELF != 0,
        wildcard: attrs.bits & NAME_WILDCARD != 0,
        issuance: Issuance(attrs.issuance),
        issuer: scan.view().issuer(attrs.issuer).to_string(),
        organization: scan.organization(row)?,
        not_before: attrs.not_before,
        not_after: attrs.not_after,
        first_seen: attrs.first_seen,
        seq: attrs.seq,
    })
}
