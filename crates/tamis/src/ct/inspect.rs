//! `tamis ct inspect`: what a file is.

use std::io::Write;

use anyhow::Context;
use serde_json::{Map, Value, json};
use tamis_ct_log::Input;
use tamis_ct_log::input::Kind;

use crate::Outcome;
use crate::cli::{Format, InspectArgs};
use crate::ct::files::InputFile;
use crate::render::{document, row};

pub(crate) fn run(args: &InspectArgs) -> anyhow::Result<Outcome> {
    let path = &args.file;
    let file = InputFile {
        path: path.clone(),
        named: true,
        bytes: 0,
    };
    if file.is_stdin() {
        return stdin(args, &file);
    }
    let metadata = std::fs::metadata(path).with_context(|| format!("look at {}", file.name()))?;
    anyhow::ensure!(
        !metadata.is_dir(),
        "{0} is a folder; name a file in it, or see an index as a whole with `tamis ct stats --data {0}`",
        file.name()
    );
    match tamis_ct_index::inspect::inspect(path)? {
        Some(inspection) => ours(args, &inspection),
        None => input(args, &file.name(), &file.read()?),
    }
}

/// What comes by a pipe can be read only once, and a file of an index is read here and there.
fn stdin(args: &InspectArgs, file: &InputFile) -> anyhow::Result<Outcome> {
    let content = file.read()?;
    if Input::open(&content).is_ok() {
        return input(args, &file.name(), &content);
    }
    let copying = "copy stdin into a temporary file";
    let mut copy = tempfile::NamedTempFile::new().context(copying)?;
    copy.write_all(&content).context(copying)?;
    let path = copy.path();
    let own_name = |text: String| text.replace(&*path.to_string_lossy(), "stdin");
    let inspection = tamis_ct_index::inspect::inspect(path)
        .map_err(|error| anyhow::anyhow!(own_name(error.to_string())))?;
    match inspection {
        Some(mut inspection) => {
            inspection.faults = inspection.faults.into_iter().map(own_name).collect();
            ours(args, &inspection)
        }
        None => input(args, &file.name(), &content),
    }
}

fn ours(args: &InspectArgs, inspection: &tamis_ct_index::inspect::Inspection) -> anyhow::Result<Outcome> {
    let facts: Map<String, Value> = inspection
        .facts
        .iter()
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect();
    let parts = inspection.parts.iter().map(|part| {
        if args.format.format == Format::Table {
            let offset = part
                .offset
                .map_or_else(|| "-".to_owned(), |offset| offset.to_string());
            return json!(format!(
                "{:>12} {:>12} bytes {:>10} rows  {}",
                offset, part.bytes, part.rows, part.part
            ));
        }
        json!({ "part": part.part, "offset": part.offset, "bytes": part.bytes, "rows": part.rows })
    });
    let told = row([
        ("kind", json!(inspection.kind)),
        ("bytes", json!(inspection.bytes)),
        ("facts", Value::Object(facts)),
        ("parts", Value::Array(parts.collect())),
        ("faults", json!(inspection.faults)),
    ]);
    document(args.format.format, &told)?;
    Ok(if inspection.faults.is_empty() {
        Outcome::Success
    } else {
        Outcome::Nothing
    })
}

/// A file that could be imported.
fn input(args: &InspectArgs, name: &str, content: &[u8]) -> anyhow::Result<Outcome> {
    let input = Input::open(content).with_context(|| name.to_owned())?;
    let mut entries = input.entries();
    let (mut whole, mut faults) = (0u64, Vec::new());
    for entry in &mut entries {
        match entry {
            Ok(_) => whole += 1,
            Err(error) => faults.push(error.to_string()),
        }
    }
    let told = row([
        ("kind", json!(kind_of(input.kind()))),
        ("bytes", json!(content.len())),
        ("compressed", json!(input.is_compressed())),
        ("entries", json!(whole)),
        ("other_blocks", json!(entries.skipped())),
        ("faults", json!(faults)),
    ]);
    document(args.format.format, &told)?;
    Ok(if faults.is_empty() {
        Outcome::Success
    } else {
        Outcome::Nothing
    })
}

/// An input in words.
fn kind_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Entries => "log entries (get-entries JSON)",
        Kind::Chain => "chain (add-chain JSON)",
        Kind::Roots => "roots (get-roots JSON)",
        Kind::DataTile => "data tile (static-ct)",
        Kind::Pem => "PEM",
        Kind::Der => "DER",
        _ => "input",
    }
}
