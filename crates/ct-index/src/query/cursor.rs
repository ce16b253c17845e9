//! The opaque cursor of a query: range number, key and issuance of the last row passed.
//!
//! # Format
//! URL-safe base64 of `version u8 | range u8 | issuance u64 big-endian | key`.

use crate::coding::Reader;
use crate::key::KeyRange;
use crate::{Error, Result};

const VERSION: u8 = 1;

/// A place between two rows of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) range: usize,
    pub(crate) key: Vec<u8>,
    pub(crate) issuance: u64,
}

impl Place {
    pub(crate) fn encode(&self) -> String {
        let mut bytes = vec![VERSION, self.range as u8];
        bytes.extend_from_slice(&self.issuance.to_be_bytes());
        bytes.extend_from_slice(&self.key);
        base64_simd::URL_SAFE_NO_PAD.encode_to_string(&bytes)
    }

    /// Reads a cursor and checks that it lies in the ranges of this query.
    pub(crate) fn decode(text: &str, ranges: &[KeyRange]) -> Result<Self> {
        let bad = |reason: &str| Error::BadCursor(reason.to_owned());
        let bytes = base64_simd::URL_SAFE_NO_PAD
            .decode_to_vec(text.as_bytes())
            .map_err(|_| bad("it is no base64"))?;
        let mut reader = Reader::new(&bytes);
        let place = (|| {
            let version = reader.u8().ok()?;
            let range = usize::from(reader.u8().ok()?);
            let issuance = u64::from_be_bytes(reader.array().ok()?);
            (version == VERSION).then(|| Self {
                range,
                key: reader.rest().to_vec(),
                issuance,
            })
        })();
        let place = place.ok_or_else(|| bad("it is cut off or of another version"))?;
        match ranges.get(place.range) {
            Some(range) if range.contains(&place.key) => Ok(place),
            _ => Err(bad("it belongs to another query")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Identifier;

    #[test]
    fn cursors_round_trip_and_refuse_other_queries() {
        let ranges = [
            KeyRange::exact(&Identifier::Host("example.com")),
            KeyRange::below("example.com"),
        ];
        let place = Place {
            range: 1,
            key: b"com.example.www".to_vec(),
            issuance: u64::MAX - 1,
        };
        let text = place.encode();
        assert_eq!(Place::decode(&text, &ranges).unwrap(), place);
        assert!(
            Place::decode(
                &text,
                &[KeyRange::below("example.org"), KeyRange::below("example.org")]
            )
            .is_err()
        );
        for broken in ["", "A", "!!!!", &text[..5]] {
            assert!(
                matches!(Place::decode(broken, &ranges), Err(Error::BadCursor(_))),
                "{broken}"
            );
        }
    }
}
