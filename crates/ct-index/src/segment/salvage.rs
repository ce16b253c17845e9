//! Reading a segment whose footer is gone: every block tells its kind, so a scan finds the tables.
//!
//! # Limits
//! Costs one read of the file and an index in memory; only damaged files pay it.

use crate::coding::Reader;
use crate::segment::block::{BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BlockAt, BlockKind, unframe_any};
use crate::segment::file::Blocks;
use crate::segment::index::{BlockIndex, Chunk};
use crate::segment::layout::FRAME_BYTES;
use crate::segment::names::{NamesBlock, index_key};
use crate::segment::reader::{Table, Tables};
use crate::segment::records::RecordsBlock;
use crate::{Error, Result};

/// Finds every block and rebuilds the tables from them. A damaged block keeps its place among those of
/// its kind, since organisations are found by number, and damage must be met to be told.
pub(crate) fn scan(blocks: &Blocks, faults: &mut Vec<Error>) -> Result<Tables> {
    let mut found = Found::default();
    let mut offset = FRAME_BYTES as u64;
    while offset + BLOCK_HEADER_BYTES as u64 <= blocks.file.len() {
        let head = blocks.file.raw(offset, BLOCK_HEADER_BYTES)?;
        let kind = head.first().and_then(|&code| BlockKind::of(code));
        let length = Reader::new(head.get(1..).unwrap_or(&[]))
            .u32()
            .unwrap_or(u32::MAX) as usize;
        let end = offset + (BLOCK_HEADER_BYTES + length) as u64;
        let (Some(kind), true) = (kind, length <= BLOCK_BYTES_MAX && end <= blocks.file.len()) else {
            // Without a length there is no way to the next block; the trailer looks like this too.
            if end_is_missing(blocks, offset) {
                let reason = "from here on the file is damaged or missing";
                faults.push(Error::corrupt(blocks.file.path(), offset, reason));
            }
            break;
        };
        let at = BlockAt {
            offset,
            bytes: (end - offset) as u32,
        };
        let framed = blocks.file.raw(offset, at.bytes as usize)?;
        match unframe_any(offset, &framed) {
            Ok((kind, payload)) => found.note(kind, at, payload),
            Err(malformed) => {
                found.keep_place(kind, at);
                if faults.len() < FAULTS_MAX {
                    faults.push(Error::corrupt(blocks.file.path(), offset, malformed.0));
                }
            }
        }
        offset = end;
    }
    Ok(found.tables())
}

/// Faults told of one file.
const FAULTS_MAX: usize = 100;

/// True unless only the trailer is left.
fn end_is_missing(blocks: &Blocks, offset: u64) -> bool {
    offset + FRAME_BYTES as u64 != blocks.file.len()
}

/// First keys and places of the blocks, by table.
#[derive(Default)]
struct Found {
    names: (Chunk, u64),
    records: (Chunk, u64),
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
            BlockKind::Records => {
                if let Ok(block) = RecordsBlock::decode(payload) {
                    let first = block.records.first().map_or(0, |record| record.seq);
                    add(&mut self.records, &first.to_be_bytes(), at, block.records.len());
                }
            }
            BlockKind::Organizations => {
                let first = self.organizations.0.len() as u64;
                add(&mut self.organizations, &first.to_be_bytes(), at, 1);
            }
            // Look-ups may be missing in part: records are searched without.
            _ => {}
        }
    }

    /// A damaged block: readers find the damage when they come to it.
    fn keep_place(&mut self, kind: BlockKind, at: BlockAt) {
        let table = match kind {
            BlockKind::Names => &mut self.names,
            BlockKind::Records => &mut self.records,
            BlockKind::Organizations => &mut self.organizations,
            _ => return,
        };
        let last = table.0.len().checked_sub(1);
        let key = last.map_or_else(Vec::new, |last| table.0.key(last).to_vec());
        table.0.push(&key, at);
    }

    fn tables(self) -> Tables {
        let table = |(chunk, rows): (Chunk, u64)| Table {
            index: BlockIndex::flat(chunk),
            rows,
        };
        Tables {
            names: table(self.names),
            records: table(self.records),
            fingerprints: Table::absent(),
            serials: Table::absent(),
            issuances: Table::absent(),
            organizations: table(self.organizations),
        }
    }
}

fn add((chunk, rows): &mut (Chunk, u64), key: &[u8], at: BlockAt, count: usize) {
    chunk.push(key, at);
    *rows += count as u64;
}
