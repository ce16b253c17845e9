//! The dictionary of issuers: about two thousand texts, numbered for the whole folder.
//!
//! # Format
//! A frames file (`docs/formats/frames.md`) with magic `TAMISISS`; each frame holds the number of its
//! first issuer and the texts that follow it. The manifest says how many bytes count: new issuers
//! travel in the write-ahead log until a flush appends them here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tamis_durable::{frames, sealed};

use crate::coding::{Decoded, Reader, put_bytes, put_varint};
use crate::{Error, Result};

/// Magic of the dictionary file.
pub(crate) const MAGIC: [u8; 8] = *b"TAMISISS";
/// Version of the format.
pub(crate) const VERSION: u32 = 1;
const FORMAT: sealed::Format = sealed::Format {
    magic: MAGIC,
    version: VERSION,
};
/// More issuers than this are refused; the web has a few thousand.
pub(crate) const ISSUERS_MAX: u32 = 1 << 24;

/// Issuers by number.
pub(crate) type Issuers = Arc<Vec<Arc<str>>>;

/// Path of the dictionary in a folder.
pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join("issuers.tamis")
}

/// Appends issuers numbered from `first` and answers the new length of the file.
pub(crate) fn append(dir: &Path, at_bytes: u64, first: u32, issuers: &[Arc<str>]) -> Result<u64> {
    if issuers.is_empty() {
        return Ok(at_bytes);
    }
    let path = path(dir);
    let mut writer = if at_bytes == 0 {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &path)(error));
            }
            _ => frames::FrameWriter::create(&path, FORMAT, 0)?,
        }
    } else {
        frames::FrameWriter::open_append(&path, FORMAT, at_bytes)?
    };
    let mut payload = Vec::new();
    put_varint(&mut payload, u64::from(first));
    put_varint(&mut payload, issuers.len() as u64);
    for issuer in issuers {
        put_bytes(&mut payload, issuer.as_bytes());
    }
    writer.append(&payload)?;
    Ok(writer.commit()?)
}

/// Reads the first `at_bytes` of the dictionary; issuers that damage took are named as lost.
pub(crate) fn read(dir: &Path, at_bytes: u64, count: u32, faults: &mut Vec<Error>) -> Result<Vec<Arc<str>>> {
    let mut issuers: Vec<Arc<str>> = (0..count)
        .map(|number| format!("(issuer {number} is lost)").into())
        .collect();
    if count == 0 {
        return Ok(issuers);
    }
    let path = path(dir);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => {
            faults.push(Error::io("read", &path)(error));
            return Ok(issuers);
        }
    };
    let bytes = bytes.get(..at_bytes as usize).unwrap_or(&bytes);
    let reader = match frames::FrameReader::new(&path, bytes, FORMAT) {
        Ok(reader) => reader,
        Err(error @ tamis_durable::Error::FutureVersion { .. }) => return Err(error.into()),
        Err(error) => {
            faults.push(error.into());
            return Ok(issuers);
        }
    };
    let mut found = 0;
    for frame in reader {
        match frame {
            Ok(frame) => match read_frame(frame.payload, &mut issuers) {
                Ok(count) => found += count,
                Err(malformed) => faults.push(Error::malformed(&path, frame.offset)(malformed)),
            },
            Err(damage) => faults.push(damage.to_error(&path).into()),
        }
    }
    if found < u64::from(count) && faults.is_empty() {
        faults.push(Error::corrupt(
            &path,
            at_bytes,
            format!("{} of {count} issuers are missing", u64::from(count) - found),
        ));
    }
    Ok(issuers)
}

fn read_frame(payload: &[u8], issuers: &mut [Arc<str>]) -> Decoded<u64> {
    let mut reader = Reader::new(payload);
    let first = reader.bounded(u64::from(ISSUERS_MAX), "issuer number over the limit")?;
    let count = reader.bounded(u64::from(ISSUERS_MAX), "too many issuers")?;
    for number in first..first + count {
        let text = reader.text()?;
        if let Some(slot) = issuers.get_mut(number) {
            *slot = text.into();
        }
    }
    Ok(count as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_frame_loses_its_issuers_only() {
        let dir = tempfile::tempdir().unwrap();
        let issuers: Vec<Arc<str>> = ["CN=A", "CN=B", "CN=C"].map(Arc::from).to_vec();
        let first = append(dir.path(), 0, 0, &issuers[..2]).unwrap();
        let length = append(dir.path(), first, 2, &issuers[2..]).unwrap();
        let mut faults = Vec::new();
        assert_eq!(read(dir.path(), length, 3, &mut faults).unwrap(), issuers);
        assert!(faults.is_empty());
        let path = path(dir.path());
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[first as usize - 1] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let damaged = read(dir.path(), length, 3, &mut faults).unwrap();
        assert_eq!(
            (damaged[0].as_ref(), damaged[2].as_ref()),
            ("(issuer 0 is lost)", "CN=C")
        );
        assert_eq!(faults.len(), 1);
    }
}
