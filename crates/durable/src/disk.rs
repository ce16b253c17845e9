//! The three calls that put bytes on a disk, so that tests can make them fail.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{Result, io_at};

/// What a writer asks of the disk. Every default is the real thing; a test overrides what should fail.
///
/// # Examples
/// ```
/// struct LyingDisk;
/// impl tamis_durable::Disk for LyingDisk {
///     fn sync_data(&self, _: &std::fs::File) -> std::io::Result<()> {
///         Err(std::io::Error::other("injected"))
///     }
/// }
/// ```
pub trait Disk: Send + Sync {
    /// Writes all of `bytes` at `offset` of `file`.
    fn write_all_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        file.write_all_at(bytes, offset)
    }

    /// Makes the content of `file` durable (fdatasync: content and length, not times).
    fn sync_data(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    /// Makes content and metadata of `file` durable; of a folder, its entries.
    fn sync_all(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }
}

/// Bytes of the disk that holds `dir`, and how many of them are free to those without privileges.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io).
pub fn disk_space(dir: &Path) -> Result<(u64, u64)> {
    let stat = rustix::fs::statvfs(dir).map_err(|error| io_at("look at the disk of", dir)(error.into()))?;
    // What is reserved for root is used, as far as anybody else is concerned.
    let usable = stat.f_blocks - stat.f_bfree + stat.f_bavail;
    Ok((usable * stat.f_frsize, stat.f_bavail * stat.f_frsize))
}

/// The disk of this machine.
pub(crate) struct RealDisk;

impl Disk for RealDisk {}
