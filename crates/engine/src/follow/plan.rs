//! What to read of a log next: its tail, then what is missing before it.

use tamis_ct_log::merkle::TILE_WIDTH;
use tokio::time::Instant;

use super::progress::{Piece, Span};
use super::reader::{Order, Reader, SETTLE_LEAVES};
use super::source::Protocol;

/// A log with more leaves is read from its newest ones; older ones follow as the budget allows.
const TAIL_FIRST_LEAVES: u64 = 2 * SETTLE_LEAVES;

impl Reader {
    /// A large log that was never read is begun at its newest leaves.
    pub(super) fn start_at_the_tail(&mut self) {
        let size = self.progress.tree_size();
        if !self.progress.spans.is_empty() || size <= TAIL_FIRST_LEAVES {
            return;
        }
        let line = size - size % 1_024;
        if let Ok(span) = Span::at(line) {
            self.progress.spans.push(span);
        }
    }

    /// What to read now.
    pub(super) fn next(&mut self) -> Option<Piece> {
        let size = self.progress.tree_size();
        self.resting.retain(|_, until| Instant::now() < *until);
        let tail = self.progress.next_piece(size)?;
        if tail.is_tail
            && !self.resting.contains_key(&tail.start)
            && let Some(piece) = self.without_partial(tail)
        {
            return Some(piece);
        }
        let holes = self.progress.holes();
        let hole = holes
            .into_iter()
            .find(|hole| hole[1] < size && !self.resting.contains_key(&hole[0]))?;
        Some(Piece {
            start: hole[0],
            end: hole[1],
            is_tail: false,
        })
    }

    /// A tile that is not full is read once it stayed so for a while: until then each reading of it would
    /// fetch the same entries again.
    fn without_partial(&mut self, tail: Piece) -> Option<Piece> {
        if self.source.protocol == Protocol::Rfc6962 || self.world.reads_partial_at_once {
            return Some(tail);
        }
        let full = tail.end - tail.end % u64::from(TILE_WIDTH);
        if tail.start < full {
            return Some(Piece { end: full, ..tail });
        }
        if matches!(*self.order.borrow(), Order::ToTheEnd(_) | Order::ToItsHead) {
            return Some(tail);
        }
        let since = match self.partial {
            Some((start, since)) if start == tail.start => since,
            _ => {
                let now = Instant::now();
                self.partial = Some((tail.start, now));
                now
            }
        };
        (since.elapsed() >= self.world.partial_delay).then_some(tail)
    }

    pub(super) fn next_partial(&self) -> Option<Instant> {
        let (start, since) = self.partial?;
        let last = self.progress.spans.last().map_or(0, Span::end);
        // What was noted of a tile that is read by now would be due for ever.
        (start == last && start < self.progress.tree_size()).then(|| since + self.world.partial_delay)
    }
}
