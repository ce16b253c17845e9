//! `tamis urls canon`: the key of each URL, what to fetch, and which rules made the difference.

use std::sync::Arc;

use tamis_url_canon::{Canonicalizer, Fingerprinter, Matcher, Reject, SafeBrowsing, expected_collisions};

use super::lines::{self, Line, Work};
use super::text::{Record, shown};
use super::{CanonArgs, Format};
use crate::Outcome;

pub(crate) fn run(args: &CanonArgs) -> anyhow::Result<Outcome> {
    let matcher = args.keys.matcher()?;
    let counts = lines::each(&args.file, || Canon::new(args, matcher.as_ref()))?;
    if args.fingerprint.is_some() && args.bits == "64" {
        let keys = counts.lines - counts.rejected;
        talk!(
            "{keys} keys as 64 bits: {:.2e} pairs of different keys are expected to collide; 128 bits spare you that",
            expected_collisions(keys, 64)
        );
    }
    Ok(counts.outcome())
}

struct Canon {
    format: Format,
    canonicalizer: Canonicalizer,
    fingerprinter: Option<Fingerprinter>,
    short: bool,
    trace: bool,
    safe_browsing: bool,
}

impl Canon {
    fn new(args: &CanonArgs, matcher: Option<&Arc<Matcher>>) -> Self {
        let canonicalizer = args.keys.canonicalizer(matcher);
        let fingerprinter = args
            .fingerprint
            .map(|secret| Fingerprinter::new(&secret, canonicalizer.id()));
        Self {
            format: args.format,
            canonicalizer,
            fingerprinter,
            short: args.bits == "64",
            trace: args.trace,
            safe_browsing: args.safe_browsing,
        }
    }
}

impl Work for Canon {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<u8>) -> bool {
        let (input, result) = match line {
            Line::Whole(line) => (line, self.canonicalizer.canon(line)),
            Line::TooLong(shown, bytes) => (shown, Err(Reject::TooLong { bytes })),
        };
        let mut record = Record::new(self.format, out);
        record.text("input", Some(&shown(input)));
        let key = result.as_ref().ok().map(|canonical| canonical.equivalence);
        let fetch = result.as_ref().ok().map(|canonical| canonical.fetch_url);
        let fired = result.as_ref().map_or_else(
            |_| tamis_url_canon::RuleBits::NONE,
            |canonical| canonical.fired.union(canonical.fired_equivalence),
        );
        record
            .text("key", key)
            // Another tool makes keys of what no browser can fetch.
            .text("fetch_url", fetch.filter(|url| !url.is_empty()))
            .words("rules", fired.iter().map(|rule| rule.name()))
            .text("error", result.as_ref().err().map(ToString::to_string).as_deref());
        if let Some(fingerprinter) = &self.fingerprinter {
            let print = key.map(|key| fingerprinter.of(key.as_bytes()));
            let short = self.short;
            let text = print.map(|print| {
                if short {
                    print.to_string()[..16].to_owned()
                } else {
                    print.to_string()
                }
            });
            record.text("fingerprint", text.as_deref());
        }
        let taken = result.is_ok();
        if self.safe_browsing {
            let expressions = SafeBrowsing::of(input).map(|form| form.expressions());
            record.list("safe_browsing", &expressions.unwrap_or_default());
        }
        if self.trace {
            let steps = if taken {
                self.canonicalizer.trace(input).unwrap_or_default()
            } else {
                Vec::new()
            };
            record.json("steps", &super::explain::steps(&steps));
        }
        record.end();
        taken
    }
}
