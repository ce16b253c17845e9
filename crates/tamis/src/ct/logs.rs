//! `tamis ct logs`: how every log stands, while `follow` runs and after.

use clap::Args;
use serde_json::{Value, json};
use tamis_engine::follow::{LogStatus, Pressure, Status, report};

use crate::Outcome;
use crate::cli::{DataArgs, Format, FormatArgs};
use crate::ct::folder;
use crate::render::{self, Row, Rows, counted};
use crate::when;

/// What a person looks for, narrow enough for a terminal.
const TABLE: [&str; 7] = ["log", "size", "verified", "behind", "left", "status", "lies"];
const CSV: [&str; 15] = [
    "description",
    "operator",
    "url",
    "log_id",
    "api",
    "tree_size",
    "verified_position",
    "read",
    "backlog",
    "unproved",
    "rate",
    "eta_s",
    "status",
    "lies_total",
    "error",
];

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(crate) fn run(args: &LogsArgs) -> anyhow::Result<Outcome> {
    folder::check_readable(&args.data.data)?;
    let report = report(&args.data.data)?;
    let status = &report.status;
    print(status, args.format.format)?;
    if status.logs.is_empty() {
        talk!(
            "no log was followed into {}; `tamis ct follow` does",
            args.data.data.display()
        );
        return Ok(Outcome::Nothing);
    }
    if args.format.format == Format::Table {
        tell(status);
    }
    if !report.is_followed {
        talk!("nobody follows these logs now; this is how they stood");
    }
    if status.static_only > 0 {
        talk!(
            "{} that only static logs have",
            counted(status.static_only, "issuance", "issuances")
        );
    }
    if let Some(paused) = status.paused {
        talk!("reading pauses: {}", pause(paused));
    }
    if let Some(error) = status.list.as_ref().and_then(|list| list.error.as_ref()) {
        talk!("log list: {error}");
    }
    Ok(Outcome::Success)
}

/// Prints how logs stand, a row each.
pub(crate) fn print(status: &Status, format: Format) -> anyhow::Result<()> {
    if format != Format::Table {
        let mut rows = Rows::new(format, &CSV);
        for log in &status.logs {
            rows.push(&row(log)?)?;
        }
        return rows.finish();
    }
    let mut rows = Rows::new(format, &TABLE);
    for log in &status.logs {
        rows.push(&line(log))?;
    }
    rows.finish()
}

/// What logs were caught in, and why they fail.
fn tell(status: &Status) {
    for log in &status.logs {
        for lie in &log.lies {
            let healed = if lie.healed { " (it healed)" } else { "" };
            talk!("{}: {}{healed}: {}", log.description, lie.kind, lie.detail);
        }
        if let Some(error) = &log.error {
            talk!("{}: {error}", log.description);
        }
    }
}

/// Why reading pauses, and what to do.
pub(crate) fn pause(pressure: Pressure) -> &'static str {
    match pressure {
        Pressure::Memtable => "the disk is slower than the logs, which mends itself",
        Pressure::Disk => "the disk is too full; free some space, or set --disk-max",
        Pressure::Verification => "too many entries wait to be proved; see which logs have an error",
        Pressure::Filter => "a filter holds too many keys; set --filter-max higher, or leave it out",
        _ => "see docs/following.md",
    }
}

/// A log as programs read it.
fn row(log: &LogStatus) -> anyhow::Result<Row> {
    let Value::Object(mut row) = serde_json::to_value(log)? else {
        anyhow::bail!("the status of a log is no object");
    };
    if let Some(verified) = row.remove("verified") {
        row.insert("verified_position".to_owned(), verified);
    }
    let time = |ms: u64| when::rfc3339(i64::try_from(ms / 1_000).unwrap_or(0));
    row.remove("head_ms");
    row.insert("head_time".to_owned(), json!(log.head_ms.and_then(time)));
    if let Some(lies) = row.get_mut("lies").and_then(Value::as_array_mut) {
        for (told, lie) in lies.iter_mut().zip(&log.lies) {
            if let Some(told) = told.as_object_mut() {
                told.remove("at_ms");
                told.insert("at".to_owned(), json!(time(lie.at_ms)));
            }
        }
    }
    for rate in ["rate", "growth"] {
        if let Some(value) = row.get_mut(rate) {
            *value = json!((value.as_f64().unwrap_or(0.0) * 10.0).round() / 10.0);
        }
    }
    Ok(row)
}

/// A log as people read it.
fn line(log: &LogStatus) -> Row {
    // Lists call nearly all of them a log.
    let name = log.description.strip_suffix(" log").unwrap_or(&log.description);
    let left = match log.eta_s {
        Some(eta @ 1..) => span(eta),
        None if log.not_converging => "never".to_owned(),
        _ => String::new(),
    };
    render::row([
        ("log", json!(name)),
        ("size", json!(human(log.tree_size))),
        ("verified", json!(part(log.verified, log.tree_size))),
        ("behind", json!(human(log.backlog))),
        ("left", json!(left)),
        ("status", json!(log.status.replace('_', " "))),
        ("lies", json!(log.lies_total)),
    ])
}

/// A count in at most six characters, exact below 10,000.
fn human(count: u64) -> String {
    let (unit, sign) = match count {
        0..10_000 => return count.to_string(),
        10_000..1_000_000 => (1_000, "k"),
        1_000_000..1_000_000_000 => (1_000_000, "M"),
        _ => (1_000_000_000, "G"),
    };
    // Cut, not rounded: 999,999 is not yet 1000.0k.
    format!("{}.{}{sign}", count / unit, count % unit * 10 / unit)
}

/// A part of a whole; `all` is never rounded to.
fn part(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    if part >= whole {
        return "all".to_owned();
    }
    let per_mille = u128::from(part) * 1_000 / u128::from(whole);
    format!("{}.{}%", per_mille / 10, per_mille % 10)
}

/// A span of time as a person says it.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_never_say_too_much() {
        for (count, told) in [
            (0, "0"),
            (9_999, "9999"),
            (10_000, "10.0k"),
            (999_999, "999.9k"),
            (349_180_000, "349.1M"),
            (2_702_331_112, "2.7G"),
        ] {
            assert_eq!(human(count), told);
        }
        for (numbers, told) in [
            ((0, 0), ""),
            ((0, 7), "0.0%"),
            ((300, 900), "33.3%"),
            ((u64::MAX - 1, u64::MAX), "99.9%"),
            ((7, 7), "all"),
        ] {
            assert_eq!(part(numbers.0, numbers.1), told);
        }
    }
}
