//! Compact ranges: the hashes from which the root over leaves [begin, end) can be continued.
//!
//! # Invariants
//! The nodes are the largest aligned subtrees that cover [begin, end), from left to right, so their
//! levels follow from begin and end alone, and two equal ranges over equal leaves are equal.
//!
//! # Limits
//! [`TREE_SIZE_MAX`] leaves, hence at most 94 nodes.

use super::{Hash, TREE_SIZE_MAX, node_hash};

/// The leaves [begin, end) of a tree, compressed to at most two hashes a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactRange {
    begin: u64,
    end: u64,
    nodes: Vec<Hash>,
}

/// Why ranges cannot be put together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// It would reach beyond what any log may hold.
    #[error(
        "a range to leaf {end} is over the limit of {TREE_SIZE_MAX} leaves; the size that led here is wrong"
    )]
    TooLarge {
        /// Where it would end.
        end: u64,
    },
    /// Ranges join only where one ends and the other starts.
    #[error("a range that starts at leaf {begin} cannot follow one that ends at {end}")]
    NotAdjacent {
        /// Where the left one ends.
        end: u64,
        /// Where the right one starts.
        begin: u64,
    },
    /// It would end before it starts.
    #[error("a range cannot start at leaf {begin} and end at {end}")]
    Reversed {
        /// Where it would start.
        begin: u64,
        /// Where it would end.
        end: u64,
    },
    /// A subtree can only stand at a multiple of its own width.
    #[error("a subtree of 2^{level} leaves cannot start at leaf {index}")]
    Unaligned {
        /// Where the range ends.
        index: u64,
        /// Of the subtree.
        level: u8,
    },
    /// The number of hashes is not the one that begin and end need.
    #[error("leaves {begin} to {end} need {expected} hashes, not {got}")]
    NodeCount {
        /// First leaf.
        begin: u64,
        /// Behind the last leaf.
        end: u64,
        /// What they need.
        expected: usize,
        /// What is there.
        got: usize,
    },
}

impl CompactRange {
    /// The range without leaves that starts at `begin`.
    ///
    /// # Errors
    /// [`RangeError::TooLarge`].
    pub fn empty(begin: u64) -> Result<Self, RangeError> {
        Self::from_nodes(begin, begin, Vec::new())
    }

    /// Puts a range together from its nodes, left to right, as [`CompactRange::nodes`] gives them.
    ///
    /// # Errors
    /// The bounds are reversed or too large, or the number of nodes is another than they need.
    pub fn from_nodes(begin: u64, end: u64, nodes: Vec<Hash>) -> Result<Self, RangeError> {
        if end > TREE_SIZE_MAX {
            return Err(RangeError::TooLarge { end });
        }
        if begin > end {
            return Err(RangeError::Reversed { begin, end });
        }
        let expected = levels(begin, end).count();
        if nodes.len() != expected {
            let got = nodes.len();
            return Err(RangeError::NodeCount {
                begin,
                end,
                expected,
                got,
            });
        }
        Ok(Self { begin, end, nodes })
    }

    /// The first leaf.
    #[must_use]
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// Behind the last leaf.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The hashes of the subtrees, left to right.
    #[must_use]
    pub fn nodes(&self) -> &[Hash] {
        &self.nodes
    }

    /// The root, where the range starts at leaf 0; `None` otherwise.
    #[must_use]
    pub fn root(&self) -> Option<Hash> {
        if self.begin != 0 {
            return None;
        }
        let root = self.nodes.iter().rev().copied();
        Some(
            root.reduce(|right, left| node_hash(&left, &right))
                .unwrap_or(Hash::EMPTY_ROOT),
        )
    }

    /// Adds the leaf behind the last one.
    ///
    /// # Errors
    /// [`RangeError::TooLarge`].
    pub fn push(&mut self, leaf: Hash) -> Result<(), RangeError> {
        self.push_subtree(0, leaf)
    }

    /// Adds a full subtree of 2^`level` leaves behind the last one, such as a hash of a tile is.
    ///
    /// # Errors
    /// The range does not end at a multiple of its width, or becomes too large.
    pub fn push_subtree(&mut self, level: u8, hash: Hash) -> Result<(), RangeError> {
        let width = 1u64.checked_shl(level.into()).unwrap_or(u64::MAX);
        if !self.end.is_multiple_of(width) {
            return Err(RangeError::Unaligned {
                index: self.end,
                level,
            });
        }
        let end = self.end.saturating_add(width);
        if end > TREE_SIZE_MAX {
            return Err(RangeError::TooLarge { end });
        }
        let (mut hash, mut start, mut width) = (hash, self.end, width);
        // As long as it is a right child whose left sibling lies in the range, both become one.
        while start & width != 0 && start - width >= self.begin {
            let Some(left) = self.nodes.pop() else { break };
            hash = node_hash(&left, &hash);
            start -= width;
            width <<= 1;
        }
        self.nodes.push(hash);
        self.end = end;
        Ok(())
    }

