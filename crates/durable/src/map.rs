//! Read-only memory maps of files that nobody changes; `shared_map.rs` has those that somebody does.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use crate::error::{Result, io_at};

/// How a map will be read; the kernel reads ahead accordingly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Advice {
    /// Some read-ahead.
    #[default]
    Normal,
    /// Look-ups all over: no read-ahead.
    Random,
    /// From front to back: much read-ahead, and pages behind are freed early.
    Sequential,
}

impl Advice {
    pub(crate) fn for_kernel(self) -> memmap2::Advice {
        match self {
            Self::Normal => memmap2::Advice::Normal,
            Self::Random => memmap2::Advice::Random,
            Self::Sequential => memmap2::Advice::Sequential,
        }
    }
}

/// A file as a byte slice, read-only.
///
/// # What the caller accepts
/// The bytes are the file's, not a copy. If somebody writes to the file, they change under the reader; if
/// somebody truncates it, reading past its new end kills the process (SIGBUS). So map only files that nobody
/// changes once they are there: published by rename, or written once by [`NewFile`](crate::NewFile), in a folder
/// whose [`FolderLock`](crate::FolderLock) this process or a well-behaved one holds. Removing or replacing the
/// file by rename is fine: the map keeps the old one. And do not build a promise of memory safety on two reads
/// of one byte being equal: check and use the same copy.
///
/// A disk that fails while a page is read is a SIGBUS too; a store that must outlive that reads with `pread`.
#[derive(Debug)]
pub struct Map {
    path: PathBuf,
    /// None for an empty file, which has nothing to map.
    mmap: Option<Mmap>,
}

impl Map {
    /// Maps all of the file at `path` as long as it is now; an empty file is an empty slice.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io); also if `path` is no regular file.
    pub fn open(path: &Path, advice: Advice) -> Result<Self> {
        let file = File::open(path).map_err(io_at("open", path))?;
        let metadata = file.metadata().map_err(io_at("read", path))?;
        if !metadata.is_file() {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
            return Err(io_at("map", path)(source));
        }
        let mmap = match usize::try_from(metadata.len()) {
            Ok(0) => None,
            Ok(bytes) => Some(map(&file, bytes).map_err(io_at("map", path))?),
            Err(_) => return Err(io_at("map", path)(io::ErrorKind::OutOfMemory.into())),
        };
        let map = Self {
            path: path.to_owned(),
            mmap,
        };
        map.advise(advice)?;
        Ok(map)
    }

    /// Says how the map will be read from now on.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn advise(&self, advice: Advice) -> Result<()> {
        match &self.mmap {
            Some(mmap) => mmap
                .advise(advice.for_kernel())
                .map_err(io_at("advise on", &self.path)),
            None => Ok(()),
        }
    }

    /// The bytes of the file.
    pub fn as_slice(&self) -> &[u8] {
        self.mmap.as_deref().unwrap_or_default()
    }

    /// The file that is mapped.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

fn map(file: &File, bytes: usize) -> io::Result<Mmap> {
    let mut options = memmap2::MmapOptions::new();
    options.len(bytes);
    // SAFETY: a shared map is sound while nobody changes or shrinks the file. This process changes no file that
    // it maps so: this crate writes only to files that are new, to temporary files, to the tail of frames files
    // and to files of a `SharedMap`, whose docs forbid mapping them as a `Map`.
    // Other processes are kept off by the folder lock; that they keep to it is what the docs of `Map` make the
    // caller accept.
    unsafe { options.map(file) }
}
