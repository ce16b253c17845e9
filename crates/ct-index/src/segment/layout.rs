//! The frame of a segment file: header, footer and trailer.
//!
//! # Format
//! See `docs/formats/segment.md`. Header (32 bytes): magic, version u32, zero u32, segment id u64,
//! XXH3-64 of those. Trailer (the last 32 bytes): footer offset u64, footer bytes u32, version u32,
//! XXH3-64 of those, magic.

use xxhash_rust::xxh3::xxh3_64;

use crate::coding::{Decoded, Malformed, Reader, put_varint};
use crate::segment::block::{BlockAt, BlockKind};

/// Opens every segment file.
pub(crate) const MAGIC: [u8; 8] = *b"TAMISSEG";
/// Version of the format.
pub(crate) const VERSION: u32 = 1;
/// Size of the header and of the trailer.
pub(crate) const FRAME_BYTES: usize = 32;

/// The header of segment `id`.
pub(crate) fn header(id: u64) -> [u8; FRAME_BYTES] {
    let mut out = Vec::with_capacity(FRAME_BYTES);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&id.to_le_bytes());
    seal(out)
}

/// Checks a header and answers the segment's id, or the version that is too new.
pub(crate) fn read_header(bytes: &[u8]) -> Decoded<(u32, u64)> {
    let mut reader = Reader::new(bytes);
    if reader.array::<8>()? != MAGIC {
        return Err(Malformed("not a segment: the magic is missing"));
    }
    let version = reader.u32()?;
    let (_, id) = (reader.u32()?, reader.u64()?);
    if reader.u64()? != xxh3_64(bytes.get(..FRAME_BYTES - 8).unwrap_or(&[])) {
        return Err(Malformed("checksum of the header does not match"));
    }
    Ok((version, id))
}

/// The trailer that leads to the footer.
pub(crate) fn trailer(footer: BlockAt) -> [u8; FRAME_BYTES] {
    let mut out = Vec::with_capacity(FRAME_BYTES);
    out.extend_from_slice(&footer.offset.to_le_bytes());
    out.extend_from_slice(&footer.bytes.to_le_bytes());
    out.extend_from_slice(&VERSION.to_le_bytes());
    let sum = xxh3_64(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out.extend_from_slice(&MAGIC);
    as_frame(out)
}

/// Checks a trailer and answers version and place of the footer.
pub(crate) fn read_trailer(bytes: &[u8]) -> Decoded<(u32, BlockAt)> {
    let mut reader = Reader::new(bytes);
    let (offset, length, version) = (reader.u64()?, reader.u32()?, reader.u32()?);
    let checksum = reader.u64()?;
    if reader.array::<8>()? != MAGIC {
        return Err(Malformed("the file ends early: no trailer"));
    }
    if checksum != xxh3_64(bytes.get(..16).unwrap_or(&[])) {
        return Err(Malformed("checksum of the trailer does not match"));
    }
    Ok((
        version,
        BlockAt {
            offset,
            bytes: length,
        },
    ))
}

fn seal(mut out: Vec<u8>) -> [u8; FRAME_BYTES] {
    let sum = xxh3_64(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    as_frame(out)
}

fn as_frame(out: Vec<u8>) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    for (to, from) in frame.iter_mut().zip(out) {
        *to = from;
    }
    frame
}

/// One table of a segment: blocks of one kind and their index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableEntry {
    pub(crate) kind: BlockKind,
    pub(crate) rows: u64,
    pub(crate) blocks: u64,
    /// Bytes of the data blocks, headers included.
    pub(crate) bytes: u64,
    pub(crate) top: BlockAt,
}

/// Where everything lies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) tables: Vec<TableEntry>,
    /// Blocks that stand alone: position bounds, domains, meta, issuance filter.
    pub(crate) singles: Vec<(BlockKind, BlockAt)>,
}

impl Footer {
    pub(crate) fn table(&self, kind: BlockKind) -> Option<TableEntry> {
        self.tables.iter().copied().find(|table| table.kind == kind)
    }

    pub(crate) fn single(&self, kind: BlockKind) -> Option<BlockAt> {
        self.singles
            .iter()
            .find(|(known, _)| *known == kind)
            .map(|(_, at)| *at)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.tables.len() as u64);
        for table in &self.tables {
            out.push(table.kind as u8);
            for number in [
                table.rows,
                table.blocks,
                table.bytes,
                table.top.offset,
                u64::from(table.top.bytes),
            ] {
                put_varint(&mut out, number);
            }
        }
        put_varint(&mut out, self.singles.len() as u64);
        for (kind, at) in &self.singles {
            out.push(*kind as u8);
            put_varint(&mut out, at.offset);
            put_varint(&mut out, u64::from(at.bytes));
        }
        out
    }

    pub(crate) fn decode(payload: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(payload);
        let mut footer = Self::default();
        for _ in 0..reader.bounded(32, "too many tables")? {
            let kind = kind(&mut reader)?;
            let (rows, blocks, bytes) = (reader.varint()?, reader.varint()?, reader.varint()?);
            footer.tables.push(TableEntry {
                kind,
                rows,
                blocks,
                bytes,
                top: place(&mut reader)?,
            });
        }
        for _ in 0..reader.bounded(32, "too many single blocks")? {
            let kind = kind(&mut reader)?;
            footer.singles.push((kind, place(&mut reader)?));
        }
        if reader.is_empty() {
            Ok(footer)
        } else {
            Err(Malformed("bytes behind the footer"))
        }
    }
}

fn kind(reader: &mut Reader<'_>) -> Decoded<BlockKind> {
    BlockKind::of(reader.u8()?).ok_or(Malformed("unknown kind of table"))
}

fn place(reader: &mut Reader<'_>) -> Decoded<BlockAt> {
    let offset = reader.varint()?;
    Ok(BlockAt {
        offset,
        bytes: reader.bounded(u64::from(u32::MAX), "block longer than 32 bits")? as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_footer_round_trip_and_refuse_every_flip() {
        let footer = Footer {
            tables: vec![TableEntry {
                kind: BlockKind::Names,
                rows: 5,
                blocks: 1,
                bytes: 99,
                top: BlockAt {
                    offset: 70,
                    bytes: 20,
                },
            }],
            singles: vec![(BlockKind::Meta, BlockAt { offset: 90, bytes: 7 })],
        };
        assert_eq!(Footer::decode(&footer.encode()), Ok(footer));
        let at = BlockAt {
            offset: 1 << 40,
            bytes: 77,
        };
        assert_eq!(read_trailer(&trailer(at)), Ok((VERSION, at)));
        assert_eq!(read_header(&header(42)), Ok((VERSION, 42)));
        for byte in 0..FRAME_BYTES {
            // Bytes 12 to 15 of the header are covered by its checksum too.
            let (mut head, mut tail) = (header(42), trailer(at));
            head[byte] ^= 1;
            tail[byte] ^= 1;
            assert!(
                read_header(&head).is_err() && read_trailer(&tail).is_err(),
                "byte {byte}"
            );
        }
    }
}
