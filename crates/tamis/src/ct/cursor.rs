//! The cursor of a search as the command line gives it out: the question, and a place in its answer.
//!
//! A place alone does not know which filters it was reached with; going on with others would leave out
//! results without a word.
//!
//! # Format
//! `HASH.PLACE`: 16 hex digits of XXH3 over the parts of the question, and the cursor of the index.

use xxhash_rust::xxh3::xxh3_64;

use crate::cli::SearchArgs;

/// What was asked, in 64 bits. The limit and the output format may change from page to page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Question(u64);

impl Question {
    /// `subject` is the canonical form of what is searched for, so that spellings of it are one question.
    pub(crate) fn of(subject: &str, args: &SearchArgs) -> Self {
        let lower = |text: &Option<String>| text.as_ref().map(|text| text.to_lowercase());
        let parts = format!(
            "{:?}",
            (
                (subject, args.exact, args.wildcards_covering, args.not_expired),
                (lower(&args.issuer), lower(&args.org)),
                args.after.as_ref().map(|moment| &moment.called),
                args.before.as_ref().map(|moment| &moment.called),
            )
        );
        Self(xxh3_64(parts.as_bytes()))
    }

    /// The cursor to hand out for a place in the answer.
    pub(crate) fn cursor(self, place: &str) -> String {
        format!("{:016x}.{place}", self.0)
    }

    /// The place in a cursor that was handed out for this question.
    pub(crate) fn place(self, cursor: &str) -> anyhow::Result<&str> {
        let parts = cursor.split_once('.').and_then(|(hash, place)| {
            let digits = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            Some((u64::from_str_radix(hash, 16).ok().filter(|_| digits)?, place))
        });
        let Some((hash, place)) = parts else {
            anyhow::bail!(
                "\"{cursor}\" is not a cursor of this query: it is cut off or was changed; copy it whole, or start again without --cursor"
            );
        };
        anyhow::ensure!(
            hash == self.0,
            "{cursor} is not a cursor of this query but of another one; ask with the same name and filters as for the page before, or start again without --cursor"
        );
        Ok(place)
    }
}
