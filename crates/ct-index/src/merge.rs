//! Merges sorted sources into one stream of rows, folding equal ones exactly.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::row::{RowAttrs, RowCursor};
use crate::segment::SegmentWriter;
use crate::{Error, Result};

/// A k-way merge: a binary heap of cursors by (key, issuance, source).
pub(crate) struct Merge {
    cursors: Vec<Box<dyn RowCursor>>,
    /// Numbers of the cursors that still have rows, heap-ordered.
    heap: Vec<usize>,
    key: Vec<u8>,
    /// The source whose organisation numbers the current row uses.
    source: usize,
    /// Rows read from the sources, before folding.
    pub(crate) scanned: u64,
}

impl Merge {
    pub(crate) fn new(cursors: Vec<Box<dyn RowCursor>>) -> Self {
        let heap = (0..cursors.len())
            .filter(|&at| cursors.get(at).is_some_and(|cursor| cursor.row().is_some()))
            .collect();
        let mut merge = Self {
            cursors,
            heap,
            key: Vec::new(),
            source: 0,
            scanned: 0,
        };
        for place in (0..merge.heap.len() / 2).rev() {
            merge.sink(place);
        }
        merge
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let row = |number: usize| self.cursors.get(number).and_then(|cursor| cursor.row());
        match (row(a), row(b)) {
            (Some((key_a, a_attrs)), Some((key_b, b_attrs))) => key_a
                .cmp(key_b)
                .then_with(|| a_attrs.issuance.cmp(&b_attrs.issuance))
                .then_with(|| a.cmp(&b)),
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let mut smallest = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if let (Some(&below), Some(&now)) = (self.heap.get(child), self.heap.get(smallest))
                    && self.compare(below, now) == Ordering::Less
                {
                    smallest = child;
                }
            }
            if smallest == place {
                return;
            }
            self.heap.swap(place, smallest);
            place = smallest;
        }
    }

    /// Moves the smallest cursor on and restores the heap.
    fn advance_smallest(&mut self) -> Result<()> {
        let Some(&smallest) = self.heap.first() else {
            return Ok(());
        };
        self.scanned += 1;
        if let Some(cursor) = self.cursors.get_mut(smallest) {
            cursor.advance()?;
            if cursor.row().is_none() {
                self.heap.swap_remove(0);
            }
        }
        self.sink(0);
        Ok(())
    }

    /// The next folded row: key, attributes and source.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], RowAttrs, usize)>> {
        let Some(&first) = self.heap.first() else {
            return Ok(None);
        };
        let Some((key, attrs)) = self.cursors.get(first).and_then(|cursor| cursor.row()) else {
            return Ok(None);
        };
        self.key.clear();
        self.key.extend_from_slice(key);
        let mut folded = *attrs;
        self.source = first;
        self.advance_smallest()?;
        while let Some(&next) = self.heap.first() {
            let Some((key, attrs)) = self.cursors.get(next).and_then(|cursor| cursor.row()) else {
                break;
            };
            if attrs.issuance != folded.issuance || key != self.key {
                break;
            }
            if folded.fold(attrs) {
                self.source = next;
            }
            self.advance_smallest()?;
        }
        Ok(Some((&self.key, folded, self.source)))
    }

    /// The organisation that a row of `source` refers to.
    pub(crate) fn organization(&self, source: usize, number: u32) -> Result<String> {
        match self.cursors.get(source) {
            Some(cursor) if number != 0 => cursor.organization(number),
            _ => Ok(String::new()),
        }
    }

    /// Damage that the sources met.
    pub(crate) fn take_faults(&mut self) -> Vec<Error> {
        self.cursors
            .iter_mut()
            .flat_map(|cursor| cursor.take_faults())
            .collect()
    }
}

/// Numbers of organisations in the segment that is written, by source and number there.
#[derive(Default)]
pub(crate) struct OrganizationNumbers(HashMap<(usize, u32), u32>);

impl OrganizationNumbers {
    /// The number in `writer` of an organisation that a row of `source` refers to.
    pub(crate) fn number(
        &mut self,
        merge: &Merge,
        source: usize,
        number: u32,
        writer: &mut SegmentWriter,
    ) -> Result<u32> {
        if number == 0 {
            return Ok(0);
        }
        if let Some(&known) = self.0.get(&(source, number)) {
            return Ok(known);
        }
        let here = writer.organization(&merge.organization(source, number)?);
        self.0.insert((source, number), here);
        Ok(here)
    }
}
