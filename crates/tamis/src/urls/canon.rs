//! `tamis urls canon`: the key of each URL, what to fetch, and which rules made the difference.

use tamis_url_canon::{Canonicalizer, Reject};

use super::lines::{self, Line, Work};
use super::text::{Record, shown};
use super::{CanonArgs, Format};
use crate::Outcome;

pub(crate) fn run(args: &CanonArgs) -> anyhow::Result<Outcome> {
    let rejected = lines::each(&args.file, || Canon {
        format: args.format,
        canonicalizer: Canonicalizer::new(args.profile),
    })?;
    Ok(if rejected == 0 {
        Outcome::Success
    } else {
        Outcome::Nothing
    })
}

struct Canon {
    format: Format,
    canonicalizer: Canonicalizer,
}

impl Work for Canon {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<u8>) -> bool {
        let (input, result) = match line {
            Line::Whole(line) => (line, self.canonicalizer.canon(line)),
            Line::TooLong(shown, bytes) => (shown, Err(Reject::TooLong { bytes })),
        };
        let mut record = Record::new(self.format, out);
        record.text("input", Some(&shown(input)));
        match &result {
            Ok(canonical) => record
                .text("key", Some(canonical.key))
                .text("fetch_url", Some(canonical.fetch_url))
                .words("rules", canonical.fired.iter().map(|rule| rule.name()))
                .text("error", None),
            Err(reject) => record
                .text("key", None)
                .text("fetch_url", None)
                .words("rules", std::iter::empty())
                .text("error", Some(&reject.to_string())),
        };
        record.end();
        result.is_ok()
    }
}
