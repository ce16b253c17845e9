//! Writable memory maps that several processes see: words of 64 bits, touched only as atomics.
//!
//! # Concurrency
//! One process at a time has a file as a [`SharedMap`]: it holds an exclusive flock on the file itself, which
//! ends with it however it dies. Any number of processes have it as a [`SharedView`], without a lock, and see
//! words as they change. Nothing here orders one word after another; who needs that uses the orderings of
//! [`AtomicU64`], which hold between processes as between threads.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};

use crate::disk::RealDisk;
use crate::error::{Error, Result, io_at};
use crate::map::Advice;
use crate::publish::publish_new_sparse;

const WORD_BYTES: usize = size_of::<u64>();
/// Stands for the path of a map without a file, in errors.
const IN_MEMORY: &str = "(memory)";

/// A word of a file that another process may change, and this one may not.
///
/// Its own type, because a store to it would be a store to a read-only page, which kills the process.
#[derive(Debug)]
#[repr(transparent)]
pub struct ReadWord(AtomicU64);

impl ReadWord {
    /// What the word holds now, in the byte order of this machine.
    pub fn load(&self) -> u64 {
        // Relaxed is also what makes this right: of atomic accesses to read-only memory, only relaxed loads
        // of at most a pointer's width are allowed ("Atomic accesses to read-only memory", std::sync::atomic).
        self.0.load(Ordering::Relaxed)
    }
}

/// A file that another process may be changing, as words that can only be read.
///
/// # What the caller accepts
/// Words change between two reads; check and use the same copy. If somebody truncates the file, reading past
/// its new end kills the process (SIGBUS), and so does a disk that fails while a page is read. Removing the
/// file is fine: the view keeps the old one.
#[derive(Debug)]
pub struct SharedView {
    path: PathBuf,
    bytes: u64,
    /// None for an empty file, which has nothing to map.
    raw: Option<MmapRaw>,
}

impl SharedView {
    /// Maps all of the file at `path` as long as it is now, whoever writes to it.
    ///
    /// # Errors
    /// [`Error::Io`]; also if `path` is no regular file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(io_at("open", path))?;
        Self::map(path, &file, |options| options.map_raw_read_only(&file))
    }

    fn map(path: &Path, file: &File, map: impl FnOnce(&MmapOptions) -> io::Result<MmapRaw>) -> Result<Self> {
        let metadata = file.metadata().map_err(io_at("read", path))?;
        if !metadata.is_file() {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
            return Err(io_at("map", path)(source));
        }
        let bytes = metadata.len();
        let raw = match usize::try_from(bytes) {
            Ok(0) => None,
            Ok(length) => Some(map(MmapOptions::new().len(length)).map_err(io_at("map", path))?),
            Err(_) => return Err(io_at("map", path)(io::ErrorKind::OutOfMemory.into())),
        };
        Ok(Self {
            path: path.to_owned(),
            bytes,
            raw,
        })
    }

    /// The whole words of the file; up to seven bytes at its end may not fill one.
    pub fn words(&self) -> &[ReadWord] {
        let Some(raw) = &self.raw else { return &[] };
        // SAFETY: the map is readable, starts at a page and lives as long as `self`; the count is what fits into
        // it. `ReadWord` is a transparent `AtomicU64`, so that others change the memory is no data race, and its
        // only access is the relaxed load that read-only memory allows.
        unsafe { slice::from_raw_parts(raw.as_ptr().cast::<ReadWord>(), raw.len() / WORD_BYTES) }
    }

    /// How long the file was when it was mapped.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file that is mapped.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says how the words will be read from now on.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn advise(&self, advice: Advice) -> Result<()> {
        match &self.raw {
            Some(raw) => raw
                .advise(advice.for_kernel())
                .map_err(io_at("advise on", &self.path)),
            None => Ok(()),
        }
    }
}

