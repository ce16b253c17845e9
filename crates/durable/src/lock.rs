//! One owner of a folder.
//!
//! # Concurrency
//! The lock is the kernel's (flock on the open file), so it ends with its holder however that dies, and two
//! handles in one process exclude each other too. A drop unlocks instead of only closing, because another
//! thread's child may still hold a copy of the descriptor until it executes its program. The file stays: removing it would let two owners lock two
//! files of one name.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::error::{Error, Result, io_at};
use crate::publish::remove_temps;

const LOCK_NAME: &str = "LOCK";
/// More than the digits of any process number.
const HOLDER_BYTES_MAX: u64 = 32;

/// The right to change a folder, held until dropped.
///
/// On NFS the lock is as good as the server's. A child made by a bare `fork` shares it; one that executes a
/// program does not.
#[derive(Debug)]
pub struct FolderLock {
    dir: PathBuf,
    file: File,
}

impl FolderLock {
    /// Takes the lock of `dir`, which must exist, or fails at once.
    ///
    /// # Errors
    /// [`Error::Locked`] if somebody holds it; [`Error::Io`].
    pub fn acquire(dir: &Path) -> Result<Self> {
        let path = dir.join(LOCK_NAME);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(io_at("open", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let holder = holder(&file);
                return Err(Error::Locked { path, holder });
            }
            Err(errno) => return Err(io_at("lock", &path)(errno.into())),
        }
        write_holder(&file).map_err(io_at("write", &path))?;
        Ok(Self {
            dir: dir.to_owned(),
            file,
        })
    }

    /// The folder that is locked.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Removes temporary files that killed publishers left in the folder itself; gives how many.
    ///
    /// Only before this process publishes into the folder: it cannot tell a living publisher's file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove_stale_temps(&mut self) -> Result<u64> {
        remove_temps(&self.dir)
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // So that nobody is told of a holder that is gone.
        let _ = self.file.set_len(0);
        // Closing is not enough: a child between its fork and its exec still has the file open.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// The number is for people, so it is not synced: after a crash nobody holds the lock anyway.
fn write_holder(file: &File) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all_at(format!("{}\n", std::process::id()).as_bytes(), 0)
}

fn holder(file: &File) -> Option<u32> {
    let mut text = String::new();
    file.take(HOLDER_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim_ascii().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_open_file_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().expect("a folder");
        let lock = FolderLock::acquire(dir.path()).expect("nobody holds it");
        let copy = lock.file.try_clone().expect("as a fork has it");
        drop(lock);
        FolderLock::acquire(dir.path()).expect("released, though still open");
        drop(copy);
    }
}
