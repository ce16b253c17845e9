//! What an import tells: a line for each file, and a summary at the end.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Context;
use serde_json::{Map, Value, json};
use tamis_ct_index::Outcome;
use tamis_ct_index::stats::Stats;
use tamis_ct_log::{Deviation, EntryError, Reading};

use crate::cli::Format;
use crate::ct::files::InputFile;
use crate::ct::import::Refusal;
use crate::render::{document, json_line, row};

/// Errors told one by one; the rest is counted.
const ERRORS_TOLD_MAX: u64 = 20;
/// Reasons counted apart.
const REASONS_MAX: usize = 100;

/// What became of one file, or of a part of it.
#[derive(Debug, Default)]
pub(crate) struct FileReport {
    /// Number of the file in its group.
    pub(crate) number: usize,
    pub(crate) bytes: u64,
    name: String,
    named: bool,
    certificates: u64,
    precertificates: u64,
    names: u64,
    rejected: u64,
    errors: Vec<String>,
    reasons: BTreeMap<String, u64>,
    deviations: BTreeMap<&'static str, u64>,
    refused: Option<String>,
    foreign: bool,
    truncated: u64,
}

impl FileReport {
    pub(crate) fn new(file: &InputFile) -> Self {
        Self {
            name: file.name(),
            named: file.named,
            bytes: file.bytes,
            ..Self::default()
        }
    }

    /// The report of a part of a file.
    pub(crate) fn part(number: usize, file: &InputFile) -> Self {
        Self {
            number,
            ..Self::new(file)
        }
    }

    /// The file as a whole could not be used.
    pub(crate) fn refuse(&mut self, refusal: &Refusal) {
        let (Refusal::Foreign(reason) | Refusal::Fault(reason)) = refusal;
        self.refused = Some(reason.clone());
        // Folders hold other files too; passing over them is no fault.
        self.foreign = matches!(refusal, Refusal::Foreign(_)) && !self.named;
    }

    /// One entry could not be used.
    pub(crate) fn reject(&mut self, error: &EntryError) {
        self.rejected += 1;
        if (self.errors.len() as u64) < ERRORS_TOLD_MAX {
            self.errors.push(error.to_string());
        }
        *self.reasons.entry(error.reason.to_string()).or_default() += 1;
    }

    /// One certificate was read.
    pub(crate) fn count(&mut self, reading: &Reading) {
        self.certificates += 1;
        self.precertificates += u64::from(reading.precert);
        self.names += reading.names().len() as u64;
        for deviation in reading.deviations.iter() {
            *self.deviations.entry(deviation.as_str()).or_default() += 1;
        }
        self.truncated += u64::from(reading.deviations.contains(Deviation::NamesTruncated));
    }

    /// Adds a part of the same file.
    pub(crate) fn add(&mut self, part: Self) {
        self.certificates += part.certificates;
        self.precertificates += part.precertificates;
        self.names += part.names;
        self.rejected += part.rejected;
        self.truncated += part.truncated;
        self.errors.extend(part.errors);
        unite(&mut self.reasons, part.reasons);
        unite(&mut self.deviations, part.deviations);
    }
}

/// Prints a line at once. A reader that went away is no reason to stop an import.
fn acknowledge(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(line.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("write to stdout"),
    }
}

fn unite<K: Ord>(sums: &mut BTreeMap<K, u64>, more: BTreeMap<K, u64>) {
    for (key, count) in more {
        if sums.len() < REASONS_MAX || sums.contains_key(&key) {
            *sums.entry(key).or_default() += count;
        }
    }
}

/// What became of everything.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) outcome: Outcome,
    pub(crate) truncated: u64,
    files: u64,
    skipped: u64,
    refused: u64,
    certificates: u64,
    precertificates: u64,
    names: u64,
    rejected: u64,
    told: u64,
    reasons: BTreeMap<String, u64>,
    deviations: BTreeMap<&'static str, u64>,
}

impl Summary {
    /// Adds a file that is durable now; NDJSON tells it at once.
    pub(crate) fn file(&mut self, file: &FileReport, format: Format) -> anyhow::Result<()> {
        self.files += 1;
        self.certificates += file.certificates;
        self.precertificates += file.precertificates;
        self.names += file.names;
        self.rejected += file.rejected;
        self.truncated += file.truncated;
        unite(&mut self.reasons, file.reasons.clone());
        unite(&mut self.deviations, file.deviations.clone());
        for error in &file.errors {
            self.tell(&format!("{}: {error}", file.name));
        }
        if let Some(reason) = &file.refused {
            if file.foreign {
                self.skipped += 1;
                tracing::info!(file = file.name, reason, "passed over");
            } else {
                self.refused += 1;
                self.tell(&format!("{}: {reason}", file.name));
            }
        }
        if format == Format::Ndjson {
            let line = json!({
                "file": file.name, "certificates": file.certificates, "rejected": file.rejected,
                "refused": file.refused, "durable": true,
            });
            acknowledge(&format!("{}\n", json_line(&line)))?;
        }
        Ok(())
    }

    /// A path that could not be looked at.
    pub(crate) fn reject_path(&mut self, error: &str) {
        self.refused += 1;
        self.tell(error);
    }

    fn tell(&mut self, error: &str) {
        self.told += 1;
        if self.told <= ERRORS_TOLD_MAX {
            talk!("{error}");
        } else if self.told == ERRORS_TOLD_MAX + 1 {
            talk!("further errors are counted only");
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.outcome += other.outcome;
        self.truncated += other.truncated;
        self.files += other.files;
        self.skipped += other.skipped;
        self.refused += other.refused;
        self.certificates += other.certificates;
        self.precertificates += other.precertificates;
        self.names += other.names;
        self.rejected += other.rejected;
        unite(&mut self.reasons, other.reasons);
        unite(&mut self.deviations, other.deviations);
    }

    /// True when there was nothing to read.
    pub(crate) fn is_empty(&self) -> bool {
        self.certificates == 0 && self.rejected == 0 && self.refused == 0
    }

    /// True when nothing that was named was rejected.
    pub(crate) fn is_clean(&self) -> bool {
        self.refused == 0 && self.rejected == 0
    }

    pub(crate) fn print(&self, format: Format, stats: &Stats) -> anyhow::Result<()> {
        let counts = |map: Map<String, Value>| Value::Object(map);
        let reasons = self
            .reasons
            .iter()
            .map(|(reason, count)| (reason.clone(), json!(count)))
            .collect();
        let deviations = self
            .deviations
            .iter()
            .map(|(&deviation, count)| (deviation.to_owned(), json!(count)))
            .collect();
        let facts = row([
            ("files", json!(self.files)),
            ("files_passed_over", json!(self.skipped)),
            ("files_rejected", json!(self.refused)),
            ("entries", json!(self.certificates + self.rejected)),
            ("certificates", json!(self.certificates)),
            ("precertificates", json!(self.precertificates)),
            ("rejected", json!(self.rejected)),
            ("names", json!(self.names)),
            ("new_issuances", json!(self.outcome.new)),
            ("new_name_rows", json!(self.outcome.rows)),
            ("copies", json!(self.outcome.copies)),
            ("duplicates", json!(self.outcome.duplicates)),
            ("oddities", counts(deviations)),
            ("rejected_because", counts(reasons)),
            ("total_issuances", json!(stats.totals.issuances)),
            ("total_certificates", json!(stats.totals.certificates)),
            ("total_name_rows", json!(stats.totals.name_rows)),
        ]);
        document(format, &facts)
    }
}
