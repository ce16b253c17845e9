//! What can go wrong with a filter, and whose fault it is.

use std::path::{Path, PathBuf};

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller can act on. Every message ends with what to do; a filter is a hint, so removing its file and
/// making it anew is always right and never loses a record.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No filter can be made to this plan.
    #[error("a filter for {keys} keys at a false-positive rate of {rate} cannot be: {reason}")]
    Plan {
        /// How many keys were planned.
        keys: u64,
        /// Which false-positive rate was asked for.
        rate: f64,
        /// What is wrong with them, and what would be right.
        reason: &'static str,
    },
    /// The file is of another kind.
    #[error(
        "{} starts with \"{}\" at byte 0 and is no Bloom filter; check that this is the file you mean",
        path.display(), found.escape_ascii()
    )]
    WrongMagic {
        /// The file.
        path: PathBuf,
        /// Its first eight bytes.
        found: [u8; 8],
    },
    /// A newer Tamis wrote the file.
    #[error(
        "{} has format version {found} at byte 8, this program reads up to {supported}; run the Tamis that wrote it, or remove the file and let the filter be built anew",
        path.display()
    )]
    FutureVersion {
        /// The file.
        path: PathBuf,
        /// The version in its header.
        found: u32,
        /// The newest version this program reads.
        supported: u32,
    },
    /// The bytes are not those that were written.
    #[error(
        "{} is damaged at byte {offset}: {reason}; remove it and let the filter be built anew: it is a hint, no record is lost",
        path.display()
    )]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Where in the file the damage shows.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// The file cannot be made, mapped, locked or synced.
    #[error(transparent)]
    Storage(#[from] tamis_durable::Error),
}

/// Whose fault an [`Error`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// What we were given: an impossible plan, a wrong file.
    Input,
    /// Bytes on the disk have changed since they were written.
    Corrupt,
    /// The machine: disk full, permission, another process.
    Environment,
    /// Our own code.
    Bug,
}

impl Error {
    /// Whose fault this is.
    pub fn kind(&self) -> Blame {
        match self {
            Self::Plan { .. } | Self::WrongMagic { .. } | Self::FutureVersion { .. } => Blame::Input,
            Self::Corrupt { .. } => Blame::Corrupt,
            Self::Storage(error) => match error.kind() {
                tamis_durable::Blame::Input => Blame::Input,
                tamis_durable::Blame::Corrupt => Blame::Corrupt,
                tamis_durable::Blame::Environment => Blame::Environment,
                tamis_durable::Blame::Bug => Blame::Bug,
            },
        }
    }

    /// The file this is about, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Plan { .. } => None,
            Self::WrongMagic { path, .. } | Self::FutureVersion { path, .. } | Self::Corrupt { path, .. } => {
                Some(path)
            }
            Self::Storage(error) => Some(error.path()),
        }
    }
}

pub(crate) fn corrupt(path: &Path, offset: u64, reason: impl Into<String>) -> Error {
    Error::Corrupt {
        path: path.to_owned(),
        offset,
        reason: reason.into(),
    }
}