/// A file of fixed length as atomic words: what is stored to a word is in the file.
///
/// Stores reach the page cache at once, so they outlive the process however it dies; they reach the disk when
/// the kernel writes the page back, in any order, or with [`flush`](Self::flush). After a crash of the system a
/// page is thus old or new, and which one says nothing about the others: keep here only what is right in every
/// mixture, such as bits that hint.
///
/// # What the caller accepts
/// As for [`SharedView`], and: **a store into a hole of a sparse file on a full disk kills the process**
/// (SIGBUS), as a store has no way to fail. [`reserve`](Self::reserve) turns that into an error in advance. The
/// lock keeps off those who ask for it; a process that writes to the file in another way is not stopped, and a
/// read-only [`Map`](crate::Map) of such a file would see its bytes change, which that type forbids.
#[derive(Debug)]
pub struct SharedMap {
    view: SharedView,
    /// None in memory. Holds the lock.
    file: Option<File>,
    failed: AtomicBool,
}

impl SharedMap {
    /// Creates the file at `path`, `bytes` long, with `start` at its front and a hole behind, and locks it.
    ///
    /// The file is there whole and durable, or not at all.
    ///
    /// # Errors
    /// [`Error::Io`], also if there is such a file; [`Error::Locked`] if somebody was quicker to open it.
    pub fn create(path: &Path, start: &[u8], bytes: u64) -> Result<Self> {
        let file = publish_new_sparse(&RealDisk, path, start, bytes)?;
        Self::lock_and_map(path, file)
    }

    /// Locks the file at `path` and maps it as long as it is now.
    ///
    /// # Errors
    /// [`Error::Locked`] if a process, or this one, has it as a `SharedMap`; [`Error::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(io_at("open", path))?;
        Self::lock_and_map(path, file)
    }

    fn lock_and_map(path: &Path, file: File) -> Result<Self> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let path = path.to_owned();
                return Err(Error::Locked { path, holder: None });
            }
            Err(errno) => return Err(io_at("lock", path)(errno.into())),
        }
        let view = SharedView::map(path, &file, |options| options.map_raw(&file))?;
        Ok(Self {
            view,
            file: Some(file),
            failed: AtomicBool::new(false),
        })
    }

    /// Words of this process alone, all zero; `bytes` must not be 0. Memory is taken as words are stored to.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no room for them.
    pub fn in_memory(bytes: u64) -> Result<Self> {
        let path = Path::new(IN_MEMORY);
        let raw = usize::try_from(bytes)
            .map_err(|_| io::ErrorKind::OutOfMemory.into())
            .and_then(|length| MmapOptions::new().len(length).map_anon())
            .map(MmapRaw::from)
            .map_err(io_at("map", path))?;
        // Fewer entries of the TLB for words all over; a kernel without such pages says no, which is no harm.
        #[cfg(target_os = "linux")]
        let _ = raw.advise(memmap2::Advice::HugePage);
        let view = SharedView {
            path: path.to_owned(),
            bytes,
            raw: Some(raw),
        };
        Ok(Self {
            view,
            file: None,
            failed: AtomicBool::new(false),
        })
    }

    /// The whole words of the file, in the byte order of this machine.
    pub fn words(&self) -> &[AtomicU64] {
        let Some(raw) = &self.view.raw else { return &[] };
        // SAFETY: the map is readable and writable, starts at a page and lives as long as `self`; the count is
        // what fits into it. All accesses of this process are atomic: this type hands out nothing but
        // `AtomicU64` and `ReadWord`, and no `&mut`.
        unsafe { slice::from_raw_parts(raw.as_mut_ptr().cast::<AtomicU64>(), raw.len() / WORD_BYTES) }
    }

    /// Writes `bytes` at `offset` in one call, which no kill divides.
    ///
    /// Reading the words meanwhile may see a part of them. In memory this does nothing: words are stored to.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Misuse`] past the end of the file, whose length is fixed.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if offset.saturating_add(bytes.len() as u64) > self.view.bytes {
            return Err(Error::Misuse {
                path: self.view.path.clone(),
                reason: format!(
                    "{} bytes at {offset} end behind the map of {}",
                    bytes.len(),
                    self.view.bytes
                ),
            });
        }
        file.write_all_at(bytes, offset)
            .map_err(io_at("write", &self.view.path))
    }

    /// Waits until all that was stored and written before is on the disk (msync). In memory: nothing to do.
    ///
    /// # Errors
    /// [`Error::Io`], and from then on [`Error::Refusing`]: the kernel may have dropped what it could not write.
    pub fn flush(&self) -> Result<()> {
        let (Some(raw), Some(_)) = (&self.view.raw, &self.file) else {
            return Ok(());
        };
        // Relaxed: a flag that is only ever raised, and orders nothing.
        if self.failed.load(Ordering::Relaxed) {
            return Err(Error::Refusing {
                path: self.view.path.clone(),
            });
        }
        raw.flush().map_err(|source| {
            self.failed.store(true, Ordering::Relaxed);
            io_at("sync", &self.view.path)(source)
        })
    }

    /// Gives the holes of the file their room on the disk, so that no later store finds it full.
    ///
    /// # Errors
    /// [`Error::Io`]: the disk has not that much, or the file system cannot promise it.
    pub fn reserve(&self) -> Result<()> {
        match &self.file {
            Some(file) if self.view.bytes > 0 => fallocate(file, FallocateFlags::empty(), 0, self.view.bytes)
                .map_err(|errno| io_at("reserve", &self.view.path)(errno.into())),
            _ => Ok(()),
        }
    }
}

