//! What a segment tells about itself, so that most queries never touch it.
//!
//! # Format
//! `name rows, records, smallest and largest seq, smallest and largest not_after + presence (varints) |
//! first key | last key | filter`. The filter holds tag and first two labels (`com.example`) of every
//! key. Missing or damaged meta is rebuilt from the names table and then lies in a file of its own.

use xxhash_rust::xxh3::xxh3_64;

use crate::coding::{Decoded, Malformed, Reader, put_bytes, put_varint, put_zigzag};
use crate::key::{KeyRange, filter_part};
use crate::row::RowAttrs;
use crate::segment::filter::LineFilter;

/// Bits a key of the domain filter; 0.1 % false positives.
const FILTER_BITS: u64 = 16;

/// Counts and ranges of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) rows: u64,
    pub(crate) records: u64,
    pub(crate) seqs: Option<(u64, u64)>,
    /// Smallest and largest known end of validity.
    pub(crate) expiry: Option<(i64, i64)>,
    pub(crate) first_key: Vec<u8>,
    pub(crate) last_key: Vec<u8>,
    pub(crate) domains: LineFilter,
}

/// Gathers meta while rows and records pass.
#[derive(Debug, Default)]
pub(crate) struct MetaBuilder {
    rows: u64,
    records: u64,
    seqs: Option<(u64, u64)>,
    expiry: Option<(i64, i64)>,
    first_key: Option<Vec<u8>>,
    last_key: Vec<u8>,
    hashes: Vec<u64>,
}

impl MetaBuilder {
    /// `same_key` tells that the row before had the same key.
    pub(crate) fn row(&mut self, key: &[u8], same_key: bool, attrs: &RowAttrs) {
        self.rows += 1;
        if let Some(end) = attrs.not_after {
            widen(&mut self.expiry, end);
        }
        if self.first_key.is_none() {
            self.first_key = Some(key.to_vec());
        }
        if !same_key || self.rows == 1 {
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
            if let Some(part) = filter_part(key) {
                let hash = xxh3_64(part);
                if self.hashes.last() != Some(&hash) {
                    self.hashes.push(hash);
                }
            }
        }
    }

    pub(crate) fn record(&mut self, seq: u64, not_after: Option<i64>) {
        self.records += 1;
        widen(&mut self.seqs, seq);
        if let Some(end) = not_after {
            widen(&mut self.expiry, end);
        }
    }

    pub(crate) fn finish(mut self) -> Meta {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        Meta {
            rows: self.rows,
            records: self.records,
            seqs: self.seqs,
            expiry: self.expiry,
            first_key: self.first_key.unwrap_or_default(),
            last_key: self.last_key,
            domains: LineFilter::build(&self.hashes, FILTER_BITS),
        }
    }
}

fn widen<T: Ord + Copy>(range: &mut Option<(T, T)>, value: T) {
    *range = Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))));
}

impl Meta {
    /// False when no key of the segment lies in `range`.
    pub(crate) fn may_hold(&self, range: &KeyRange) -> bool {
        if self.rows == 0 || self.last_key < range.start || self.first_key >= range.end {
            return false;
        }
        filter_part(&range.start).is_none_or(|part| self.domains.may_hold(xxh3_64(part)))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.rows);
        put_varint(&mut out, self.records);
        out.push(u8::from(self.seqs.is_some()) | u8::from(self.expiry.is_some()) << 1);
        let (low, high) = self.seqs.unwrap_or_default();
        put_varint(&mut out, low);
        put_varint(&mut out, high);
        let (low, high) = self.expiry.unwrap_or_default();
        put_zigzag(&mut out, low);
        put_zigzag(&mut out, high);
        put_bytes(&mut out, &self.first_key);
        put_bytes(&mut out, &self.last_key);
        self.domains.encode_into(&mut out);
        out
    }

    pub(crate) fn decode(payload: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(payload);
        let (rows, records, presence) = (reader.varint()?, reader.varint()?, reader.u8()?);
        let seqs = (reader.varint()?, reader.varint()?);
        let expiry = (reader.zigzag()?, reader.zigzag()?);
        let meta = Self {
            rows,
            records,
            seqs: (presence & 1 != 0).then_some(seqs),
            expiry: (presence & 2 != 0).then_some(expiry),
            first_key: reader.bytes()?.to_vec(),
            last_key: reader.bytes()?.to_vec(),
            domains: LineFilter::read(&mut reader)?,
        };
        if reader.is_empty() {
            Ok(meta)
        } else {
            Err(Malformed("bytes behind the filter"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Identifier;

    fn meta_of(hosts: &[&str]) -> Meta {
        let mut keys: Vec<Vec<u8>> = hosts
            .iter()
            .map(|host| {
                let mut key = Vec::new();
                Identifier::Host(host).encode_into(&mut key);
                key
            })
            .collect();
        keys.sort();
        let mut builder = MetaBuilder::default();
        for (seq, key) in keys.iter().enumerate() {
            let attrs = RowAttrs {
                issuance: 1,
                seq: seq as u64,
                first_seen: 0,
                not_before: None,
                not_after: Some(seq as i64 * 10),
                issuer: 0,
                organization: 0,
                bits: 1,
            };
            builder.row(key, false, &attrs);
            builder.record(attrs.seq, attrs.not_after);
        }
        builder.finish()
    }

    #[test]
    fn prunes_what_it_cannot_hold_and_nothing_else() {
        let meta = meta_of(&["a.example.com", "www.tamis.org", "localhost"]);
        for (range, expected) in [
            (KeyRange::below("example.com"), true),
            (KeyRange::below("com"), true),
            (KeyRange::below("tamis.org"), true),
            (KeyRange::below("deep.a.example.com"), true),
            (KeyRange::exact(&Identifier::Host("localhost")), true),
            (KeyRange::below("nowhere.com"), false),
            (KeyRange::below("zzz"), false),
        ] {
            assert_eq!(meta.may_hold(&range), expected, "{range:?}");
        }
        assert_eq!(Meta::decode(&meta.encode()), Ok(meta.clone()));
        assert_eq!((meta.seqs, meta.expiry), (Some((0, 2)), Some((0, 20))));
    }

    #[test]
    fn any_payload_is_safe() {
        let payload = meta_of(&["a.example.com"]).encode();
        for length in 0..payload.len() {
            assert!(Meta::decode(payload.get(..length).unwrap()).is_err());
        }
    }
}
