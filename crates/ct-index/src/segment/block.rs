//! Blocks: the unit that is read, checked and cached.
//!
//! # Format
//! `kind u8 | payload bytes u32 | XXH3-64 of the payload, seeded with the file offset u64 | payload`.
//! The seed catches a block that is whole but in the wrong place; the kind lets a damaged file be
//! read without its footer.
//!
//! # Limits
//! [`BLOCK_BYTES_MAX`] bounds a payload before it is allocated.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::coding::{Decoded, Malformed, Reader};
#[cfg(feature = "readers")]
use crate::readers::{self, Reader as BlockReader, Source};
use crate::{Error, Result};

/// Bytes before each payload.
pub(crate) const BLOCK_HEADER_BYTES: usize = 13;
/// Largest payload; also bounds what decompression may yield.
pub(crate) const BLOCK_BYTES_MAX: usize = 256 << 20;

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BlockKind {
    Names = 1,
    Records = 2,
    Fingerprints = 3,
    Serials = 4,
    Issuances = 5,
    Organizations = 6,
    IndexChunk = 7,
    IndexTop = 8,
    PositionBounds = 9,
    Domains = 10,
    Meta = 11,
    IssuanceFilter = 12,
    Footer = 13,
}

impl BlockKind {
    pub(crate) const ALL: [Self; 13] = [
        Self::Names,
        Self::Records,
        Self::Fingerprints,
        Self::Serials,
        Self::Issuances,
        Self::Organizations,
        Self::IndexChunk,
        Self::IndexTop,
        Self::PositionBounds,
        Self::Domains,
        Self::Meta,
        Self::IssuanceFilter,
        Self::Footer,
    ];

    pub(crate) fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == code)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Records => "records",
            Self::Fingerprints => "fingerprints",
            Self::Serials => "serials",
            Self::Issuances => "issuances",
            Self::Organizations => "organizations",
            Self::IndexChunk => "index chunk",
            Self::IndexTop => "index top",
            Self::PositionBounds => "position bounds",
            Self::Domains => "domains",
            Self::Meta => "meta",
            Self::IssuanceFilter => "issuance filter",
            Self::Footer => "footer",
        }
    }
}

/// Where a block lies, header included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockAt {
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
}

/// Frames `payload` for `offset` and appends it to `out`.
pub(crate) fn frame(kind: BlockKind, offset: u64, payload: &[u8], out: &mut Vec<u8>) {
    out.push(kind as u8);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&xxh3_64_with_seed(payload, offset).to_le_bytes());
    out.extend_from_slice(payload);
}

/// Checks a framed block that was read at `offset`; the payload must fill it.
pub(crate) fn unframe(kind: BlockKind, offset: u64, framed: &[u8]) -> Decoded<&[u8]> {
    let (found, payload) = unframe_any(offset, framed)?;
    if found != kind {
        return Err(Malformed("a block of another kind lies here"));
    }
    if payload.len() + BLOCK_HEADER_BYTES != framed.len() {
        return Err(Malformed("the block has another length than its index says"));
    }
    Ok(payload)
}

/// Checks the block that starts at `framed`, whatever its kind and whatever follows.
pub(crate) fn unframe_any(offset: u64, framed: &[u8]) -> Decoded<(BlockKind, &[u8])> {
    let mut reader = Reader::new(framed);
    let kind = BlockKind::of(reader.u8()?).ok_or(Malformed("unknown kind of block"))?;
    let length = reader.u32()? as usize;
    let checksum = reader.u64()?;
    if length > BLOCK_BYTES_MAX {
        return Err(Malformed("block longer than the limit"));
    }
    let payload = reader.take(length)?;
    if xxh3_64_with_seed(payload, offset) != checksum {
        return Err(Malformed("checksum does not match"));
    }
    Ok((kind, payload))
}

