//! The signed list of logs: who they are, where to read them, and what became of them.
//!
//! Version 3 of Google's format, which Apple's resembles. The list decides by its `state` objects; what
//! a description says is for people. Unknown fields are passed over, `logs` and `tiled_logs` may be empty
//! or missing, and one log that cannot be read costs itself and is told in [`LogList::skipped`].
//!
//! # Limits
//! [`LIST_BYTES_MAX`], [`LOGS_MAX`]; texts are cut at 512 bytes.

mod compare;
mod follow;
mod read;

pub use self::compare::{Change, Refused, accept};
pub use self::follow::{Follow, FollowRules, NotFollowed};
use crate::key::{LogId, PublicKey, SignatureError};
use crate::merkle::Tree;

/// Of the list; Google's has 40 KiB. Built in memory, JSON takes up to a hundred times its length.
pub const LIST_BYTES_MAX: usize = 1 << 20;
/// Of a list; Google's has 56, its list of all logs ever about 150.
pub const LOGS_MAX: usize = 4_096;
/// How old a list may be before it should be doubted: what Chrome allows itself, ten weeks.
pub const LIST_AGE_MS_MAX: u64 = 70 * 24 * 3_600 * 1_000;

/// The key with which Google signs its list.
pub const GOOGLE_KEY_PEM: &str = include_str!("../../data/google-log-list-key.pem");

/// A list of logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogList {
    /// As the list has it: `85.92`, or empty.
    pub version: String,
    /// When it was made, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// In the order of the list.
    pub logs: Vec<LogDescription>,
    /// What could not be read.
    pub skipped: Vec<SkippedLog>,
}

/// One log of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDescription {
    /// Who runs it.
    pub operator: String,
    /// For people only.
    pub description: String,
    /// Its key, whose hash is its id.
    pub key: PublicKey,
    /// How to read it.
    pub api: Api,
    /// Within how many seconds an accepted entry must be in the tree.
    pub mmd_s: u64,
    /// What became of it.
    pub state: State,
    /// When the state was entered, in milliseconds since 1970; 0 where the list does not say.
    pub state_since_ms: u64,
    /// Which certificates it takes, by the end of their validity; `None` for all.
    pub interval: Option<Interval>,
    /// The list calls it a test log.
    pub is_test: bool,
}

/// How a log is read. Prefixes end with a slash and start with `https://`; those of the loopback addresses
/// 127.0.0.1 and ::1, where simulated logs are, may start with `http://`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Api {
    /// RFC 6962: get-sth and get-entries.
    Rfc6962 {
        /// For everything.
        url: String,
    },
    /// static-ct-api: checkpoint and tiles.
    Static {
        /// For CAs; the origin of its checkpoints.
        submission_url: String,
        /// For readers.
        monitoring_url: String,
    },
}

/// What became of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It asked to be listed.
    Pending,
    /// It was accepted and is not yet everywhere.
    Qualified,
    /// Its timestamps count.
    Usable,
    /// It takes no more entries; the tree is final.
    ReadOnly(Option<Tree>),
    /// Its timestamps count no longer, and it may go away.
    Retired(Option<Tree>),
    /// It was refused.
    Rejected,
    /// The list does not say, or says what is not known here.
    Unknown,
}

/// From the first millisecond to before the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    /// Milliseconds since 1970, included.
    pub start_ms: u64,
    /// Milliseconds since 1970, excluded.
    pub end_ms: u64,
}

/// A log that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedLog {
    /// Who runs it.
    pub operator: String,
    /// As far as it has one.
    pub description: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Why bytes are no list.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// The signature does not hold: the list was changed, cut off, or signed with a new key.
    #[error("the log list is not signed by the key that is pinned; keep the last good list")]
    Signature(#[from] SignatureError),
    /// It is no JSON, or of another shape.
    #[error("the log list cannot be read; keep the last good list")]
    Answer(#[from] crate::answers::AnswerError),
    /// Its time of making is no date.
    #[error(
        "the log list has no readable log_list_timestamp (\"{found}\"), so it cannot be told from an old one"
    )]
    Timestamp {
        /// What stands there.
        found: String,
    },
    /// There are more logs than any list has.
    #[error("the log list has more than {LOGS_MAX} logs")]
    TooMany,
}

impl LogList {
    /// Checks the signature over `list` and reads it. `signature` is the `.sig` file that stands beside a
    /// list, `key` the pinned key, such as [`GOOGLE_KEY_PEM`].
    ///
    /// # Errors
    /// [`ListError`].
    pub fn read_signed(list: &[u8], signature: &[u8], key: &PublicKey) -> Result<Self, ListError> {
        key.verify(list, signature)?;
        Self::read(list)
    }

    /// Reads a list that is trusted for another reason: the last good one, or one that was configured.
    ///
    /// # Errors
    /// [`ListError`].
    pub fn read(list: &[u8]) -> Result<Self, ListError> {
        read::list(list)
    }

    /// The log with this id.
    #[must_use]
    pub fn log(&self, id: &LogId) -> Option<&LogDescription> {
        self.logs.iter().find(|log| log.id() == *id)
    }

    /// How old it is at `now_ms`; 0 where it is from the future, as a clock that is slow makes it.
    #[must_use]
    pub fn age_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.timestamp_ms)
    }
}

impl LogDescription {
    /// SHA-256 of its key.
    #[must_use]
    pub fn id(&self) -> LogId {
        self.key.id()
    }

    /// The prefix below which it is read.
    #[must_use]
    pub fn monitoring_url(&self) -> &str {
        match &self.api {
            Api::Rfc6962 { url } => url,
            Api::Static { monitoring_url, .. } => monitoring_url,
        }
    }

    /// The prefix below which CAs submit, and get-roots is served.
    #[must_use]
    pub fn submission_url(&self) -> &str {
        match &self.api {
            Api::Rfc6962 { url } => url,
            Api::Static { submission_url, .. } => submission_url,
        }
    }

    /// What its checkpoints call it: the submission prefix without scheme and trailing slashes.
    #[must_use]
    pub fn origin(&self) -> &str {
        let url = self.submission_url();
        url.split_once("://")
            .map_or(url, |(_, rest)| rest)
            .trim_end_matches('/')
    }
}

impl Interval {
    /// Whether a certificate that is valid until `not_after_ms` belongs to the log.
    #[must_use]
    pub fn contains(&self, not_after_ms: u64) -> bool {
        (self.start_ms..self.end_ms).contains(&not_after_ms)
    }
}
