//! The command line: one definition gives parsing, help, completions and man pages.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::when::Moment;

/// Sieves the web: the names that certificates reveal.
#[derive(Debug, Parser)]
#[command(
    name = "tamis",
    version,
    about,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// Tell more on stderr
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Names and certificates from Certificate Transparency
    #[command(subcommand)]
    Ct(CtCommand),
    /// URLs: canonical keys, parts, why two are the same
    #[command(subcommand)]
    Urls(crate::urls::UrlsCommand),
    /// Print shell completions
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Write man pages
    Man {
        /// Folder to write to
        dir: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CtCommand {
    /// Read certificates and log entries into the index
    Import(ImportArgs),
    /// Read logs into the index as they grow, verified and complete
    ///
    /// Goes on where it stopped, and reads until SIGINT or SIGTERM: newest entries first, then older ones.
    /// `tamis ct logs` says meanwhile how every log stands.
    Follow(crate::ct::follow::FollowArgs),
    /// How every followed log stands
    ///
    /// As of a second ago while `tamis ct follow` runs, else as it is kept. What logs were caught in, and why
    /// they fail, is told below the table; other formats have it in each log.
    Logs(crate::ct::logs::LogsArgs),
    /// Read certificates and print what they say, without an index
    Parse(ParseArgs),
    /// Which names exist at or below this domain?
    Names(NamesArgs),
    /// Which certificates are for this domain, address or e-mail?
    Search(SearchArgs),
    /// Everything about one certificate
    Show(ShowArgs),
    /// What the index holds and what it costs
    Stats(StatsArgs),
    /// Merge the segments of each month into fewer
    Compact(CompactArgs),
    /// Remove certificates that are expired or old, or what one month brought
    Prune(PruneArgs),
    /// Copy the index, also while another process writes it
    ///
    /// Segments become hard links where the copy lies on the same file system, the rest is copied. The
    /// copy is the folder of an index: to restore it, use it (or a copy of it) as `--data`.
    Backup(BackupArgs),
    /// Prove every checksum, order and count of the index
    Verify(VerifyArgs),
    /// Tell what a file is: a file of the index, or one to import
    Inspect(InspectArgs),
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns for people
    Table,
    /// One JSON document: a list of rows, a page (`search`), or an object of facts
    Json,
    /// The same rows or facts, one JSON object a line
    Ndjson,
    /// Comma-separated values with a header (RFC 4180), a record a line
    Csv,
}

/// Where the index lies.
#[derive(Debug, Clone, Args)]
pub(crate) struct DataArgs {
    /// Folder of the index
    #[arg(long, value_name = "DIR", default_value = "./tamis-data")]
    pub(crate) data: PathBuf,
}

/// Which domains can be registered.
#[derive(Debug, Clone, Args)]
pub(crate) struct SuffixArgs {
    /// A newer public suffix list than the one shipped (`public_suffix_list.dat`)
    #[arg(long, value_name = "FILE")]
    pub(crate) psl: Option<PathBuf>,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct FormatArgs {
    /// How results are printed
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files or folders: get-entries JSON (also .gz), data tiles, PEM, DER; `-` reads stdin. What a
    /// file is, is told by its content
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Log that the entries come from (its URL or name); without it they count as a local import
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) log: Option<String>,
    /// Index of the first entry in the log; entries are numbered on from there, over all files
    #[arg(long, value_name = "INDEX", requires = "log")]
    pub(crate) start: Option<u64>,
    /// Names of one certificate that are indexed; the rest is counted
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) names_max: u32,
    /// Rows of the memtable before it becomes a segment
    #[arg(long, value_name = "ROWS", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub(crate) flush_rows: u32,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// How the summary is printed; `ndjson` adds a line for each file as soon as it is durable
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) suffixes: SuffixArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ParseArgs {
    /// Files or folders; `-` reads stdin
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Names of one certificate that are printed; the rest is counted
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) names_max: u32,
    /// How results are printed
    #[arg(long, value_enum, default_value = "ndjson")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) suffixes: SuffixArgs,
    /// Not needed here; taken so that scripts can give it to every command.
    #[command(flatten)]
    _data: DataArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NamesArgs {
    /// Domain, or a top-level domain
    pub(crate) domain: String,
    /// Only names first seen since then (`2026-11-01`, RFC 3339, or `30d`, `12h`)
    #[arg(long, value_name = "TIME", value_parser = crate::when::parse)]
    pub(crate) since: Option<Moment>,
    /// Stop after this many names
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Domain, IP address or e-mail address
    pub(crate) query: String,
    /// The name itself and nothing below it
    #[arg(long)]
    pub(crate) exact: bool,
    /// Wildcards that cover this host name
    #[arg(long, conflicts_with = "exact")]
    pub(crate) wildcards_covering: bool,
    /// Part of the issuer's name, in any case
    #[arg(long, value_name = "TEXT")]
    pub(crate) issuer: Option<String>,
    /// Part of the subject's organisation, in any case
    #[arg(long, value_name = "TEXT")]
    pub(crate) org: Option<String>,
    /// Valid from this time or later (`2026-11-01`, RFC 3339, or `30d`, `12h`)
    #[arg(long, value_name = "TIME", value_parser = crate::when::parse)]
    pub(crate) after: Option<Moment>,
    /// Valid from before this time
    #[arg(long, value_name = "TIME", value_parser = crate::when::parse)]
    pub(crate) before: Option<Moment>,
    /// Not expired now; an unknown end counts as not expired
    #[arg(long)]
    pub(crate) not_expired: bool,
    /// Results of one page
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) limit: usize,
    /// Go on behind an earlier page: the `next_cursor` of the same query with the same filters
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// SHA-256 of a certificate or precertificate, serial number (hex), record id, or issuance
    pub(crate) what: String,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// Ask each filter window 100,000 random questions and tell how often it says "maybe" for nothing.
    /// Reads up to 400 MB of each filter file that is not in memory yet
    #[arg(long)]
    pub(crate) measure: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) suffixes: SuffixArgs,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true)))]
pub(crate) struct PruneArgs {
    /// Certificates that expired longer ago than AGE (`90d`, `12h`), by default all expired ones; an
    /// unknown end counts as not expired
    #[arg(long, group = "what", value_name = "AGE", num_args = 0..=1, default_missing_value = "0m", value_parser = crate::when::parse)]
    pub(crate) expired: Option<Moment>,
    /// Certificates first seen before then (`2026-11-01`, RFC 3339, or `400d`, `12h` ago); with
    /// `--expired`, those for which both hold
    #[arg(long, group = "what", value_name = "TIME", value_parser = crate::when::parse)]
    pub(crate) seen_before: Option<Moment>,
    /// All that was read into the index in a month (`2026-11`): its files go as they are
    #[arg(long, group = "what", value_name = "MONTH", conflicts_with_all = ["expired", "seen_before"], value_parser = crate::ct::prune::month)]
    pub(crate) month: Option<String>,
    /// Tell what would go, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove without asking back; not needed where stdout is no terminal
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) suffixes: SuffixArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// Folder to make, which must not exist or be empty
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The file; `-` reads stdin
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// Not needed here; taken so that scripts can give it to every command.
    #[command(flatten)]
    _data: DataArgs,
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