/// A file of blocks, read with `pread`: resident memory stays what the cache is allowed. Why neither maps
/// nor direct reads nor io_uring: `docs/decisions/006-pread-and-a-block-cache.md`.
#[derive(Debug)]
pub(crate) struct BlockFile {
    file: File,
    path: PathBuf,
    length: u64,
    #[cfg(feature = "readers")]
    source: Source,
}

impl BlockFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let length = file
            .metadata()
            .map_err(Error::io("read the size of", path))?
            .len();
        Ok(Self {
            file,
            path: path.to_owned(),
            length,
            #[cfg(feature = "readers")]
            source: Source::open(path, BlockReader::default())?,
        })
    }

    /// Reads blocks otherwise from now on.
    #[cfg(feature = "readers")]
    pub(crate) fn read_by(mut self, reader: BlockReader) -> Result<Self> {
        self.source = Source::open(&self.path, reader)?;
        Ok(self)
    }

    #[cfg(feature = "readers")]
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// True when a block can lie there.
    pub(crate) fn is_within(&self, at: BlockAt) -> bool {
        self.check_within(at.offset, at.bytes as usize).is_ok()
    }

    /// Starts reading a block into the page cache, without waiting for it.
    pub(crate) fn will_need(&self, at: BlockAt) {
        tamis_durable::will_need(&self.file, at.offset, at.bytes);
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Says that the file is read once, front to back.
    pub(crate) fn read_ahead(&self) {
        tamis_durable::read_ahead(&self.file);
    }

    /// Drops what the page cache holds of the file.
    pub(crate) fn drop_cached(&self) {
        tamis_durable::drop_cached(&self.file);
    }

    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    /// Raw bytes; a short file is damage, not an I/O error.
    pub(crate) fn raw(&self, offset: u64, bytes: usize) -> Result<Vec<u8>> {
        self.check_within(offset, bytes)?;
        let mut buffer = vec![0; bytes];
        self.file
            .read_exact_at(&mut buffer, offset)
            .map_err(Error::io("read", &self.path))?;
        Ok(buffer)
    }

    fn check_within(&self, offset: u64, bytes: usize) -> Result<()> {
        if bytes > BLOCK_BYTES_MAX + BLOCK_HEADER_BYTES || offset.saturating_add(bytes as u64) > self.length {
            return Err(Error::corrupt(
                &self.path,
                offset,
                format!("{bytes} bytes run past the end of the file"),
            ));
        }
        Ok(())
    }

    /// Lends raw bytes: the one place that knows how they are read.
    #[cfg(not(feature = "readers"))]
    fn lend<T>(&self, at: BlockAt, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
        Ok(read(&self.raw(at.offset, at.bytes as usize)?))
    }

    #[cfg(feature = "readers")]
    fn lend<T>(&self, at: BlockAt, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let bytes = at.bytes as usize;
        self.check_within(at.offset, bytes)?;
        let lent = self.source.lend(at.offset, bytes, read);
        lent.map_err(Error::io("read", &self.path))
    }

    /// Reads, checks and decodes one block.
    pub(crate) fn block<T>(
        &self,
        kind: BlockKind,
        at: BlockAt,
        decode: impl FnOnce(&[u8]) -> Decoded<T>,
    ) -> Result<T> {
        #[cfg(feature = "readers")]
        readers::note(&self.path, kind, at, false);
        self.lend(at, |framed| self.decode(kind, at, framed, decode))?
    }

    /// Checks and decodes one block that was read.
    pub(crate) fn decode<T>(
        &self,
        kind: BlockKind,
        at: BlockAt,
        framed: &[u8],
        decode: impl FnOnce(&[u8]) -> Decoded<T>,
    ) -> Result<T> {
        unframe(kind, at.offset, framed)
            .and_then(decode)
            .map_err(|malformed| {
                Error::corrupt(
                    &self.path,
                    at.offset,
                    format!("{} block: {}", kind.name(), malformed.0),
                )
            })
    }
}
