//! `tamis-testbed`: writes generated corpora to files, and serves simulated logs.
#![forbid(unsafe_code)]

mod output;
mod simulate;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Parser, Subcommand, ValueEnum};
use output::Output;
use simulate::{SimulateArguments, simulate};
use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use tamis_testbed::{Corpus, CorpusOptions, Entry, Issuers, Truth};

/// Entries between two updates of the progress line.
const PROGRESS_ENTRIES: u64 = 50_000;

/// Pretends to be the outside world.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a corpus of log entries. Signatures are random bytes: nothing verifies.
    Corpus(CorpusArguments),
    Ctlog(Box<SimulateArguments>),
}

#[derive(Args)]
struct CorpusArguments {
    /// Stop after this many entries.
    #[arg(long, required_unless_present = "names", conflicts_with = "names")]
    entries: Option<u64>,
    /// Stop once the entries hold this many names.
    #[arg(long)]
    names: Option<u64>,
    /// What to write; `none` measures generation alone.
    #[arg(long, value_enum, default_value_t = Format::GetEntries)]
    format: Format,
    /// Folder to write to; a corpus of several logs gets one folder a log in it.
    #[arg(long, default_value = "corpus")]
    out: PathBuf,
    /// Entries in a file (data tiles always hold 256).
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    page: u32,
    /// The same seed and options make the same corpus.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Logs that the entries are spread over.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    logs: u16,
    /// Days that the corpus covers; renewals come after 60 to 90.
    #[arg(long, default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=8000))]
    days: u64,
    /// Registrable domains to draw from.
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    domains: u64,
    /// Compress the files, as logs do.
    #[arg(long)]
    gzip: bool,
    /// Also write what a reader must find, one JSON object an entry.
    #[arg(long)]
    truth: Option<PathBuf>,
}

/// Framing of the files.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    GetEntries,
    Tiles,
    Pem,
    None,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Corpus(arguments) => write_corpus(&arguments),
        Command::Ctlog(arguments) => simulate(*arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tamis-testbed: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn write_corpus(arguments: &CorpusArguments) -> Result<()> {
    // A name count is met by about 2.3 names an entry.
    let planned = arguments
        .entries
        .or(arguments.names.map(|names| names * 10 / 23))
        .unwrap_or_default();
    let options = CorpusOptions {
        domains: arguments.domains,
        logs: arguments.logs,
        ..CorpusOptions::spread_over(arguments.seed, planned, arguments.days)
    };
    let corpus = Corpus::new(options);
    let issuers = corpus.issuers();
    let mut output = Output::create(
        arguments.format,
        &arguments.out,
        arguments.logs,
        arguments.page,
        arguments.gzip,
    )?;
    let mut truth = TruthFile::create(arguments.truth.as_ref())?;
    let started = Instant::now();
    let (mut entries, mut names, mut certificate_bytes) = (0_u64, 0_u64, 0_u64);
    for entry in corpus {
        let enough = arguments.entries.is_some_and(|max| entries >= max)
            || arguments.names.is_some_and(|max| names >= max);
        if enough {
            break;
        }
        entries += 1;
        names += entry.issuance.names.len() as u64;
        certificate_bytes += entry.der.len() as u64;
        truth.write(&entry, &issuers)?;
        output.write(entry, &issuers)?;
        if entries.is_multiple_of(PROGRESS_ENTRIES) && std::io::stderr().is_terminal() {
            eprint!("\r{entries} entries");
        }
    }
    output.finish(&issuers)?;
    truth.finish()?;
    let seconds = started.elapsed().as_secs_f64();
    ensure!(entries > 0, "nothing to write: ask for at least one entry");
    eprintln!(
        "\r{entries} entries, {names} names ({:.2} an entry), {} B a certificate, {seconds:.1} s: {:.0} certificates/s",
        names as f64 / entries as f64,
        certificate_bytes / entries,
        entries as f64 / seconds,
    );
    Ok(())
}

/// The optional truth file.
struct TruthFile(Option<(PathBuf, BufWriter<File>)>);

impl TruthFile {
    fn create(path: Option<&PathBuf>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self(None)) };
        let file = File::create(path).with_context(|| format!("create {}", path.display()))?;
        Ok(Self(Some((path.clone(), BufWriter::new(file)))))
    }

    fn write(&mut self, entry: &Entry, issuers: &Issuers) -> Result<()> {
        let Some((path, file)) = &mut self.0 else {
            return Ok(());
        };
        serde_json::to_writer(&mut *file, &Truth::of(entry, issuers))
            .map_err(anyhow::Error::from)
            .and_then(|()| Ok(file.write_all(b"\n")?))
            .with_context(|| format!("write {}", path.display()))
    }

    fn finish(self) -> Result<()> {
        let Some((path, mut file)) = self.0 else {
            return Ok(());
        };
        file.flush().with_context(|| format!("write {}", path.display()))
    }
}