impl Deref for SharedMap {
    type Target = SharedView;

    fn deref(&self) -> &SharedView {
        &self.view
    }
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // Closing is not enough: a child between its fork and its exec still has the file open.
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 3 * 4_096;

    #[track_caller]
    fn create() -> (tempfile::TempDir, PathBuf, SharedMap) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        let map = SharedMap::create(&path, b"start", BYTES).expect("create");
        (dir, path, map)
    }

    #[test]
    fn what_is_stored_is_in_the_file_and_in_every_view() {
        let (_dir, path, map) = create();
        let view = SharedView::open(&path).expect("view");
        assert_eq!((map.words().len(), view.words().len()), (1_536, 1_536));
        map.words()[600].fetch_or(0xff, Ordering::Relaxed);
        map.write_all_at(b"START", 0).expect("write");
        assert_eq!(view.words()[600].load(), 0xff);
        assert_eq!(SharedMap::words(&map)[600].load(Ordering::Relaxed), 0xff);
        map.reserve().expect("reserve");
        map.flush().expect("flush");
        drop(map);
        let bytes = std::fs::read(&path).expect("read");
        assert_eq!(bytes.len() as u64, BYTES);
        assert_eq!(
            (&bytes[..5], bytes[4_800..4_808].iter().max()),
            (&b"START"[..], Some(&0xff))
        );
    }

    #[test]
    fn a_file_has_one_writer_and_keeps_its_length() {
        let (_dir, path, map) = create();
        let error = SharedMap::open(&path).expect_err("it is locked");
        assert!(matches!(error, Error::Locked { holder: None, .. }), "{error}");
        let error = SharedMap::create(&path, b"other", BYTES).expect_err("it is there");
        assert!(matches!(&error, Error::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists));
        let error = map.write_all_at(b"xx", BYTES - 1).expect_err("it is too long");
        assert!(matches!(error, Error::Misuse { .. }), "{error}");
        drop(map);
        let map = SharedMap::open(&path).expect("nobody has it");
        assert_eq!((map.bytes(), map.path()), (BYTES, &*path));
        assert_eq!(
            std::fs::read_dir(_dir.path()).expect("list").count(),
            1,
            "no temporary file is left"
        );
    }

    #[test]
    fn odd_lengths_and_empty_files_are_whole_words_of_them() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        for (length, words) in [(0, 0), (7, 0), (17, 2), (4_096, 512)] {
            std::fs::write(&path, vec![1; length]).expect("write");
            let view = SharedView::open(&path).expect("view");
            view.advise(Advice::Random).expect("advise");
            assert_eq!((view.words().len(), view.bytes()), (words, length as u64));
            let map = SharedMap::open(&path).expect("map");
            assert_eq!(map.words().len(), words);
            map.reserve().expect("reserve");
            map.flush().expect("flush");
        }
        SharedView::open(dir.path()).expect_err("a folder is no file");
    }

    #[test]
    fn memory_starts_at_zero_and_needs_no_disk() {
        let map = SharedMap::in_memory(1 << 20).expect("memory");
        assert!(map.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
        map.words()[9].store(5, Ordering::Relaxed);
        assert_eq!(map.deref().words()[9].load(), 5);
        map.flush().expect("nothing to do");
        map.reserve().expect("nothing to do");
        let error = SharedMap::in_memory(u64::MAX).expect_err("more than there is");
        assert!(error.to_string().contains("(memory)"), "{error}");
    }
}
