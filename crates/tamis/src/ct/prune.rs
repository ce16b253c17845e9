//! `tamis ct prune`: removes what is expired, old, or of one month.

use std::io::IsTerminal;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use tamis_ct_index::compact::prune::{Progress, Prune, Pruned, Step, What};
use tamis_ct_index::{Index, Options};

use crate::Outcome;
use crate::cli::PruneArgs;
use crate::ct::suffixes;
use crate::render::{counted, document, row};

pub(crate) fn run(args: &PruneArgs) -> anyhow::Result<Outcome> {
    let data = &args.data.data;
    // Opening would make an index where there is none.
    crate::ct::open_snapshot(data)?;
    let options = Options {
        public_suffixes: suffixes::read(&args.suffixes)?,
        ..Options::default()
    };
    let what = what(args);
    let index = Index::open(data, options).context("open the index")?;
    if !args.dry_run && !args.yes && std::io::stdout().is_terminal() {
        let would = prune(&index, &what, true)?;
        if would.removed.issuances > 0 {
            anyhow::bail!(
                "this removes {} for good; --yes does it, --dry-run tells more",
                counted(would.removed.issuances, "issuance", "issuances")
            );
        }
    }
    let done = prune(&index, &what, args.dry_run)?;
    index.close()?;
    let after = if args.dry_run {
        // Known only once it is written.
        Value::Null
    } else {
        json!(done.bytes_after)
    };
    document(
        args.format.format,
        &row([
            ("dry_run", json!(args.dry_run)),
            ("issuances", json!(done.removed.issuances)),
            ("certificates", json!(done.removed.certificates)),
            ("precertificates", json!(done.removed.precertificates)),
            ("name_rows", json!(done.removed.name_rows)),
            ("segments_rewritten", json!(done.segments_rewritten)),
            ("segments_removed", json!(done.segments_removed)),
            ("bytes_before", json!(done.bytes_before)),
            ("bytes_after", after),
        ]),
    )?;
    Ok(Outcome::Success)
}

fn what(args: &PruneArgs) -> What {
    match &args.month {
        Some(month) => What::Month(month.clone()),
        None => What::Dates {
            expired_before: args.expired.as_ref().map(|moment| moment.seconds),
            seen_before: args.seen_before.as_ref().map(|moment| moment.seconds),
        },
    }
}

fn prune(index: &Index, what: &What, dry_run: bool) -> anyhow::Result<Pruned> {
    let template = "{spinner} {elapsed} {msg}";
    let bar = ProgressBar::new_spinner().with_style(ProgressStyle::with_template(template)?);
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    let prune = Prune {
        what: what.clone(),
        dry_run,
    };
    let done = index.prune(&prune, |Progress { step, done, of }| {
        let doing = match (step, dry_run) {
            (Step::Read, _) => "read records",
            (Step::Write, true) => "look for segments to rewrite",
            (Step::Write, false) => "rewrite segments",
        };
        bar.set_message(format!("{doing}, {done} of {of}"));
    });
    bar.finish_and_clear();
    Ok(done?)
}

/// Reads `2026-11`.
pub(crate) fn month(text: &str) -> Result<String, String> {
    let parts = text.split_once('-');
    let digits = |part: &str, count| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    match parts {
        Some((year, month))
            if digits(year, 4)
                && digits(month, 2)
                && month.parse().is_ok_and(|month: u8| (1..=12).contains(&month)) =>
        {
            Ok(text.to_owned())
        }
        _ => Err("write a month like 2026-11".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_read() {
        assert_eq!(month("2026-11"), Ok("2026-11".to_owned()));
        for wrong in [
            "",
            "2026",
            "2026-13",
            "2026-00",
            "26-11",
            "2026-1",
            "2026-11-01",
            "é026-11",
        ] {
            assert!(month(wrong).is_err(), "{wrong}");
        }
    }
}
