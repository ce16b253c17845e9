//! Appends frames: buffered, then one write and one fdatasync.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::{FRAME_HEADER_BYTES, HEADER_BYTES, Header, PAYLOAD_BYTES_MAX};
use crate::disk::{Disk, RealDisk};
use crate::error::{Error, Result, corrupt, io_at};
use crate::format::Format;
use crate::publish::publish_new;

/// The most that [`FrameWriter::append`] buffers before a commit.
pub const PENDING_BYTES_MAX: u64 = 1 << 30;
/// How much of the buffer is kept between commits.
const PENDING_BYTES_KEPT: usize = 8 << 20;

/// The one writer of a frames file.
///
/// [`append`](Self::append) buffers, [`commit`](Self::commit) makes durable; what was not committed when it is
/// dropped is gone.
///
/// # Invariants
/// After a write or fsync failed, every call gives [`Error::Refusing`]. What the failed commit held may or may
/// not be in the file; only reading it back, after a restart, tells.
pub struct FrameWriter {
    path: PathBuf,
    disk: Arc<dyn Disk>,
    file: File,
    header: Header,
    /// Length of the file up to the last commit.
    bytes: u64,
    pending: Vec<u8>,
    failed: bool,
}

impl FrameWriter {
    /// Creates the file at `path` with its header, durable on return; `number` is for the owner to tell its
    /// files apart.
    ///
    /// The file appears with its header whole or not at all.
    ///
    /// # Errors
    /// [`Error::Io`], also if the file exists.
    pub fn create(path: &Path, format: Format, number: u64) -> Result<Self> {
        Self::create_on(Arc::new(RealDisk), path, format, number)
    }

    /// [`create`](Self::create) on a disk that tests choose.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_on(disk: Arc<dyn Disk>, path: &Path, format: Format, number: u64) -> Result<Self> {
        Self::create_salted(
            disk,
            path,
            format,
            Header {
                number,
                salt: random(),
            },
        )
    }

    pub(super) fn create_salted(
        disk: Arc<dyn Disk>,
        path: &Path,
        format: Format,
        header: Header,
    ) -> Result<Self> {
        let file = publish_new(&*disk, path, &[&header.encode(format)])?;
        Ok(Self::over(path, disk, file, header, HEADER_BYTES))
    }

    /// Opens the file at `path`, cuts off everything from `at_bytes` on, durably, and appends there.
    ///
    /// `at_bytes` is [`FrameReader::append_offset`], or the length that the last [`commit`](Self::commit) gave.
    /// Drop every [`Map`](crate::Map) of the file before: what is cut off is gone from under it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the file is shorter or its header is damaged; [`Error::WrongMagic`],
    /// [`Error::FutureVersion`], [`Error::OldVersion`]; [`Error::Misuse`] if `at_bytes` lies inside the header;
    /// [`Error::Io`].
    ///
    /// [`FrameReader::append_offset`]: super::FrameReader::append_offset
    pub fn open_append(path: &Path, format: Format, at_bytes: u64) -> Result<Self> {
        Self::open_append_on(Arc::new(RealDisk), path, format, at_bytes)
    }

    /// [`open_append`](Self::open_append) on a disk that tests choose.
    ///
    /// # Errors
    /// As [`open_append`](Self::open_append).
    pub fn open_append_on(disk: Arc<dyn Disk>, path: &Path, format: Format, at_bytes: u64) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(io_at("open", path))?;
        let mut start = Vec::with_capacity(HEADER_BYTES as usize);
        (&file)
            .take(HEADER_BYTES)
            .read_to_end(&mut start)
            .map_err(io_at("read", path))?;
        let header = Header::decode(path, &start, format)?;
        cut(&*disk, path, &file, at_bytes)?;
        Ok(Self::over(path, disk, file, header, at_bytes))
    }

    fn over(path: &Path, disk: Arc<dyn Disk>, file: File, header: Header, bytes: u64) -> Self {
        Self {
            path: path.to_owned(),
            disk,
            file,
            header,
            bytes,
            pending: Vec::new(),
            failed: false,
        }
    }

    /// Buffers `payload` as one frame; gives the offset at which the frame will stand.
    ///
    /// # Errors
    /// [`Error::TooLarge`] over [`PAYLOAD_BYTES_MAX`] or, with what is pending, over [`PENDING_BYTES_MAX`]:
    /// nothing is buffered then. [`Error::Refusing`].
    pub fn append(&mut self, payload: &[u8]) -> Result<u64> {
        self.append_parts(&[payload])
    }

    /// As [`Self::append`], for a payload whose parts lie apart.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn append_parts(&mut self, parts: &[&[u8]]) -> Result<u64> {
        self.check_not_failed()?;
        let payload_bytes = parts.iter().map(|part| part.len() as u64).sum();
        self.check_limit(payload_bytes, PAYLOAD_BYTES_MAX)?;
        self.check_limit(
            self.pending_bytes() + FRAME_HEADER_BYTES + payload_bytes,
            PENDING_BYTES_MAX,
        )?;
        let offset = self.bytes + self.pending_bytes();
        self.header.encode_frame(offset, parts, &mut self.pending);
        Ok(offset)
    }

    /// Makes every appended frame durable, by one write and one fdatasync; gives the length of the file.
    ///
    /// With nothing pending it does nothing.
    ///
    /// # Errors
    /// [`Error::Io`], and from then on [`Error::Refusing`].
    pub fn commit(&mut self) -> Result<u64> {
        self.check_not_failed()?;
        if self.pending.is_empty() {
            return Ok(self.bytes);
        }
        // Set before the calls, so that no way out of them leaves a writer that goes on.
        self.failed = true;
        let pending = std::mem::take(&mut self.pending);
        self.disk
            .write_all_at(&self.file, &pending, self.bytes)
            .map_err(io_at("write", &self.path))?;
        self.disk
            .sync_data(&self.file)
            .map_err(io_at("sync", &self.path))?;
        self.bytes += pending.len() as u64;
        self.pending = pending;
        self.pending.clear();
        self.pending.shrink_to(PENDING_BYTES_KEPT);
        self.failed = false;
        Ok(self.bytes)
    }

    /// Bytes of the frames appended and not committed, with their headers.
    pub fn pending_bytes(&self) -> u64 {
        self.pending.len() as u64
    }

    /// Length of the file up to the last commit.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number the file was created with.
    pub fn number(&self) -> u64 {
        self.header.number
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn check_not_failed(&self) -> Result<()> {
        if self.failed {
            Err(Error::Refusing {
                path: self.path.clone(),
            })
        } else {
            Ok(())
        }
    }

    fn check_limit(&self, bytes: u64, bytes_max: u64) -> Result<()> {
        if bytes > bytes_max {
            return Err(Error::TooLarge {
                path: self.path.clone(),
                bytes,
                bytes_max,
            });
        }
        Ok(())
    }
}

