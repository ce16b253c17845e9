//! Proofs that a log hands out: a leaf is in a tree, a tree is the start of another.
//!
//! The algorithms are those of RFC 9162 sections 2.1.3.2 and 2.1.4.2, which RFC 6962 leaves to the
//! reader. A proof has exactly the length that the sizes need; a longer one is refused.

use super::{CompactRange, Hash, TREE_SIZE_MAX, Tree, node_hash};

/// Why a proof does not prove.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// There is no such leaf in the tree.
    #[error("leaf {index} is not in a tree of {size} leaves; ask for a proof to a larger tree")]
    OutsideTree {
        /// Of the leaf.
        index: u64,
        /// Of the tree.
        size: u64,
    },
    /// The tree that should be the start of the other is the larger one.
    #[error("a tree of {old} leaves cannot be the start of one of {new}; the second head is the older one")]
    SizesReversed {
        /// The tree that should be the start.
        old: u64,
        /// The other one.
        new: u64,
    },
    /// The size is beyond what any log may hold.
    #[error("a tree of {size} leaves is over the limit of {TREE_SIZE_MAX}")]
    TooLarge {
        /// Of the tree.
        size: u64,
    },
    /// The proof has another length than the sizes need.
    #[error(
        "the proof has {got} hashes where {expected} are needed; the log answered another question, or is damaged"
    )]
    Length {
        /// How many are needed.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// The proof leads to another root than the signed one.
    #[error("the proof leads to the root {computed}, the head of {size} leaves says {expected}")]
    Root {
        /// Of the tree whose root is not met.
        size: u64,
        /// What its head says.
        expected: Hash,
        /// What the proof gives.
        computed: Hash,
    },
}

/// Checks that the leaf with this hash and index is in `tree`; `path` is an `audit_path` (RFC 6962
/// section 4.5), from the leaf upwards.
///
/// # Errors
/// [`ProofError`]; nothing is proved then.
pub fn verify_inclusion(index: u64, leaf: &Hash, path: &[Hash], tree: &Tree) -> Result<(), ProofError> {
    let shape = Shape::of(index, tree.size)?;
    shape.check_length(0, path)?;
    let computed = path.iter().zip(0u32..).fold(*leaf, |hash, (sibling, level)| {
        if shape.is_left_sibling(index, level) {
            node_hash(sibling, &hash)
        } else {
            node_hash(&hash, sibling)
        }
    });
    check_root(tree, computed)
}

/// Checks an inclusion proof as [`verify_inclusion`] does and gives the range [0, `index`): the left
/// siblings on the path are its nodes. A reader that starts at `index` needs no more of what is before.
///
/// # Errors
/// [`ProofError`]; nothing is proved then.
pub fn range_left_of(
    index: u64,
    leaf: &Hash,
    path: &[Hash],
    tree: &Tree,
) -> Result<CompactRange, ProofError> {
    verify_inclusion(index, leaf, path, tree)?;
    let shape = Shape::of(index, tree.size)?;
    let siblings = path.iter().zip(0u32..);
    let mut nodes: Vec<Hash> = siblings
        .filter(|(_, level)| shape.is_left_sibling(index, *level))
        .map(|(hash, _)| *hash)
        .collect();
    nodes.reverse();
    let got = nodes.len();
    CompactRange::from_nodes(0, index, nodes).map_err(|_| ProofError::Length {
        expected: index.count_ones() as usize,
        got,
    })
}

/// Checks that `old` is the start of `new`; `path` is a `consistency` array (RFC 6962 section 4.4).
///
/// An empty tree is the start of every other, with an empty proof; so is a tree of itself.
///
/// # Errors
/// [`ProofError`]; nothing is proved then. A log whose two signed heads have no proof between them
/// has forked, but one bad answer is no evidence of that: ask again.
pub fn verify_consistency(old: &Tree, new: &Tree, path: &[Hash]) -> Result<(), ProofError> {
    if old.size > new.size {
        return Err(ProofError::SizesReversed {
            old: old.size,
            new: new.size,
        });
    }
    if old.size == 0 || old.size == new.size {
        expect_length(0, path)?;
        let known = if old.size == new.size {
            new.root
        } else {
            Hash::EMPTY_ROOT
        };
        return check_root(old, known);
    }
    let last = old.size - 1;
    let shape = Shape::of(last, new.size)?;
    // The last leaf of the old tree is inside a full subtree of 2^skipped leaves, where the proof starts.
    let skipped = old.size.trailing_zeros();
    let (seed, path) = if old.size.is_power_of_two() {
        shape.check_length(skipped, path)?;
        (old.root, path)
    } else {
        let (seed, rest) = path.split_first().ok_or(ProofError::Length {
            expected: shape.length(skipped) + 1,
            got: 0,
        })?;
        shape
            .check_length(skipped, rest)
            .map_err(|_| ProofError::Length {
                expected: shape.length(skipped) + 1,
                got: path.len(),
            })?;
        (*seed, rest)
    };
    let (mut of_old, mut of_new) = (seed, seed);
    for (sibling, level) in path.iter().zip(skipped..) {
        if shape.is_left_sibling(last, level) {
            of_old = node_hash(sibling, &of_old);
            of_new = node_hash(sibling, &of_new);
        } else {
            of_new = node_hash(&of_new, sibling);
        }
    }
    check_root(old, of_old)?;
    check_root(new, of_new)
}

/// How the path from a leaf to the root runs: up to `inner` it turns left or right by the bits of the
/// index; above it lies on the right edge, where all siblings are on the left.
struct Shape {
    inner: u32,
    border: u32,
}

