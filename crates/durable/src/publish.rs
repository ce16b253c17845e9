//! Atomic publication: temporary file, fsync, rename, fsync of the folder.
//!
//! # Concurrency
//! Publishers of one path may race: each has its own temporary file, and the last rename wins whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::{Disk, RealDisk};
use crate::error::{Result, io_at};

/// How many names are tried for a temporary file; only files left by killed processes take one.
const TEMP_NAMES_MAX: u32 = 4_096;
const TEMP_PREFIX: &str = ".tamis-";
const TEMP_SUFFIX: &str = ".tmp";

/// Replaces the file at `path` by `bytes`, atomically and durably.
///
/// A reader, and whoever looks after a crash, sees the old file or the new one, never a part. The new file has
/// the mode that the umask gives; a symbolic link at `path` is replaced, not followed.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io). The old file stays and the temporary file is removed; only if `action` is
/// "sync folder of" is the new file visible already, though a power loss may still bring the old one back.
pub fn publish(path: &Path, bytes: &[u8]) -> Result<()> {
    publish_on(&RealDisk, path, &[bytes])
}

/// Replaces the file at `path` by `bytes`, atomically for readers and **not** durably: for what is written
/// again soon and what nothing is recovered from.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io).
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut temp = TempFile::create(parent(path)).map_err(io_at("create a temporary file for", path))?;
    RealDisk
        .write_all_at(&temp.file, bytes, 0)
        .map_err(io_at("write", path))?;
    fs::rename(&temp.path, path).map_err(io_at("rename a new file to", path))?;
    temp.present = false;
    Ok(())
}

/// Makes the entries of `dir` durable: files created, renamed and removed in it.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io).
pub fn sync_dir(dir: &Path) -> Result<()> {
    let file = File::open(dir).map_err(io_at("open", dir))?;
    RealDisk.sync_all(&file).map_err(io_at("sync", dir))
}

/// Gives the folder `from`, whose files and inner folders are durable, the name `to`, durably.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io), also if there is anything but an empty folder at `to`. Only if `action` is
/// "sync folder of" does it have its new name already.
pub fn publish_dir(from: &Path, to: &Path) -> Result<()> {
    sync_dir(from)?;
    fs::rename(from, to).map_err(io_at("rename a new folder to", to))?;
    sync_parent(&RealDisk, to)
}

/// [`publish`] of the concatenation of `parts`.
pub(crate) fn publish_on(disk: &dyn Disk, path: &Path, parts: &[&[u8]]) -> Result<()> {
    let mut temp = TempFile::write(disk, path, parts)?;
    fs::rename(&temp.path, path).map_err(io_at("rename a new file to", path))?;
    temp.present = false;
    sync_parent(disk, path)
}

/// Like [`publish_on`], but fails with `AlreadyExists` if there is a file at `path`; gives the open file.
pub(crate) fn publish_new(disk: &dyn Disk, path: &Path, parts: &[&[u8]]) -> Result<File> {
    link_new(disk, TempFile::write(disk, path, parts)?, path)
}

/// [`publish_new`] of `start` and a hole behind it, `bytes` in all.
pub(crate) fn publish_new_sparse(disk: &dyn Disk, path: &Path, start: &[u8], bytes: u64) -> Result<File> {
    let temp = TempFile::create(parent(path)).map_err(io_at("create a temporary file for", path))?;
    temp.file.set_len(bytes).map_err(io_at("lengthen", path))?;
    disk.write_all_at(&temp.file, start, 0)
        .map_err(io_at("write", path))?;
    disk.sync_all(&temp.file).map_err(io_at("sync", path))?;
    link_new(disk, temp, path)
}

/// Gives a temporary file, whose content is durable, the name `path`, if nothing has it.
fn link_new(disk: &dyn Disk, temp: TempFile, path: &Path) -> Result<File> {
    // A hard link is the rename that does not replace, on every file system that a store belongs on.
    fs::hard_link(&temp.path, path).map_err(io_at("create", path))?;
    let opened = temp.file.try_clone().map_err(io_at("open", path));
    drop(temp);
    let created = opened.and_then(|file| sync_parent(disk, path).map(|()| file));
    if created.is_err() {
        // What could not be made durable is not there, so that trying again does not find it in the way.
        let _ = fs::remove_file(path);
    }
    created
}

