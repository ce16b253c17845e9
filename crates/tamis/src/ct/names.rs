//! `tamis ct names`: which names exist at or below a domain.

use serde_json::json;
use tamis_ct_index::query::{NameItem, NamesQuery};

use crate::Outcome;
use crate::cli::{Format, NamesArgs};
use crate::ct::certificate::{spelled, time};
use crate::ct::{host_of, open_snapshot, report_faults};
use crate::render::{Rows, row};

const COLUMNS: [&str; 5] = ["name", "wildcard", "first_seen", "last_seen", "issuances"];
/// Names of one page; a page is printed before the next is asked for.
const PAGE: usize = 10_000;

pub(crate) fn run(args: &NamesArgs) -> anyhow::Result<Outcome> {
    let host = host_of(&args.domain)?;
    let snapshot = open_snapshot(&args.data.data)?;
    let mut query = NamesQuery::under(&host);
    let limit = args.limit.unwrap_or(u64::MAX);
    let mut rows = Rows::new(args.format.format, &COLUMNS);
    let mut faults = Vec::new();
    // The last name of a page that ran out of time goes on in the next one.
    let mut open: Option<NameItem> = None;
    loop {
        query.paging.limit = PAGE.min((limit - rows.printed()).max(1).try_into().unwrap_or(PAGE));
        let page = snapshot.names(&query)?;
        faults.extend(page.faults);
        for item in page.items {
            match &mut open {
                Some(known) if known.name == item.name => known.join(&item),
                _ => {
                    print(open.replace(item), args, limit, &mut rows)?;
                }
            }
            if open.as_ref().is_some_and(|item| !item.unfinished) {
                print(open.take(), args, limit, &mut rows)?;
            }
        }
        query.paging.cursor = page.next;
        if query.paging.cursor.is_none() || rows.printed() >= limit {
            break;
        }
    }
    let more = query.paging.cursor.is_some() || open.is_some() && rows.printed() >= limit;
    print(open, args, limit, &mut rows)?;
    if more {
        talk!("there are more names; --limit ended the list");
    }
    let found = rows.printed();
    rows.finish()?;
    report_faults(&snapshot, &faults)?;
    if found == 0 {
        talk!("no names at or below {host} in {}", args.data.data.display());
    }
    Ok(if found > 0 {
        Outcome::Success
    } else {
        Outcome::Nothing
    })
}

fn print(item: Option<NameItem>, args: &NamesArgs, limit: u64, rows: &mut Rows) -> anyhow::Result<()> {
    let Some(item) = item else { return Ok(()) };
    // A name in parts is judged by its date only when it is whole.
    if rows.printed() >= limit || is_older(args, &item) {
        return Ok(());
    }
    // A table has no column for the bare name: "only" says that no certificate is for it.
    let wildcard = match (args.format.format, item.exact) {
        (Format::Table, false) => json!("only"),
        _ => json!(item.wildcard),
    };
    rows.push(&row([
        ("name", spelled(args.format.format, &item.name)),
        ("unicode", json!(tamis_hostname::to_unicode(&item.name))),
        ("wildcard", wildcard),
        ("exact", json!(item.exact)),
        ("first_seen", time(Some(item.first_seen))),
        ("last_seen", time(Some(item.last_seen))),
        ("issuances", json!(item.issuances)),
    ]))
}

fn is_older(args: &NamesArgs, item: &NameItem) -> bool {
    args.since
        .as_ref()
        .is_some_and(|since| item.first_seen < since.seconds)
}
