//! Any bytes are a compact range that is written back unchanged, or an error; ranges of any leaves, cut
//! anywhere, join to the same whole, and a tile of any bytes has as many hashes as it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_ct_log::merkle::format::{decode, encode};
use tamis_ct_log::merkle::{CompactRange, Hash, HashTile, TileId, Tree, range_from_tiles, tiles_for_range};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(range) = decode(bytes) {
        assert_eq!(encode(&range), bytes);
        assert_eq!(range.root().is_some(), range.begin() == 0);
    }
    let Some((numbers, rest)) = bytes.split_first_chunk::<8>() else {
        return;
    };
    let (begin, cut) = (u64::from_le_bytes(*numbers) >> 16, usize::from(numbers[0]));
    let leaves: Vec<Hash> = rest.iter().take(600).map(|byte| Hash([*byte; 32])).collect();
    if let Some(whole) = range(begin, &leaves) {
        let (left, right) = leaves.split_at(cut.min(leaves.len()));
        let mut joined = range(begin, left).expect("the whole fits");
        let right = range(joined.end(), right).expect("the whole fits");
        joined.join(&right).expect("they are adjacent");
        assert_eq!(joined, whole);
        assert_eq!(decode(&encode(&whole)), Ok(whole));
    }
    let size = u64::from_le_bytes(*numbers);
    let Ok(ids) = tiles_for_range(size / 2, size) else {
        return;
    };
    let tiles = ids.iter().filter_map(|id| tile(*id, rest)).collect::<Vec<_>>();
    let root = Hash::EMPTY_ROOT;
    assert!(range_from_tiles(size / 2, &Tree { size, root }, &tiles).is_err() || size == 0);
});

fn range(begin: u64, leaves: &[Hash]) -> Option<CompactRange> {
    let mut range = CompactRange::empty(begin).ok()?;
    for leaf in leaves {
        range.push(*leaf).ok()?;
    }
    Some(range)
}

fn tile(id: TileId, bytes: &[u8]) -> Option<HashTile> {
    let body: Vec<u8> = bytes
        .iter()
        .copied()
        .cycle()
        .take(usize::from(id.width()) * 32)
        .collect();
    let tile = HashTile::parse(id, &body).ok()?;
    assert_eq!(tile.hashes().len(), usize::from(id.width()));
    Some(tile)
}
