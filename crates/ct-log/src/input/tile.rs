//! Frames a data tile: entries one behind the other, without a count.

use super::Framed;
use super::decode::{Form, RawEntry};
use crate::error::Reason;
use crate::leaf::TileLeaf;

#[derive(Debug)]
pub(super) struct Framer<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

/// Before the first log existed: 2012-01-01 in milliseconds.
const TIMESTAMP_MS_MIN: u64 = 1_325_376_000_000;
/// 2200-01-01.
const TIMESTAMP_MS_MAX: u64 = 7_258_118_400_000;

/// Whether this starts like an entry: a timestamp within reason, a known type and a certificate.
pub(super) fn is_tile(bytes: &[u8]) -> bool {
    let Some((timestamp, rest)) = bytes.split_first_chunk::<8>() else {
        return false;
    };
    let timestamp = u64::from_be_bytes(*timestamp);
    let in_range = (TIMESTAMP_MS_MIN..TIMESTAMP_MS_MAX).contains(&timestamp);
    in_range && matches!(rest, [0, 0 | 1, ..])
}

impl<'a> Framer<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            all: bytes,
            rest: bytes,
        }
    }

    /// Lengths are all that frames a tile: behind an entry that cannot be read there is nothing to
    /// find a next one by, so the error stands for the rest.
    pub(super) fn next(&mut self) -> Option<Framed<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let offset = self.all.len() - self.rest.len();
        match TileLeaf::parse(self.rest) {
            Ok((leaf, rest)) => {
                self.rest = rest;
                Some(Ok(RawEntry::new(offset, Form::Tile(leaf))))
            }
            Err(reason) => {
                self.rest = &[];
                let reason = if offset == self.all.len() {
                    Reason::CutOff { field: "entry" }
                } else {
                    reason
                };
                Some(Err((offset, reason)))
            }
        }
    }
}
