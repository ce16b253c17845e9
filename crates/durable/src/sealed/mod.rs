//! Small files that are replaced whole and carry their own proof: manifest, cursor, dictionary, settings.
//!
//! # Format
//! `docs/formats/sealed.md`.
//!
//! # Limits
//! A sealed file is read whole into memory; the reader names the limit.

mod format;

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use crate::format::Format;

use crate::disk::RealDisk;
use crate::error::{Error, Result, io_at};
use crate::publish::publish_on;

/// Replaces the file at `path` by a header and `payload`, atomically and durably (see [`crate::publish`]).
///
/// # Errors
/// [`Error::Io`].
pub fn publish(path: &Path, format: Format, payload: &[u8]) -> Result<()> {
    publish_on(
        &RealDisk,
        path,
        &[&format::encode_header(format, payload), payload],
    )
}

/// Reads the payload back; every changed, missing or surplus byte is an error.
///
/// # Errors
/// [`Error::Corrupt`] with the offset; [`Error::TooLarge`] if the payload has more than `bytes_max` bytes, told
/// before it is read; [`Error::WrongMagic`], [`Error::FutureVersion`], [`Error::OldVersion`]; [`Error::Io`].
pub fn read(path: &Path, format: Format, bytes_max: u64) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(io_at("open", path))?;
    let header_bytes = format::HEADER_BYTES as u64;
    let too_large = |file_bytes: u64| Error::TooLarge {
        path: path.to_owned(),
        bytes: file_bytes.saturating_sub(header_bytes),
        bytes_max,
    };
    let file_bytes = file.metadata().map_err(io_at("read", path))?.len();
    let file_bytes_max = bytes_max.saturating_add(header_bytes);
    if file_bytes > file_bytes_max {
        return Err(too_large(file_bytes));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(file_bytes).map_err(|_| too_large(file_bytes))?);
    // One byte more than allowed, so that a file that grew meanwhile shows.
    file.take(file_bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(io_at("read", path))?;
    if bytes.len() as u64 > file_bytes_max {
        return Err(too_large(bytes.len() as u64));
    }
    format::check(path, &bytes, format)?;
    bytes.drain(..format::HEADER_BYTES);
    Ok(bytes)
}