impl Shape {
    fn of(index: u64, size: u64) -> Result<Self, ProofError> {
        if size > TREE_SIZE_MAX {
            return Err(ProofError::TooLarge { size });
        }
        if index >= size {
            return Err(ProofError::OutsideTree { index, size });
        }
        let inner = u64::BITS - (index ^ (size - 1)).leading_zeros();
        let border = index.checked_shr(inner).unwrap_or(0).count_ones();
        Ok(Self { inner, border })
    }

    fn length(&self, skipped: u32) -> usize {
        (self.inner.saturating_sub(skipped) + self.border) as usize
    }

    fn check_length(&self, skipped: u32, path: &[Hash]) -> Result<(), ProofError> {
        expect_length(self.length(skipped), path)
    }

    /// Whether the `nth` sibling, counted from the leaf, is on the left.
    fn is_left_sibling(&self, index: u64, nth: u32) -> bool {
        nth >= self.inner || index >> nth & 1 == 1
    }
}

fn expect_length(expected: usize, path: &[Hash]) -> Result<(), ProofError> {
    let got = path.len();
    if got == expected {
        Ok(())
    } else {
        Err(ProofError::Length { expected, got })
    }
}

fn check_root(tree: &Tree, computed: Hash) -> Result<(), ProofError> {
    if tree.root == computed {
        Ok(())
    } else {
        Err(ProofError::Root {
            size: tree.size,
            expected: tree.root,
            computed,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::naive::Naive;
    use super::*;

    /// Every change of a proof that a log could make must be told.
    fn changes(path: &[Hash]) -> Vec<Vec<Hash>> {
        let more = [Hash::EMPTY_ROOT];
        let mut all = vec![[path, &more].concat(), [&more, path].concat()];
        for at in 0..path.len() {
            let mut other = path.to_vec();
            other[at].0[at % 32] ^= 1;
            all.push(other);
            all.push([&path[..at], &path[at + 1..]].concat());
        }
        all
    }

    #[test]
    fn inclusion_in_all_small_trees() {
        let naive = Naive::new(300);
        for size in 0..=300 {
            let tree = naive.tree(size);
            for index in 0..size {
                let (at, path, leaf) = (index as u64, naive.path(index, size), naive.leaf(index));
                assert_eq!(verify_inclusion(at, &leaf, &path, &tree), Ok(()));
                let range = range_left_of(at, &leaf, &path, &tree).unwrap();
                assert_eq!((range.begin(), range.end()), (0, at));
                assert_eq!(range.root(), Some(naive.root(0, index)));
                if size <= 20 {
                    for other in changes(&path) {
                        assert!(verify_inclusion(at, &leaf, &other, &tree).is_err());
                    }
                    for other in (0..size as u64).filter(|other| *other != at) {
                        assert!(verify_inclusion(other, &leaf, &path, &tree).is_err());
                    }
                }
            }
        }
    }

    #[test]
    fn consistency_of_all_small_trees() {
        let naive = Naive::new(300);
        for size in 0..=300 {
            let new = naive.tree(size);
            for old_size in 0..=size {
                let old = naive.tree(old_size);
                let path = naive.consistency(old_size, size);
                assert_eq!(
                    verify_consistency(&old, &new, &path),
                    Ok(()),
                    "{old_size} in {size}"
                );
                if size > 20 {
                    continue;
                }
                for other in changes(&path) {
                    assert!(verify_consistency(&old, &new, &other).is_err());
                }
                let root = Hash([7; 32]);
                let forked = Tree { root, ..old };
                assert!(verify_consistency(&forked, &new, &path).is_err());
                // From nothing everything follows: there is no proof that could fail.
                let forked = Tree { root, ..new };
                let from_nothing = old_size == 0 && size > 0;
                assert_eq!(verify_consistency(&old, &forked, &path).is_ok(), from_nothing);
            }
        }
    }

    #[test]
    fn impossible_questions_have_their_own_answers() {
        let tree = Naive::new(5).tree(5);
        let leaf = Hash::EMPTY_ROOT;
        assert_eq!(
            verify_inclusion(5, &leaf, &[], &tree),
            Err(ProofError::OutsideTree { index: 5, size: 5 })
        );
        let smaller = Tree { size: 4, ..tree };
        assert_eq!(
            verify_consistency(&tree, &smaller, &[]),
            Err(ProofError::SizesReversed { old: 5, new: 4 })
        );
        assert_eq!(
            verify_consistency(&smaller, &tree, &[leaf; 9]),
            Err(ProofError::Length { expected: 1, got: 9 })
        );
        let three = Tree { size: 3, ..tree };
        assert_eq!(
            verify_consistency(&three, &tree, &[leaf; 9]),
            Err(ProofError::Length { expected: 4, got: 9 })
        );
        let size = u64::MAX;
        let huge = Tree { size, ..tree };
        assert_eq!(
            verify_inclusion(5, &leaf, &[leaf; 64], &huge),
            Err(ProofError::TooLarge { size })
        );
        assert_eq!(
            verify_consistency(&tree, &huge, &[]),
            Err(ProofError::TooLarge { size })
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn proofs_in_larger_trees(size in 300usize..2_500, index in 0f64..1.0, old in 0f64..1.0) {
            let naive = Naive::new(size);
            let tree = naive.tree(size);
            let index = (index * size as f64) as usize;
            let path = naive.path(index, size);
            prop_assert_eq!(verify_inclusion(index as u64, &naive.leaf(index), &path, &tree), Ok(()));
            let mut range = range_left_of(index as u64, &naive.leaf(index), &path, &tree).unwrap();
            for index in index..size {
                range.push(naive.leaf(index)).unwrap();
            }
            prop_assert_eq!(range.root(), Some(tree.root));
            let old = (old * size as f64) as usize;
            let path = naive.consistency(old, size);
            prop_assert_eq!(verify_consistency(&naive.tree(old), &tree, &path), Ok(()));
        }
    }
}
