//! Printing results: the same rows as table, JSON, NDJSON or CSV.
//!
//! # Invariants
//! stdout carries data only. What is shown is hostile input, and nothing that a terminal would obey or
//! that turns the direction of text gets through: tables and CSV write it out ([`printable`]), JSON
//! keeps the text exact and writes it as an escape such as `\u202e`. A row of NDJSON or CSV is always one line.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{BufWriter, StdoutLock, Write};

use anyhow::Context;
use serde_json::{Map, Value};

use crate::cli::Format;

/// What an error says that comes from stdout itself.
const WRITING: &str = "write to stdout";

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
        self.put(row).context(WRITING)
    }

    /// Prints what is still held back.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        self.end().context(WRITING)
    }

    fn put(&mut self, row: &Row) -> anyhow::Result<()> {
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
                self.out
                    .write_all(json_escaped(serde_json::to_string(row)?).as_bytes())?;
            }
            Format::Ndjson => {
                writeln!(self.out, "{}", json_escaped(serde_json::to_string(row)?))?;
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

    fn end(mut self) -> anyhow::Result<()> {
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
    let json = json_escaped(serde_json::to_string_pretty(document)?);
    writeln!(out, "{json}")
        .and_then(|()| out.flush())
        .context(WRITING)
}

/// Prints bytes that are ready.
pub(crate) fn raw(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).context(WRITING)
}

/// JSON as one line.
pub(crate) fn json_line(value: &Value) -> String {
    json_escaped(value.to_string())
}

/// The same JSON with what is hidden as escapes such as `\u202e`: terminals obey more than JSON must escape. Only
/// strings can hold such characters; a line feed between them is layout.
fn json_escaped(json: String) -> String {
    let hides = |c: char| c != '\n' && tamis_hostname::is_hidden(c);
    if !json.chars().any(hides) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if hides(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Parts two documents for people.
pub(crate) fn blank_line() -> anyhow::Result<()> {
    raw(b"\n")
}

/// Prints one document: facts a line in tables and CSV.
pub(crate) fn document(format: Format, facts: &Row) -> anyhow::Result<()> {
    put_document(format, facts).context(WRITING)
}

fn put_document(format: Format, facts: &Row) -> anyhow::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    match format {
        Format::Json => {
            writeln!(out, "{}", json_escaped(serde_json::to_string_pretty(facts)?))?;
        }
        Format::Ndjson => {
            writeln!(out, "{}", json_escaped(serde_json::to_string(facts)?))?;
        }
        Format::Csv => {
            let mut csv = csv::Writer::from_writer(&mut out);
            csv.write_record(["key", "value"])?;
            for (key, value) in facts {
                csv.write_record([&*printable(key), &cell(Some(value))])?;
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
                    printable(&key.replace('_', " ")),
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
        Some(Value::String(text)) => printable(text).into_owned(),
        Some(Value::Array(values)) => values
            .iter()
            .map(|value| cell(Some(value)))
            .collect::<Vec<_>>()
            .join(" "),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => String::new(),
        Some(Value::Object(fields)) => fields
            .iter()
            .map(|(key, value)| format!("{}={}", printable(key), cell(Some(value))))
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
            .map(|(key, value)| format!("{}: {}", printable(key), cell(Some(value))))
            .collect(),
        other => vec![cell(Some(other))],
    }
}

/// Text as people may see it: without anything that a terminal would obey or that would turn its
/// direction. The spelling is that of the names in the index, so what is shown can be searched.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    tamis_hostname::escape(text)
}

/// A count and what is counted: `1 file`, `2 files`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
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
    use serde_json::json;

    use super::*;

    #[test]
    fn terminals_are_never_told_what_to_do() {
        assert_eq!(printable("a\u{1b}[31mb\u{202e}c\n"), r"a\x1B[31mb\u{202E}c\x0A");
        assert_eq!(printable("bücher.example"), "bücher.example");
    }

    #[test]
    fn json_is_exact_and_harmless() {
        let value = json!({ "a\u{9b}b": "\u{1b}\u{7f}\u{202e}\u{e0041}\nü\\" });
        for json in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let escaped = json_escaped(json);
            assert!(!escaped.replace('\n', "").chars().any(tamis_hostname::is_hidden));
            assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), value);
        }
    }
}
