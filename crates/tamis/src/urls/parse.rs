//! `tamis urls parse`: the parts of each URL, as the URL Standard reads it.

use anyhow::Context;
use tamis_hostname::PublicSuffixes;
use tamis_url_canon::{HostKind, Parser, Reject, Url};

use super::lines::{self, Line, Work};
use super::text::{Record, shown};
use super::{Format, ParseArgs};
use crate::Outcome;

pub(crate) fn run(args: &ParseArgs) -> anyhow::Result<Outcome> {
    let base = match &args.base {
        Some(base) => Some(Url::parse(base.as_bytes()).with_context(|| {
            format!("the base {base:?} is no URL; write it out, as https://example.com/")
        })?),
        None => None,
    };
    let counts = lines::each(&args.file, || Parse {
        format: args.format,
        parser: Parser::default(),
        base: base.as_ref(),
        url: Url::default(),
    })?;
    Ok(counts.outcome())
}

struct Parse<'a> {
    format: Format,
    parser: Parser,
    base: Option<&'a Url>,
    url: Url,
}

impl Work for Parse<'_> {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<u8>) -> bool {
        let (input, result) = match line {
            Line::Whole(line) => (line, self.parser.parse(line, self.base, &mut self.url)),
            Line::TooLong(shown, bytes) => (shown, Err(Reject::TooLong { bytes })),
        };
        let error = result.err();
        let url = error.is_none().then_some(&self.url);
        let mut record = Record::new(self.format, out);
        // Columns of TSV are the parts alone; order is kept, so lines can be pasted beside them.
        if self.format == Format::Ndjson {
            record.text("input", Some(&shown(input)));
        }
        record
            .text("href", url.map(Url::href))
            .text("scheme", url.map(Url::scheme))
            .text("username", url.map(Url::username))
            .text("password", url.map(Url::password))
            .text("host", url.and_then(Url::host))
            .number("port", url.and_then(Url::port))
            .text("path", url.map(Url::path))
            .text("query", url.and_then(Url::query))
            .text("fragment", url.and_then(Url::fragment))
            .text("registrable_domain", url.and_then(registrable))
            .text("error", error.map(|error| error.to_string()).as_deref())
            .end();
        error.is_none()
    }
}

/// None for addresses, and for hosts that are a public suffix.
fn registrable(url: &Url) -> Option<&str> {
    if url.host_kind() != HostKind::Domain {
        return None;
    }
    let host = url.host()?;
    PublicSuffixes::shipped().registrable(host.strip_suffix('.').unwrap_or(host))
}
