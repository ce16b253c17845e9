//! `tamis urls …`: one file a command, and what they share.

mod canon;
mod explain;
mod lines;
mod parse;
mod rules;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use tamis_url_canon::{Canonicalizer, Matcher, Profile, Rule, RuleSet, UnknownProfile};

use crate::Outcome;

/// A larger file is no rule set and no list.
const FILE_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Subcommand)]
pub(crate) enum UrlsCommand {
    /// The canonical key of each URL, and what to fetch
    ///
    /// One record for each line that is not empty, in order. Nothing is trimmed but what the URL Standard
    /// trims. Ends with 1 if a URL was rejected.
    Canon(CanonArgs),
    /// The parts of each URL, as the URL Standard reads it
    Parse(ParseArgs),
    /// Are two URLs the same, and which rule says so?
    Explain(ExplainArgs),
    /// Rule sets: check one, make one of a list of others, try one
    #[command(subcommand)]
    Rules(rules::RulesCommand),
}

/// How records are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line
    Ndjson,
    /// Tab-separated fields without a header, a record a line
    Tsv,
}

/// Under which rules keys are made.
#[derive(Debug, Clone, Args)]
pub(crate) struct KeyArgs {
    /// Which rules make the key: strict, default, classic, w3lib, surt or crawler-commons
    #[arg(long, value_name = "PROFILE", default_value = "default", value_parser = profile)]
    pub(crate) profile: Profile,
    /// A rule set that may drop parameters, unwrap redirects and switch rules for sites; can be given more
    /// than once
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,
    /// Turn on a rule that the profile leaves off (www, scheme-fold, trailing-slash, case-fold,
    /// blank-values)
    #[arg(long, value_name = "RULE", value_parser = option)]
    pub(crate) with: Vec<Rule>,
}

#[derive(Debug, Args)]
pub(crate) struct CanonArgs {
    /// Lines of URLs; `-` or nothing reads stdin
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    /// Add what each rule changed: `steps` with `rule`, `class`, `before` and `after`
    #[arg(long)]
    pub(crate) trace: bool,
    /// Add the expressions that lists of Safe Browsing are matched by
    #[arg(long)]
    pub(crate) safe_browsing: bool,
    /// Add the keyed fingerprint of the key, under this secret of 32 hexadecimal digits
    #[arg(long, value_name = "SECRET", value_parser = secret)]
    pub(crate) fingerprint: Option<[u8; 16]>,
    /// Bits of the fingerprint; with 64, how many keys are expected to collide is told at the end
    #[arg(long, value_name = "BITS", default_value = "128", requires = "fingerprint", value_parser = ["64", "128"])]
    pub(crate) bits: String,
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

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A URL
    pub(crate) a: String,
    /// Another
    pub(crate) b: String,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    #[command(flatten)]
    pub(crate) format: crate::cli::FormatArgs,
}

fn profile(name: &str) -> Result<Profile, UnknownProfile> {
    name.parse()
}

fn option(name: &str) -> Result<Rule, String> {
    let options = [
        Rule::Www,
        Rule::SchemeFold,
        Rule::TrailingSlash,
        Rule::CaseFold,
        Rule::BlankValues,
    ];
    let mut found = options.into_iter().filter(|rule| rule.name() == name);
    found.next().ok_or_else(|| {
        let names: Vec<&str> = options.iter().map(|rule| rule.name()).collect();
        format!(
            "no rule that can be turned on is called so; there are {}",
            names.join(", ")
        )
    })
}

fn secret(text: &str) -> Result<[u8; 16], String> {
    let number =
        Some(text).filter(|text| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    number
        .and_then(|text| u128::from_str_radix(text, 16).ok())
        .map(u128::to_be_bytes)
        .ok_or_else(|| "a secret is 32 hexadecimal digits; `openssl rand -hex 16` makes one".to_owned())
}

pub(crate) fn run(command: &UrlsCommand) -> anyhow::Result<Outcome> {
    match command {
        UrlsCommand::Canon(args) => canon::run(args),
        UrlsCommand::Parse(args) => parse::run(args),
        UrlsCommand::Explain(args) => explain::run(args),
        UrlsCommand::Rules(command) => rules::run(command),
    }
}

impl KeyArgs {
    /// The rule sets that were named, compiled; none if none was.
    fn matcher(&self) -> anyhow::Result<Option<Arc<Matcher>>> {
        if self.rules.is_empty() {
            return Ok(None);
        }
        anyhow::ensure!(
            !self.profile.is_compatibility(),
            "the profile {} makes the keys of another tool, which knows no rule sets; use default or classic",
            self.profile
        );
        let sets = self
            .rules
            .iter()
            .map(|path| rule_set(path))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let matcher = Matcher::new(&sets.iter().collect::<Vec<_>>())?;
        Ok(Some(Arc::new(matcher)))
    }

    fn canonicalizer(&self, matcher: Option<&Arc<Matcher>>) -> Canonicalizer {
        let mut canonicalizer = Canonicalizer::new(self.profile);
        for rule in &self.with {
            canonicalizer = canonicalizer.with(*rule);
        }
        match matcher {
            Some(matcher) => canonicalizer.with_sets(Arc::clone(matcher)),
            None => canonicalizer,
        }
    }
}

fn rule_set(path: &Path) -> anyhow::Result<RuleSet> {
    RuleSet::parse(&read(path)?).with_context(|| {
        format!(
            "{} is no rule set that can be used; `tamis urls rules import` makes one of a list",
            path.display()
        )
    })
}

/// A file as a whole, or stdin for `-`.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    use std::io::Read;
    let told = || format!("read {}", path.display());
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        let file = std::fs::File::open(path).with_context(told)?;
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)
    };
    read.with_context(told)?;
    anyhow::ensure!(
        bytes.len() as u64 <= FILE_BYTES_MAX,
        "{} has more than {FILE_BYTES_MAX} bytes; it is no rule set and no list",
        path.display()
    );
    Ok(bytes)
}
