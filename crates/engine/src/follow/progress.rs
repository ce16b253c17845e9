//! What is kept of a log between runs: which leaves were read, how far they are proved, its newest head,
//! and what it was caught in.
//!
//! # Format
//! `docs/formats/log-progress.md`. The index keeps the bytes beside the entries they are about.
//!
//! # Invariants
//! Spans are sorted and disjoint, and two that touch are one as soon as both are proved. A span's leaves up
//! to [`Span::proved_to`] hash to the root of a head that the log signed, but for those in a [`Lie`].
//!
//! # Limits
//! [`SPANS_MAX`] spans, [`LIES_MAX`] lies with texts of [`TEXT_BYTES_MAX`], heads of [`HEAD_BYTES_MAX`].

use tamis_ct_log::key::LogId;
use tamis_ct_log::merkle::{CompactRange, Hash, RangeError, Tree};

use super::lie::Lie;

/// Of one log: the tail, the backfill, and one for each hole.
pub(crate) const SPANS_MAX: usize = 64;
/// Of one log; more are counted.
pub(crate) const LIES_MAX: usize = 64;
/// Of a text.
pub(crate) const TEXT_BYTES_MAX: usize = 512;
/// Of a head as it came, which is kept as evidence; a longer one is kept without its bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 16 << 10;

/// What is kept of one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) log_id: LogId,
    /// The largest head whose signature was checked and that contradicts none before.
    pub(crate) head: Option<Head>,
    pub(crate) spans: Vec<Span>,
    pub(crate) lies: Vec<Lie>,
    /// All lies ever, also those not kept.
    pub(crate) lies_total: u64,
    /// Leaves that could not be read as entries: they are hashed and counted.
    pub(crate) unreadable: u64,
}

/// A head that the log signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tree: Tree,
    pub(crate) timestamp_ms: u64,
    /// As it came.
    pub(crate) bytes: Vec<u8>,
}

/// Leaves [`begin`, `end`) that were read and are in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    /// First leaf.
    pub(crate) begin: u64,
    /// All leaves of the log from 0 to where this span is proved, under a signed root.
    /// `None` until it is known what lies before the span.
    pub(crate) frontier: Option<CompactRange>,
    /// The rest as it was read, not proved yet.
    pub(crate) pending: CompactRange,
    /// Hash of the first leaf of `pending`, by which a log can be asked for what lies before it.
    pub(crate) first: Option<Hash>,
}

impl Span {
    /// A span of which nothing is known but where it starts.
    pub(crate) fn at(begin: u64) -> Result<Self, RangeError> {
        let frontier = (begin == 0).then(|| CompactRange::empty(0)).transpose()?;
        Ok(Self {
            begin,
            frontier,
            pending: CompactRange::empty(begin)?,
            first: None,
        })
    }

    /// Behind the last leaf that was read.
    pub(crate) fn end(&self) -> u64 {
        self.pending.end()
    }

    /// Behind the last leaf that is proved.
    pub(crate) fn proved_to(&self) -> u64 {
        self.pending.begin()
    }

    /// Leaves that were read and are not proved.
    pub(crate) fn unproved(&self) -> u64 {
        self.end().saturating_sub(self.proved_to())
    }

    /// Adds leaves that were read behind the last one.
    pub(crate) fn push(&mut self, leaves: &[Hash]) -> Result<(), RangeError> {
        if self.unproved() == 0 {
            self.first = leaves.first().copied();
        }
        leaves.iter().try_for_each(|leaf| self.pending.push(*leaf))
    }

    /// All leaves from 0 to the end as they were read behind what is proved; `None` where it is not known
    /// what lies before.
    pub(crate) fn whole(&self) -> Option<CompactRange> {
        let mut whole = self.frontier.clone()?;
        whole.join(&self.pending).ok()?;
        Some(whole)
    }

    /// Takes `frontier` as what is true up to its end, whatever was read.
    pub(crate) fn prove_by(&mut self, frontier: CompactRange) -> Result<(), RangeError> {
        self.pending = CompactRange::empty(frontier.end())?;
        self.first = None;
        self.frontier = Some(frontier);
        Ok(())
    }
}

/// What to read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// First leaf.
    pub(crate) start: u64,
    /// Behind the last one.
    pub(crate) end: u64,
    /// Whether it is the newest part of the log.
    pub(crate) is_tail: bool,
}

