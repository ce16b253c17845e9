//! `tamis ct logs`: how every log stands, while `follow` runs and after.

use clap::Args;
use serde_json::{Value, json};
use tamis_engine::follow::{LogStatus, Status, report};

use crate::Outcome;
use crate::cli::{DataArgs, Format, FormatArgs};
use crate::ct::folder;
use crate::render::{Row, Rows, counted};
use crate::when;

const COLUMNS: [&str; 10] = [
    "description",
    "url",
    "api",
    "tree_size",
    "verified_position",
    "backlog",
    "rate",
    "left",
    "status",
    "lies_total",
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
        talk!("reading pauses: {}", paused.as_str());
    }
    if let Some(error) = status.list.as_ref().and_then(|list| list.error.as_ref()) {
        talk!("log list: {error}");
    }
    Ok(Outcome::Success)
}

/// Prints how logs stand, a row each.
pub(crate) fn print(status: &Status, format: Format) -> anyhow::Result<()> {
    let mut rows = Rows::new(format, &COLUMNS);
    for log in &status.logs {
        rows.push(&row(log, format)?)?;
    }
    rows.finish()?;
    if format == Format::Table {
        for log in &status.logs {
            for lie in &log.lies {
                talk!("{}: {}: {}", log.description, lie.kind, lie.detail);
            }
            if let Some(error) = &log.error {
                talk!("{}: {error}", log.description);
            }
        }
    }
    Ok(())
}

fn row(log: &LogStatus, format: Format) -> anyhow::Result<Row> {
    let Value::Object(mut row) = serde_json::to_value(log)? else {
        anyhow::bail!("the status of a log is no object");
    };
    // What a person asks first stands first.
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
    if format == Format::Table || format == Format::Csv {
        let left = match log.eta_s {
            Some(eta) => span(eta),
            None if log.not_converging => "not converging".to_owned(),
            None => String::new(),
        };
        row.insert("left".to_owned(), json!(left));
    }
    Ok(row)
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
