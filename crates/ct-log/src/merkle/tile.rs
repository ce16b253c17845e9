//! Tiles of a static log: runs of up to 256 hashes of every eighth level of the tree.
//!
//! # Format
//! A full tile is 256 hashes of 32 bytes; a partial one, at the right edge of the tree, fewer. Each hash
//! of a tile of level n + 1 is the root over a full tile of level n. See
//! <https://c2sp.org/static-ct-api>.
//!
//! # Limits
//! Six levels, hence 2^48 leaves; a tile has at most 8,192 bytes.

use std::fmt;

use super::{CompactRange, Hash, RangeError, TREE_SIZE_MAX, Tree};

/// Of a full tile, in hashes.
pub const TILE_WIDTH: u16 = 256;
const LEVEL_MAX: u8 = 5;
const LEVEL_BITS: u8 = 8;

/// Which tile, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TileId {
    level: u8,
    index: u64,
    width: u16,
}

impl TileId {
    /// The tile of this level and index as a tree of `tree_size` leaves has it; `None` where that tree
    /// has no such tile, or an empty one, which logs do not serve.
    ///
    /// Ask a log only for tiles that a verified head implies: it makes partial ones for those alone.
    #[must_use]
    pub fn in_tree(level: u8, index: u64, tree_size: u64) -> Option<Self> {
        if level > LEVEL_MAX || tree_size > TREE_SIZE_MAX {
            return None;
        }
        let hashes = tree_size >> (level * LEVEL_BITS);
        let before = index.checked_mul(TILE_WIDTH.into())?;
        let rest = hashes.checked_sub(before).filter(|rest| *rest > 0)?;
        let width = u16::try_from(rest).unwrap_or(TILE_WIDTH).min(TILE_WIDTH);
        Some(Self { level, index, width })
    }

    /// 0 for leaf hashes, up to 5.
    #[must_use]
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Counted from 0 within the level.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// How many hashes it has: 256 if it is full, otherwise from 1.
    #[must_use]
    pub fn width(&self) -> u16 {
        self.width
    }

    /// Whether more may be added to it.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.width < TILE_WIDTH
    }

    /// The same tile when it is full: what to ask for where the partial one is gone.
    #[must_use]
    pub fn full(&self) -> Self {
        Self {
            width: TILE_WIDTH,
            ..*self
        }
    }

    fn is(&self, level: u8, index: u64) -> bool {
        (self.level, self.index) == (level, index)
    }
}

/// Its path below the log's monitoring prefix.
impl fmt::Display for TileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::paths::tile(self))
    }
}

/// The hashes of one tile, as a log sent them: nothing about them is proved yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashTile {
    id: TileId,
    hashes: Vec<Hash>,
}

/// Why tiles do not lead to what they should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TileError {
    /// The body has another length than the tile.
    #[error("{tile} has {got} bytes, not {expected}; fetch it again, and look whether it came compressed")]
    Length {
        /// Which tile.
        tile: TileId,
        /// 32 for each hash.
        expected: usize,
        /// Of the body.
        got: usize,
    },
    /// A tile is not among those given.
    #[error("{tile} is needed and was not given")]
    Missing {
        /// Which tile.
        tile: TileId,
    },
    /// The range ends outside the tree.
    #[error("leaves up to {end} are not in a tree of {size} leaves")]
    OutsideTree {
        /// Where the range would end.
        end: u64,
        /// Of the tree.
        size: u64,
    },
    /// The tiles at the right edge give another root than the signed one.
    #[error(
        "the tiles at the right edge give the root {computed}, the head of {size} leaves says {expected}"
    )]
    Root {
        /// Of the tree.
        size: u64,
        /// What its head says.
        expected: Hash,
        /// What the tiles give.
        computed: Hash,
    },
    /// A full tile hashes to something else than its parent says.
    #[error("{tile} hashes to {computed}, the tile above it says {expected}")]
    Parent {
        /// The lower tile.
        tile: TileId,
        /// What the tile above says.
        expected: Hash,
        /// What it hashes to.
        computed: Hash,
    },
    /// The tiles do not lie side by side.
    #[error(transparent)]
    Range(#[from] RangeError),
}

impl HashTile {
    /// Reads the body that a log sent for `id`. A partial tile may also come as the full one, which a
    /// log may have put in its place.
    ///
    /// # Errors
    /// [`TileError::Length`].
    pub fn parse(id: TileId, body: &[u8]) -> Result<Self, TileError> {
        let (hashes, rest) = body.as_chunks::<32>();
        let whole = rest.is_empty() && [id.width, TILE_WIDTH].map(usize::from).contains(&hashes.len());
        if !whole {
            return Err(TileError::Length {
                tile: id,
                expected: usize::from(id.width) * 32,
                got: body.len(),
            });
        }
        let hashes = hashes.iter().take(id.width.into()).copied().map(Hash).collect();
        Ok(Self { id, hashes })
    }