impl fmt::Debug for FrameWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameWriter")
            .field("path", &self.path)
            .field("number", &self.header.number)
            .field("bytes", &self.bytes)
            .field("pending_bytes", &self.pending.len())
            .field("failed", &self.failed)
            .finish()
    }
}

/// Cuts the file at `path` to its first `at_bytes` bytes, durably: how a torn tail is removed.
///
/// Drop every [`Map`](crate::Map) of the file before: what is cut off is gone from under it.
///
/// # Errors
/// [`Error::Corrupt`] if the file is shorter; [`Error::Misuse`] if `at_bytes` lies inside the file header;
/// [`Error::Io`].
pub fn truncate(path: &Path, at_bytes: u64) -> Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .open(path)
        .map_err(io_at("open", path))?;
    cut(&RealDisk, path, &file, at_bytes)
}

fn cut(disk: &dyn Disk, path: &Path, file: &File, at_bytes: u64) -> Result<()> {
    if at_bytes < HEADER_BYTES {
        let reason = format!("asked to cut at byte {at_bytes}, inside the file header of {HEADER_BYTES}");
        return Err(Error::Misuse {
            path: path.to_owned(),
            reason,
        });
    }
    let present = file.metadata().map_err(io_at("read", path))?.len();
    if present < at_bytes {
        let reason = format!("the file ends here, {at_bytes} bytes were expected");
        return Err(corrupt(path, present, reason));
    }
    if present > at_bytes {
        file.set_len(at_bytes).map_err(io_at("truncate", path))?;
        disk.sync_all(file).map_err(io_at("sync", path))?;
    }
    Ok(())
}

/// Random bits from the one source std has: the keys of its hash maps.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
