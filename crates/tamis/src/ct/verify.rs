//! `tamis ct verify`: proves the index whole.

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::Outcome;
use crate::cli::{Format, VerifyArgs};
use crate::ct::folder;
use crate::render::{document, row};

pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<Outcome> {
    folder::check_readable(&args.data.data)?;
    let bar = ProgressBar::new_spinner().with_style(ProgressStyle::with_template("{spinner} {msg}")?);
    let report = tamis_ct_index::check(&args.data.data, |path, _| {
        bar.set_message(format!("verify {}", path.display()));
        bar.tick();
    })?;
    bar.finish_and_clear();
    for note in &report.notes {
        talk!("note: {note}");
    }
    for fault in &report.faults {
        talk!("{fault}");
    }
    let faults: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
    let mut facts = row([
        ("files", json!(report.files)),
        ("bytes", json!(report.bytes)),
        ("name_rows", json!(report.rows)),
        ("records", json!(report.records)),
        ("notes", json!(report.notes)),
        ("faults", json!(faults)),
    ]);
    if args.format.format == Format::Table {
        // The faults stand on stderr already.
        facts.insert("notes".to_owned(), json!(report.notes.len()));
        facts.insert("faults".to_owned(), json!(report.faults.len()));
    }
    document(args.format.format, &facts)?;
    Ok(if report.faults.is_empty() {
        Outcome::Success
    } else {
        Outcome::Nothing
    })
}