    /// Which tile it is.
    #[must_use]
    pub fn id(&self) -> TileId {
        self.id
    }

    /// Its hashes, as many as its width says.
    #[must_use]
    pub fn hashes(&self) -> &[Hash] {
        &self.hashes
    }

    fn root(&self) -> Result<Hash, RangeError> {
        let mut range = CompactRange::empty(0)?;
        for hash in &self.hashes {
            range.push(*hash)?;
        }
        Ok(range.root().unwrap_or(Hash::EMPTY_ROOT))
    }
}

/// The tiles from which [`range_from_tiles`] proves the range [0, `end`) of a tree of `tree_size`
/// leaves: the right edge of the tree, and the way up from leaf `end`. At most two a level.
///
/// # Errors
/// [`TileError::OutsideTree`].
pub fn tiles_for_range(end: u64, tree_size: u64) -> Result<Vec<TileId>, TileError> {
    if end > tree_size || tree_size > TREE_SIZE_MAX {
        return Err(TileError::OutsideTree { end, size: tree_size });
    }
    let mut tiles = Vec::new();
    // Below the first level that the range has hashes of, nothing needs a way up.
    let mut is_above = false;
    for level in 0..=LEVEL_MAX {
        let edge = place(tree_size, level);
        let way = place(end, level);
        is_above |= way.width > 0;
        if is_above && way.index < edge.index {
            tiles.extend(TileId::in_tree(level, way.index, tree_size));
        }
        tiles.extend(TileId::in_tree(level, edge.index, tree_size));
    }
    Ok(tiles)
}

/// The range [0, `end`) of `tree`, proved by tiles: those at the right edge give the root of `tree`,
/// and each other one is what the tile above it says. `tiles` holds what [`tiles_for_range`] asked for,
/// in any order.
///
/// # Errors
/// [`TileError`]; nothing is proved then.
pub fn range_from_tiles(end: u64, tree: &Tree, tiles: &[HashTile]) -> Result<CompactRange, TileError> {
    let needed = tiles_for_range(end, tree.size)?;
    let find = |id: &TileId| {
        let found = tiles.iter().find(|tile| tile.id == *id);
        found.ok_or(TileError::Missing { tile: *id })
    };
    let mut edge = CompactRange::empty(0)?;
    let is_edge = |id: &TileId| id.index == place(tree.size, id.level).index;
    for id in needed.iter().rev().filter(|id| is_edge(id)) {
        for hash in &find(id)?.hashes {
            edge.push_subtree(id.level * LEVEL_BITS, *hash)?;
        }
    }
    let computed = edge.root().unwrap_or(Hash::EMPTY_ROOT);
    if computed != tree.root {
        return Err(TileError::Root {
            size: tree.size,
            expected: tree.root,
            computed,
        });
    }
    for id in needed.iter().rev().filter(|id| !is_edge(id)) {
        check_parent(find(id)?, &needed, find)?;
    }
    let mut range = CompactRange::empty(0)?;
    for level in (0..=LEVEL_MAX).rev() {
        let Place { index, width } = place(end, level);
        let Some(id) = needed.iter().find(|id| width > 0 && id.is(level, index)) else {
            continue;
        };
        for hash in find(id)?.hashes.iter().take(width.into()) {
            range.push_subtree(level * LEVEL_BITS, *hash)?;
        }
    }
    Ok(range)
}

/// Compares a full tile with the hash that the tile above holds of it.
fn check_parent<'a>(
    tile: &HashTile,
    needed: &[TileId],
    find: impl Fn(&TileId) -> Result<&'a HashTile, TileError>,
) -> Result<(), TileError> {
    let width = u64::from(TILE_WIDTH);
    let (above, place) = (tile.id.index / width, tile.id.index % width);
    let missing = TileError::Missing { tile: tile.id };
    let parent = needed.iter().find(|id| id.is(tile.id.level + 1, above));
    let parent = find(parent.ok_or(missing.clone())?)?;
    let position = usize::try_from(place).unwrap_or(usize::MAX);
    let expected = *parent.hashes.get(position).ok_or(missing)?;
    let computed = tile.root()?;
    if computed == expected {
        Ok(())
    } else {
        Err(TileError::Parent {
            tile: tile.id,
            expected,
            computed,
        })
    }
}

/// Where a tree of some size ends within a level.
struct Place {
    index: u64,
    /// Of the tile that it ends in; 0 where it ends between two.
    width: u16,
}

