//! Other ways to read the blocks of a segment, measured beside the one that is shipped. Only with the
//! feature `readers`; see `docs/decisions/006-pread-and-a-block-cache.md` for what came of it.
//!
//! # Concurrency
//! A ring for batches of reads belongs to a thread. The record of reads is one for the process.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use tamis_durable::{Advice, BatchedReads, Map, Wanted};

use crate::segment::block::{BlockAt, BlockKind};
use crate::{Error, Result};

/// How blocks come from disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reader {
    /// What is shipped: `pread`, after the kernel was asked for the blocks of all segments at once.
    #[default]
    Shipped,
    /// `pread`, one block after the other.
    OneByOne,
    /// A map of the file, no read-ahead.
    Map,
    /// Past the page cache.
    Direct,
    /// Blocks of all segments in one batch of io_uring.
    Uring,
    /// The same, past the page cache.
    UringDirect,
}

/// How the blocks that a query needs from several segments are asked for before the first is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// Not at all.
    No,
    /// By telling the kernel.
    Hint,
    /// By reading them.
    Batch,
}

impl Reader {
    pub(crate) fn ahead(self) -> Ahead {
        match self {
            Self::Shipped => Ahead::Hint,
            Self::OneByOne | Self::Map | Self::Direct => Ahead::No,
            Self::Uring | Self::UringDirect => Ahead::Batch,
        }
    }
}

/// What direct reads must be aligned to, in the file and in memory: a page is enough for every disk.
const ALIGNMENT: usize = 4096;

/// Where the bytes of a segment are taken from.
#[derive(Debug)]
pub(crate) enum Source {
    Cached(File),
    Direct(File),
    Mapped(Map),
}

impl Source {
    pub(crate) fn open(path: &Path, reader: Reader) -> Result<Self> {
        match reader {
            Reader::Map => Ok(Self::Mapped(Map::open(path, Advice::Random)?)),
            Reader::Direct | Reader::UringDirect => {
                let mut options = File::options();
                options.read(true).custom_flags(OFlags::DIRECT.bits() as i32);
                let file = options
                    .open(path)
                    .map_err(Error::io("open for direct reads", path))?;
                Ok(Self::Direct(file))
            }
            _ => Ok(Self::Cached(File::open(path).map_err(Error::io("open", path))?)),
        }
    }

    /// Lends the bytes, which lie within the file.
    pub(crate) fn lend<T>(
        &self,
        offset: u64,
        bytes: usize,
        read: impl FnOnce(&[u8]) -> T,
    ) -> std::io::Result<T> {
        match self {
            Self::Mapped(map) => {
                let start = offset as usize;
                let part = map.get(start..start + bytes);
                Ok(read(part.ok_or(std::io::ErrorKind::UnexpectedEof)?))
            }
            Self::Cached(file) => {
                let mut buffer = vec![0; bytes];
                file.read_exact_at(&mut buffer, offset)?;
                Ok(read(&buffer))
            }
            Self::Direct(file) => {
                let mut part = Part::of(file, ALIGNMENT, offset, bytes);
                let to = part.wanted.buffer.get_mut(part.wanted.skip..);
                part.wanted.read = file.read_at(to.unwrap_or_default(), part.wanted.offset)?;
                Ok(read(part.bytes().ok_or(std::io::ErrorKind::UnexpectedEof)?))
            }
        }
    }

    /// A part of the file, to be read in a batch; a map has none.
    fn part(&self, at: BlockAt) -> Option<Part<'_>> {
        let bytes = at.bytes as usize;
        match self {
            Self::Cached(file) => Some(Part::of(file, 1, at.offset, bytes)),
            Self::Direct(file) => Some(Part::of(file, ALIGNMENT, at.offset, bytes)),
            Self::Mapped(_) => None,
        }
    }
}

/// A part of a file, and what must be read to have it.
struct Part<'f> {
    wanted: Wanted<'f>,
    /// Bytes read before the first that is wanted.
    lead: usize,
    bytes: usize,
}

impl<'f> Part<'f> {
    fn of(file: &'f File, alignment: usize, offset: u64, bytes: usize) -> Self {
        let lead = offset as usize % alignment;
        let filled = (lead + bytes).next_multiple_of(alignment);
        let mut buffer = vec![0; filled + alignment - 1];
        let skip = buffer.as_ptr().align_offset(alignment);
        buffer.truncate(skip + filled);
        let wanted = Wanted {
            file,
            offset: offset - lead as u64,
            buffer,
            skip,
            read: 0,
        };
        Self { wanted, lead, bytes }
    }

    /// What was wanted, if all of it was there.
    fn bytes(&self) -> Option<&[u8]> {
        let read = self
            .wanted
            .buffer
            .get(self.wanted.skip..)?
            .get(..self.wanted.read)?;
        read.get(self.lead..self.lead + self.bytes)
    }
}

thread_local! {
    static RING: RefCell<Option<BatchedReads>> = const { RefCell::new(None) };
}

/// Reads blocks of several files at once and hands them on by their place in `wanted`. What cannot be
/// read so is left to whoever needs it: it tells the error.
pub(crate) fn batch(wanted: &[(&Source, BlockAt)], mut take: impl FnMut(usize, &[u8])) {
    let parts = wanted.iter().map(|(source, at)| source.part(*at));
    let Some(parts) = parts.collect::<Option<Vec<_>>>() else {
        return;
    };
    let places: Vec<(usize, usize)> = parts.iter().map(|part| (part.lead, part.bytes)).collect();
    let wanted = parts.into_iter().map(|part| part.wanted).collect();
    let read = RING.with_borrow_mut(|ring| {
        if ring.is_none() {
            *ring = BatchedReads::new().ok();
        }
        ring.as_mut()?.read(wanted).ok()
    });
    for (number, (wanted, (lead, bytes))) in read.into_iter().flatten().zip(places).enumerate() {
        if let Some(bytes) = (Part { wanted, lead, bytes }).bytes() {
            take(number, bytes);
        }
    }
}

/// A block that was read from its file.
#[derive(Debug, Clone)]
pub struct Read {
    /// The segment.
    pub path: PathBuf,
    /// What the block holds.
    pub kind: &'static str,
    /// Where it lies.
    pub offset: u64,
    /// Its length, header included.
    pub bytes: usize,
    /// It came with those of other segments.
    pub in_batch: bool,
}

static RECORDING: AtomicBool = AtomicBool::new(false);
static RECORD: Mutex<Vec<Read>> = Mutex::new(Vec::new());

/// Notes from now on which blocks are read.
pub fn record_reads() {
    RECORDING.store(true, Ordering::Relaxed);
}

/// What was read since, or since the last call; it is not kept.
pub fn recorded_reads() -> Vec<Read> {
    std::mem::take(&mut *RECORD.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(crate) fn note(path: &Path, kind: BlockKind, at: BlockAt, in_batch: bool) {
    if RECORDING.load(Ordering::Relaxed) {
        let read = Read {
            path: path.to_owned(),
            kind: kind.name(),
            offset: at.offset,
            bytes: at.bytes as usize,
            in_batch,
        };
        RECORD.lock().unwrap_or_else(PoisonError::into_inner).push(read);
    }
}
