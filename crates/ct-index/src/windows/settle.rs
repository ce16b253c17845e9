//! Filling filters again, beside everything else that goes on.
//!
//! # Invariants
//! Keys for a complete window wait in memory for a checkpoint, as all others; keys for an incomplete one, whose
//! files no state names, are set at once.

use std::collections::{BTreeMap, BTreeSet};

use super::checkpoint::CHUNK_KEYS;
use super::month::{Place, WindowKey};
use super::window::Status;
use super::{Need, SegmentMark, Shared, Windows};

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Segments that were read.
    pub(crate) segments: u64,
    /// Issuances that they held.
    pub(crate) issuances: u64,
    /// Segments that could not be read as they are live no more, and of which nobody said what replaced them.
    /// Everything is "maybe" until that is said and this is run again, or the folder is opened again.
    pub(crate) gone: u64,
}

impl Windows {
    /// Compares the files with what is recorded of them, and inserts again what is missing, until nothing is.
    /// Run it once in the background after opening; it reads all files, and segments if need be.
    ///
    /// `read` gives the issuances of a segment with their dates, as [`insert_batch`](Self::insert_batch) takes
    /// them, or None if the segment is live no more.
    ///
    /// # Errors
    /// Only what `read` and its iterator say, which also ends the work: answers stay "maybe" then.
    pub(crate) fn catch_up<I>(
        &self,
        mut read: impl FnMut(SegmentMark) -> crate::Result<Option<I>>,
    ) -> crate::Result<Settled>
    where
        I: Iterator<Item = crate::Result<(u64, Option<i64>)>>,
    {
        let mut settled = Settled::default();
        self.change(|writing| {
            self.verify(writing);
            Ok(())
        });
        let mut gone = BTreeSet::new();
        while let Some((mark, need)) = self.next_segment(&gone) {
            match read(mark)? {
                Some(issuances) => {
                    settled.segments += 1;
                    settled.issuances += self.insert_again(need, issuances)?;
                    self.shared_mut().finish(mark);
                }
                // Only who knows where its issuances went can take it from the list.
                None => drop(gone.insert(mark)),
            }
            if self.shared().pending.len() >= self.options.pending_keys {
                self.checkpoint();
            }
        }
        settled.gone = gone
            .iter()
            .filter(|mark| self.shared().todo.contains_key(mark))
            .count() as u64;
        let unsettled = self.shared().is_unsettled();
        if settled.segments > 0 || unsettled {
            self.checkpoint();
        }
        Ok(settled)
    }

    fn next_segment(&self, gone: &BTreeSet<SegmentMark>) -> Option<(SegmentMark, Need)> {
        let shared = self.shared();
        let next = shared.todo.iter().find(|(mark, _)| !gone.contains(mark));
        next.map(|(mark, need)| (*mark, *need))
    }

    fn insert_again(
        &self,
        need: Need,
        issuances: impl Iterator<Item = crate::Result<(u64, Option<i64>)>>,
    ) -> crate::Result<u64> {
        let mut count = 0;
        let mut chunk = Vec::with_capacity(CHUNK_KEYS);
        for issuance in issuances {
            chunk.push(issuance?);
            count += 1;
            if chunk.len() == CHUNK_KEYS {
                self.insert_chunk_again(need, &chunk);
                chunk.clear();
            }
        }
        self.insert_chunk_again(need, &chunk);
        Ok(count)
    }

    fn insert_chunk_again(&self, need: Need, chunk: &[(u64, Option<i64>)]) {
        let lost = self.shared_mut().insert_again(need, chunk);
        self.change(|writing| {
            lost.iter()
                .try_for_each(|(window, keys)| self.apply(writing, *window, keys))
        });
    }
}

impl Shared {
    /// Gives the keys of incomplete windows.
    fn insert_again(&mut self, need: Need, chunk: &[(u64, Option<i64>)]) -> BTreeMap<WindowKey, Vec<u64>> {
        let mut lost: BTreeMap<WindowKey, Vec<u64>> = BTreeMap::new();
        if self.off.is_some() {
            return lost;
        }
        for &(key, not_after) in chunk {
            let Some(window) = self.calendar.put(not_after) else {
                continue;
            };
            // A stray was put among the others while its month was far ahead, and a month that is complete
            // without it does not hold it.
            let places = match self.calendar.place(not_after) {
                Place::InOrStray(_) => [Some(window), Some(WindowKey::Others)],
                Place::In(_) | Place::Dropped => [Some(window), None],
            };
            let incomplete = |place: &WindowKey| self.window_status(*place) == Status::Incomplete;
            if let Some(place) = places.into_iter().flatten().find(incomplete) {
                lost.entry(place).or_default().push(key);
            } else if need == Need::Everything {
                self.pending.insert(window, key);
            }
        }
        self.unpublished = true;
        lost
    }

    fn window_status(&self, key: WindowKey) -> Status {
        match self.windows.get(&key) {
            Some(window) => window.status,
            None if self.rebuilding => Status::Incomplete,
            None => Status::Complete,
        }
    }

    fn finish(&mut self, mark: SegmentMark) {
        // Unless it was replaced meanwhile: then what replaced it is read.
        if self.todo.remove(&mark).is_some() {
            self.covered.insert(mark);
            self.unpublished = true;
        }
    }

    fn is_unsettled(&self) -> bool {
        let incomplete = |window: &super::Window| window.status == Status::Incomplete;
        self.rebuilding || self.windows.values().any(incomplete)
    }
}