fn place(size: u64, level: u8) -> Place {
    let hashes = size >> (level * LEVEL_BITS);
    let width = u64::from(TILE_WIDTH);
    Place {
        index: hashes / width,
        width: u16::try_from(hashes % width).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::Naive;
    use super::*;

    /// The tiles of a tree as the definition has them.
    fn tiles(ids: &[TileId], naive: &Naive) -> Vec<HashTile> {
        ids.iter()
            .map(|id| {
                let span = 256usize.pow(id.level.into());
                let first = id.index as usize * 256 * span;
                let hashes = (0..usize::from(id.width))
                    .map(|nth| naive.root(first + nth * span, first + (nth + 1) * span));
                let body: Vec<u8> = hashes.flat_map(|hash| hash.0).collect();
                HashTile::parse(*id, &body).unwrap()
            })
            .collect()
    }

    #[test]
    fn widths_are_those_of_the_specification() {
        let widths = |size| {
            let ids = tiles_for_range(size, size).unwrap();
            ids.iter()
                .map(|id| (id.level, id.index, id.width))
                .collect::<Vec<_>>()
        };
        assert_eq!(widths(70_000), [(0, 273, 112), (1, 1, 17), (2, 0, 1)]);
        assert_eq!(widths(256), [(1, 0, 1)]);
        assert_eq!(widths(0), []);
        assert_eq!(widths(255), [(0, 0, 255)]);
        assert_eq!(TileId::in_tree(0, 272, 70_000).map(|id| id.width), Some(256));
        assert_eq!(TileId::in_tree(0, 274, 70_000), None);
        assert_eq!(TileId::in_tree(0, 1, 256), None);
        assert_eq!(TileId::in_tree(6, 0, 1 << 48), None);
        assert_eq!(TileId::in_tree(5, 0, 1 << 48).map(|id| id.width), Some(256));
        assert_eq!(TileId::in_tree(0, u64::MAX, 70_000), None);
        assert!(tiles_for_range(3, 2).is_err());
    }

    #[test]
    fn ranges_from_tiles_equal_those_from_leaves() {
        let naive = Naive::new(70_000);
        for size in [1, 2, 255, 256, 257, 512, 1_000, 65_535, 65_536, 65_537, 70_000] {
            let tree = naive.tree(size as usize);
            let mut range = CompactRange::empty(0).unwrap();
            let is_telling = |end: &u64| end.is_multiple_of(4_093) || (end % 256 < 2 && end % 65_536 < 600);
            let mut ends: Vec<u64> = (0..=size).filter(is_telling).collect();
            ends.push(size);
            for end in ends {
                while range.end() < end {
                    range.push(naive.leaf(range.end() as usize)).unwrap();
                }
                let ids = tiles_for_range(end, size).unwrap();
                assert!(ids.len() <= 6);
                let given = tiles(&ids, &naive);
                assert_eq!(
                    range_from_tiles(end, &tree, &given).as_ref(),
                    Ok(&range),
                    "{end} of {size}"
                );
            }
        }
    }

    #[test]
    fn a_changed_or_missing_tile_is_told() {
        let naive = Naive::new(70_000);
        let tree = naive.tree(70_000);
        let ids = tiles_for_range(1_000, 70_000).unwrap();
        let good = tiles(&ids, &naive);
        assert_eq!(ids.len(), 5, "{ids:?}");
        for at in 0..good.len() {
            for nth in [0, good[at].hashes.len() / 2, good[at].hashes.len() - 1] {
                let mut bad = good.clone();
                bad[at].hashes[nth].0[31] ^= 0x80;
                let error = range_from_tiles(1_000, &tree, &bad).unwrap_err();
                assert!(
                    matches!(error, TileError::Root { .. } | TileError::Parent { .. }),
                    "{error}"
                );
            }
            let mut bad = good.clone();
            let tile = bad.remove(at).id;
            assert_eq!(
                range_from_tiles(1_000, &tree, &bad),
                Err(TileError::Missing { tile })
            );
        }
    }

    #[test]
    fn a_full_tile_stands_in_for_a_partial_one() {
        let naive = Naive::new(256);
        let body: Vec<u8> = (0..256).flat_map(|index| naive.leaf(index).0).collect();
        let id = TileId::in_tree(0, 0, 5).unwrap();
        assert!(id.is_partial() && !id.full().is_partial());
        let tile = HashTile::parse(id, &body).unwrap();
        assert_eq!(tile, HashTile::parse(id, &body[..160]).unwrap());
        assert_eq!((tile.hashes().len(), tile.id().width()), (5, 5));
        for length in [0, 32, 159, 161, 192, 8_191] {
            let error = HashTile::parse(id, &body[..length]).unwrap_err();
            assert!(error.to_string().starts_with("tile/0/000.p/5 has "), "{error}");
        }
        assert!(HashTile::parse(id.full(), &body[..160]).is_err());
    }
}
