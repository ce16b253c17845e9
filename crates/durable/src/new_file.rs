//! Large files that are written once, front to back, under their final name.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, RealDisk};
use crate::error::{Error, Result, io_at};
use crate::publish::sync_parent;

/// How much is gathered before a write.
const BUFFER_BYTES: usize = 1 << 20;

/// A file in the making. It counts from [`finish`](Self::finish) on; dropped before, it is removed.
///
/// It stands under its final name from the start, half written, so its owner lists it somewhere (a manifest)
/// only after `finish`, and removes what is listed nowhere when it starts.
pub struct NewFile {
    path: PathBuf,
    disk: Arc<dyn Disk>,
    file: File,
    /// Bytes handed to the system; what `buffer` holds follows them.
    written: u64,
    buffer: Vec<u8>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Writing,
    Failed,
    Finished,
}

impl NewFile {
    /// Creates the file at `path`.
    ///
    /// # Errors
    /// [`Error::Io`], also if there is such a file.
    pub fn create(path: &Path) -> Result<Self> {
        Self::create_on(Arc::new(RealDisk), path)
    }

    /// [`create`](Self::create) on a disk that tests choose.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_on(disk: Arc<dyn Disk>, path: &Path) -> Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(io_at("create", path))?;
        Ok(Self {
            path: path.to_owned(),
            disk,
            file,
            written: 0,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            state: State::Writing,
        })
    }

    /// Where the next byte goes: how many were written so far.
    pub fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// [`Error::Io`], and from then on [`Error::Refusing`].
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.check_not_failed()?;
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush()?;
        }
        if bytes.len() >= BUFFER_BYTES {
            return self.put(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Makes the file and its name durable, by one fsync each of file and folder; gives its length.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Refusing`]; the file is removed.
    pub fn finish(mut self) -> Result<u64> {
        self.check_not_failed()?;
        self.flush()?;
        self.disk
            .sync_all(&self.file)
            .map_err(io_at("sync", &self.path))?;
        sync_parent(&*self.disk, &self.path)?;
        self.state = State::Finished;
        Ok(self.written)
    }

    fn flush(&mut self) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.put(&buffer)?;
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.state = State::Failed;
        self.disk
            .write_all_at(&self.file, bytes, self.written)
            .map_err(io_at("write", &self.path))?;
        self.written += bytes.len() as u64;
        self.state = State::Writing;
        Ok(())
    }

    fn check_not_failed(&self) -> Result<()> {
        match self.state {
            State::Failed => Err(Error::Refusing {
                path: self.path.clone(),
            }),
            State::Writing | State::Finished => Ok(()),
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.state != State::Finished {
            // Best effort: the owner removes what is listed nowhere when it starts.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl fmt::Debug for NewFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewFile")
            .field("path", &self.path)
            .field("position", &self.position())
            .field("state", &self.state)
            .finish()
    }
}
