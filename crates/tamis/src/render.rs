//! Printing results: the same rows as table, JSON, NDJSON or CSV.
//!
//! # Invariants
//! stdout carries data only. Names are hostile input: control characters never reach a terminal.

use std::io::{BufWriter, StdoutLock, Write};

use serde_json::{Map, Value};

use crate::cli::Format;

/// A row of results, in the order of its columns.
pub(crate) type Row = Map<String, Value>;

/// Prints rows as they come.
pub(crate) struct Rows {
    format: Format,
    columns: &'static [&'static str],
    out: BufWriter<StdoutLock<'static>>,
    table: Option<comfy_table::Table>,
    printed: u64,
}

impl Rows {
    /// `columns` are the keys that table and CSV show; JSON shows whole rows.
    pub(crate) fn new(format: Format, columns: &'static [&'static str]) -> Self {
        let table = (format == Format::Table).then(|| {
            let mut table = comfy_table::Table::new();
            table.load_style(comfy_table::presets::NOTHING).set_header(
                columns
                    .iter()
                    .map(|column| column.replace('_', " ").to_uppercase()),
            );
            if let Some(first) = table.column_mut(0) {
                first.set_padding((0, 1));
            }
            table
        });
        Self {
            format,
            columns,
            out: BufWriter::new(std::io::stdout().lock()),
            table,
            printed: 0,
        }
    }

    /// Rows printed so far.
    pub(crate) fn printed(&self) -> u64 {
        self.printed
    }

    pub(crate) fn push(&mut self, row: &Row) -> anyhow::Result<()> {
        let first = self.printed == 0;
        self.printed += 1;
        match self.format {
            Format::Table => {
                let cells = self.columns.iter().map(|&column| cell(row.get(column)));
                if let Some(table) = &mut self.table {
                    table.add_row(cells.collect::<Vec<_>>());
                }
            }
            Format::Json => {
                self.out.write_all(if first { b"[\n" } else { b",\n" })?;
                serde_json::to_writer(&mut self.out, row)?;
            }
            Format::Ndjson => {
                serde_json::to_writer(&mut self.out, row)?;
                self.out.write_all(b"\n")?;
            }
            Format::Csv => {
                let mut csv = csv::Writer::from_writer(&mut self.out);
                if first {
                    csv.write_record(self.columns)?;
                }
                csv.write_record(self.columns.iter().map(|&column| cell(row.get(column))))?;
                csv.flush()?;
            }
        }
        Ok(())
    }

    /// Prints what is still held back.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        match (self.format, self.printed) {
            (Format::Json, 0) => self.out.write_all(b"[]\n")?,
            (Format::Json, _) => self.out.write_all(b"\n]\n")?,
            (Format::Table, 1..) => {
                if let Some(table) = &self.table {
                    for line in table.lines() {
                        writeln!(self.out, "{}", line.trim_end())?;
                    }
                }
            }
            (Format::Csv, 0) => writeln!(self.out, "{}", self.columns.join(","))?,
            _ => {}
        }
        self.out.flush()?;
        Ok(())
    }
}

/// Prints a JSON document for people and programs.
pub(crate) fn json_document(document: &Value) -> anyhow::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, document)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Parts two documents for people.
pub(crate) fn blank_line() -> anyhow::Result<()> {
    Ok(std::io::stdout().lock().write_all(b"\n")?)
}

/// Prints one document: facts a line in tables and CSV.
pub(crate) fn document(format: Format, facts: &Row) -> anyhow::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    match format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, facts)?;
            out.write_all(b"\n")?;
        }
        Format::Ndjson => {
            serde_json::to_writer(&mut out, facts)?;
            out.write_all(b"\n")?;
        }
        Format::Csv => {
            let mut csv = csv::Writer::from_writer(&mut out);
            csv.write_record(["key", "value"])?;
            for (key, value) in facts {
                csv.write_record([key.as_str(), &cell(Some(value))])?;
            }
            csv.flush()?;
        }
        Format::Table => {
            let width = facts.keys().map(String::len).max().unwrap_or(0);
            for (key, value) in facts {
                let mut lines = lines(value).into_iter();
                writeln!(
                    out,
                    "{:width$}  {}",
                    key.replace('_', " "),
                    lines.next().unwrap_or_default()
                )?;
                for line in lines {
                    writeln!(out, "{:width$}  {line}", "")?;
                }
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// A value as one line for people.
fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => printable(text),
        Some(Value::Array(values)) => values
            .iter()
            .map(|value| cell(Some(value)))
            .collect::<Vec<_>>()
            .join(" "),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => String::new(),
        Some(Value::Object(fields)) => fields
            .iter()
            .map(|(key, value)| format!("{key}={}", cell(Some(value))))
            .collect::<Vec<_>>()
            .join(" "),
        Some(other) => other.to_string(),
    }
}

fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) => values.iter().map(|value| cell(Some(value))).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| format!("{key}: {}", cell(Some(value))))
            .collect(),
        other => vec![cell(Some(other))],
    }
}

/// Text without anything that a terminal would obey or that would turn its direction.
pub(crate) fn printable(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        let turns = matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
        if character.is_control() || turns {
            clean.extend(character.escape_unicode());
        } else {
            clean.push(character);
        }
    }
    clean
}

/// A row out of key and value pairs.
pub(crate) fn row<const N: usize>(fields: [(&str, Value); N]) -> Row {
    fields
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_never_told_what_to_do() {
        assert_eq!(
            printable("a\u{1b}[31mb\u{202e}c\n"),
            "a\\u{1b}[31mb\\u{202e}c\\u{a}"
        );
        assert_eq!(printable("bücher.example"), "bücher.example");
    }
}
