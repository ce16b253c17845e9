//! Zip files as stores of named bytes: what is in them is found by its name and read alone.
//!
//! Only what archives of logs need: entries stored or deflated, one volume, zip64. Nothing is unpacked to
//! disk and no name becomes a path. Why this is not a crate: `docs/decisions/027`.
//!
//! # Format
//! PKWARE's APPNOTE 6.3, sections 4.3.7 (local header), 4.3.12 (central directory) and 4.3.14 to 4.3.16
//! (the ends).
//!
//! # Invariants
//! Bytes are given out whole and with the right checksum, or not at all. A damaged entry is an error of that
//! entry; a damaged directory is one of the file.
//!
//! # Limits
//! [`ENTRIES_MAX`], [`DIRECTORY_BYTES_MAX`], and for each entry what the caller says. What a header claims is
//! compared with the limit before anything is inflated, and what comes out is counted too.

use std::collections::HashMap;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::Crc;
use flate2::read::DeflateDecoder;
use xxhash_rust::xxh3::xxh3_64;

/// Of one file; a subtree of 2^24 leaves has 131,330 and the issuers.
const ENTRIES_MAX: u64 = 1 << 20;
/// Of a directory; that of a full subtree has about 14 MB.
const DIRECTORY_BYTES_MAX: u64 = 128 << 20;
/// Memory taken for an entry before any of it came.
const CAPACITY_MAX: u64 = 1 << 20;

