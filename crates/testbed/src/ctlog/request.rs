//! What is asked of a log, read from path and query.

use tamis_ct_log::merkle::{Hash, TILE_WIDTH, TREE_SIZE_MAX};

use super::options::LogKind;
use super::report::RequestKind;

/// A request below a log's prefix.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Sth,
    Entries {
        start: u64,
        end: u64,
    },
    Consistency {
        first: u64,
        second: u64,
    },
    Proof {
        hash: Hash,
        tree_size: u64,
    },
    EntryAndProof {
        index: u64,
        tree_size: u64,
    },
    Roots,
    Checkpoint,
    Tile(Tile),
    Issuer([u8; 32]),
    Metadata,
    /// The path is known and what is behind it makes no sense.
    Malformed(RequestKind),
    /// The log has no such thing.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) of: TileOf,
    pub(super) index: u64,
    /// 256 for a full one.
    pub(super) width: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TileOf {
    Hashes(u8),
    Entries,
    Names,
}

impl Tile {
    pub(super) fn level(self) -> u8 {
        match self.of {
            TileOf::Hashes(level) => level,
            TileOf::Entries | TileOf::Names => 0,
        }
    }

    pub(super) fn is_partial(self) -> bool {
        self.width < TILE_WIDTH
    }
}

impl Asked {
    /// `path` is what follows the log's name, without a slash before it.
    pub(super) fn read(kind: LogKind, path: &str, query: &str) -> Self {
        match kind {
            LogKind::Rfc6962 => rfc6962(path, query),
            LogKind::Static => match path.split_once('/') {
                Some(("log", "ct/v1/get-roots")) => Self::Roots,
                Some(("mon", path)) => monitoring(path),
                _ => Self::Unknown,
            },
            LogKind::Hybrid => match (rfc6962(path, query), monitoring(path)) {
                (Self::Unknown, Self::Tile(tile)) if tile.of != TileOf::Entries => Self::Unknown,
                (Self::Unknown, Self::Checkpoint) => Self::Unknown,
                (Self::Unknown, asked) => asked,
                (asked, _) => asked,
            },
        }
    }

    pub(super) fn kind(&self) -> RequestKind {
        match self {
            Self::Sth => RequestKind::Sth,
            Self::Entries { .. } => RequestKind::Entries,
            Self::Consistency { .. } => RequestKind::Consistency,
            Self::Proof { .. } => RequestKind::Proof,
            Self::EntryAndProof { .. } => RequestKind::EntryAndProof,
            Self::Roots => RequestKind::Roots,
            Self::Checkpoint => RequestKind::Checkpoint,
            Self::Tile(tile) => match (tile.of, tile.is_partial()) {
                (TileOf::Hashes(_), false) => RequestKind::LevelTile,
                (TileOf::Hashes(_), true) => RequestKind::PartialLevelTile,
                (TileOf::Entries, false) => RequestKind::DataTile,
                (TileOf::Entries, true) => RequestKind::PartialDataTile,
                (TileOf::Names, false) => RequestKind::NamesTile,
                (TileOf::Names, true) => RequestKind::PartialNamesTile,
            },
            Self::Issuer(_) => RequestKind::Issuer,
            Self::Metadata => RequestKind::Metadata,
            Self::Malformed(kind) => *kind,
            Self::Unknown => RequestKind::Other,
        }
    }
}

fn rfc6962(path: &str, query: &str) -> Asked {
    let number = |name| parameter(query, name)?.parse::<u64>().ok();
    match path {
        "ct/v1/get-sth" => Asked::Sth,
        "ct/v1/get-roots" => Asked::Roots,
        "ct/v1/get-entries" => match (number("start"), number("end")) {
            (Some(start), Some(end)) if start <= end => Asked::Entries { start, end },
            _ => Asked::Malformed(RequestKind::Entries),
        },
        "ct/v1/get-sth-consistency" => match (number("first"), number("second")) {
            (Some(first), Some(second)) if first <= second => Asked::Consistency { first, second },
            _ => Asked::Malformed(RequestKind::Consistency),
        },
        "ct/v1/get-proof-by-hash" => {
            let hash = parameter(query, "hash").and_then(|hash| Hash::from_base64(&hash));
            match (hash, number("tree_size")) {
                (Some(hash), Some(tree_size)) => Asked::Proof { hash, tree_size },
                _ => Asked::Malformed(RequestKind::Proof),
            }
        }
        "ct/v1/get-entry-and-proof" => match (number("leaf_index"), number("tree_size")) {
            (Some(index), Some(tree_size)) => Asked::EntryAndProof { index, tree_size },
            _ => Asked::Malformed(RequestKind::EntryAndProof),
        },
        _ => Asked::Unknown,
    }
}

fn monitoring(path: &str) -> Asked {
    match path {
        "checkpoint" => return Asked::Checkpoint,
        "log.v3.json" => return Asked::Metadata,
        _ => {}
    }
    if let Some(name) = path.strip_prefix("issuer/") {
        return fingerprint(name).map_or(Asked::Malformed(RequestKind::Issuer), Asked::Issuer);
    }
    let tile = path.strip_prefix("tile/").and_then(tile);
    tile.map_or(Asked::Unknown, Asked::Tile)
}

