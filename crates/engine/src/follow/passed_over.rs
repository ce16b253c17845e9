//! What an archive cannot give is passed over: a file does not heal by being asked again.
//!
//! # Invariants
//! Reading an archive always ends: with everything, or with what is missing told as the log's error. What is
//! passed over stays a hole, which another run tries again.
//!
//! # Limits
//! [`HOLES_MAX`] places; an archive with more damage is given up.

use super::archive::SUBTREE_LEAVES;
use super::lie::LieKind;
use super::progress::{SPANS_MAX, Span};
use super::reader::{Ended, Reader, lie};
use super::source::{Blame, SourceError};
use super::status::Activity;
use super::world::Fatal;

/// Places that are passed over; each takes one of the spans that are kept.
const HOLES_MAX: usize = SPANS_MAX / 2;

impl Reader {
    /// Passes over the leaves from `start` to `end` if they come from an archive that does not have them
    /// whole; false where the error is to be dealt with otherwise.
    pub(super) fn pass_over(&mut self, error: &SourceError, start: u64, end: u64) -> bool {
        if !self.source.is_archive() || self.progress.spans.len() >= HOLES_MAX {
            return false;
        }
        let is_of_subtree = matches!(error, SourceError::Archive(error) if error.is_of_subtree());
        let end = if is_of_subtree {
            let line = (start / SUBTREE_LEAVES + 1).saturating_mul(SUBTREE_LEAVES);
            line.max(end)
        } else {
            end
        };
        let size = self.progress.tree_size();
        tracing::debug!(
            log = %self.source.log.description,
            from = start,
            to = end,
            why = %error.told(),
            "passed over"
        );
        self.passed.get_or_insert_with(|| error.told());
        self.rest_at(start);
        // A span that was begun behind an earlier hole and has nothing yet moves on with the hole.
        self.progress
            .spans
            .retain(|span| span.begin != start || span.end() > start);
        let is_behind_read = self
            .progress
            .spans
            .iter()
            .any(|span| span.begin <= end && end <= span.end());
        if end < size && !is_behind_read && self.progress.span_at(end).is_err() {
            return false;
        }
        self.is_dirty = true;
        true
    }

    /// Of an archive, what cannot be proved here may still be proved by what comes later: the last of its
    /// leaves lead to the root themselves.
    pub(super) fn excuse(&mut self, settled: Result<(), SourceError>) -> Result<(), SourceError> {
        match settled {
            Err(error) if self.source.is_archive() => {
                tracing::debug!(log = %self.source.log.description, why = %error.told(), "not proved yet");
                self.note_proof(&error);
                self.unproved_why = Some(error.told());
                Ok(())
            }
            settled => settled,
        }
    }

    /// Notes that the tree that a log serves does not lead to the root that it signed.
    pub(super) fn note_proof(&mut self, error: &SourceError) {
        let is_proof = matches!(error, SourceError::Tile(_) | SourceError::Proof(_));
        if is_proof && error.blame() == Blame::Contradiction {
            let leaves = [0, self.progress.tree_size()];
            self.note(lie(LieKind::Proof, leaves, error.told()));
        }
    }

    /// Ends the reading of an archive that cannot be read on.
    pub(super) async fn give_up(&mut self, error: &SourceError) -> Result<Ended, Fatal> {
        self.note_proof(error);
        self.save().await?;
        self.show(Activity::Finished, Some(error.told()));
        Ok(Ended::Finished)
    }

    /// What an archive that was read to its end did not give; `None` where all is well.
    pub(super) fn missing(&self) -> Option<String> {
        if !self.source.is_archive() {
            return None;
        }
        let (backlog, unproved) = (self.progress.backlog(), self.progress.unproved());
        if backlog > 0 {
            let why = self.passed.as_deref().unwrap_or("they were not read");
            return Some(format!("the archive does not give {backlog} leaves: {why}"));
        }
        if unproved > 0 {
            let why = self.unproved_why.as_deref().unwrap_or("no proof was found");
            return Some(format!(
                "{unproved} leaves of the archive cannot be proved: {why}"
            ));
        }
        // A span without a frontier was read and hangs in the air.
        let is_loose = |span: &Span| span.frontier.is_none();
        let why = self
            .unproved_why
            .as_deref()
            .filter(|_| self.progress.spans.iter().any(is_loose))?;
        Some(format!("leaves of the archive cannot be proved: {why}"))
    }
}