const END: [u8; 4] = *b"PK\x05\x06";
const END_BYTES: usize = 22;
const COMMENT_BYTES_MAX: u64 = 65_535;
const LOCATOR: [u8; 4] = *b"PK\x06\x07";
const LOCATOR_BYTES: u64 = 20;
const END64: [u8; 4] = *b"PK\x06\x06";
const END64_BYTES: usize = 56;
const CENTRAL: [u8; 4] = *b"PK\x01\x02";
const LOCAL: [u8; 4] = *b"PK\x03\x04";
const ZIP64_EXTRA: u16 = 1;
const ENCRYPTED: u16 = 1;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Why something does not come out of a zip file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ZipError {
    #[error("cannot be read")]
    Io(#[from] io::Error),
    #[error("is no whole zip file: {0}")]
    NoZip(&'static str),
    #[error("is larger than such files are: {what} of {found}, and the limit is {limit}")]
    TooLarge {
        what: &'static str,
        found: u64,
        limit: u64,
    },
    #[error("is not there")]
    NoEntry,
    #[error("is damaged: {0}")]
    Damaged(&'static str),
    #[error("is stored in a way that is not read here: {0}")]
    Unsupported(&'static str),
}

/// Where everything in a zip file is.
#[derive(Debug)]
pub(crate) struct ZipIndex {
    /// By the hash of their names; the name itself stands before the bytes and is compared there.
    entries: HashMap<u64, Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// Of its local header.
    offset: u64,
    packed: u64,
    size: u64,
    crc: u32,
    method: u16,
    is_encrypted: bool,
}

/// Bytes of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unpacked {
    pub(crate) bytes: Vec<u8>,
    /// How many they are in the file.
    pub(crate) packed: u64,
}

impl ZipIndex {
    /// Reads the directory of a zip file.
    pub(crate) fn read(mut file: impl Read + Seek) -> Result<Self, ZipError> {
        let length = file.seek(SeekFrom::End(0))?;
        let directory = Directory::find(&mut file, length)?;
        let limited = |what, found, limit| match found > limit {
            true => Err(ZipError::TooLarge { what, found, limit }),
            false => Ok(()),
        };
        limited("a directory", directory.bytes, DIRECTORY_BYTES_MAX)?;
        limited("a count of entries", directory.count, ENTRIES_MAX)?;
        let fits = directory.offset.checked_add(directory.bytes);
        if fits.is_none_or(|end| end > length) {
            return Err(ZipError::NoZip("the directory is not inside"));
        }
        file.seek(SeekFrom::Start(directory.offset))?;
        let mut reader = BufReader::with_capacity(1 << 16, file).take(directory.bytes);
        // What is counted is not believed: memory is taken as entries come.
        let mut entries = HashMap::new();
        for _ in 0..directory.count {
            let (name, entry) = Entry::read_central(&mut reader)?;
            // Of two with one name, the first is taken.
            entries.entry(name).or_insert(entry);
        }
        Ok(Self { entries })
    }

    /// The bytes of the entry with this name, at most `limit`.
    pub(crate) fn unpack(
        &self,
        mut file: impl Read + Seek,
        name: &str,
        limit: u64,
    ) -> Result<Unpacked, ZipError> {
        let name = name.as_bytes();
        let entry = self.entries.get(&xxh3_64(name)).ok_or(ZipError::NoEntry)?;
        let too_large = |found| ZipError::TooLarge {
            what: "an entry",
            found,
            limit,
        };
        if entry.size > limit {
            return Err(too_large(entry.size));
        }
        // Deflate makes bytes that do not compress longer by less than this.
        if entry.packed > limit.saturating_add(limit / 1_000).saturating_add(1_024) {
            return Err(too_large(entry.packed));
        }
        if entry.is_encrypted {
            return Err(ZipError::Unsupported("encrypted"));
        }
        file.seek(SeekFrom::Start(entry.offset))?;
        let mut reader = BufReader::with_capacity(1 << 14, file);
        skip_local(&mut reader, name)?;
        let packed = reader.take(entry.packed);
        let bytes = match entry.method {
            STORED => read_whole(packed, entry)?,
            DEFLATED => read_whole(DeflateDecoder::new(packed), entry)?,
            _ => return Err(ZipError::Unsupported("neither stored nor deflated")),
        };
        Ok(Unpacked {
            bytes,
            packed: entry.packed,
        })
    }
}

/// Where the directory is.
#[derive(Debug, Clone, Copy)]
struct Directory {
    offset: u64,
    bytes: u64,
    count: u64,
}

impl Directory {
    fn find(file: &mut (impl Read + Seek), length: u64) -> Result<Self, ZipError> {
        let tail_bytes = length.min(COMMENT_BYTES_MAX + END_BYTES as u64);
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(length - tail_bytes))?;
        file.by_ref().take(tail_bytes).read_to_end(&mut tail)?;
        // The end is where its comment ends with the file; a comment may look like another end.
        let is_end = |at: &usize| {
            let comment = tail
                .get(at + 20..at + 22)
                .map_or(usize::MAX, |_| usize::from(u16_at(&tail, at + 20)));
            tail.get(*at..).is_some_and(|end| end.starts_with(&END)) && at + END_BYTES + comment == tail.len()
        };
        let at = (0..tail.len().saturating_sub(END_BYTES - 1)).rev().find(is_end);
        let at = at.ok_or(ZipError::NoZip("it has no end"))?;
        let end = Self {
            offset: u64::from(u32_at(&tail, at + 16)),
            bytes: u64::from(u32_at(&tail, at + 12)),
            count: u64::from(u16_at(&tail, at + 10)),
        };
        let end_at = length - tail_bytes + at as u64;
        let is_short = end.offset < u64::from(u32::MAX)
            && end.bytes < u64::from(u32::MAX)
            && end.count < u64::from(u16::MAX);
        if is_short {
            return Ok(end);
        }
        Self::find_long(file, end_at).map(|long| long.unwrap_or(end))
    }

    /// The end of a zip64 file, which is told of right before the other one.
    fn find_long(file: &mut (impl Read + Seek), end_at: u64) -> Result<Option<Self>, ZipError> {
        let Some(at) = end_at.checked_sub(LOCATOR_BYTES) else {
            return Ok(None);
        };
        let mut locator = [0; LOCATOR_BYTES as usize];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut locator)?;
        if !locator.starts_with(&LOCATOR) {
            return Ok(None);
        }
        let mut end = [0; END64_BYTES];
        file.seek(SeekFrom::Start(u64_at(&locator, 8)))?;
        file.read_exact(&mut end)
            .map_err(|_| ZipError::NoZip("its end is not inside"))?;
        if !end.starts_with(&END64) {
            return Err(ZipError::NoZip("its end is not where it should be"));
        }
        Ok(Some(Self {
            offset: u64_at(&end, 48),
            bytes: u64_at(&end, 40),
            count: u64_at(&end, 32),
        }))
    }
}

impl Entry {
    /// Reads one entry of the directory, and the hash of its name.
    fn read_central(reader: &mut impl Read) -> Result<(u64, Self), ZipError> {
        let mut fixed = [0; 46];
        let short = |_| ZipError::NoZip("the directory ends early");
        reader.read_exact(&mut fixed).map_err(short)?;
        if !fixed.starts_with(&CENTRAL) {
            return Err(ZipError::NoZip("the directory is damaged"));
        }
        let mut bytes = |at| -> Result<Vec<u8>, ZipError> {
            let mut bytes = vec![0; usize::from(u16_at(&fixed, at))];
            reader.read_exact(&mut bytes).map_err(short)?;
            Ok(bytes)
        };
        let (name, extra, _comment) = (bytes(28)?, bytes(30)?, bytes(32)?);
        let mut entry = Self {
            offset: u64::from(u32_at(&fixed, 42)),
            packed: u64::from(u32_at(&fixed, 20)),
            size: u64::from(u32_at(&fixed, 24)),
            crc: u32_at(&fixed, 16),
            method: u16_at(&fixed, 10),
            is_encrypted: u16_at(&fixed, 8) & ENCRYPTED != 0,
        };
        entry.take_long(&extra);
        Ok((xxh3_64(&name), entry))
    }

    /// Numbers that have more than 32 bits stand behind the name, in this order and only where needed.
    fn take_long(&mut self, mut extra: &[u8]) {
        while extra.len() >= 4 {
            let (kind, length) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
            let Some(mut field) = extra.get(4..4 + length) else {
                return;
            };
            if kind == ZIP64_EXTRA {
                for number in [&mut self.size, &mut self.packed, &mut self.offset] {
                    if *number == u64::from(u32::MAX) && field.len() >= 8 {
                        *number = u64_at(field, 0);
                        field = field.get(8..).unwrap_or_default();
                    }
                }
                return;
            }
            extra = extra.get(4 + length..).unwrap_or_default();
        }
    }
}

/// Reads past the header before the bytes of an entry, which has to be of this one.
fn skip_local(reader: &mut impl Read, name: &[u8]) -> Result<(), ZipError> {
    let damaged = |_| ZipError::Damaged("its header is not inside the file");
    let mut fixed = [0; 30];
    reader.read_exact(&mut fixed).map_err(damaged)?;
    if !fixed.starts_with(&LOCAL) {
        return Err(ZipError::Damaged("its header is not where the directory says"));
    }
    let mut found = vec![0; usize::from(u16_at(&fixed, 26))];
    reader.read_exact(&mut found).map_err(damaged)?;
    if found != name {
        return Err(ZipError::Damaged("another entry is where the directory says"));
    }
    let mut extra = vec![0; usize::from(u16_at(&fixed, 28))];
    reader.read_exact(&mut extra).map_err(damaged)
}

/// All bytes of an entry, if they are as many as it says and have the checksum that it says.
fn read_whole(reader: impl Read, entry: &Entry) -> Result<Vec<u8>, ZipError> {
    let mut bytes = Vec::with_capacity(usize::try_from(entry.size.min(CAPACITY_MAX)).unwrap_or(0));
    // One more than it says, to see that there is no more.
    let read = reader.take(entry.size.saturating_add(1)).read_to_end(&mut bytes);
    if let Err(error) = read {
        return Err(match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                ZipError::Damaged("it does not inflate")
            }
            _ => ZipError::Io(error),
        });
    }
    if bytes.len() as u64 != entry.size {
        return Err(ZipError::Damaged("it has another length than the directory says"));
    }
    let mut crc = Crc::new();
    crc.update(&bytes);
    if crc.sum() != entry.crc {
        return Err(ZipError::Damaged("its checksum is wrong"));
    }
    Ok(bytes)
}