/// Syncs the folder that holds `path`.
pub(crate) fn sync_parent(disk: &dyn Disk, path: &Path) -> Result<()> {
    File::open(parent(path))
        .and_then(|dir| disk.sync_all(&dir))
        .map_err(io_at("sync folder of", path))
}

/// Removes temporary files that killed publishers left in `dir`; gives how many.
pub(crate) fn remove_temps(dir: &Path) -> Result<u64> {
    let mut removed = 0;
    for entry in fs::read_dir(dir).map_err(io_at("list", dir))? {
        let entry = entry.map_err(io_at("list", dir))?;
        let name = entry.file_name();
        let ours = name
            .to_str()
            .is_some_and(|n| n.starts_with(TEMP_PREFIX) && n.ends_with(TEMP_SUFFIX));
        if ours {
            fs::remove_file(entry.path()).map_err(io_at("remove", &entry.path()))?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// A file beside its target, removed on drop while it is still there under its own name.
struct TempFile {
    path: PathBuf,
    file: File,
    present: bool,
}

impl TempFile {
    /// Creates the file in the folder of `target` and makes its content durable.
    fn write(disk: &dyn Disk, target: &Path, parts: &[&[u8]]) -> Result<Self> {
        let temp = Self::create(parent(target)).map_err(io_at("create a temporary file for", target))?;
        let mut offset = 0;
        for part in parts {
            disk.write_all_at(&temp.file, part, offset)
                .map_err(io_at("write", target))?;
            offset += part.len() as u64;
        }
        disk.sync_all(&temp.file).map_err(io_at("sync", target))?;
        Ok(temp)
    }

    fn create(dir: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut tries = 0;
        loop {
            // Relaxed: only that numbers differ within the process matters.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = dir.join(format!(
                "{TEMP_PREFIX}{}-{number}{TEMP_SUFFIX}",
                std::process::id()
            ));
            match OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&path)
            {
                Ok(file) => {
                    return Ok(Self {
                        path,
                        file,
                        present: true,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TEMP_NAMES_MAX => {
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if self.present {
            // Best effort: the error that matters is already on its way to the caller.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::sync::Mutex;

    /// Notes each sync and what was published when it came; fails the one with a given number.
    struct Watched<'a> {
        path: &'a Path,
        fails_at: usize,
        syncs: Mutex<Vec<(&'static str, Vec<u8>)>>,
    }

    impl Disk for Watched<'_> {
        fn sync_all(&self, file: &File) -> io::Result<()> {
            let what = if file.metadata()?.is_dir() {
                "folder"
            } else {
                "file"
            };
            let mut syncs = self.syncs.lock().expect("no test thread panicked");
            syncs.push((what, fs::read(self.path)?));
            if syncs.len() == self.fails_at {
                Err(io::Error::other("injected"))
            } else {
                Ok(())
            }
        }
    }

    /// Publishes "new" over "old"; gives the syncs, the action that failed, and what is there afterwards.
    #[track_caller]
    fn check(fails_at: usize, syncs: &[(&str, &str)], failed: Option<&str>, left: &str) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        fs::write(&path, "old").expect("write");
        let disk = Watched {
            path: &path,
            fails_at,
            syncs: Mutex::default(),
        };
        let action = match publish_on(&disk, &path, &[b"ne", b"w"]) {
            Err(Error::Io { action, .. }) => Some(action),
            _ => None,
        };
        assert_eq!(action, failed);
        let seen = disk.syncs.lock().expect("no test thread panicked");
        let seen: Vec<_> = seen
            .iter()
            .map(|(what, content)| (*what, str::from_utf8(content)))
            .collect();
        let expected: Vec<_> = syncs.iter().map(|&(what, content)| (what, Ok(content))).collect();
        assert_eq!(seen, expected);
        assert_eq!(fs::read_to_string(&path).expect("read"), left);
        assert_eq!(fs::read_dir(dir.path()).expect("list").count(), 1);
    }

    #[test]
    fn the_content_is_synced_before_the_rename_and_the_folder_after() {
        let both = [("file", "old"), ("folder", "new")];
        check(0, &both, None, "new");
        check(1, &both[..1], Some("sync"), "old");
        check(2, &both, Some("sync folder of"), "new");
    }
}
