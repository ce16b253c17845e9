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
    end: Vec<u8>,
    next_block: u64,
    block: Option<Arc<NamesBlock>>,
    row: usize,
    attrs: Option<RowAttrs>,
    faults: Vec<Error>,
}

impl SegmentCursor {
    /// Rows of `range` behind `after` (key and issuance), if given.
    pub(crate) fn open(segment: Arc<Segment>, range: &KeyRange, after: Option<(&[u8], u64)>) -> Result<Self> {
        let start = match after {
            Some((key, issuance)) if key >= range.start.as_slice() => index_key(key, issuance),
            _ => range.start.clone(),
        };
        let next_block = segment.tables.names.index.floor(&segment.blocks, &start)?;
        let end = range.end.clone();
        let mut cursor = Self {
            segment,
            end,
            next_block,
            block: None,
            row: 0,
            attrs: None,
            faults: Vec::new(),
        };
        let is_before = |key: &[u8], issuance: u64| {
            key < range.start.as_slice() || after.is_some_and(|after| (key, issuance) <= after)
        };
        cursor.load()?;
        // The first block can end before the range starts; the next one then starts inside it.
        while let Some(block) = &cursor.block {
            cursor.row = block.partition(is_before);
            if cursor.row < block.len() {
                break;
            }
            cursor.load()?;
        }
        cursor.settle();
        Ok(cursor)
    }

    /// Loads the next readable block.
    fn load(&mut self) -> Result<()> {
        self.block = None;
        self.row = 0;
        while let Some(at) = self
            .segment
            .tables
            .names
            .index
            .at(&self.segment.blocks, self.next_block)?
        {
            self.next_block += 1;
            match self.segment.blocks.names(at) {
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
            if self.row < block.len() && block.key(self.row) < self.end.as_slice() {
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
        if self.block.as_ref().is_some_and(|block| self.row >= block.len()) {
            self.load()?;
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
