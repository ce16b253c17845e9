//! A scan over key ranges of a view, folded and in order.

use std::sync::Arc;

use crate::key::KeyRange;
use crate::merge::Merge;
use crate::query::cursor::Place;
use crate::query::{Deadline, Paging};
use crate::row::{RowAttrs, RowCursor};
use crate::segment::names::index_key;
use crate::segment::{Segment, SegmentCursor, ahead};
use crate::view::View;
use crate::{Error, Result};

/// Faults told with one page.
const FAULTS_MAX: usize = 100;

/// Walks ranges one after the other.
pub(crate) struct Scan {
    view: Arc<View>,
    ranges: Vec<KeyRange>,
    range: usize,
    merge: Option<Merge>,
    after: Option<Place>,
    scanned_before: u64,
    faults: Vec<Error>,
    deadline: Deadline,
}

/// A folded row, as long as the scan does not move.
pub(crate) struct ScannedRow {
    pub(crate) key: Vec<u8>,
    pub(crate) attrs: RowAttrs,
    pub(crate) source: usize,
    pub(crate) range: usize,
}

/// What a step of a scan met.
pub(crate) enum Step {
    Row(ScannedRow),
    OutOfTime,
    End,
}

impl Scan {
    pub(crate) fn open(view: &Arc<View>, ranges: Vec<KeyRange>, paging: &Paging) -> Result<Self> {
        let after = paging
            .cursor
            .as_deref()
            .map(|text| Place::decode(text, &ranges))
            .transpose()?;
        Ok(Self {
            view: Arc::clone(view),
            range: after.as_ref().map_or(0, |place| place.range),
            ranges,
            merge: None,
            after,
            scanned_before: 0,
            faults: Vec::new(),
            deadline: Deadline::after(paging.deadline),
        })
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// The name that the cursor of the page lies in.
    pub(crate) fn resumed_name(&self) -> Option<String> {
        self.after.as_ref().map(|place| crate::key::display(&place.key))
    }

    /// Rows looked at so far.
    pub(crate) fn scanned(&self) -> u64 {
        self.scanned_before + self.merge.as_ref().map_or(0, |merge| merge.scanned)
    }

    /// The next row, the end, or the end of time. Out of time is never answered before a first row.
    pub(crate) fn step(&mut self) -> Result<Step> {
        loop {
            if self.deadline.passed(self.scanned()) {
                return Ok(Step::OutOfTime);
            }
            if self.merge.is_none() {
                let Some(range) = self.ranges.get(self.range) else {
                    return Ok(Step::End);
                };
                let after = self.after.take().filter(|place| place.range == self.range);
                let cursors = cursors(&self.view, range, after.as_ref())?;
                self.merge = Some(Merge::new(cursors));
            }
            let Some(merge) = &mut self.merge else { continue };
            if let Some((key, attrs, source)) = merge.next()? {
                let row = ScannedRow {
                    key: key.to_vec(),
                    attrs,
                    source,
                    range: self.range,
                };
                return Ok(Step::Row(row));
            }
            self.faults.append(&mut merge.take_faults());
            self.scanned_before += merge.scanned;
            self.merge = None;
            self.range += 1;
        }
    }

    /// The organisation of a row just scanned; damage to it is a fault of the page, not its end.
    pub(crate) fn organization(&mut self, row: &ScannedRow) -> Result<String> {
        let Some(merge) = &self.merge else {
            return Ok(String::new());
        };
        match merge.organization(row.source, row.attrs.organization) {
            Err(error @ Error::Corrupt { .. }) => {
                if self.faults.len() < FAULTS_MAX {
                    self.faults.push(error);
                }
                Ok(String::new())
            }
            organization => organization,
        }
    }

    /// Damage met, for the page.
    pub(crate) fn finish(mut self) -> (u64, Vec<Error>) {
        let scanned = self.scanned();
        if let Some(merge) = &mut self.merge {
            self.faults.append(&mut merge.take_faults());
        }
        (scanned, self.faults)
    }
}

/// A cursor into every source that can hold rows of the range.
fn cursors(view: &View, range: &KeyRange, after: Option<&Place>) -> Result<Vec<Box<dyn RowCursor>>> {
    let after = after.map(|place| (place.key.as_slice(), place.issuance));
    let mut cursors: Vec<Box<dyn RowCursor>> = Vec::new();
    let segments = view.segments.iter().filter(|segment| segment.may_hold(range));
    let segments: Vec<&Arc<Segment>> = segments.collect();
    let start = match after {
        Some((key, issuance)) if key >= range.start.as_slice() => &index_key(key, issuance),
        _ => &range.start,
    };
    ahead::names(&segments, start);
    for segment in segments {
        cursors.push(Box::new(SegmentCursor::open(Arc::clone(segment), range, after)?));
    }
    for run in view.memtables.iter().flat_map(|memtable| &memtable.runs) {
        let cursor = run.cursor(range, after);
        if cursor.row().is_some() {
            cursors.push(Box::new(cursor));
        }
    }
    Ok(cursors)
}
