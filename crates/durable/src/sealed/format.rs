//! The bytes of a sealed file, without I/O.
//!
//! # Format
//! `docs/formats/sealed.md`.

use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use crate::bytes::u64_at;
use crate::error::{Result, corrupt};
use crate::format::{Format, check_start};

const LENGTH_AT: usize = 12;
const CHECKSUM_AT: usize = 20;
/// Magic, version, payload length, checksum.
pub(super) const HEADER_BYTES: usize = 28;

/// The header that goes before `payload`.
pub(super) fn encode_header(format: Format, payload: &[u8]) -> [u8; HEADER_BYTES] {
    let length = payload.len() as u64;
    let checksum = checksum(format.magic, format.version, length, payload);
    let mut header = [0; HEADER_BYTES];
    let fields = format
        .magic
        .into_iter()
        .chain(format.version.to_le_bytes())
        .chain(length.to_le_bytes())
        .chain(checksum.to_le_bytes());
    for (to, from) in header.iter_mut().zip(fields) {
        *to = from;
    }
    header
}

/// Accepts `file` if it is exactly what [`encode_header`] and its payload make.
pub(super) fn check(path: &Path, file: &[u8], format: Format) -> Result<()> {
    let fields = (
        u64_at(file, LENGTH_AT),
        u64_at(file, CHECKSUM_AT),
        file.get(HEADER_BYTES..),
    );
    let (Some(length), Some(stored), Some(payload)) = fields else {
        check_start(path, file, format, |_, _| false)?;
        return Err(corrupt(
            path,
            file.len() as u64,
            "the file ends inside its header",
        ));
    };
    let intact = |magic, version| checksum(magic, version, length, payload) == stored;
    check_start(path, file, format, intact)?;
    let present = payload.len() as u64;
    if present < length {
        let reason = format!("the file ends after {present} of {length} payload bytes");
        return Err(corrupt(path, file.len() as u64, reason));
    }
    if present > length {
        let reason = format!("{} bytes follow the payload of {length}", present - length);
        return Err(corrupt(path, HEADER_BYTES as u64 + length, reason));
    }
    if !intact(format.magic, format.version) {
        let reason = "the checksum over header and payload fails";
        return Err(corrupt(path, CHECKSUM_AT as u64, reason));
    }
    Ok(())
}

fn checksum(magic: [u8; 8], version: u32, length: u64, payload: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&magic);
    hasher.update(&version.to_le_bytes());
    hasher.update(&length.to_le_bytes());
    hasher.update(payload);
    hasher.digest()
}
