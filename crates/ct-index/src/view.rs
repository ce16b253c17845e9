//! What readers see: an immutable picture of segments and memtables, swapped in one step.
//!
//! # Concurrency
//! Writers and the flusher change the view through [`Shared::update`], one at a time; readers load it
//! without a lock and keep it as long as they like. Old segments and runs live while a view holds them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;

use crate::dictionary::Issuers;
use crate::manifest::LogEntry;
use crate::memtable::Memtable;
use crate::segment::Segment;
use crate::totals::Totals;
use crate::windows::SegmentMark;
use crate::{Error, Result};

/// Segments whose own filters are asked for an issuance before the filters of the folder are.
const QUICK_SEGMENTS_MAX: usize = 8;

/// An immutable picture of the index.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    pub(crate) dir: PathBuf,
    pub(crate) segments: Arc<Vec<Arc<Segment>>>,
    /// Oldest first; the last one still grows (by replacement).
    pub(crate) memtables: Vec<Arc<Memtable>>,
    pub(crate) issuers: Issuers,
    pub(crate) logs: Arc<Vec<LogEntry>>,
    pub(crate) totals: Totals,
    pub(crate) next_seq: u64,
    /// Damage known since the folder was opened.
    pub(crate) faults: Arc<Vec<Arc<Error>>>,
    /// Some of that damage may have taken rows, which no scan will meet.
    pub(crate) rows_lost: bool,
}

impl View {
    /// The text of an issuer.
    pub(crate) fn issuer(&self, number: u32) -> Arc<str> {
        self.issuers
            .get(number as usize)
            .cloned()
            .unwrap_or_else(|| format!("(issuer {number} is lost)").into())
    }

    /// True while asking the segments for an issuance costs less than asking the filters: few of them, and
    /// each with a filter of its own.
    pub(crate) fn is_quickly_asked(&self) -> bool {
        let leading = self
            .segments
            .iter()
            .filter(|segment| segment.leads_to_issuances());
        let mut quick = 0;
        leading.into_iter().all(|segment| {
            quick += 1;
            quick <= QUICK_SEGMENTS_MAX && segment.has_issuance_filter()
        })
    }

    /// What filters know those segments by that hold records.
    pub(crate) fn marks(&self) -> Vec<SegmentMark> {
        let with_records = self
            .segments
            .iter()
            .filter(|segment| segment.tables.records.rows > 0);
        with_records.map(|segment| segment.mark()).collect()
    }

    /// Rows not yet in a segment.
    pub(crate) fn memtable_rows(&self) -> usize {
        self.memtables.iter().map(|memtable| memtable.rows()).sum()
    }
}

/// The view and what its changers share.
#[derive(Debug)]
pub(crate) struct Shared {
    view: ArcSwap<View>,
    changing: Mutex<()>,
    /// Why writes are refused, once they are.
    pub(crate) failure: OnceLock<String>,
}

impl Shared {
    pub(crate) fn new(view: View) -> Arc<Self> {
        Arc::new(Self {
            view: ArcSwap::from_pointee(view),
            changing: Mutex::new(()),
            failure: OnceLock::new(),
        })
    }

    pub(crate) fn load(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Refuses once a write failed.
    pub(crate) fn check(&self) -> Result<()> {
        self.failure.get().map_or(Ok(()), |reason| {
            Err(Error::Refusing {
                reason: reason.clone(),
            })
        })
    }

    /// Changes a copy of the view and publishes it.
    pub(crate) fn update(&self, change: impl FnOnce(&mut View)) {
        // A panic while changing leaves the old view in place, which is whole.
        let guard = self
            .changing
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut next = View::clone(&self.view.load());
        change(&mut next);
        self.view.store(Arc::new(next));
        drop(guard);
    }
}
