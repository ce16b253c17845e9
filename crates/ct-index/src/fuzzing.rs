//! The decoders of this crate, opened to the fuzzer and to nobody else.
//!
//! # Invariants
//! Compiled only under `cfg(fuzzing)`, which cargo-fuzz sets. What decodes must also be walkable:
//! every function goes on to use what it decoded, as readers do.

use std::path::Path;
use std::sync::Arc;

use crate::coding::Reader;
use crate::commit::CommitHead;
use crate::key::{Identifier, KeyRange};
use crate::memtable::Run;
use crate::query::cursor::Place;
use crate::record::WireRecord;
use crate::row::RowCursor;
use crate::segment::block::{BlockKind, frame, unframe_any};
use crate::segment::filter::LineFilter;
use crate::segment::hashes::HashesBlock;
use crate::segment::index::Chunk;
use crate::segment::layout::{self, Footer};
use crate::segment::meta::Meta;
use crate::segment::names::NamesBlock;
use crate::segment::organizations::OrganizationsBlock;
use crate::segment::positions;
use crate::segment::records::RecordsBlock;
use crate::segment::{BlockCache, Segment};

/// Decodes the payload of a block whose kind has this code. Domains are left out: they are read by
/// the `fst` crate, which trusts its bytes as far as the checksum of the block does.
pub fn block(kind: u8, payload: &[u8]) {
    match BlockKind::of(kind) {
        Some(BlockKind::Names) => names(payload),
        Some(BlockKind::Records) => records(payload),
        Some(BlockKind::Fingerprints | BlockKind::Serials | BlockKind::Issuances) => {
            if let Ok(block) = HashesBlock::decode(payload) {
                let hash = block.entry(0).map_or(0, |entry| entry.hash());
                assert!(block.matching(hash).count() <= block.len());
            }
        }
        Some(BlockKind::PositionBounds) => drop(positions::decode_bounds(payload)),
        Some(BlockKind::Organizations) => drop(OrganizationsBlock::decode(payload)),
        Some(BlockKind::IndexChunk | BlockKind::IndexTop) => chunk(payload),
        Some(BlockKind::Meta) => {
            if let Ok(meta) = Meta::decode(payload) {
                let _ = meta.may_hold(&KeyRange::below("example.com"));
            }
        }
        Some(BlockKind::IssuanceFilter) => {
            if let Ok(filter) = LineFilter::read(&mut Reader::new(payload)) {
                let _ = filter.may_hold(0x9e37_79b9_7f4a_7c15);
            }
        }
        Some(BlockKind::Footer) => {
            if let Ok(footer) = Footer::decode(payload) {
                assert_eq!(Footer::decode(&footer.encode()), Ok(footer));
            }
        }
        Some(BlockKind::Domains) | None => {}
    }
}

fn names(payload: &[u8]) {
    let Ok(block) = NamesBlock::decode(payload) else {
        return;
    };
    for row in 0..block.len() {
        assert!(block.attrs(row).is_some(), "row {row} has attributes");
        let _ = crate::key::display(block.key(row));
    }
    assert!(block.partition(|_, _| true) == block.len());
}

fn records(payload: &[u8]) {
    let Ok(block) = RecordsBlock::decode(payload) else {
        return;
    };
    for record in &block.records {
        assert!(record.same_issuance(record));
        assert_eq!(block.of_seq(record.seq), Some(record));
    }
    let _ = block.memory_bytes();
}

fn chunk(payload: &[u8]) {
    let Ok(chunk) = Chunk::decode(payload) else { return };
    for entry in 0..chunk.len() {
        assert!(chunk.at(entry).is_some());
        assert!(entry == 0 || chunk.key(entry - 1) < chunk.key(entry));
    }
}

/// Reads header, trailer and a framed block from the same bytes.
pub fn frames(bytes: &[u8]) {
    let _ = layout::read_header(bytes);
    let _ = layout::read_trailer(bytes);
    let _ = unframe_any(0, bytes);
}

/// Frames a payload as a segment would at `offset`: how a target gets past the checksums.
pub fn framed(kind: u8, offset: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(kind) = BlockKind::of(kind) {
        frame(kind, offset, payload, &mut out);
    }
    out
}

/// Opens a file as a segment, proves it and walks it, whatever is in it.
pub fn segment(path: &Path) {
    let cache = BlockCache::new(1 << 20);
    let Ok(segment) = Segment::open(path, 1, &cache) else {
        return;
    };
    let _ = crate::segment::check::check(&segment, 8);
    for kind in [BlockKind::Fingerprints, BlockKind::Serials, BlockKind::Issuances] {
        let _ = segment.look_up(kind, 7);
    }
    let _ = segment.of_seq(7);
    let _ = segment.of_position(1, 7);
    let _ = segment.search_all(|_| true);
    let everything = KeyRange {
        start: Vec::new(),
        end: vec![u8::MAX],
    };
    let opened = crate::segment::SegmentCursor::open(Arc::new(segment), &everything, None);
    let Ok(mut cursor) = opened else { return };
    while cursor.row().is_some() && cursor.advance().is_ok() {}
}

/// Reads a commit of the write-ahead log and makes a run of it, as recovery does.
pub fn commit(payload: &[u8]) {
    let mut reader = Reader::new(payload);
    let Ok(head) = CommitHead::read(&mut reader) else {
        return;
    };
    let start = payload.len() - reader.remaining();
    while let Ok(wire) = WireRecord::read(&mut reader) {
        let record = wire.to_record(1, 0);
        assert!(record.names.len() <= wire.names_count);
    }
    let issuer_of = |number: u64| head.issuers.get(number as usize).copied().unwrap_or(u32::MAX);
    let Ok(run) = Run::build(payload.to_vec(), start, head.first_seq, issuer_of) else {
        return;
    };
    let everything = KeyRange {
        start: Vec::new(),
        end: vec![u8::MAX],
    };
    let run = Arc::new(run);
    let mut cursor = run.cursor(&everything, None);
    let (mut rows, mut last) = (0, Vec::new());
    while let Some((key, _)) = cursor.row() {
        assert!(last.as_slice() <= key, "rows are sorted");
        last = key.to_vec();
        rows += 1;
        if cursor.advance().is_err() {
            return;
        }
    }
    // A key of 0xff bytes lies behind every range; all others are walked.
    assert!(rows <= run.rows());
}

/// Reads a cursor that a client sent.
pub fn cursor(text: &str) {
    let ranges = [
        KeyRange::exact(&Identifier::Host("example.com")),
        KeyRange::below("example.com"),
    ];
    if let Ok(place) = Place::decode(text, &ranges) {
        assert!(
            ranges
                .get(place.range)
                .is_some_and(|range| range.contains(&place.key))
        );
    }
}

/// Where the blocks of a segment lie, by the code of their kind: what seeds are cut from.
pub fn blocks_of(file: &[u8]) -> Vec<(u8, u64, &[u8])> {
    let mut found = Vec::new();
    let mut offset = layout::FRAME_BYTES;
    while let Some(rest) = file.get(offset..) {
        let Ok((kind, payload)) = unframe_any(offset as u64, rest) else {
            break;
        };
        found.push((kind as u8, offset as u64, payload));
        offset += crate::segment::block::BLOCK_HEADER_BYTES + payload.len();
    }
    found
}
