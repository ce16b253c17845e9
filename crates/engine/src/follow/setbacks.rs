//! What follows when a log does not give what it is asked for: ask for less, wait, pass over one leaf.

use std::time::Duration;

use tokio::time::Instant;

use super::ahead::fetch_page;
use super::archive::is_near;
use super::reader::Reader;
use super::source::{Blame, Protocol, SourceError};
use super::status::Activity;

/// Failures in a row at one leaf before it is left for later.
const PATIENCE: u32 = 8;
/// After which a leaf that was left is tried again.
const HOLE_REST: Duration = Duration::from_secs(3_600);
/// Between attempts after failures; doubled from the first to the second.
pub(super) const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// A log on this machine is nobody's but one's own.
const RETRY_NEAR_MAX: Duration = Duration::from_secs(1);

impl Reader {
    /// A page failed: shorter ones may not, and a leaf that never comes must not stop those behind it.
    pub(super) async fn page_failed(&mut self, error: &SourceError, start: u64, end: u64) {
        if !self.is_stuck(error, start, end) || !self.progress.has_room() {
            return;
        }
        // A log whose entries are behind its head serves those that follow no better.
        let size = self.progress.tree_size();
        let behind = fetch_page(&self.world, &self.source, self.number, start + 1, start + 2, size).await;
        if behind.is_err() {
            return;
        }
        tracing::warn!(
            log = %self.source.log.description,
            leaf = start,
            why = %error.told(),
            "a leaf does not come; it is left for later"
        );
        self.rest_at(start);
        if self.progress.span_at(start + 1).is_ok() {
            self.is_dirty = true;
        }
    }

    /// Asks for less from here on where that may help, and says whether nothing has helped for long.
    fn is_stuck(&mut self, error: &SourceError, start: u64, end: u64) -> bool {
        let is_refusal = matches!(
            error,
            SourceError::Status {
                status: 429 | 503,
                ..
            }
        );
        if is_refusal {
            return false;
        }
        self.stuck = match self.stuck {
            (at, count) if at == start => (at, count + 1),
            _ => (start, 1),
        };
        let is_shortest = match self.source.protocol {
            Protocol::Rfc6962 => {
                // A failure by chance is no reason to ask for less; one that comes again may be.
                let is_of_range = error.blame() == Blame::Absent || self.stuck.1 > 1;
                is_of_range && !self.pages.refused(end - start)
            }
            // Only bytes that came and cannot be read are a reason to pass over a tile's leaf.
            Protocol::Static | Protocol::Hybrid => matches!(error, SourceError::Unhashable { .. }),
        };
        let speaks = matches!(
            error,
            SourceError::Status { .. } | SourceError::Unhashable { .. } | SourceError::NoEntries { .. }
        );
        is_shortest && speaks && self.stuck.1 >= PATIENCE && start + 1 < self.progress.tree_size()
    }

    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
        self.failing = None;
    }

    /// Waits longer after each failure in a row.
    pub(super) fn fail(&mut self, error: &SourceError) {
        let is_near = is_near(&self.source.log.url);
        let wait = RETRY_FIRST
            .saturating_mul(1 << self.failures.min(12))
            .min(if is_near { RETRY_NEAR_MAX } else { RETRY_MAX });
        self.failures = self.failures.saturating_add(1);
        self.retry_at = Instant::now() + wait;
        self.note_proof(error);
        self.failing = Some(error.told());
        self.show(Activity::Waiting, self.failing.clone());
    }

    /// Leaves a leaf for later.
    pub(super) fn rest_at(&mut self, leaf: u64) {
        self.resting.insert(leaf, Instant::now() + HOLE_REST);
    }
}
