//! What can go wrong in the index, with the place and whose fault it is.

use std::path::{Path, PathBuf};

use crate::coding::Malformed;

/// An error of the index. Each says where it happened and what can be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Files, locks, frames: see the inner error.
    #[error(transparent)]
    Durable(#[from] tamis_durable::Error),
    /// An operating system call on a file failed.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// What was being done, in the present tense.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's own error.
        source: std::io::Error,
    },
    /// Stored bytes are not what was written. Other blocks and files stay readable.
    #[error("{}: damaged at byte {offset}: {reason}; `tamis ct verify` lists every fault", path.display())]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Where in the file the damaged part starts.
        offset: u64,
        /// What was expected and what was found.
        reason: String,
    },
    /// The folder holds no index.
    #[error("{}: no index here; `tamis ct import` makes one, `--data DIR` names another folder", path.display())]
    NoIndex {
        /// The folder.
        path: PathBuf,
    },
    /// A cursor that this index did not hand out.
    #[error("not a cursor of this query: {0}; start again without one")]
    BadCursor(String),
    /// A question that cannot be answered as asked.
    #[error("{0}")]
    BadQuery(String),
    /// An earlier write failed; nothing acknowledged was lost, but nothing more is accepted.
    #[error(
        "writes are refused since one failed ({reason}); reads go on. Mend the cause and open the folder again"
    )]
    Refusing {
        /// The first failure.
        reason: String,
    },
    /// The index is being closed.
    #[error("the index is being closed; nothing was lost")]
    Stopped,
    /// This program did what it must not.
    #[error("{0}; this is a bug, please report it")]
    Bug(String),
    /// More than a named limit allows.
    #[error("{what}: {found} is over the limit of {limit}")]
    TooLarge {
        /// What was counted.
        what: &'static str,
        /// How many there were.
        found: u64,
        /// How many there may be.
        limit: u64,
    },
}

/// Whose fault an error is; decides exit codes and HTTP statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The caller asked for something impossible.
    Input,
    /// Stored bytes are damaged.
    Corrupt,
    /// The machine: disk, permissions, locks.
    Environment,
    /// This program.
    Bug,
}

/// Result of the index.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Durable(inner) => match inner.kind() {
                tamis_durable::Blame::Input => Blame::Input,
                tamis_durable::Blame::Corrupt => Blame::Corrupt,
                tamis_durable::Blame::Bug => Blame::Bug,
                _ => Blame::Environment,
            },
            Self::Corrupt { .. } => Blame::Corrupt,
            Self::Bug(_) => Blame::Bug,
            Self::NoIndex { .. } | Self::BadCursor(_) | Self::BadQuery(_) | Self::TooLarge { .. } => {
                Blame::Input
            }
            Self::Io { .. } | Self::Refusing { .. } | Self::Stopped => Blame::Environment,
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn corrupt(path: &Path, offset: u64, reason: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.to_owned(),
            offset,
            reason: reason.into(),
        }
    }

    pub(crate) fn malformed(path: &Path, offset: u64) -> impl FnOnce(Malformed) -> Self {
        let path = path.to_owned();
        move |malformed| Self::Corrupt {
            path,
            offset,
            reason: malformed.0.to_owned(),
        }
    }

    /// True when the cause is a file that is not there (a reader raced with a flush).
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Io { source, .. } | Self::Durable(tamis_durable::Error::Io { source, .. }) => {
                source.kind() == std::io::ErrorKind::NotFound
            }
            _ => false,
        }
    }
}
