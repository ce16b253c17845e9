//! Which heads of a log are believed.
//!
//! # Invariants
//! The known head only grows, and only by heads that contain it, unless a log that forked shows nothing but
//! the other branch for [`FORK_POLLS`] polls: then that is what it is, and reading goes on there.

use tamis_ct_log::merkle::Tree;

use super::lie::LieKind;
use super::progress::{Head, Span};
use super::reader::{Reader, lie};
use super::source::{Blame, SourceError};

/// Polls that show only the other branch before it is followed.
const FORK_POLLS: u32 = 5;
/// A log that gives no consistency proof for so many heads is believed: its entries prove the same.
const UNPROVED_POLLS: u32 = 10;

/// What was seen of heads that are not believed.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// Heads in a row that contradict the known one.
    contradicting: u32,
    /// Heads in a row whose consistency could not be asked for.
    unproved: u32,
    /// The last of them: a branch that is shown once and then never again is judged when another head holds.
    unproved_head: Option<Head>,
}

impl Reader {
    /// Asks for the newest head and takes it if it holds.
    pub(super) async fn poll(&mut self) -> Result<(), SourceError> {
        let (head, bytes) = match self.source.head().await {
            Ok(head) => head,
            Err(error) if error.blame() == Blame::Contradiction => {
                self.note(lie(LieKind::Signature, [0, 0], error.told()));
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        let seen = Head {
            tree: *head.tree(),
            timestamp_ms: head.timestamp_ms(),
            bytes,
        };
        let Some(known) = self.progress.head.clone() else {
            self.adopt(seen);
            return Ok(());
        };
        match seen.tree.size.cmp(&known.tree.size) {
            // A replica that lags behind. That it is the start of the known one can be proved, and need not be:
            // nothing is taken from it.
            std::cmp::Ordering::Less => Ok(()),
            std::cmp::Ordering::Equal if seen.tree.root == known.tree.root => {
                self.doubts = Doubts::default();
                if seen.timestamp_ms > known.timestamp_ms {
                    self.progress.head = Some(seen);
                }
                Ok(())
            }
            std::cmp::Ordering::Equal => {
                self.contradicted(known, seen);
                Ok(())
            }
            std::cmp::Ordering::Greater => self.grown(known, seen).await,
        }
    }

    async fn grown(&mut self, known: Head, seen: Head) -> Result<(), SourceError> {
        match self.source.consistency(&known.tree, &seen.tree).await {
            Ok(()) => {
                let doubted = self.doubts.unproved_head.take();
                self.adopt(seen.clone());
                if let Some(doubted) = doubted.filter(|doubted| doubted.tree.size <= seen.tree.size) {
                    self.judge_doubted(doubted, seen).await;
                }
            }
            Err(error @ SourceError::Tile(_)) if error.blame() == Blame::Contradiction => {
                // The tiles do not lead to the root of the head: nothing can be said about heads by them.
                return Err(error);
            }
            Err(error) if error.blame() == Blame::Contradiction => {
                // One bad answer is no fork: the same question gets a second chance.
                match self.source.consistency(&known.tree, &seen.tree).await {
                    Ok(()) => self.adopt(seen),
                    Err(error) if error.blame() == Blame::Contradiction => self.contradicted(known, seen),
                    Err(error) => return Err(error),
                }
            }
            Err(error) => {
                self.doubts.unproved += 1;
                if self.doubts.unproved < UNPROVED_POLLS {
                    self.doubts.unproved_head = Some(seen);
                    return Err(error);
                }
                self.adopt(seen);
            }
        }
        Ok(())
    }

    /// A head whose consistency could not be asked for, now that a later one holds.
    async fn judge_doubted(&mut self, doubted: Head, holds: Head) {
        let judged = self.source.consistency(&doubted.tree, &holds.tree).await;
        if judged.is_err_and(|error| error.blame() == Blame::Contradiction) {
            self.tell_fork(&doubted, &holds);
        }
    }

    fn adopt(&mut self, head: Head) {
        self.progress.head = Some(head);
        self.doubts = Doubts::default();
        self.is_dirty = true;
        self.unprovable = None;
    }

    fn contradicted(&mut self, known: Head, seen: Head) {
        self.doubts.contradicting += 1;
        self.tell_fork(&known, &seen);
        if self.doubts.contradicting < FORK_POLLS || seen.tree.size < known.tree.size {
            return;
        }
        tracing::warn!(log = %self.source.log.description, size = seen.tree.size, "following the other branch");
        self.split_at(&known.tree);
        self.adopt(seen);
    }

    fn tell_fork(&mut self, known: &Head, seen: &Head) {
        let detail = format!(
            "a head of {} leaves with root {} contradicts the one of {} leaves with root {}",
            seen.tree.size, seen.tree.root, known.tree.size, known.tree.root
        );
        let leaves = [known.tree.size, seen.tree.size];
        self.note(lie(LieKind::Fork, leaves, detail));
        self.world.keep_evidence(&self.source.log.id(), known, seen);
    }

    /// What was proved stays so under the old branch; reading goes on behind it under the new one.
    fn split_at(&mut self, known: &Tree) {
        let last = self.progress.spans.last();
        let begin = last.map_or(0, Span::end).max(known.size);
        if last.is_some_and(|last| last.begin == begin) || !self.progress.has_room() {
            return;
        }
        if let Ok(span) = Span::at(begin) {
            self.progress.spans.push(span);
        }
    }
}
