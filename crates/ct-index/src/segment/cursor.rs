//! Walks the names table of a segment within a range.
//!
//! # Invariants
//! A damaged block is noted as a fault and skipped: the rows of every other block still come.

use std::sync::Arc;

use crate::key::KeyRange;
use crate::row::{RowAttrs, RowCursor};
use crate::segment::names::{NamesBlock, index_key};
use crate::segment::reader::Segment;
use crate::{Error, Result};

/// A cursor over the rows of one segment.
pub(crate) struct SegmentCursor {
    segment: Arc<Segment>,
    range: KeyRange,
    next_block: u64,
    block: Option<Arc<NamesBlock>>,
    row: usize,
    attrs: Option<RowAttrs>,
    faults: Vec<Error>,
    /// Blocks are numbered as a scan of the file found them; fixed by each seek.
    scanned: bool,
}

impl SegmentCursor {
    /// Rows of `range` behind `after` (key and issuance), if given.
    pub(crate) fn open(segment: Arc<Segment>, range: &KeyRange, after: Option<(&[u8], u64)>) -> Result<Self> {
        let mut cursor = Self {
            segment,
            range: range.clone(),
            next_block: 0,
            block: None,
            row: 0,
            attrs: None,
            faults: Vec::new(),
            scanned: false,
        };
        cursor.seek(after)?;
        Ok(cursor)
    }

    /// Moves to the first row of the range behind `after`. An index that turns out to be damaged is
    /// replaced by a scan of the file, once.
    fn seek(&mut self, after: Option<(&[u8], u64)>) -> Result<()> {
        match self.try_seek(after) {
            Err(error @ Error::Corrupt { .. }) if !self.scanned => {
                self.segment.repair()?;
                self.faults.push(error);
                self.try_seek(after)
            }
            done => done,
        }
    }

    fn try_seek(&mut self, after: Option<(&[u8], u64)>) -> Result<()> {
        let range = self.range.clone();
        let start = match after {
            Some((key, issuance)) if key >= range.start.as_slice() => index_key(key, issuance),
            _ => range.start.clone(),
        };
        let segment = Arc::clone(&self.segment);
        self.scanned = segment.is_repaired();
        let index = &segment.tables_of(self.scanned).names.index;
        self.next_block = index.floor(&segment.blocks, &start)?;
        let is_before = |key: &[u8], issuance: u64| {
            key < range.start.as_slice() || after.is_some_and(|after| (key, issuance) <= after)
        };
        self.load()?;
        // The first block can end before the range starts; the next one then starts inside it.
        while let Some(block) = &self.block {
            self.row = block.partition(is_before);
            if self.row < block.len() {
                break;
            }
            self.load()?;
        }
        self.settle();
        Ok(())
    }

    /// Loads the next readable block. Only damage to the index is an error.
    fn load(&mut self) -> Result<()> {
        self.block = None;
        self.row = 0;
        let segment = Arc::clone(&self.segment);
        while let Some(at) = segment
            .tables()
            .names
            .index
            .at(&segment.blocks, self.next_block)?
        {
            self.next_block += 1;
            match segment.blocks.names(at) {
                Ok(block) => {
                    self.block = Some(block);
                    return Ok(());
                }
                Err(error @ Error::Corrupt { .. }) => self.faults.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn settle(&mut self) {
        self.attrs = None;
        if let Some(block) = &self.block {
            if self.row < block.len() && block.key(self.row) < self.range.end.as_slice() {
                self.attrs = block.attrs(self.row);
            } else {
                self.block = None;
            }
        }
    }
}

impl RowCursor for SegmentCursor {
    fn row(&self) -> Option<(&[u8], &RowAttrs)> {
        let attrs = self.attrs.as_ref()?;
        Some((self.block.as_ref()?.key(self.row), attrs))
    }

    fn advance(&mut self) -> Result<()> {
        self.row += 1;
        let ended = self.block.clone().filter(|block| self.row >= block.len());
        if let Some(block) = ended {
            match self.load() {
                Err(error @ Error::Corrupt { .. }) if !self.scanned => {
                    self.segment.repair()?;
                    self.faults.push(error);
                    let last = block.len().saturating_sub(1);
                    let issuance = block.attrs(last).map_or(0, |attrs| attrs.issuance);
                    return self.try_seek(Some((block.key(last), issuance)));
                }
                loaded => loaded?,
            }
        }
        self.settle();
        Ok(())
    }

    fn organization(&self, number: u32) -> Result<String> {
        self.segment.organization(number)
    }

    fn take_faults(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.faults)
    }
}
