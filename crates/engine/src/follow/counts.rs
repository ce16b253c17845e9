//! What was read since this process started, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use tamis_ct_index::Outcome;

use super::source::Protocol;

/// Counts over all logs.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) entries_rfc6962: AtomicU64,
    pub(crate) entries_static: AtomicU64,
    pub(crate) new: AtomicU64,
    pub(crate) copies: AtomicU64,
    pub(crate) duplicates: AtomicU64,
    pub(crate) lies: AtomicU64,
    pub(crate) lists_refused: AtomicU64,
}

impl Counts {
    pub(crate) fn read(&self, protocol: Protocol, entries: u64, outcome: &Outcome) {
        let of_protocol = match protocol {
            Protocol::Rfc6962 | Protocol::Hybrid => &self.entries_rfc6962,
            Protocol::Static => &self.entries_static,
        };
        of_protocol.fetch_add(entries, Ordering::Relaxed);
        self.new.fetch_add(outcome.new, Ordering::Relaxed);
        self.copies.fetch_add(outcome.copies, Ordering::Relaxed);
        self.duplicates.fetch_add(outcome.duplicates, Ordering::Relaxed);
    }

    pub(crate) fn lie(&self) {
        self.lies.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn list_refused(&self) {
        self.lists_refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn entries(&self) -> u64 {
        self.entries_rfc6962.load(Ordering::Relaxed) + self.entries_static.load(Ordering::Relaxed)
    }
}
