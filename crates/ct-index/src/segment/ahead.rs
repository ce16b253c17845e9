//! Asking for what a query needs from several segments before the first of it is read, so that a disk
//! answers all of them in the time of one.
//!
//! # Invariants
//! Only a hint: nothing here is an error, and who needs a block still reads and checks it.

use std::sync::Arc;

use crate::segment::Segment;
use crate::segment::block::{BlockAt, BlockKind};
use crate::segment::file::Blocks;
use crate::segment::reader::{Table, Tables};

/// What waits for a disk: a block, and the file it lies in.
type Missing<'s> = (&'s Blocks, BlockAt);

/// Asks for the index chunk and the names block where `key` lies, in each segment.
pub(crate) fn names(segments: &[&Arc<Segment>], key: &[u8]) {
    blocks_at(segments, BlockKind::Names, key, |tables| &tables.names);
}

/// Asks for the index chunk and the block of a look-up where `hash` lies, in each segment.
pub(crate) fn look_ups(segments: &[&Arc<Segment>], kind: BlockKind, hash: u64) {
    blocks_at(segments, kind, &hash.to_be_bytes(), |tables| tables.look_up(kind));
}

fn blocks_at(segments: &[&Arc<Segment>], kind: BlockKind, key: &[u8], table: impl Fn(&Tables) -> &Table) {
    // In one segment alone the chunk must be there before it is known which block to ask for.
    if segments.len() < 2 {
        return;
    }
    let tables = || {
        let segments = segments.iter();
        segments.map(|segment| (&segment.blocks, &table(segment.tables()).index))
    };
    let chunks = tables().filter_map(|(blocks, index)| Some((blocks, index.chunk_for(key)?)));
    ask(BlockKind::IndexChunk, chunks);
    let blocks = tables().filter_map(|(blocks, index)| {
        let number = index.floor(blocks, key).ok()?;
        Some((blocks, index.at(blocks, number).ok()??))
    });
    ask(kind, blocks);
}

/// A place outside of the file is damage, which its reader tells.
fn is_missing((blocks, at): &Missing<'_>) -> bool {
    !blocks.holds(*at) && blocks.file.is_within(*at)
}

#[cfg(not(feature = "readers"))]
fn ask<'s>(_: BlockKind, wanted: impl Iterator<Item = Missing<'s>>) {
    let missing: Vec<Missing<'s>> = wanted.filter(is_missing).collect();
    if missing.len() > 1 {
        missing.iter().for_each(|(blocks, at)| blocks.file.will_need(*at));
    }
}

#[cfg(feature = "readers")]
fn ask<'s>(kind: BlockKind, wanted: impl Iterator<Item = Missing<'s>>) {
    use crate::readers::{self, Ahead};
    let missing: Vec<Missing<'s>> = wanted.filter(is_missing).collect();
    match missing.first().map(|(blocks, _)| blocks.reader().ahead()) {
        Some(Ahead::Hint) if missing.len() > 1 => {
            missing.iter().for_each(|(blocks, at)| blocks.file.will_need(*at));
        }
        Some(Ahead::Batch) => {
            let wanted: Vec<_> = missing
                .iter()
                .map(|(blocks, at)| (blocks.file.source(), *at))
                .collect();
            readers::batch(&wanted, |number, framed| {
                if let Some((blocks, at)) = missing.get(number) {
                    blocks.put(kind, *at, framed);
                }
            });
        }
        _ => {}
    }
}
