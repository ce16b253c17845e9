//! `tamis ct search`: which certificates are for a domain, an address or an e-mail.

use std::net::IpAddr;

use serde_json::json;
use tamis_ct_index::Snapshot;
use tamis_ct_index::key::Identifier;
use tamis_ct_index::query::{Filters, Paging, SearchItem, SearchQuery, Target};
use tamis_ct_log::certificate::signed_hex;
use tamis_hostname::Identifier as Read;

use crate::Outcome;
use crate::cli::{Format, SearchArgs};
use crate::ct::certificate::{optional, spelled, time};
use crate::ct::cursor::Question;
use crate::ct::parse::hex;
use crate::ct::{no_host, open_snapshot, report_faults};
use crate::render::{Row, Rows, json_document, row};

const COLUMNS: [&str; 6] = ["name", "issuer", "not_before", "not_after", "first_seen", "id"];

pub(crate) fn run(args: &SearchArgs) -> anyhow::Result<Outcome> {
    let text = args.query.trim();
    check_text(text)?;
    let read = tamis_hostname::read(text.as_bytes());
    let (target, subject) = target(args, text, &read)?;
    let question = Question::of(&subject, args);
    let place = args.cursor.as_deref().map(|cursor| question.place(cursor));
    let filters = Filters {
        issuer: args.issuer.clone(),
        organization: args.org.clone(),
        after: args.after.as_ref().map(|moment| moment.seconds),
        before: args.before.as_ref().map(|moment| moment.seconds),
        not_expired_at: args.not_expired.then(crate::when::now),
    };
    let paging = Paging {
        limit: args.limit,
        cursor: place.transpose()?.map(str::to_owned),
        ..Paging::default()
    };
    let snapshot = open_snapshot(&args.data.data)?;
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
    let mut results = Vec::with_capacity(found);
    for item in &page.items {
        results.push(describe(args.format.format, &snapshot, item, &mut page.faults)?);
    }
    let partial = page.partial || !page.faults.is_empty() || snapshot.rows_lost();
    let next = page.next.map(|place| question.cursor(&place));
    print(args.format.format, &results, next.as_deref(), partial)?;
    report_faults(&snapshot, &page.faults)?;
    if found > 0 {
        return Ok(Outcome::Success);
    }
    tell_nothing(args, text, &read);
    Ok(Outcome::Nothing)
}

/// Refuses what cannot be looked up at all.
fn check_text(text: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        text.chars().any(char::is_alphanumeric),
        "\"{text}\" names nothing; write a domain, an IP address or an e-mail address"
    );
    anyhow::ensure!(
        !is_address_range(text),
        "{text} is a range of addresses, which cannot be searched; write one address"
    );
    Ok(())
}

/// What to look for, and its canonical form.
fn target<'r>(args: &SearchArgs, text: &str, read: &'r Read<'_>) -> anyhow::Result<(Target<'r>, String)> {
    if args.wildcards_covering {
        let Read::Host(name) = read else {
            return Err(no_host(text, read));
        };
        return Ok((Target::WildcardsCovering(name.host()), name.host().to_owned()));
    }
    Ok(match read {
        Read::Host(name) if args.exact => (
            Target::Exact(Identifier::Host(name.host())),
            name.host().to_owned(),
        ),
        Read::Host(name) => (Target::Subdomains(name.host()), name.host().to_owned()),
        Read::Ip(ip) => (Target::Exact(Identifier::Ip(*ip)), ip.to_string()),
        // Mailboxes have no case in the index.
        Read::Email(email) => (
            Target::Exact(Identifier::Email(email)),
            email.to_ascii_lowercase(),
        ),
        Read::Other(text) => (Target::Exact(Identifier::Text(text)), text.to_string()),
    })
}

/// Says that nothing was found, and what may be the reason.
fn tell_nothing(args: &SearchArgs, text: &str, read: &Read<'_>) {
    let filtered = args.exact
        || args.not_expired
        || args.issuer.is_some()
        || args.org.is_some()
        || args.after.is_some()
        || args.before.is_some();
    let hint = if args.cursor.is_some() {
        "; this was the last page"
    } else if matches!(read, Read::Other(_)) {
        "; it is no host name, IP address or e-mail address, so only names with exactly this text were looked for"
    } else if filtered {
        "; without filters there may be some"
    } else {
        ""
    };
    talk!("no certificates for {text} in {}{hint}", args.data.data.display());
}

/// `192.0.2.0/24` and the like.
fn is_address_range(text: &str) -> bool {
    let parts = text.split_once('/');
    parts.is_some_and(|(address, bits)| address.parse::<IpAddr>().is_ok() && bits.parse::<u8>().is_ok())
}

fn print(format: Format, results: &[Row], next: Option<&str>, partial: bool) -> anyhow::Result<()> {
    if format == Format::Json {
        let document = json!({ "results": results, "next_cursor": next, "partial": partial });
        return json_document(&document);
    }
    let mut rows = Rows::new(format, &COLUMNS);
    for result in results {
        rows.push(result)?;
    }
    rows.finish()?;
    if let Some(next) = next {
        let why = if partial { " (time ran out)" } else { "" };
        talk!("there is more{why}; go on with --cursor {next}");
    }
    Ok(())
}

/// A result with its certificate; damage to that costs its columns and not the result.
fn describe(
    format: Format,
    snapshot: &Snapshot,
    item: &SearchItem,
    faults: &mut Vec<tamis_ct_index::Error>,
) -> anyhow::Result<Row> {
    let record = match snapshot.certificate_of(item) {
        Err(error @ tamis_ct_index::Error::Corrupt { .. }) => {
            faults.push(error);
            None
        }
        record => record?,
    };
    let record = record.unwrap_or_default();
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