    /// Adds the leaves of `right`, which start where these end.
    ///
    /// # Errors
    /// [`RangeError::NotAdjacent`]; the range is unchanged then.
    pub fn join(&mut self, right: &Self) -> Result<(), RangeError> {
        if right.begin != self.end {
            return Err(RangeError::NotAdjacent {
                end: self.end,
                begin: right.begin,
            });
        }
        for (level, hash) in levels(right.begin, right.end).zip(&right.nodes) {
            self.push_subtree(level, *hash)?;
        }
        Ok(())
    }
}

/// The levels of the nodes that cover [begin, end), left to right.
pub(super) fn levels(begin: u64, end: u64) -> impl Iterator<Item = u8> {
    let mut at = begin;
    std::iter::from_fn(move || {
        let rest = end.checked_sub(at).filter(|rest| *rest > 0)?;
        let level = at.trailing_zeros().min(rest.ilog2());
        at += 1 << level;
        u8::try_from(level).ok()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::naive::Naive;
    use super::*;

    fn range(naive: &Naive, begin: usize, end: usize) -> CompactRange {
        let mut range = CompactRange::empty(begin as u64).unwrap();
        for index in begin..end {
            range.push(naive.leaf(index)).unwrap();
        }
        range
    }

    #[test]
    fn roots_of_all_small_trees_equal_the_definition() {
        let naive = Naive::new(300);
        let mut range = CompactRange::empty(0).unwrap();
        assert_eq!(range.root(), Some(Hash::EMPTY_ROOT));
        for index in 0..300 {
            range.push(naive.leaf(index)).unwrap();
            assert_eq!(range.root(), Some(naive.root(0, index + 1)), "leaf {index}");
        }
    }

    #[test]
    fn nodes_are_the_subtrees_that_the_bounds_say() {
        let naive = Naive::new(70);
        for begin in 0..=70 {
            for end in begin..=70 {
                let range = range(&naive, begin, end);
                let mut at = begin;
                let mut expected = Vec::new();
                for level in levels(begin as u64, end as u64) {
                    let width = 1 << level;
                    expected.push(naive.root(at, at + width));
                    at += width;
                }
                assert_eq!(range.nodes(), expected, "[{begin}, {end})");
                assert_eq!(range.root().is_some(), begin == 0);
            }
        }
    }

    #[test]
    fn every_cut_of_a_small_tree_joins_again() {
        let naive = Naive::new(40);
        let whole = range(&naive, 0, 40);
        for first in 0..=40 {
            for second in first..=40 {
                let mut joined = range(&naive, 0, first);
                joined.join(&range(&naive, first, second)).unwrap();
                joined.join(&range(&naive, second, 40)).unwrap();
                assert_eq!(joined, whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut left = range(&Naive::new(3), 0, 3);
        let before = left.clone();
        let gap = CompactRange::empty(4).unwrap();
        assert_eq!(left.join(&gap), Err(RangeError::NotAdjacent { end: 3, begin: 4 }));
        assert_eq!(
            left.push_subtree(1, Hash::EMPTY_ROOT),
            Err(RangeError::Unaligned { index: 3, level: 1 })
        );
        assert_eq!(
            left.push_subtree(200, Hash::EMPTY_ROOT),
            Err(RangeError::Unaligned { index: 3, level: 200 })
        );
        assert_eq!(left, before);
        assert_eq!(
            CompactRange::from_nodes(4, 3, vec![]),
            Err(RangeError::Reversed { begin: 4, end: 3 })
        );
        let count = CompactRange::from_nodes(0, 3, vec![Hash::EMPTY_ROOT]);
        assert!(matches!(
            count,
            Err(RangeError::NodeCount {
                expected: 2,
                got: 1,
                ..
            })
        ));
        let mut last = CompactRange::empty(TREE_SIZE_MAX).unwrap();
        let end = TREE_SIZE_MAX + 1;
        assert_eq!(last.push(Hash::EMPTY_ROOT), Err(RangeError::TooLarge { end }));
        assert_eq!(CompactRange::empty(end), Err(RangeError::TooLarge { end }));
        let mut start = CompactRange::empty(0).unwrap();
        let end = u64::MAX;
        assert_eq!(
            start.push_subtree(64, Hash::EMPTY_ROOT),
            Err(RangeError::TooLarge { end })
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn large_ranges_cut_anywhere_join_to_the_root(
            count in 300usize..3_000, cuts in prop::collection::vec(0f64..1.0, 0..6),
        ) {
            let naive = Naive::new(count);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| (cut * count as f64) as usize).collect();
            cuts.extend([0, count]);
            cuts.sort_unstable();
            let parts: Vec<CompactRange> =
                cuts.windows(2).map(|pair| range(&naive, pair[0], pair[1])).collect();
            // From the right, so that ranges that do not start at 0 are joined too.
            let mut joined = CompactRange::empty(count as u64).unwrap();
            for part in parts.iter().rev() {
                let mut left = part.clone();
                left.join(&joined).unwrap();
                joined = left;
            }
            prop_assert_eq!(joined.root(), Some(naive.root(0, count)));
            prop_assert_eq!(joined, range(&naive, 0, count));
        }
    }
}