impl Progress {
    pub(crate) fn new(log_id: LogId) -> Self {
        Self {
            log_id,
            head: None,
            spans: Vec::new(),
            lies: Vec::new(),
            lies_total: 0,
            unreadable: 0,
        }
    }

    /// The largest tree that is known.
    pub(crate) fn tree_size(&self) -> u64 {
        self.head.as_ref().map_or(0, |head| head.tree.size)
    }

    /// Leaves that were read.
    pub(crate) fn read(&self) -> u64 {
        self.spans.iter().map(|span| span.end() - span.begin).sum()
    }

    /// Behind the last leaf of which all from 0 are proved and none is in a lie that stands.
    pub(crate) fn verified(&self) -> u64 {
        let first = self.spans.first().filter(|span| span.begin == 0);
        let proved = first.map_or(0, Span::proved_to);
        let standing = self.lies.iter().filter_map(Lie::standing);
        standing.map(|(first, _)| first).fold(proved, u64::min)
    }

    /// Leaves of the largest tree that were not read.
    pub(crate) fn backlog(&self) -> u64 {
        self.tree_size().saturating_sub(self.read())
    }

    /// Leaves that were read and are not proved.
    pub(crate) fn unproved(&self) -> u64 {
        self.spans.iter().map(Span::unproved).sum()
    }

    /// Leaves that were not read, `[start, end)` each, the last one up to the head.
    pub(crate) fn holes(&self) -> Vec<[u64; 2]> {
        let mut at = 0;
        let mut holes = Vec::new();
        for (begin, end) in self
            .spans
            .iter()
            .map(|span| (span.begin, span.end()))
            .chain([(self.tree_size(), u64::MAX)])
        {
            if at < begin {
                holes.push([at, begin]);
            }
            at = at.max(end);
        }
        holes
    }

    /// What to read next of a tree with `size` leaves: the tail first, then the first hole.
    pub(crate) fn next_piece(&self, size: u64) -> Option<Piece> {
        let last = self.spans.last().map_or(0, Span::end);
        if last < size {
            return Some(Piece {
                start: last,
                end: size,
                is_tail: true,
            });
        }
        let hole = self.holes().into_iter().next().filter(|hole| hole[0] < size)?;
        Some(Piece {
            start: hole[0],
            end: hole[1],
            is_tail: false,
        })
    }

    /// Whether another span may be begun.
    pub(crate) fn has_room(&self) -> bool {
        self.spans.len() < SPANS_MAX
    }

    /// The span that a leaf read at `start` continues; made where there is none.
    pub(crate) fn span_at(&mut self, start: u64) -> Result<&mut Span, RangeError> {
        // Behind a fork two spans may touch: it is the later one that goes on.
        let behind = self.spans.partition_point(|span| span.end() <= start);
        let last = behind.checked_sub(1);
        let continued = last.filter(|place| self.spans.get(*place).is_some_and(|span| span.end() == start));
        let place = match continued {
            Some(place) => place,
            None => {
                self.spans.insert(behind, Span::at(start)?);
                behind
            }
        };
        // It was found or put there a line above.
        self.spans
            .get_mut(place)
            .ok_or(RangeError::TooLarge { end: start })
    }

    /// The place of the last span that ends at `end`.
    pub(crate) fn place_of(&self, end: u64) -> Option<usize> {
        self.spans.iter().rposition(|span| span.end() == end)
    }

    /// Makes one of two proved spans that touch.
    pub(crate) fn join_proved(&mut self) {
        let mut at = 0;
        while let (Some(left), Some(right)) = (self.spans.get(at), self.spans.get(at + 1)) {
            let touches = left.end() == right.begin && left.unproved() == 0;
            if touches && left.frontier.is_some() && right.frontier.is_some() {
                let begin = left.begin;
                self.spans.remove(at);
                if let Some(right) = self.spans.get_mut(at) {
                    right.begin = begin;
                }
            } else {
                at += 1;
            }
        }
    }

    /// Notes a lie; one about the same leaves takes the place of the earlier.
    pub(crate) fn note(&mut self, lie: Lie) {
        let known = |known: &&mut Lie| known.kind == lie.kind && known.leaves == lie.leaves;
        if let Some(known) = self.lies.iter_mut().find(known) {
            *known = lie;
            return;
        }
        self.lies_total += 1;
        if self.lies.len() < LIES_MAX {
            self.lies.push(lie);
        }
    }
}