/// `0/x001/234.p/56` and the like.
fn tile(path: &str) -> Option<Tile> {
    let (level, place) = path.split_once('/')?;
    let of = match level {
        "data" => TileOf::Entries,
        "names" => TileOf::Names,
        level => TileOf::Hashes(plain_number(level).filter(|level| *level <= 5)? as u8),
    };
    let (place, width) = match place.split_once(".p/") {
        Some((place, width)) => {
            let width = plain_number(width).filter(|width| (1..256).contains(width))?;
            (place, width as u16)
        }
        None => (place, TILE_WIDTH),
    };
    let mut index = 0_u64;
    let mut groups = place.split('/').peekable();
    while let Some(group) = groups.next() {
        let digits = match groups.peek() {
            Some(_) => group.strip_prefix('x')?,
            None => group,
        };
        let is_group = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let value: u64 = digits.parse().ok().filter(|_| is_group)?;
        index = index.checked_mul(1_000)?.checked_add(value)?;
    }
    // One way to write each number: no group of zeros in front.
    let is_short = !place.starts_with("x000/");
    (is_short && index < TREE_SIZE_MAX).then_some(Tile { of, index, width })
}

fn plain_number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = text == "0" || !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain && is_short)
}

fn fingerprint(name: &str) -> Option<[u8; 32]> {
    let digits = name.as_bytes();
    let is_hex = digits.len() == 64 && digits.iter().all(|digit| b"0123456789abcdef".contains(digit));
    let mut out = [0; 32];
    for (byte, pair) in out
        .iter_mut()
        .zip(name.get(..64).filter(|_| is_hex)?.as_bytes().chunks(2))
    {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

/// The value of a query's parameter, its escapes undone.
pub(super) fn parameter(query: &str, name: &str) -> Option<String> {
    let pair = query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key == name).then_some(value)
    })?;
    let mut bytes = pair.bytes();
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_ct_log::merkle::TileId;
    use tamis_ct_log::paths;

    /// Paths as `ct-log` writes them are read back.
    #[test]
    fn paths_are_those_of_ct_log() {
        let read = |path: String| {
            let (path, query) = path.split_once('?').map_or((&*path, ""), |parts| parts);
            Asked::read(LogKind::Rfc6962, path, query)
        };
        assert_eq!(
            read(paths::entries(256, 511)),
            Asked::Entries { start: 256, end: 511 }
        );
        assert_eq!(
            read(paths::consistency(3, 7)),
            Asked::Consistency { first: 3, second: 7 }
        );
        let hash = Hash([0xff; 32]);
        assert_eq!(
            read(paths::proof_by_hash(&hash, 9)),
            Asked::Proof { hash, tree_size: 9 }
        );
        let read = |path: &str| Asked::read(LogKind::Static, &format!("mon/{path}"), "");
        for (level, index, size) in [
            (0, 0, 5),
            (0, 1_234_067, 1 << 40),
            (3, 1, 1 << 40),
            (0, 273, 70_000),
        ] {
            let id = TileId::in_tree(level, index, size).expect("a tile");
            let (of, width) = (TileOf::Hashes(level), id.width());
            assert_eq!(read(&paths::tile(&id)), Asked::Tile(Tile { of, index, width }));
            let of = TileOf::Entries;
            assert_eq!(
                read(&paths::data_tile(&id)),
                Asked::Tile(Tile { of, index, width })
            );
        }
        assert_eq!(read(&paths::issuer(&[0xab; 32])), Asked::Issuer([0xab; 32]));
    }

    #[test]
    fn other_spellings_are_refused() {
        let bad = [
            "tile/0/0",
            "tile/0/0000",
            "tile/00/000",
            "tile/6/000",
            "tile/0/x000/001",
            "tile/0/001/002",
            "tile/0/000.p/0",
            "tile/0/000.p/256",
            "tile/0/000.p/07",
            "tile/8/0/000",
            "tile/data/",
            "tile/0/x001",
        ];
        for path in bad {
            assert_eq!(
                Asked::read(LogKind::Static, &format!("mon/{path}"), ""),
                Asked::Unknown,
                "{path}"
            );
        }
        assert_eq!(Asked::read(LogKind::Static, "checkpoint", ""), Asked::Unknown);
        assert_eq!(Asked::read(LogKind::Hybrid, "checkpoint", ""), Asked::Unknown);
        assert_eq!(Asked::read(LogKind::Hybrid, "tile/0/000", ""), Asked::Unknown);
        assert!(matches!(
            Asked::read(LogKind::Hybrid, "tile/data/000", ""),
            Asked::Tile(_)
        ));
        assert_eq!(
            Asked::read(LogKind::Rfc6962, "ct/v1/get-entries", "start=5&end=4"),
            Asked::Malformed(RequestKind::Entries)
        );
    }
}
