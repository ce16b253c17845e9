//! `tamis ct search`: which certificates are for a domain, an address or an e-mail.

use serde_json::json;
use tamis_ct_index::Snapshot;
use tamis_ct_index::key::Identifier;
use tamis_ct_index::query::{Filters, Paging, SearchItem, SearchQuery, Target};
use tamis_ct_log::certificate::signed_hex;
use tamis_hostname::Identifier as Read;

use crate::Outcome;
use crate::cli::{Format, SearchArgs};
use crate::ct::certificate::{optional, spelled, time};
use crate::ct::parse::hex;
use crate::ct::{host_of, open_snapshot, report_faults};
use crate::render::{Row, Rows, json_document, row};

const COLUMNS: [&str; 6] = ["name", "issuer", "not_before", "not_after", "first_seen", "id"];

pub(crate) fn run(args: &SearchArgs) -> anyhow::Result<Outcome> {
    let text = args.query.trim();
    let read = tamis_hostname::read(text.as_bytes());
    let host;
    let target = if args.wildcards_covering {
        host = host_of(text)?;
        Target::WildcardsCovering(&host)
    } else {
        match &read {
            Read::Host(name) if args.exact => Target::Exact(Identifier::Host(name.host())),
            Read::Host(name) => Target::Subdomains(name.host()),
            Read::Ip(ip) => Target::Exact(Identifier::Ip(*ip)),
            Read::Email(email) => Target::Exact(Identifier::Email(email)),
            Read::Other(text) => Target::Exact(Identifier::Text(text)),
        }
    };
    let filters = Filters {
        issuer: args.issuer.clone(),
        organization: args.org.clone(),
        after: args.after,
        before: args.before,
        not_expired_at: args.not_expired.then(crate::when::now),
    };
    let snapshot = open_snapshot(&args.data.data)?;
    let paging = Paging {
        limit: args.limit,
        cursor: args.cursor.clone(),
        ..Paging::default()
    };
    let mut query = SearchQuery {
        target,
        filters,
        paging,
    };
    let mut page = snapshot.search(&query)?;
    // A page that ran out of time before its first result goes on: an empty page helps nobody here.
    while page.items.is_empty() && page.next.is_some() {
        query.paging.cursor = page.next;
        let faults = page.faults;
        page = snapshot.search(&query)?;
        page.faults.extend(faults);
    }
    let found = page.items.len();
    print(
        args.format.format,
        &snapshot,
        &page.items,
        page.next.as_deref(),
        page.partial,
    )?;
    report_faults(&snapshot, &page.faults)?;
    if found == 0 {
        talk!("no certificates for {text} in {}", args.data.data.display());
    }
    Ok(if found > 0 {
        Outcome::Success
    } else {
        Outcome::Nothing
    })
}

fn print(
    format: Format,
    snapshot: &Snapshot,
    items: &[SearchItem],
    next: Option<&str>,
    partial: bool,
) -> anyhow::Result<()> {
    if format == Format::Json {
        let results = items
            .iter()
            .map(|item| describe(format, snapshot, item))
            .collect::<anyhow::Result<Vec<Row>>>()?;
        let document = json!({ "results": results, "next_cursor": next, "partial": partial });
        return json_document(&document);
    }
    let mut rows = Rows::new(format, &COLUMNS);
    for item in items {
        rows.push(&describe(format, snapshot, item)?)?;
    }
    rows.finish()?;
    if let Some(next) = next {
        let why = if partial { " (time ran out)" } else { "" };
        talk!("there is more{why}; go on with --cursor {next}");
    }
    Ok(())
}

fn describe(format: Format, snapshot: &Snapshot, item: &SearchItem) -> anyhow::Result<Row> {
    let record = snapshot.certificate_of(item)?.unwrap_or_default();
    let sha256: Vec<String> = record
        .fingerprints
        .iter()
        .map(|print| hex(&print.sha256))
        .collect();
    let name = if item.wildcard && !item.exact {
        format!("*.{}", item.name)
    } else {
        item.name.clone()
    };
    Ok(row([
        ("name", spelled(format, &name)),
        ("wildcard", json!(item.wildcard)),
        ("exact", json!(item.exact)),
        ("id", json!(record.id().to_string())),
        ("issuance", json!(format!("{:016x}", item.issuance.0))),
        ("sha256", json!(sha256)),
        ("serial", json!(signed_hex(&record.serial))),
        ("issuer", json!(item.issuer)),
        ("organization", optional(&item.organization)),
        ("not_before", time(item.not_before)),
        ("not_after", time(item.not_after)),
        ("first_seen", time(Some(item.first_seen))),
    ]))
}
