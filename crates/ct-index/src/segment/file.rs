//! Writing and cached reading of the blocks of one segment file.
//!
//! # Concurrency
//! [`Blocks`] is shared by all readers; the cache is sharded and bounded in bytes over all segments.

use std::path::Path;
use std::sync::Arc;

use crate::segment::block::{BlockAt, BlockFile, BlockKind, frame};
use crate::segment::hashes::HashesBlock;
use crate::segment::index::Chunk;
use crate::segment::names::NamesBlock;
use crate::segment::organizations::OrganizationsBlock;
use crate::segment::positions::{self, Bound};
use crate::segment::records::RecordsBlock;
use crate::{Error, Options, Result};

/// Appends framed blocks to a new file.
pub(crate) struct Output {
    file: tamis_durable::NewFile,
    position: u64,
    framed: Vec<u8>,
}

impl Output {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        Ok(Self {
            file: tamis_durable::NewFile::create(path)?,
            position: 0,
            framed: Vec::new(),
        })
    }

    /// Bytes written so far.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    pub(crate) fn block(&mut self, kind: BlockKind, payload: &[u8]) -> Result<BlockAt> {
        if payload.len() > crate::segment::block::BLOCK_BYTES_MAX {
            return Err(Error::TooLarge {
                what: "bytes of a block",
                found: payload.len() as u64,
                limit: crate::segment::block::BLOCK_BYTES_MAX as u64,
            });
        }
        let mut framed = std::mem::take(&mut self.framed);
        framed.clear();
        frame(kind, self.position, payload, &mut framed);
        let at = BlockAt {
            offset: self.position,
            bytes: framed.len() as u32,
        };
        self.raw(&framed)?;
        self.framed = framed;
        Ok(at)
    }

    /// One fsync of the file, one of its folder.
    pub(crate) fn finish(self) -> Result<u64> {
        Ok(self.file.finish()?)
    }
}

/// A decoded block in the cache.
#[derive(Clone)]
enum Cached {
    Names(Arc<NamesBlock>),
    Records(Arc<RecordsBlock>),
    Hashes(Arc<HashesBlock>),
    Bounds(Arc<Vec<Bound>>),
    Organizations(Arc<OrganizationsBlock>),
    Chunk(Arc<Chunk>),
}

#[derive(Clone)]
struct ByBytes;

impl quick_cache::Weighter<(u64, u64), Cached> for ByBytes {
    fn weight(&self, _: &(u64, u64), cached: &Cached) -> u64 {
        let bytes = match cached {
            Cached::Names(block) => block.memory_bytes(),
            Cached::Records(block) => block.memory_bytes(),
            Cached::Hashes(block) => block.memory_bytes(),
            Cached::Bounds(bounds) => bounds.len() * size_of::<Bound>(),
            Cached::Organizations(block) => block.memory_bytes(),
            Cached::Chunk(block) => block.memory_bytes(),
        };
        bytes as u64 + 64
    }
}

/// Decoded blocks of all segments, bounded in bytes.
pub(crate) struct BlockCache {
    cache: quick_cache::sync::Cache<(u64, u64), Cached, ByBytes>,
    #[cfg(feature = "readers")]
    reader: crate::readers::Reader,
}

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockCache")
            .field("bytes", &self.cache.weight())
            .finish()
    }
}

impl BlockCache {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self::bounded(bytes_max))
    }

    /// The cache that an index is opened with.
    pub(crate) fn of(options: &Options) -> Arc<Self> {
        Arc::new(Self {
            #[cfg(feature = "readers")]
            reader: options.reader,
            ..Self::bounded(options.cache_bytes)
        })
    }

    fn bounded(bytes_max: usize) -> Self {
        // An estimate of entries only sizes the tables.
        let entries = (bytes_max / (16 << 10)).max(64);
        Self {
            cache: quick_cache::sync::Cache::with_weighter(entries, bytes_max as u64, ByBytes),
            #[cfg(feature = "readers")]
            reader: crate::readers::Reader::default(),
        }
    }
}

/// The blocks of one file, through the cache.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub(crate) file: BlockFile,
    /// Unique while this process runs, so that two folders can share a cache.
    cache_key: u64,
    cache: Arc<BlockCache>,
}

static NEXT_CACHE_KEY: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);

