//! The Merkle tree of a log: hashes, compact ranges, proofs, and tiles.
//!
//! The tree is that of RFC 6962 section 2.1 over SHA-256. Nothing here is trusted before it meets the
//! root of a head whose signature was checked ([`crate::head`]).
//!
//! # Limits
//! [`TREE_SIZE_MAX`] leaves, so no sum of two sizes overflows; [`PATH_HASHES_MAX`] hashes a proof.

pub mod format;
mod proof;
mod range;
mod tile;

use std::fmt;

use sha2::{Digest as _, Sha256};

pub use self::proof::{ProofError, range_left_of, verify_consistency, verify_inclusion};
pub use self::range::{CompactRange, RangeError};
pub use self::tile::{HashTile, TILE_WIDTH, TileError, TileId, range_from_tiles, tiles_for_range};

/// Of a tree. The index in a static log's extension has 40 bits, its tile levels end at 2^48.
pub const TREE_SIZE_MAX: u64 = 1 << 48;

/// Of a proof: a consistency proof between two trees of the largest size has less than this.
pub const PATH_HASHES_MAX: usize = 128;

/// One hash of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The root of a tree without leaves: SHA-256 of nothing.
    pub const EMPTY_ROOT: Self = Self([
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27,
        0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
    ]);

    /// Reads padded base64 of exactly 32 bytes, the form in which logs write hashes.
    #[must_use]
    pub fn from_base64(text: &str) -> Option<Self> {
        let bytes = crate::base64::decode(text, 32)?;
        bytes.try_into().ok().map(Self)
    }
}

/// Padded base64, the form in which logs write hashes.
impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base64_simd::STANDARD.encode_to_string(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A tree as a head names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Of leaves.
    pub size: u64,
    /// The Merkle Tree Hash over all of them.
    pub root: Hash,
}

/// The hash of a leaf, given as the bytes of its `MerkleTreeLeaf`: SHA-256 of a zero byte and these.
#[must_use]
pub fn leaf_hash(merkle_tree_leaf: &[u8]) -> Hash {
    Hash(
        Sha256::new()
            .chain_update([0])
            .chain_update(merkle_tree_leaf)
            .finalize()
            .into(),
    )
}

/// The hash of an inner node: SHA-256 of a one byte and both children.
#[must_use]
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    Hash(
        Sha256::new()
            .chain_update([1])
            .chain_update(left.0)
            .chain_update(right.0)
            .finalize()
            .into(),
    )
}

/// The tree written down as RFC 6962 section 2.1 defines it, to compare the rest with.
#[cfg(test)]
pub(crate) mod naive {
    use std::cell::RefCell;
    use std::collections::HashMap;

    use super::*;

    pub(crate) struct Naive {
        leaves: Vec<Hash>,
        /// Of [begin, end), so that all small trees can be compared in a second.
        roots: RefCell<HashMap<(usize, usize), Hash>>,
    }

    /// The largest power of two smaller than `count`.
    fn split(count: usize) -> usize {
        count.next_power_of_two() / 2
    }

    impl Naive {
        pub(crate) fn new(count: usize) -> Self {
            let leaves = (0..count).map(|index| leaf_hash(&(index as u64).to_be_bytes()));
            Self::of(leaves.collect())
        }

        pub(crate) fn of(leaves: Vec<Hash>) -> Self {
            let roots = RefCell::default();
            Self { leaves, roots }
        }

        pub(crate) fn leaf(&self, index: usize) -> Hash {
            self.leaves[index]
        }

        pub(crate) fn tree(&self, size: usize) -> Tree {
            Tree {
                size: size as u64,
                root: self.root(0, size),
            }
        }

        /// `MTH(D[begin:end])`.
        pub(crate) fn root(&self, begin: usize, end: usize) -> Hash {
            match end - begin {
                0 => return Hash::EMPTY_ROOT,
                1 => return self.leaves[begin],
                _ => {}
            }
            if let Some(root) = self.roots.borrow().get(&(begin, end)) {
                return *root;
            }
            let middle = begin + split(end - begin);
            let root = node_hash(&self.root(begin, middle), &self.root(middle, end));
            self.roots.borrow_mut().insert((begin, end), root);
            root
        }

        /// `PATH` of section 2.1.1.
        pub(crate) fn path(&self, index: usize, size: usize) -> Vec<Hash> {
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

        /// `PROOF` of section 2.1.2.
        pub(crate) fn consistency(&self, old: usize, size: usize) -> Vec<Hash> {
            let (mut begin, mut end) = (0, size);
            let mut path = Vec::new();
            while old != 0 && old != end {
                let middle = begin + split(end - begin);
                if old <= middle {
                    path.push(self.root(middle, end));
                    end = middle;
                } else {
                    path.push(self.root(begin, middle));
                    begin = middle;
                }
            }
            if old != 0 && begin != 0 {
                path.push(self.root(begin, end));
            }
            path.reverse();
            path
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_show_and_read_as_base64() {
        let text = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        assert_eq!(Hash::EMPTY_ROOT.to_string(), text);
        assert_eq!(Hash::from_base64(text), Some(Hash::EMPTY_ROOT));
        assert_eq!(Hash(Sha256::digest(b"").into()), Hash::EMPTY_ROOT);
        let others = [
            "",
            &text[..43],
            &format!(" {text}"),
            &format!("{text}{text}"),
            "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=",
        ];
        for other in others {
            assert_eq!(Hash::from_base64(other), None, "{other}");
        }
    }

    /// The eight leaves and roots that the first implementations of RFC 6962 were tested with.
    #[test]
    fn known_roots() {
        let inputs: [&[u8]; 8] = [
            b"",
            b"\x00",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let roots = [
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        let leaves: Vec<Hash> = inputs.iter().map(|input| leaf_hash(input)).collect();
        let naive = naive::Naive::of(leaves.clone());
        let mut range = CompactRange::empty(0).unwrap();
        for (count, root) in (1..).zip(roots) {
            range.push(leaves[count - 1]).unwrap();
            let hex = |hash: Hash| {
                hash.0
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect::<String>()
            };
            assert_eq!(hex(naive.root(0, count)), root);
            assert_eq!(hex(range.root().unwrap()), root);
        }
    }
}
