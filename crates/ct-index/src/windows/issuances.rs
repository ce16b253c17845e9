//! The issuances of a segment with their dates, as filters take them.

use std::sync::Arc;

use crate::compact::pace::Pace;
use crate::segment::Segment;
use crate::{Error, Result};

/// Walks the records of a segment, past the cache; ends early when the index is being closed.
pub(crate) struct Issuances<'p> {
    segment: Arc<Segment>,
    pace: &'p Pace,
    next_block: u64,
    waiting: std::vec::IntoIter<(u64, Option<i64>)>,
}

impl<'p> Issuances<'p> {
    pub(crate) fn of(segment: Arc<Segment>, pace: &'p Pace) -> Self {
        Self {
            segment,
            pace,
            next_block: 0,
            waiting: Vec::new().into_iter(),
        }
    }

    fn load(&mut self) -> Result<bool> {
        if self.pace.is_stopped() {
            return Err(Error::Stopped);
        }
        let Some(block) = self.segment.records_block(self.next_block)? else {
            return Ok(false);
        };
        self.next_block += 1;
        let whole = block.records.iter().filter(|record| !record.slim);
        let dated: Vec<_> = whole.map(|record| (record.issuance, record.not_after)).collect();
        self.waiting = dated.into_iter();
        Ok(true)
    }
}

impl Iterator for Issuances<'_> {
    type Item = Result<(u64, Option<i64>)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(issuance) = self.waiting.next() {
                return Some(Ok(issuance));
            }
            match self.load() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
