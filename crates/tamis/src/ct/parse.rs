//! `tamis ct parse`: what certificates say, one JSON object each.

use serde_json::{Value, json};
use tamis_ct_index::SuffixList;
use tamis_ct_log::certificate::ReadOptions;
use tamis_ct_log::input::Scratch;
use tamis_ct_log::{Input, Name, Reading};
use tamis_hostname::PublicSuffixes;

use crate::Outcome;
use crate::cli::ParseArgs;
use crate::ct::files::{self, InputFile};
use crate::ct::suffixes;
use crate::render::{Row, Rows, row};
use crate::when::rfc3339;

const COLUMNS: [&str; 8] = [
    "file",
    "index",
    "precert",
    "names",
    "issuer",
    "serial",
    "not_before",
    "not_after",
];

pub(crate) fn run(args: &ParseArgs) -> anyhow::Result<Outcome> {
    let (files, errors) = files::expand(&args.paths);
    let options = ReadOptions {
        names_max: args.names_max as usize,
        ..ReadOptions::default()
    };
    let mut rows = Rows::new(args.format, &COLUMNS);
    let mut parser = Parser {
        options,
        suffixes: suffixes::read(&args.suffixes)?,
        scratch: Scratch::new(),
        reading: Reading::new(),
        rejected: errors.len() as u64,
    };
    for error in errors {
        talk!("{}", crate::talk::told(&error));
    }
    for file in &files {
        match parser.file(file, &mut rows) {
            Err(error)
                if error.downcast_ref::<tamis_ct_log::Error>().is_none() && crate::is_broken_pipe(&error) =>
            {
                return Err(error);
            }
            Err(error) => parser.refuse(file, &error),
            Ok(()) => {}
        }
    }
    let read = rows.printed();
    rows.finish()?;
    if read == 0 {
        let paths = files::listed(&args.paths);
        let reason = if files.is_empty() && parser.rejected == 0 {
            ": it holds no file"
        } else {
            ""
        };
        talk!(
            "no certificate was read from {paths}{reason}; read are {}",
            files::KINDS
        );
    }
    Ok(if read > 0 && parser.rejected == 0 {
        Outcome::Success
    } else {
        Outcome::Nothing
    })
}

/// What parsing needs, its buffers kept from file to file.
struct Parser {
    options: ReadOptions,
    suffixes: SuffixList,
    scratch: Scratch,
    reading: Reading,
    /// Files and entries that could not be read.
    rejected: u64,
}

impl Parser {
    fn file(&mut self, file: &InputFile, rows: &mut Rows) -> anyhow::Result<()> {
        let bytes = file.read()?;
        let input = Input::open(&bytes)?;
        for raw in input.entries() {
            let read = raw.and_then(|raw| {
                let ordinal = raw.ordinal();
                raw.decode(&mut self.scratch)?
                    .read(&self.options, &mut self.reading)?;
                Ok(ordinal)
            });
            match read {
                Ok(ordinal) => rows.push(&describe(
                    &file.name(),
                    ordinal,
                    &self.reading,
                    self.suffixes.get(),
                ))?,
                Err(error) => {
                    self.rejected += 1;
                    talk!("{}: {error}", file.name());
                }
            }
        }
        Ok(())
    }

    /// A file as a whole cannot be read. Folders hold other files too; passing over them is no fault.
    fn refuse(&mut self, file: &InputFile, error: &anyhow::Error) {
        let foreign = matches!(
            error.downcast_ref::<tamis_ct_log::Error>(),
            Some(tamis_ct_log::Error::NotRecognised { .. })
        );
        let reason = crate::talk::told(error);
        if foreign && !file.named {
            tracing::info!(file = file.name(), reason, "passed over");
        } else {
            self.rejected += 1;
            talk!("{}: {reason}", file.name());
        }
    }
}

fn describe(file: &str, index: u64, reading: &Reading, suffixes: &PublicSuffixes) -> Row {
    let mut names = Vec::new();
    let mut lists: [Vec<String>; 3] = Default::default();
    let [others, ips, emails] = &mut lists;
    let mut domains = std::collections::BTreeSet::new();
    for name in reading.names() {
        match name {
            Name::Host {
                host,
                exact,
                wildcard,
            } => {
                if exact {
                    names.push(host.to_owned());
                }
                if wildcard {
                    names.push(format!("*.{host}"));
                }
                domains.extend(suffixes.registrable(host));
            }
            Name::Ip(ip) => ips.push(ip.to_string()),
            Name::Email(email) => emails.push(email.to_owned()),
            Name::Other(text) => others.push(text.to_owned()),
        }
    }
    let time = |seconds: Option<i64>| seconds.and_then(rfc3339).map_or(Value::Null, Value::String);
    let deviations: Vec<&str> = reading
        .deviations
        .iter()
        .map(tamis_ct_log::Deviation::as_str)
        .collect();
    let issuance = tamis_engine::issuance_key(&reading.issuance);
    let [others, ips, emails] = lists;
    row([
        ("file", json!(file)),
        ("index", json!(index)),
        (
            "sha256",
            reading
                .fingerprint
                .map_or(Value::Null, |sha256| json!(hex(&sha256))),
        ),
        ("precert", json!(reading.precert)),
        ("issuance", json!(format!("{issuance:016x}"))),
        ("names", json!(names)),
        ("other_names", json!(others)),
        ("ips", json!(ips)),
        ("emails", json!(emails)),
        ("names_total", json!(reading.names_total())),
        ("common_names", json!(reading.common_names().collect::<Vec<_>>())),
        ("issuer", json!(reading.issuer_display())),
        (
            "organization",
            reading
                .subject_organisation()
                .map_or(Value::Null, |text| json!(text)),
        ),
        ("serial", json!(reading.serial_hex())),
        ("not_before", time(reading.not_before)),
        ("not_after", time(reading.not_after)),
        ("registrable_domains", json!(domains)),
        ("log_index", json!(reading.log_index)),
        (
            "timestamp",
            time(reading.timestamp_ms.map(|ms| (ms / 1_000) as i64)),
        ),
        ("deviations", json!(deviations)),
    ])
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}
