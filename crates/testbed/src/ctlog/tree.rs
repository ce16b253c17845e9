//! The Merkle tree of a simulated log: every full subtree's hash, so that any root, proof or tile of
//! any size it ever had is a few look-ups.
//!
//! Written from RFC 6962 section 2.1, top down, while `ct-log` verifies bottom up with compact ranges:
//! the two check each other in the tests.
//!
//! # Limits
//! 64 bytes a leaf.

use tamis_ct_log::merkle::{CompactRange, Hash, TILE_WIDTH, Tree, node_hash};

/// Bits of the index that one level of tiles takes.
const TILE_BITS: usize = 8;

#[derive(Clone, Default)]
pub(super) struct FullTree {
    /// `levels[k][n]` is the root over the leaves `n * 2^k` to `(n + 1) * 2^k`.
    levels: Vec<Vec<Hash>>,
}

impl FullTree {
    pub(super) fn size(&self) -> u64 {
        self.levels.first().map_or(0, |leaves| leaves.len() as u64)
    }

    pub(super) fn push(&mut self, leaf: Hash) {
        let mut hash = leaf;
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            let nodes = &mut self.levels[level];
            nodes.push(hash);
            if !nodes.len().is_multiple_of(2) {
                return;
            }
            hash = node_hash(&nodes[nodes.len() - 2], &nodes[nodes.len() - 1]);
        }
    }

    pub(super) fn leaf(&self, index: u64) -> Option<Hash> {
        self.levels.first()?.get(index as usize).copied()
    }

    /// The tree that the first `size` leaves make.
    pub(super) fn at(&self, size: u64) -> Tree {
        Tree {
            size,
            root: self.root(0, size),
        }
    }

    /// `MTH(D[begin:end])`; `begin` is where a subtree of that width may start.
    fn root(&self, begin: u64, end: u64) -> Hash {
        let width = end - begin;
        match width {
            0 => Hash::EMPTY_ROOT,
            _ if width.is_power_of_two() => {
                let level = width.trailing_zeros();
                self.levels[level as usize][(begin >> level) as usize]
            }
            _ => {
                let middle = begin + split(width);
                node_hash(&self.root(begin, middle), &self.root(middle, end))
            }
        }
    }

    /// `PATH(index, D[0:size])`, from the leaf upwards.
    pub(super) fn inclusion(&self, index: u64, size: u64) -> Vec<Hash> {
        let (mut begin, mut end) = (0, size);
        let mut path = Vec::new();
        while end - begin > 1 {
            let middle = begin + split(end - begin);
            if index < middle {
                path.push(self.root(middle, end));
                end = middle;
            } else {
                path.push(self.root(begin, middle));
                begin = middle;
            }
        }
        path.reverse();
        path
    }

    /// `PROOF(old, D[0:size])`.
    pub(super) fn consistency(&self, old: u64, size: u64) -> Vec<Hash> {
        if old == 0 || old >= size {
            return Vec::new();
        }
        let (mut begin, mut end) = (0, size);
        let mut path = Vec::new();
        while old != end {
            let middle = begin + split(end - begin);
            if old <= middle {
                path.push(self.root(middle, end));
                end = middle;
            } else {
                path.push(self.root(begin, middle));
                begin = middle;
            }
        }
        if begin != 0 {
            path.push(self.root(begin, end));
        }
        path.reverse();
        path
    }

    /// The first `width` hashes of a tile; `None` where the tree does not have them.
    pub(super) fn tile(&self, level: u8, index: u64, width: u16) -> Option<&[Hash]> {
        let nodes = self.levels.get(usize::from(level) * TILE_BITS)?;
        let first = usize::try_from(index.checked_mul(TILE_WIDTH.into())?).ok()?;
        nodes.get(first..first.checked_add(width.into())?)
    }

    /// The root computed anew from the leaves, by `ct-log`.
    pub(super) fn recomputed_root(&self) -> Option<Hash> {
        let mut range = CompactRange::empty(0).ok()?;
        for leaf in self.levels.first().into_iter().flatten() {
            range.push(*leaf).ok()?;
        }
        range.root()
    }
}

/// The largest power of two smaller than `width`, which is at least 2.
fn split(width: u64) -> u64 {
    width.next_power_of_two() / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_ct_log::merkle::{leaf_hash, verify_consistency, verify_inclusion};

    #[test]
    fn every_root_and_proof_of_small_trees_verifies() {
        let mut tree = FullTree::default();
        let mut range = CompactRange::empty(0).expect("a range");
        for size in 1..=70_u64 {
            let leaf = leaf_hash(&size.to_be_bytes());
            tree.push(leaf);
            range.push(leaf).expect("below the limit");
            assert_eq!(Some(tree.at(size).root), range.root());
            assert_eq!(tree.recomputed_root(), range.root());
            for index in 0..size {
                let leaf = tree.leaf(index).expect("a leaf");
                verify_inclusion(index, &leaf, &tree.inclusion(index, size), &tree.at(size))
                    .expect("inclusion");
            }
            for old in 0..=size {
                verify_consistency(&tree.at(old), &tree.at(size), &tree.consistency(old, size))
                    .expect("consistency");
            }
        }
    }

    #[test]
    fn tiles_have_what_the_tree_has() {
        let mut tree = FullTree::default();
        (0..600_u64).for_each(|index| tree.push(leaf_hash(&index.to_be_bytes())));
        assert_eq!(tree.tile(0, 2, 88).map(<[_]>::len), Some(88));
        assert_eq!(tree.tile(0, 2, 89), None);
        assert_eq!(tree.tile(1, 0, 2).map(|tile| tile[1]), Some(tree.root(256, 512)));
        assert_eq!(tree.tile(1, 0, 3), None);
        assert_eq!(tree.tile(2, 0, 1), None);
        assert_eq!(tree.tile(0, u64::MAX, 1), None);
    }
}
