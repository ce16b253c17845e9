//! `tamis urls …`: one file a command, and what they share.

mod canon;
mod lines;
mod parse;
mod text;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use tamis_url_canon::{Profile, UnknownProfile};

use crate::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum UrlsCommand {
    /// The canonical key of each URL, and what to fetch
    ///
    /// One record for each line that is not empty, in order. Nothing is trimmed but what the URL Standard
    /// trims. Ends with 1 if a URL was rejected.
    Canon(CanonArgs),
    /// The parts of each URL, as the URL Standard reads it
    Parse(ParseArgs),
}

/// How records are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line
    Ndjson,
    /// Tab-separated fields without a header, a record a line
    Tsv,
}

#[derive(Debug, Args)]
pub(crate) struct CanonArgs {
    /// Lines of URLs; `-` or nothing reads stdin
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
    /// Which rules make the key: strict, default, classic, w3lib, surt or crawler-commons
    #[arg(long, value_name = "PROFILE", default_value = "default", value_parser = profile)]
    pub(crate) profile: Profile,
    /// How records are printed
    #[arg(long, value_enum, default_value = "ndjson")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ParseArgs {
    /// Lines of URLs; `-` or nothing reads stdin
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
    /// Read each line relative to this URL
    #[arg(long, value_name = "URL")]
    pub(crate) base: Option<String>,
    /// How records are printed
    #[arg(long, value_enum, default_value = "ndjson")]
    pub(crate) format: Format,
}

fn profile(name: &str) -> Result<Profile, UnknownProfile> {
    name.parse()
}

pub(crate) fn run(command: &UrlsCommand) -> anyhow::Result<Outcome> {
    match command {
        UrlsCommand::Canon(args) => canon::run(args),
        UrlsCommand::Parse(args) => parse::run(args),
    }
}
