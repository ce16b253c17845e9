//! Compact ranges as bytes, to be kept between runs.
//!
//! # Format
//! `docs/formats/compact-range.md`.
//!
//! # Limits
//! [`ENCODED_BYTES_MAX`]; nothing is allocated before the length was found right.

use xxhash_rust::xxh3::xxh3_64;

use super::{CompactRange, Hash, RangeError};

const MAGIC: [u8; 8] = *b"TAMISRNG";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 8 + 4 + 8 + 8;
const CHECKSUM_BYTES: usize = 8;

/// Of an encoded range: a range over at most 2^48 leaves has at most 94 nodes.
pub const ENCODED_BYTES_MAX: usize = HEADER_BYTES + 94 * 32 + CHECKSUM_BYTES;

/// Why bytes are no compact range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// They start with something else.
    #[error("these bytes are no compact range: the magic is missing")]
    WrongMagic,
    /// A newer program wrote them.
    #[error("the compact range has version {found}, this program reads up to {VERSION}; use a newer one")]
    FutureVersion {
        /// What stands there.
        found: u32,
    },
    /// They were damaged or cut off.
    #[error("the compact range is damaged at byte {offset}; verify the log's range anew")]
    Corrupt {
        /// Where it shows.
        offset: usize,
    },
    /// The checksum holds and the content is impossible.
    #[error("the compact range is impossible; verify the log's range anew")]
    Range(#[from] RangeError),
}

/// The bytes of a range.
#[must_use]
pub fn encode(range: &CompactRange) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + range.nodes().len() * 32 + CHECKSUM_BYTES);
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(range.begin().to_le_bytes());
    bytes.extend(range.end().to_le_bytes());
    bytes.extend(range.nodes().iter().flat_map(|node| node.0));
    bytes.extend(xxh3_64(&bytes).to_le_bytes());
    bytes
}

/// The range of these bytes, all of which must be its own.
///
/// # Errors
/// [`FormatError`].
pub fn decode(bytes: &[u8]) -> Result<CompactRange, FormatError> {
    let corrupt = |offset| FormatError::Corrupt { offset };
    let Some((magic, rest)) = bytes.split_first_chunk() else {
        return Err(corrupt(bytes.len()));
    };
    if *magic != MAGIC {
        return Err(FormatError::WrongMagic);
    }
    let cut = corrupt(bytes.len());
    let (version, rest) = rest.split_first_chunk().ok_or(cut.clone())?;
    match u32::from_le_bytes(*version) {
        VERSION => {}
        0 => return Err(corrupt(MAGIC.len())),
        found => return Err(FormatError::FutureVersion { found }),
    }
    if bytes.len() > ENCODED_BYTES_MAX {
        return Err(corrupt(ENCODED_BYTES_MAX));
    }
    let (begin, rest) = rest.split_first_chunk().ok_or(cut.clone())?;
    let (end, rest) = rest.split_first_chunk().ok_or(cut.clone())?;
    let (nodes, checksum) = rest.split_last_chunk().ok_or(cut)?;
    let covered = bytes.len() - CHECKSUM_BYTES;
    let sum = bytes.get(..covered).map(xxh3_64);
    if sum != Some(u64::from_le_bytes(*checksum)) {
        return Err(corrupt(covered));
    }
    let (begin, end) = (u64::from_le_bytes(*begin), u64::from_le_bytes(*end));
    let (nodes, odd) = nodes.as_chunks::<32>();
    if !odd.is_empty() {
        return Err(corrupt(covered - odd.len()));
    }
    let nodes = nodes.iter().copied().map(Hash).collect();
    Ok(CompactRange::from_nodes(begin, end, nodes)?)
}

const _: () = assert!(ENCODED_BYTES_MAX < 4_096, "a range fits into a page");

#[cfg(test)]
mod tests {
    use super::super::TREE_SIZE_MAX;
    use super::super::naive::Naive;
    use super::super::range::levels;
    use super::*;

    fn range(begin: u64, count: usize) -> CompactRange {
        let mut range = CompactRange::empty(begin).unwrap();
        let naive = Naive::new(count);
        for index in 0..count {
            range.push(naive.leaf(index)).unwrap();
        }
        range
    }

    #[test]
    fn round_trip() {
        for begin in [0, 1, 7, 1 << 40, TREE_SIZE_MAX - 300] {
            for count in [0, 1, 2, 3, 255, 300] {
                let range = range(begin, count);
                assert_eq!(decode(&encode(&range)), Ok(range));
            }
        }
        let most = levels(1, TREE_SIZE_MAX - 1).count();
        let worst = CompactRange::from_nodes(1, TREE_SIZE_MAX - 1, vec![Hash::EMPTY_ROOT; most]).unwrap();
        let bytes = encode(&worst);
        assert_eq!((most, bytes.len()), (94, ENCODED_BYTES_MAX));
        assert_eq!(decode(&bytes), Ok(worst));
    }

    #[test]
    fn a_flipped_bit_a_cut_and_an_added_byte_are_told() {
        let bytes = encode(&range(5, 90));
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                assert!(decode(&other).is_err(), "bit {bit} of byte {at}");
            }
            assert!(decode(&bytes[..at]).is_err(), "cut at {at}");
        }
        assert!(decode(&[bytes.as_slice(), &[0]].concat()).is_err());
        assert!(decode(&[bytes.as_slice(), &[0; 4_096]].concat()).is_err());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let bytes = encode(&range(0, 3));
        assert_eq!(decode(b""), Err(FormatError::Corrupt { offset: 0 }));
        assert_eq!(decode(b"TAMISWAL and more"), Err(FormatError::WrongMagic));
        let mut newer = bytes.clone();
        newer[8] = 2;
        assert_eq!(decode(&newer), Err(FormatError::FutureVersion { found: 2 }));
        // A checksum that holds does not make up for a range that cannot be.
        let mut impossible = bytes[..bytes.len() - 8].to_vec();
        impossible[20] = 200;
        impossible.extend(xxh3_64(&impossible).to_le_bytes());
        assert!(matches!(decode(&impossible), Err(FormatError::Range(_))));
    }

    #[test]
    fn golden_bytes_of_version_1() {
        let golden = [
            "54414d4953524e470100000003000000000000000500000000000000",
            &"11".repeat(32),
            &"22".repeat(32),
            "7b819a324cf64182",
        ];
        let range = CompactRange::from_nodes(3, 5, vec![Hash([0x11; 32]), Hash([0x22; 32])]).unwrap();
        let hex: String = encode(&range).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, golden.concat());
    }
}