impl Blocks {
    pub(crate) fn open(path: &Path, cache: Arc<BlockCache>) -> Result<Self> {
        let cache_key = NEXT_CACHE_KEY.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let file = BlockFile::open(path)?;
        #[cfg(feature = "readers")]
        let file = file.read_by(cache.reader)?;
        Ok(Self {
            file,
            cache_key,
            cache,
        })
    }

    /// True when the block would not be read again.
    pub(crate) fn holds(&self, at: BlockAt) -> bool {
        self.cache.cache.contains_key(&(self.cache_key, at.offset))
    }

    #[cfg(feature = "readers")]
    pub(crate) fn reader(&self) -> crate::readers::Reader {
        self.cache.reader
    }

    /// Takes a block that was read in a batch, if it is whole.
    #[cfg(feature = "readers")]
    pub(crate) fn put(&self, kind: BlockKind, at: BlockAt, framed: &[u8]) {
        crate::readers::note(self.file.path(), kind, at, true);
        let cached = match kind {
            BlockKind::IndexChunk => {
                let chunk = self.file.decode(kind, at, framed, Chunk::decode);
                chunk.map(|chunk| Cached::Chunk(Arc::new(chunk)))
            }
            BlockKind::Names => {
                let block = self.file.decode(kind, at, framed, NamesBlock::decode);
                block.map(|block| Cached::Names(Arc::new(block)))
            }
            _ => {
                let block = self.file.decode(kind, at, framed, HashesBlock::decode);
                block.map(|block| Cached::Hashes(Arc::new(block)))
            }
        };
        if let Ok(cached) = cached {
            self.cache.cache.insert((self.cache_key, at.offset), cached);
        }
    }

    fn cached<T>(
        &self,
        kind: BlockKind,
        at: BlockAt,
        from: impl Fn(Cached) -> Option<Arc<T>>,
        into: impl Fn(Arc<T>) -> Cached,
        decode: impl FnOnce(&[u8]) -> crate::coding::Decoded<T>,
    ) -> Result<Arc<T>> {
        let key = (self.cache_key, at.offset);
        if let Some(block) = self.cache.cache.get(&key).and_then(from) {
            return Ok(block);
        }
        let block = Arc::new(self.file.block(kind, at, decode)?);
        self.cache.cache.insert(key, into(Arc::clone(&block)));
        Ok(block)
    }

    pub(crate) fn names(&self, at: BlockAt) -> Result<Arc<NamesBlock>> {
        let from = |cached| {
            if let Cached::Names(block) = cached {
                Some(block)
            } else {
                None
            }
        };
        self.cached(BlockKind::Names, at, from, Cached::Names, NamesBlock::decode)
    }

    pub(crate) fn records(&self, at: BlockAt) -> Result<Arc<RecordsBlock>> {
        let from = |cached| {
            if let Cached::Records(block) = cached {
                Some(block)
            } else {
                None
            }
        };
        self.cached(
            BlockKind::Records,
            at,
            from,
            Cached::Records,
            RecordsBlock::decode,
        )
    }

    pub(crate) fn bounds(&self, at: BlockAt) -> Result<Arc<Vec<Bound>>> {
        let from = |cached| {
            if let Cached::Bounds(bounds) = cached {
                Some(bounds)
            } else {
                None
            }
        };
        self.cached(
            BlockKind::PositionBounds,
            at,
            from,
            Cached::Bounds,
            positions::decode_bounds,
        )
    }

    pub(crate) fn organizations(&self, at: BlockAt) -> Result<Arc<OrganizationsBlock>> {
        let from = |cached| {
            if let Cached::Organizations(block) = cached {
                Some(block)
            } else {
                None
            }
        };
        self.cached(
            BlockKind::Organizations,
            at,
            from,
            Cached::Organizations,
            OrganizationsBlock::decode,
        )
    }

    pub(crate) fn chunk(&self, at: BlockAt) -> Result<Arc<Chunk>> {
        let from = |cached| {
            if let Cached::Chunk(block) = cached {
                Some(block)
            } else {
                None
            }
        };
        self.cached(BlockKind::IndexChunk, at, from, Cached::Chunk, Chunk::decode)
    }

    pub(crate) fn hashes(&self, kind: BlockKind, at: BlockAt) -> Result<Arc<HashesBlock>> {
        let from = |cached| {
            if let Cached::Hashes(block) = cached {
                Some(block)
            } else {
                None
            }
        };
        self.cached(kind, at, from, Cached::Hashes, HashesBlock::decode)
    }
}