/// Reads any bytes as a zip file and takes each of the names out of it.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8], names: &[&str], limit: u64) {
    let Ok(index) = ZipIndex::read(io::Cursor::new(bytes)) else {
        return;
    };
    assert!(index.entries.len() * 46 <= bytes.len());
    for name in names {
        if let Ok(unpacked) = index.unpack(io::Cursor::new(bytes), name, limit) {
            let mut crc = Crc::new();
            crc.update(&unpacked.bytes);
            let entry = index.entries.get(&xxh3_64(name.as_bytes())).copied();
            assert!(unpacked.bytes.len() as u64 <= limit);
            assert_eq!(entry.map(|entry| entry.crc), Some(crc.sum()));
        }
    }
}

/// Little-endian numbers in headers, whose length is known; what would lie outside is 0.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    array_at(bytes, at).map_or(0, u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    array_at(bytes, at).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    array_at(bytes, at).map_or(0, u64::from_le_bytes)
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use zip::CompressionMethod;
    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;

    fn content(number: u32) -> Vec<u8> {
        (0..number * 9)
            .flat_map(|at| (at % (number + 3)).to_le_bytes())
            .collect()
    }

    /// A zip file as another writer makes it.
    fn written(large: bool) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for number in 0..20 {
            let method = if number % 2 == 0 {
                CompressionMethod::Stored
            } else {
                CompressionMethod::Deflated
            };
            let options = SimpleFileOptions::default()
                .compression_method(method)
                .large_file(large);
            writer.start_file(format!("a/{number}"), options).unwrap();
            writer.write_all(&content(number)).unwrap();
        }
        writer.set_comment("behind PK\x05\x06 which is no end of 22 bytes");
        writer.finish().unwrap().into_inner()
    }

    fn unpack(bytes: &[u8], name: &str, limit: u64) -> Result<Vec<u8>, ZipError> {
        let index = ZipIndex::read(Cursor::new(bytes))?;
        Ok(index.unpack(Cursor::new(bytes), name, limit)?.bytes)
    }

    /// The offset of the local header of an entry, of its bytes, and of its entry in the directory.
    fn places(bytes: &[u8], name: &str) -> (usize, usize, usize) {
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        let entry = archive.by_name(name).unwrap();
        (
            entry.header_start() as usize,
            entry.data_start() as usize,
            entry.central_header_start() as usize,
        )
    }

    #[test]
    fn what_another_writer_wrote_is_read() {
        for bytes in [written(false), written(true)] {
            for number in 0..20 {
                let name = format!("a/{number}");
                assert_eq!(unpack(&bytes, &name, 1 << 20).unwrap(), content(number), "{name}");
            }
            assert!(matches!(unpack(&bytes, "a/20", 9), Err(ZipError::NoEntry)));
        }
    }

    /// Written by hand: one entry whose numbers all stand in the extra field, in a directory whose count may
    /// be wrong.
    fn long(name: &str, body: &[u8], count: u64) -> Vec<u8> {
        let mut crc = Crc::new();
        crc.update(body);
        let crc = crc.sum().to_le_bytes();
        let length = (name.len() as u16).to_le_bytes();
        let size = (body.len() as u64).to_le_bytes();
        let mut file = b"before".to_vec();
        let local = (file.len() as u64).to_le_bytes();
        let mut put = |parts: &[&[u8]]| {
            file.extend(parts.concat());
            (file.len() as u64).to_le_bytes()
        };
        put(&[&LOCAL, &[0; 10], &crc, &[0xff; 8], &length, &[0; 2]]);
        let directory = put(&[name.as_bytes(), body]);
        put(&[
            &CENTRAL,
            &[0; 12],
            &crc,
            &[0xff; 8],
            &length,
            &[36, 0],
            &[0; 10],
            &[0xff; 4],
        ]);
        let other_field = [9, 9, 4, 0, 1, 2, 3, 4];
        let end = put(&[
            name.as_bytes(),
            &other_field,
            &[1, 0, 24, 0],
            &size,
            &size,
            &local,
        ]);
        let bytes = u64::from_le_bytes(end) - u64::from_le_bytes(directory);
        let count = count.to_le_bytes();
        put(&[&END64, &[44, 0, 0, 0, 0, 0, 0, 0], &[0; 12], &count, &count]);
        put(&[&bytes.to_le_bytes(), &directory]);
        put(&[&LOCATOR, &[0; 4], &end, &[1, 0, 0, 0]]);
        put(&[&END, &[0; 4], &[0xff; 12], &[0; 2]]);
        file
    }

    #[test]
    fn numbers_of_64_bits_are_taken() {
        let name = "tile/data/000";
        let read = |count| unpack(&long(name, b"leaves", count), name, 6);
        assert_eq!(read(1).unwrap(), b"leaves");
        // A count that no directory has room for takes no memory.
        assert!(matches!(read(1 << 20), Err(ZipError::NoZip(_))));
        assert!(matches!(read(u64::MAX), Err(ZipError::TooLarge { .. })));
    }

    #[test]
    fn what_inflates_to_more_than_the_limit_or_than_it_says_is_refused() {
        let mut bytes = written(false);
        let (_, _, central) = places(&bytes, "a/19");
        let size = content(19).len() as u64;
        assert!(unpack(&bytes, "a/19", size).is_ok());
        assert!(matches!(
            unpack(&bytes, "a/19", size - 1),
            Err(ZipError::TooLarge { .. })
        ));
        // It says that it is short, and is not.
        bytes[central + 24..central + 28].copy_from_slice(&8_u32.to_le_bytes());
        assert!(matches!(unpack(&bytes, "a/19", 8), Err(ZipError::Damaged(_))));
    }

    #[test]
    fn damage_is_of_the_entry_that_has_it() {
        let whole = written(false);
        for name in ["a/8", "a/9"] {
            let (header, data, central) = places(&whole, name);
            for at in [
                header,
                header + 26,
                header + 30,
                data,
                data + 5,
                central + 16,
                central + 42,
            ] {
                let mut bytes = whole.clone();
                bytes[at] ^= 0x41;
                assert!(unpack(&bytes, name, 1 << 20).is_err(), "{name} at {at}");
                for number in [0, 7, 10, 19] {
                    let other = format!("a/{number}");
                    assert_eq!(unpack(&bytes, &other, 1 << 20).unwrap(), content(number));
                }
            }
        }
    }

    #[test]
    fn no_cut_and_no_flipped_bit_gives_other_bytes() {
        let whole = written(true);
        for end in 0..whole.len() {
            assert!(unpack(&whole[..end], "a/3", 1 << 20).is_err(), "{end}");
        }
        let mut bytes = whole.clone();
        for at in 0..whole.len() {
            bytes[at] ^= 1 << (at % 8);
            for (number, name) in [(2, "a/2"), (3, "a/3")] {
                if let Ok(read) = unpack(&bytes, name, 1 << 20) {
                    assert_eq!(read, content(number), "{at}");
                }
            }
            bytes[at] = whole[at];
        }
    }
}
