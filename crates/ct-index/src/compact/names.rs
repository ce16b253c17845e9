//! Names: a merge of sorted rows, cut into parts by key.

use std::sync::Arc;

use super::{Open, Outputs};
use crate::Result;
use crate::key::KeyRange;
use crate::manifest::{HashPart, Holds, KeyPart, SegmentEntry};
use crate::merge::{Merge, OrganizationNumbers};
use crate::row::RowCursor;
use crate::segment::{Segment, SegmentCursor};

/// Rows between two looks at the pace.
pub(super) const PACE_ROWS: u64 = 4_096;

/// Merges the names of segments whose keys lie in one cell.
pub(super) fn merge(
    inputs: &[Arc<Segment>],
    entries: &[SegmentEntry],
    outputs: &mut Outputs<'_>,
) -> Result<()> {
    let from = entries
        .iter()
        .map(|entry| entry.keys.from.clone())
        .min()
        .unwrap_or_default();
    let until = entries
        .iter()
        .max_by_key(|entry| entry.keys.end())
        .and_then(|entry| entry.keys.until.clone());
    write(inputs, KeyPart { from, until }, outputs)
}

/// Merges names into parts of `cell`.
pub(super) fn write(inputs: &[Arc<Segment>], cell: KeyPart, outputs: &mut Outputs<'_>) -> Result<()> {
    let everything = KeyRange {
        start: Vec::new(),
        end: vec![u8::MAX],
    };
    let mut cursors: Vec<Box<dyn RowCursor>> = Vec::with_capacity(inputs.len());
    for input in inputs {
        let cursor = SegmentCursor::open(Arc::clone(input), &everything, None)?;
        cursors.push(Box::new(cursor));
    }
    let mut merge = Merge::new(cursors);
    let mut parts = Parts::new(cell, outputs);
    let (mut key, mut numbers) = (Vec::new(), OrganizationNumbers::default());
    while let Some((row_key, mut attrs, source)) = merge.next()? {
        if key != row_key {
            key.clear();
            key.extend_from_slice(row_key);
            if parts.reach(&key)? {
                numbers = OrganizationNumbers::default();
            }
        }
        let open = parts.open()?;
        attrs.organization = numbers.number(&merge, source, attrs.organization, &mut open.writer)?;
        open.writer.row(&key, &attrs)?;
        open.entry.rows += 1;
        if open.entry.rows.is_multiple_of(PACE_ROWS) {
            parts.pace()?;
        }
    }
    // A damaged block would vanish with its file: the inputs stay as they are.
    if let Some(fault) = merge.take_faults().into_iter().next() {
        return Err(fault);
    }
    parts.finish()
}

/// The parts that rows go to, one after the other.
struct Parts<'p, 'm> {
    outputs: &'p mut Outputs<'m>,
    cell: KeyPart,
    /// Cuts within the cell, the next one last.
    cuts: Vec<String>,
    /// Where the part at hand starts.
    from: String,
    open: Option<Open>,
}

impl<'p, 'm> Parts<'p, 'm> {
    fn new(cell: KeyPart, outputs: &'p mut Outputs<'m>) -> Self {
        let tiers = outputs.tier as usize + 1;
        let all = outputs.cuts.iter().take(tiers).flatten();
        let within = |cut: &&String| **cut > cell.from && (false, cut.as_str()) < cell.end();
        let mut cuts: Vec<String> = all.filter(within).cloned().collect();
        cuts.sort_unstable_by(|a, b| b.cmp(a));
        cuts.dedup();
        Self {
            outputs,
            from: cell.from.clone(),
            cell,
            cuts,
            open: None,
        }
    }

    /// Ends the part at hand where `key` belongs to another; answers true then.
    fn reach(&mut self, key: &[u8]) -> Result<bool> {
        let mut ended = false;
        while self.cuts.last().is_some_and(|cut| cut.as_bytes() <= key) {
            if let Some(cut) = self.cuts.pop() {
                self.end(Some(cut.clone()))?;
                self.from = cut;
                ended = true;
            }
        }
        let full = |open: &Open| open.entry.rows >= self.outputs.policy.part_rows;
        if self.open.as_ref().is_some_and(full)
            && let Ok(cut) = std::str::from_utf8(key)
        {
            self.end(Some(cut.to_owned()))?;
            self.from = cut.to_owned();
            self.note_cut(cut);
            ended = true;
        }
        Ok(ended)
    }

    /// Parts of this tier and finer ones will be cut here too.
    fn note_cut(&mut self, cut: &str) {
        let tier = self.outputs.tier as usize;
        let cuts = &mut self.outputs.cuts;
        if cuts.len() <= tier {
            cuts.resize(tier + 1, Vec::new());
        }
        if let Some(cuts) = cuts.get_mut(tier)
            && let Err(at) = cuts.binary_search_by(|known| known.as_str().cmp(cut))
        {
            cuts.insert(at, cut.to_owned());
        }
    }

    fn open(&mut self) -> Result<&mut Open> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                // Where it ends is known when it ends.
                let keys = KeyPart {
                    from: self.from.clone(),
                    until: self.cell.until.clone(),
                };
                self.outputs.open(Holds::Names, keys, HashPart::default())?
            }
        };
        Ok(self.open.insert(open))
    }

    fn pace(&mut self) -> Result<()> {
        self.open.as_mut().map_or(Ok(()), |open| self.outputs.pace(open))
    }

    fn end(&mut self, until: Option<String>) -> Result<()> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        open.entry.keys.until = until;
        open.writer.finish_rows()?;
        self.outputs.close(open)
    }

    fn finish(mut self) -> Result<()> {
        let last = self.cuts.pop().or_else(|| self.cell.until.clone());
        self.end(last)
    }
}
