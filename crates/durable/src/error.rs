//! Everything that can go wrong here, and whose fault it is.

use std::io;
use std::path::{Path, PathBuf};

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller can act on. Every message names the file and ends with what to do.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused; `source` is its reason.
    #[error("cannot {action} {}: {}", path.display(), io_hint(source))]
    Io {
        /// What was tried, a verb: "open", "write", "sync".
        action: &'static str,
        /// The file or folder it was tried on.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The bytes are not those that were written.
    #[error(
        "{} is damaged at byte {offset}: {reason}; restore it from a backup or let its owner rebuild it",
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
    /// A newer Tamis wrote the file.
    #[error(
        "{} has format version {found} at byte 8, this program reads up to {supported}; run the Tamis that wrote it, or a newer one",
        path.display()
    )]
    FutureVersion {
        /// The file.
        path: PathBuf,
        /// The version in its header.
        found: u32,
        /// The newest version the caller reads.
        supported: u32,
    },
    /// An older Tamis wrote the file, and the caller asked for a newer version of the format.
    ///
    /// A caller that still reads `found` asks again with that version.
    #[error(
        "{} has the older format version {found} at byte 8, version {supported} was asked for; upgrade the folder first",
        path.display()
    )]
    OldVersion {
        /// The file.
        path: PathBuf,
        /// The version in its header; the header is intact.
        found: u32,
        /// The version the caller asked for.
        supported: u32,
    },
    /// The file is of another kind.
    #[error(
        "{} starts with \"{}\" at byte 0, not with \"{}\"; check that this is the file you mean",
        path.display(), found.escape_ascii(), expected.escape_ascii()
    )]
    WrongMagic {
        /// The file.
        path: PathBuf,
        /// Its first eight bytes (fewer in a shorter file, the rest zero).
        found: [u8; 8],
        /// The magic of the format asked for.
        expected: [u8; 8],
    },
    /// Another owner holds the folder.
    #[error("{} is in use{}; stop it first, or use another folder", path.display(), holder_words(*holder))]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process that holds it, where the lock file says so.
        holder: Option<u32>,
    },
    /// An earlier write or fsync of this writer failed, so what it holds is unknown.
    #[error(
        "{} refuses: an earlier write or sync of it failed; check the disk, then restart to read back what is really there",
        path.display()
    )]
    Refusing {
        /// The file whose writer refuses.
        path: PathBuf,
    },
    /// More bytes than the limit that applies.
    #[error("{}: {bytes} bytes are over the limit of {bytes_max}; split them, or raise the limit if it is a setting", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How many bytes there are.
        bytes: u64,
        /// How many may be.
        bytes_max: u64,
    },
    /// The caller asked for what can never be right.
    #[error("{}: {reason}; this is a bug of the caller, please report it", path.display())]
    Misuse {
        /// The file.
        path: PathBuf,
        /// What was asked.
        reason: String,
    },
}

/// Whose fault an [`Error`] is; maps to exit codes, HTTP statuses and metric labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// What we were given: a wrong file, too many bytes.
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
            Self::Io { .. } | Self::Locked { .. } | Self::Refusing { .. } => Blame::Environment,
            Self::Corrupt { .. } => Blame::Corrupt,
            Self::FutureVersion { .. }
            | Self::OldVersion { .. }
            | Self::WrongMagic { .. }
            | Self::TooLarge { .. } => Blame::Input,
            Self::Misuse { .. } => Blame::Bug,
        }
    }

    /// The file or folder this is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::Corrupt { path, .. }
            | Self::FutureVersion { path, .. }
            | Self::OldVersion { path, .. }
            | Self::WrongMagic { path, .. }
            | Self::Locked { path, .. }
            | Self::Refusing { path }
            | Self::TooLarge { path, .. }
            | Self::Misuse { path, .. } => path,
        }
    }
}

/// For `map_err`: attaches the action and the path to an I/O error.
pub(crate) fn io_at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

pub(crate) fn corrupt(path: &Path, offset: u64, reason: impl Into<String>) -> Error {
    Error::Corrupt {
        path: path.to_owned(),
        offset,
        reason: reason.into(),
    }
}

/// The words of the system stay in `source`; these say what to do about them.
fn io_hint(source: &io::Error) -> &'static str {
    use io::ErrorKind as Kind;
    match source.kind() {
        Kind::StorageFull => "the disk is full; free some space or move the folder to a larger disk",
        Kind::QuotaExceeded => "the disk quota is used up; free some space or ask for more",
        Kind::ReadOnlyFilesystem => {
            "the file system is read-only; remount it, and check the kernel log for why it became so"
        }
        Kind::PermissionDenied => "permission denied; check the owner and the mode of it and of its folder",
        Kind::NotFound => "it does not exist; check the path, and that its folder has been made",
        Kind::AlreadyExists => {
            "it exists already; remove it if a killed process left it and nothing lists it"
        }
        Kind::OutOfMemory => "out of memory; free some, or raise the limit of mappings (vm.max_map_count)",
        _ if source.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
            "the device failed; check the kernel log and the health of the disk"
        }
        _ => "the system gave the cause below; fix that and try again",
    }
}

fn holder_words(holder: Option<u32>) -> String {
    holder.map_or_else(
        || " by another process".to_owned(),
        |pid| format!(" by process {pid}"),
    )
}
