//! Reading a segment whose footer is gone: every block tells its kind, so a scan finds the tables.
//!
//! # Limits
//! Costs one read of the file and an index in memory; only damaged files pay it.

use crate::coding::Reader;
use crate::segment::block::{BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BlockAt, BlockKind, unframe_any};
use crate::segment::certificates::CertificatesBlock;
use crate::segment::file::Blocks;
use crate::segment::index::{BlockIndex, Chunk};
use crate::segment::journal::JournalBlock;
use crate::segment::layout::FRAME_BYTES;
use crate::segment::names::{NamesBlock, index_key};
use crate::segment::reader::{Table, Tables};
use crate::{Error, Result};

/// Finds every whole block and rebuilds the tables from them.
pub(crate) fn scan(blocks: &Blocks, faults: &mut Vec<Error>) -> Result<Tables> {
    let mut found = Found::default();
    let mut offset = FRAME_BYTES as u64;
    while offset + BLOCK_HEADER_BYTES as u64 <= blocks.file.len() {
        let head = blocks.file.raw(offset, BLOCK_HEADER_BYTES)?;
        let length = Reader::new(head.get(1..).unwrap_or(&[]))
            .u32()
            .unwrap_or(u32::MAX) as usize;
        let bytes = (length <= BLOCK_BYTES_MAX).then(|| blocks.file.raw(offset, BLOCK_HEADER_BYTES + length));
        let at = BlockAt {
            offset,
            bytes: (BLOCK_HEADER_BYTES + length) as u32,
        };
        match bytes {
            Some(Ok(framed)) => match unframe_any(offset, &framed) {
                Ok((kind, payload)) => found.note(kind, at, payload),
                Err(malformed) => faults.push(Error::corrupt(blocks.file.path(), offset, malformed.0)),
            },
            _ => {
                faults.push(Error::corrupt(
                    blocks.file.path(),
                    offset,
                    "the rest of the file is damaged or missing",
                ));
                break;
            }
        }
        offset += u64::from(at.bytes);
    }
    Ok(found.tables())
}

/// First keys and places of the blocks, by table.
#[derive(Default)]
struct Found {
    names: (Chunk, u64),
    certificates: (Chunk, u64),
    fingerprints: (Chunk, u64),
    serials: (Chunk, u64),
    journal: (Chunk, u64),
    organizations: (Chunk, u64),
}

impl Found {
    fn note(&mut self, kind: BlockKind, at: BlockAt, payload: &[u8]) {
        match kind {
            BlockKind::Names => {
                if let Ok(block) = NamesBlock::decode(payload) {
                    let issuance = block.attrs(0).map_or(0, |attrs| attrs.issuance);
                    add(
                        &mut self.names,
                        &index_key(block.key(0), issuance),
                        at,
                        block.len(),
                    );
                }
            }
            BlockKind::Certificates => {
                if let Ok(block) = CertificatesBlock::decode(payload) {
                    let first = block.records.first().map_or(0, |stored| stored.record.issuance);
                    add(
                        &mut self.certificates,
                        &first.to_be_bytes(),
                        at,
                        block.records.len(),
                    );
                }
            }
            BlockKind::Journal => {
                if let Ok(block) = JournalBlock::decode(payload) {
                    let first = block.rows.first().map_or(0, |row| row.seq);
                    add(&mut self.journal, &first.to_be_bytes(), at, block.rows.len());
                }
            }
            BlockKind::Organizations => {
                let first = self.organizations.0.len() as u64;
                add(&mut self.organizations, &first.to_be_bytes(), at, 1);
            }
            // Lookups cannot be trusted with a table missing; issuances and names are found without.
            _ => {}
        }
    }

    fn tables(self) -> Tables {
        let table = |(chunk, rows): (Chunk, u64)| Table {
            index: BlockIndex::flat(chunk),
            rows,
        };
        Tables {
            names: table(self.names),
            certificates: table(self.certificates),
            fingerprints: table(self.fingerprints),
            serials: table(self.serials),
            journal: table(self.journal),
            organizations: table(self.organizations),
        }
    }
}

fn add((chunk, rows): &mut (Chunk, u64), key: &[u8], at: BlockAt, count: usize) {
    chunk.push(key, at);
    *rows += count as u64;
}
