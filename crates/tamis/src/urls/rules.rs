//! `tamis urls rules …`: rule sets checked, made of lists of others, and tried.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use serde::Deserialize;
use serde_json::json;
use tamis_url_canon::rules::{ListKind, import};
use tamis_url_canon::{Matcher, RuleSet};

use super::{KeyArgs, read, rule_set};
use crate::Outcome;
use crate::cli::FormatArgs;
use crate::render::{self, Rows, row};

/// Rules left out of an import that are told one by one; `--verbose` tells all.
const LEFT_OUT_TOLD_MAX: usize = 10;

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Is this a rule set that can be used, and what is in it?
    Check(CheckArgs),
    /// Make a rule set of a list of others; it is printed, what was left out is told on stderr
    Import(ImportArgs),
    /// Try rule sets on URLs whose keys are known
    Test(TestArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Rule sets
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// Whose list it is.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum From {
    /// ClearURLs' data.json or data.min.json
    Clearurls,
    /// Brave's clean-urls.json
    Brave,
    /// `removeparam` rules of AdGuard or uBlock Origin
    Adguard,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Whose list it is
    #[arg(long, value_enum)]
    pub(crate) from: From,
    /// The list; `-` reads stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// What the set is called; by default as the origin of the list
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The version of the set, a part of every key that it takes part in
    #[arg(long, value_name = "VERSION")]
    pub(crate) set_version: String,
    /// Where the list comes from
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) source: String,
    /// Under which licence it is
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) licence: String,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// JSON lines of `{"input": URL, "key": URL or null}`; `-` reads stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(command: &RulesCommand) -> anyhow::Result<Outcome> {
    match command {
        RulesCommand::Check(args) => check(args),
        RulesCommand::Import(args) => make(args),
        RulesCommand::Test(args) => test(args),
    }
}

fn check(args: &CheckArgs) -> anyhow::Result<Outcome> {
    const COLUMNS: [&str; 7] = ["file", "id", "names", "sites", "exceptions", "wrappers", "error"];
    let mut rows = Rows::new(args.format.format, &COLUMNS);
    let mut outcome = Outcome::Success;
    for file in &args.files {
        let bytes = read(file)?;
        let checked = RuleSet::parse(&bytes).and_then(|set| Matcher::new(&[&set]).map(|_| set));
        let error = checked.as_ref().err().map(ToString::to_string);
        if error.is_some() {
            outcome = Outcome::Nothing;
        }
        let set = checked.ok();
        let set = set.as_ref();
        rows.push(&row([
            ("file", json!(file.display().to_string())),
            ("id", json!(set.map(RuleSet::id))),
            ("names", json!(set.map(|set| set.names.len() + set.shaped.len()))),
            ("path_parameters", json!(set.map(|set| set.path_parameters.len()))),
            ("sites", json!(set.map(|set| set.sites.len()))),
            ("exceptions", json!(set.map(|set| set.exceptions.len()))),
            ("wrappers", json!(set.map(|set| set.wrappers.len()))),
            ("source", json!(set.map(|set| &set.source))),
            ("licence", json!(set.map(|set| &set.licence))),
            ("error", json!(error)),
        ]))?;
    }
    rows.finish()?;
    Ok(outcome)
}

fn make(args: &ImportArgs) -> anyhow::Result<Outcome> {
    let (kind, usual) = match args.from {
        From::Clearurls => (ListKind::ClearUrls, "clearurls"),
        From::Brave => (ListKind::Brave, "brave"),
        From::Adguard => (ListKind::AdGuard, "adguard"),
    };
    let name = args.name.as_deref().unwrap_or(usual);
    let mut imported = import(kind, &read(&args.file)?, name, &args.set_version).with_context(|| {
        format!(
            "{} is no list of {usual}; name its kind with --from",
            args.file.display()
        )
    })?;
    imported.set.source.clone_from(&args.source);
    imported.set.licence.clone_from(&args.licence);
    render::raw(imported.set.to_json()?.as_bytes())?;
    render::raw(b"\n")?;
    for (rule, why) in imported.left_out.iter().take(LEFT_OUT_TOLD_MAX) {
        talk!("left out: {rule}: {why}");
    }
    let untold = imported.left_out.len().saturating_sub(LEFT_OUT_TOLD_MAX);
    if untold > 0 {
        talk!("left out: {untold} more");
    }
    talk!(
        "{} rules taken, {} left out",
        imported.taken,
        imported.left_out.len()
    );
    Ok(if imported.taken > 0 {
        Outcome::Success
    } else {
        Outcome::Nothing
    })
}

/// A URL and the key that it must have.
#[derive(Deserialize)]
struct Vector {
    input: String,
    key: Option<String>,
}

fn test(args: &TestArgs) -> anyhow::Result<Outcome> {
    const COLUMNS: [&str; 4] = ["line", "input", "want", "got"];
    // Read first, so that a faulty set is told before any result.
    args.keys
        .rules
        .iter()
        .try_for_each(|path| rule_set(path).map(drop))?;
    let matcher = args.keys.matcher()?;
    let mut canonicalizer = args.keys.canonicalizer(matcher.as_ref());
    let bytes = read(&args.file)?;
    let mut rows = Rows::new(args.format.format, &COLUMNS);
    let mut tried = 0u64;
    for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let vector: Vector = serde_json::from_slice(line).with_context(|| {
            format!(
                "{}:{}: no {{\"input\": URL, \"key\": URL or null}}",
                args.file.display(),
                index + 1
            )
        })?;
        tried += 1;
        let result = canonicalizer.canon(vector.input.as_bytes());
        let got = result.as_ref().ok().map(|canonical| canonical.equivalence);
        if got != vector.key.as_deref() {
            rows.push(&row([
                ("line", json!(index + 1)),
                ("input", json!(vector.input)),
                ("want", json!(vector.key)),
                ("got", json!(got)),
                ("error", json!(result.err().map(|reject| reject.to_string()))),
            ]))?;
        }
    }
    let failed = rows.printed();
    if failed > 0 || args.format.format != crate::cli::Format::Table {
        rows.finish()?;
    }
    talk!("{tried} tried, {failed} with another key");
    anyhow::ensure!(tried > 0, "{} holds no vector", args.file.display());
    Ok(if failed == 0 {
        Outcome::Success
    } else {
        Outcome::Nothing
    })
}
