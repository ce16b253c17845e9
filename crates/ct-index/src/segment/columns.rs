//! Compression of the columns of a block.
//!
//! # Format
//! `codec u8 (0 raw, 1 zstd) | raw bytes u32 | bytes`. Level 1: level 3 buys less than 0.3 bytes a row.

use std::cell::RefCell;

use crate::coding::{Decoded, Malformed, Reader};

const RAW: u8 = 0;
const ZSTD: u8 = 1;
const LEVEL: i32 = 1;

thread_local! {
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// How columns are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    /// As they are: for what is soon merged, and read more often until then.
    Raw,
    /// Compressed where that makes them shorter.
    Zstd,
}

/// Appends `raw` in the form that `codec` asks for.
pub(crate) fn put(out: &mut Vec<u8>, raw: &[u8], codec: Codec) {
    if codec == Codec::Raw {
        out.push(RAW);
        out.extend_from_slice(&(raw.len() as u32).to_le_bytes());
        out.extend_from_slice(raw);
        return;
    }
    let packed = COMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = zstd::bulk::Compressor::new(LEVEL).ok();
        }
        slot.as_mut()?.compress(raw).ok()
    });
    let packed = packed.filter(|packed| packed.len() < raw.len());
    out.push(if packed.is_some() { ZSTD } else { RAW });
    out.extend_from_slice(&(raw.len() as u32).to_le_bytes());
    out.extend_from_slice(packed.as_deref().unwrap_or(raw));
}

/// Most raw bytes of a block whose rows are bounded in number and size.
pub(crate) const SMALL_BYTES_MAX: usize = 1 << 20;

/// The raw columns that fill the rest of `reader`, if they are no longer than `bytes_max`.
pub(crate) fn take(reader: &mut Reader<'_>, bytes_max: usize) -> Decoded<Vec<u8>> {
    let codec = reader.u8()?;
    let length = reader.u32()? as usize;
    if length > bytes_max {
        return Err(Malformed("columns longer than the limit"));
    }
    let bytes = reader.take(reader.remaining())?;
    match codec {
        RAW if bytes.len() == length => Ok(bytes.to_vec()),
        ZSTD => {
            let raw = DECOMPRESSOR.with_borrow_mut(|slot| {
                if slot.is_none() {
                    *slot = zstd::bulk::Decompressor::new().ok();
                }
                slot.as_mut()?.decompress(bytes, length).ok()
            });
            raw.filter(|raw| raw.len() == length)
                .ok_or(Malformed("columns do not decompress"))
        }
        _ => Err(Malformed("unknown codec of columns")),
    }
}

thread_local! {
    static JOINED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Appends streams, each with its length, so that a reader can walk all of them side by side.
pub(crate) fn put_joined(out: &mut Vec<u8>, streams: &[&[u8]], codec: Codec) {
    JOINED.with_borrow_mut(|joined| {
        joined.clear();
        for stream in streams {
            crate::coding::put_bytes(joined, stream);
        }
        put(out, joined, codec);
    });
}

/// Splits what [`put_joined`] joined.
pub(crate) fn split<const N: usize>(joined: &[u8]) -> Decoded<[Reader<'_>; N]> {
    let mut reader = Reader::new(joined);
    let mut streams = [Reader::new(&[]); N];
    for stream in &mut streams {
        *stream = Reader::new(reader.bytes()?);
    }
    if reader.is_empty() {
        Ok(streams)
    } else {
        Err(Malformed("bytes behind the last column"))
    }
}
