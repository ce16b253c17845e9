//! Where things are below the prefixes of a log, as pure functions: paths without a leading slash, to
//! be put behind a prefix by [`join`].
//!
//! A static log ([c2sp.org/static-ct-api](https://c2sp.org/static-ct-api)) is read below its *monitoring*
//! prefix; an RFC 6962 log (sections 4.3 to 4.7) below its only one.

use crate::merkle::{Hash, TileId};

/// Of a static log: its newest head.
pub const CHECKPOINT: &str = "checkpoint";

/// Of a static log: what it says about itself, in the form of an entry of the log list.
pub const LOG_METADATA: &str = "log.v3.json";

/// Of an RFC 6962 log: its newest head.
pub const SIGNED_TREE_HEAD: &str = "ct/v1/get-sth";

/// Of both kinds, though a static log serves it below its submission prefix: the accepted roots.
pub const ROOTS: &str = "ct/v1/get-roots";

/// A path behind a prefix, with one slash between them.
#[must_use]
pub fn join(prefix: &str, path: &str) -> String {
    format!("{}/{path}", prefix.trim_end_matches('/'))
}

/// A tile of hashes: `tile/1/x001/x234/067`, and `.p/17` behind it if it is partial.
#[must_use]
pub fn tile(id: &TileId) -> String {
    format!("tile/{}/{}", id.level(), place(id))
}

/// The tile of entries that belong to a tile of leaf hashes: `tile/data/000`.
#[must_use]
pub fn data_tile(id: &TileId) -> String {
    format!("tile/data/{}", place(id))
}

/// The names in these entries, as Sunlight's logs offer them beside the specification; not covered by
/// any signature, and always compressed.
#[must_use]
pub fn names_tile(id: &TileId) -> String {
    format!("tile/names/{}", place(id))
}

/// The certificate of an issuer, by its SHA-256.
#[must_use]
pub fn issuer(fingerprint: &[u8; 32]) -> String {
    let mut path = "issuer/".to_owned();
    for byte in fingerprint {
        path.push(hex_digit(byte >> 4));
        path.push(hex_digit(byte & 15));
    }
    path
}

/// Entries `first` to `last`, both included. A log may answer with fewer.
#[must_use]
pub fn entries(first: u64, last: u64) -> String {
    format!("ct/v1/get-entries?start={first}&end={last}")
}

/// The proof that the tree of `old_size` leaves is the start of that of `new_size`.
#[must_use]
pub fn consistency(old_size: u64, new_size: u64) -> String {
    format!("ct/v1/get-sth-consistency?first={old_size}&second={new_size}")
}

/// The proof that the leaf with this hash is in the tree of `tree_size` leaves.
#[must_use]
pub fn proof_by_hash(leaf: &Hash, tree_size: u64) -> String {
    let hash = leaf.to_string();
    // A plus sign in a query reads as a space, so what base64 adds to the alphabet is escaped.
    let hash = hash.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    format!("ct/v1/get-proof-by-hash?hash={hash}&tree_size={tree_size}")
}

fn hex_digit(value: u8) -> char {
    char::from_digit(value.into(), 16).unwrap_or('0')
}

/// The index in groups of three digits, all but the last behind an `x`, and the width of a partial tile.
fn place(id: &TileId) -> String {
    let mut index = id.index();
    let mut path = format!("{:03}", index % 1_000);
    while index >= 1_000 {
        index /= 1_000;
        path = format!("x{:03}/{path}", index % 1_000);
    }
    if id.is_partial() {
        path = format!("{path}.p/{}", id.width());
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(level: u8, index: u64, tree_size: u64, expected: &str) {
        let id = TileId::in_tree(level, index, tree_size).unwrap();
        assert_eq!(tile(&id), expected);
        assert_eq!(id.to_string(), expected);
    }

    #[test]
    fn tiles() {
        let size = 1 << 40;
        check(0, 0, size, "tile/0/000");
        check(0, 999, size, "tile/0/999");
        check(0, 1_000, size, "tile/0/x001/000");
        check(3, 1, size, "tile/3/001");
        check(1, 1_234_067, size, "tile/1/x001/x234/067");
        check(0, 1_000_000_000, size, "tile/0/x001/x000/x000/000");
        check(0, 273, 70_000, "tile/0/273.p/112");
        check(2, 0, 70_000, "tile/2/000.p/1");
        let id = TileId::in_tree(0, 1_234, 1_234 * 256 + 5).unwrap();
        assert_eq!(data_tile(&id), "tile/data/x001/234.p/5");
        assert_eq!(data_tile(&id.full()), "tile/data/x001/234");
        assert_eq!(names_tile(&id.full()), "tile/names/x001/234");
    }

    #[test]
    fn the_rest() {
        assert_eq!(
            join("https://a.example/", CHECKPOINT),
            "https://a.example/checkpoint"
        );
        assert_eq!(
            join("https://a.example/2026h1", SIGNED_TREE_HEAD),
            "https://a.example/2026h1/ct/v1/get-sth"
        );
        assert_eq!(issuer(&[0x0a; 32]), format!("issuer/{}", "0a".repeat(32)));
        assert_eq!(entries(256, 511), "ct/v1/get-entries?start=256&end=511");
        assert_eq!(consistency(3, 7), "ct/v1/get-sth-consistency?first=3&second=7");
        // As recorded from a real log, where the hash has each of the three characters.
        let leaf = Hash::from_base64("nCs3mfIydh9x4CKyQ+2xtmpxmFggA5MLymHwNQSlLg8=").unwrap();
        let leaf_with_slash = Hash([0xff; 32]);
        assert_eq!(
            proof_by_hash(&leaf, 9),
            "ct/v1/get-proof-by-hash?hash=nCs3mfIydh9x4CKyQ%2B2xtmpxmFggA5MLymHwNQSlLg8%3D&tree_size=9"
        );
        assert!(proof_by_hash(&leaf_with_slash, 9).contains("hash=%2F%2F"));
    }
}
