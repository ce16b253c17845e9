//! Blocks of the names table: sorted rows in columns, keys prefix-compressed, what belongs to an
//! issuance kept once a block.
//!
//! # Format
//! `rows u16 | names u16 | issuances u16 | issuance hashes u64 each | columns` where the columns are,
//! in this order: `names` (shared, suffix bytes, rows - 1 per distinct key), `suffixes`, `rows`
//! (`bits | back-reference << 2`; 0 = the next new issuance, k = the k-th last seen), then one value
//! per issuance: `presence`, `issuers`, `organizations`, `not_before` (difference to the one before),
//! `validity` (not_after - not_before), `first_seen` (- not_before), `seqs` (fixed width over the
//! smallest). Rows of one certificate are neighbours in reversed order, so most references are short.

use crate::coding::{Decoded, Malformed, Reader, put_fixed, put_varint, put_zigzag, width_of};
use crate::record::NameBits;
use crate::row::RowAttrs;
use crate::segment::columns::{self, Codec};
use crate::segment::index::shared_prefix;

/// Rows of a full block. A question that meets a block for the first time decodes all of it, once a
/// segment: 256 rows cost 3 % fewer bytes and twice that time.
pub(crate) const BLOCK_ROWS: usize = 128;
/// A block is closed early when its keys pass this many bytes.
const BLOCK_KEY_BYTES: usize = 64 << 10;

/// How far a row looks for its certificate among those before; further back a repetition is cheaper.
const LOOK_BACK: usize = 24;

const HAS_NOT_BEFORE: u8 = 1;
const HAS_NOT_AFTER: u8 = 2;

/// Gathers the rows of one block.
#[derive(Debug, Default)]
pub(crate) struct NamesBlockWriter {
    rows: usize,
    key: Vec<u8>,
    key_bytes: usize,
    /// Rows of the current key, not yet written.
    run: u64,
    names_count: u16,
    issuances: Vec<RowAttrs>,
    names: Vec<u8>,
    suffixes: Vec<u8>,
    refs: Vec<u8>,
    columns: [Vec<u8>; 7],
    first: (Vec<u8>, u64),
}

impl NamesBlockWriter {
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn is_full(&self) -> bool {
        self.rows >= BLOCK_ROWS || self.key_bytes >= BLOCK_KEY_BYTES
    }

    /// Key and issuance of the first row.
    pub(crate) fn first(&self) -> Option<(&[u8], u64)> {
        (self.rows > 0).then_some((self.first.0.as_slice(), self.first.1))
    }

    /// Adds a row; rows come sorted by key and issuance. `same_key` tells that the row before had the
    /// same key.
    pub(crate) fn push(&mut self, key: &[u8], same_key: bool, attrs: &RowAttrs) {
        if self.rows == 0 {
            self.first.0.clear();
            self.first.0.extend_from_slice(key);
            self.first.1 = attrs.issuance;
        }
        if self.rows == 0 || !same_key {
            self.close_run();
            let shared = if self.rows == 0 {
                0
            } else {
                shared_prefix(&self.key, key)
            };
            let suffix = key.get(shared..).unwrap_or(&[]);
            put_varint(&mut self.names, shared as u64);
            put_varint(&mut self.names, suffix.len() as u64);
            self.suffixes.extend_from_slice(suffix);
            self.key.clear();
            self.key.extend_from_slice(key);
            self.key_bytes += key.len();
            self.names_count += 1;
        }
        let known = self
            .issuances
            .iter()
            .rev()
            .take(LOOK_BACK)
            .position(|seen| same_issuance(seen, attrs));
        let back = known.map_or(0, |position| position as u64 + 1);
        if known.is_none() {
            self.issuances.push(*attrs);
        }
        put_varint(&mut self.refs, u64::from(attrs.bits & 3) | back << 2);
        self.run += 1;
        self.rows += 1;
    }

    fn close_run(&mut self) {
        if self.run > 0 {
            put_varint(&mut self.names, self.run - 1);
        }
        self.run = 0;
    }

    /// The payload of the block; the writer is empty again.
    pub(crate) fn finish(&mut self, codec: Codec, out: &mut Vec<u8>) {
        self.close_run();
        for count in [self.rows as u16, self.names_count, self.issuances.len() as u16] {
            out.extend_from_slice(&count.to_le_bytes());
        }
        for attrs in &self.issuances {
            out.extend_from_slice(&attrs.issuance.to_le_bytes());
        }
        let [
            presence,
            issuers,
            organizations,
            not_before,
            validity,
            first_seen,
            seqs,
        ] = self.issuance_columns();
        let streams: [&[u8]; 10] = [
            &self.names,
            &self.suffixes,
            &self.refs,
            &presence,
            &issuers,
            &organizations,
            &not_before,
            &validity,
            &first_seen,
            &seqs,
        ];
        columns::put_joined(out, &streams, codec);
        self.columns = [
            presence,
            issuers,
            organizations,
            not_before,
            validity,
            first_seen,
            seqs,
        ];
        self.clear();
    }

    /// Empty again, with its buffers.
    fn clear(&mut self) {
        self.rows = 0;
        self.key_bytes = 0;
        self.run = 0;
        self.names_count = 0;
        self.issuances.clear();
        self.names.clear();
        self.suffixes.clear();
        self.refs.clear();
        self.columns.iter_mut().for_each(Vec::clear);
    }

    /// Fills the buffers of the columns and lends them.
    fn issuance_columns(&mut self) -> [Vec<u8>; 7] {
        let mut columns = std::mem::take(&mut self.columns);
        let [
            presence,
            issuers,
            organizations,
            not_before,
            validity,
            first_seen,
            seqs,
        ] = &mut columns;
        let smallest = self.issuances.iter().map(|attrs| attrs.seq).min().unwrap_or(0);
        let largest = self.issuances.iter().map(|attrs| attrs.seq).max().unwrap_or(0);
        let width = width_of(largest - smallest);
        put_varint(seqs, smallest);
        seqs.push(width as u8);
        let mut before = 0;
        for attrs in &self.issuances {
            presence.push(presence_of(attrs));
            put_varint(issuers, u64::from(attrs.issuer));
            put_varint(organizations, u64::from(attrs.organization));
            let start = attrs.not_before.unwrap_or(before);
            put_zigzag(not_before, start.wrapping_sub(before));
            put_zigzag(validity, attrs.not_after.unwrap_or(start).wrapping_sub(start));
            put_zigzag(first_seen, attrs.first_seen.wrapping_sub(start));
            put_fixed(seqs, attrs.seq - smallest, width);
            before = start;
        }
        columns
    }
}

/// Two rows of one certificate: they differ at most in their bits.
fn same_issuance(a: &RowAttrs, b: &RowAttrs) -> bool {
    a.issuance == b.issuance && RowAttrs { bits: a.bits, ..*b } == *a
}

pub(crate) fn presence_of(attrs: &RowAttrs) -> u8 {
    let not_before = if attrs.not_before.is_some() {
        HAS_NOT_BEFORE
    } else {
        0
    };
    not_before
        | if attrs.not_after.is_some() {
            HAS_NOT_AFTER
        } else {
            0
        }
}

/// A decoded block.
#[derive(Debug, Default)]
pub(crate) struct NamesBlock {
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    rows: Vec<BlockRow>,
    issuances: Vec<RowAttrs>,
}

#[derive(Debug, Clone, Copy)]
struct BlockRow {
    name: u16,
    issuance: u16,
    bits: NameBits,
}

impl NamesBlock {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.capacity()
            + self.key_ends.capacity() * size_of::<u32>()
            + self.rows.capacity() * size_of::<BlockRow>()
            + self.issuances.capacity() * size_of::<RowAttrs>()
    }

    pub(crate) fn key(&self, row: usize) -> &[u8] {
        let name = self.rows.get(row).map_or(0, |row| usize::from(row.name));
        let start = name
            .checked_sub(1)
            .and_then(|before| self.key_ends.get(before))
            .map_or(0, |&end| end as usize);
        let end = self.key_ends.get(name).map_or(0, |&end| end as usize);
        self.keys.get(start..end).unwrap_or(&[])
    }

    pub(crate) fn attrs(&self, row: usize) -> Option<RowAttrs> {
        let row = self.rows.get(row)?;
        Some(RowAttrs {
            bits: row.bits,
            ..*self.issuances.get(usize::from(row.issuance))?
        })
    }

    /// First row for which `before` is false; rows for which it is true come first.
    pub(crate) fn partition(&self, before: impl Fn(&[u8], u64) -> bool) -> usize {
        let (mut low, mut high) = (0, self.rows.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let issuance = self.attrs(middle).map_or(0, |attrs| attrs.issuance);
            if before(self.key(middle), issuance) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        low
    }

    pub(crate) fn decode(payload: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(payload);
        let rows = usize::from(reader.u16()?);
        let names = usize::from(reader.u16()?);
        let issuances = usize::from(reader.u16()?);
        if names > rows || issuances > rows {
            return Err(Malformed("more names or issuances than rows"));
        }
        let hashes = Reader::new(reader.take(issuances * 8)?);
        let joined = columns::take(&mut reader, columns::SMALL_BYTES_MAX)?;
        let [name_column, suffixes, refs, per_issuance @ ..] = columns::split::<10>(&joined)?;
        let mut block = Self {
            issuances: decode_issuances(issuances, hashes, per_issuance)?,
            ..Self::default()
        };
        block.decode_rows(rows, names, name_column, suffixes, refs)?;
        Ok(block)
    }

    fn decode_rows(
        &mut self,
        rows: usize,
        names: usize,
        mut name_column: Reader<'_>,
        mut suffixes: Reader<'_>,
        mut refs: Reader<'_>,
    ) -> Decoded<()> {
        self.rows.reserve_exact(rows);
        self.key_ends.reserve_exact(names);
        let (mut seen, mut key_start) = (0usize, 0usize);
        for name in 0..names {
            let shared = name_column.bounded(
                (self.keys.len() - key_start) as u64,
                "prefix longer than the name before",
            )?;
            let suffix_bytes =
                name_column.bounded(crate::key::KEY_BYTES_MAX as u64, "suffix longer than a key")?;
            if shared + suffix_bytes > crate::key::KEY_BYTES_MAX {
                return Err(Malformed("key longer than the limit"));
            }
            let previous = key_start..key_start + shared;
            key_start = self.keys.len();
            self.keys.extend_from_within(previous);
            self.keys.extend_from_slice(suffixes.take(suffix_bytes)?);
            self.key_ends.push(self.keys.len() as u32);
            let left = rows
                .checked_sub(self.rows.len() + 1)
                .ok_or(Malformed("more rows than the block has"))?;
            let count = name_column.bounded(left as u64, "more rows than the block has")? + 1;
            for _ in 0..count {
                let code = refs.varint()?;
                let back = (code >> 2) as usize;
                let issuance = if back == 0 { seen } else { seen.wrapping_sub(back) };
                seen += usize::from(back == 0);
                if issuance >= self.issuances.len() || (back != 0 && issuance >= seen) {
                    return Err(Malformed("a row refers to no issuance"));
                }
                self.rows.push(BlockRow {
                    name: name as u16,
                    issuance: issuance as u16,
                    bits: (code & 3) as u8,
                });
            }
        }
        if self.rows.len() != rows || !refs.is_empty() || !suffixes.is_empty() {
            return Err(Malformed("columns of rows do not add up"));
        }
        Ok(())
    }
}

fn decode_issuances(
    count: usize,
    mut hashes: Reader<'_>,
    columns: [Reader<'_>; 7],
) -> Decoded<Vec<RowAttrs>> {
    let [
        mut presence,
        mut issuers,
        mut organizations,
        mut not_before,
        mut validity,
        mut first_seen,
        mut seqs,
    ] = columns;
    let smallest = seqs.varint()?;
    let width = usize::from(seqs.u8()?);
    let mut before = 0i64;
    let mut decoded = Vec::with_capacity(count);
    for _ in 0..count {
        let present = presence.u8()?;
        let start = before.wrapping_add(not_before.zigzag()?);
        let end = start.wrapping_add(validity.zigzag()?);
        decoded.push(RowAttrs {
            issuance: hashes.u64()?,
            seq: smallest.wrapping_add(seqs.fixed(width)?),
            first_seen: start.wrapping_add(first_seen.zigzag()?),
            not_before: (present & HAS_NOT_BEFORE != 0).then_some(start),
            not_after: (present & HAS_NOT_AFTER != 0).then_some(end),
            issuer: issuers.bounded(u64::from(u32::MAX), "issuer number over 32 bits")? as u32,
            organization: organizations.bounded(u64::from(u32::MAX), "organisation number over 32 bits")?
                as u32,
            bits: 0,
        });
        before = start;
    }
    Ok(decoded)
}

/// The index key of a row: key, zero byte, issuance big-endian, so that bytes order as pairs do.
pub(crate) fn index_key(key: &[u8], issuance: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 9);
    out.extend_from_slice(key);
    out.push(0);
    out.extend_from_slice(&issuance.to_be_bytes());
    out
}

/// The shortest prefix of a block's first index key that still sorts behind the last one before it.
pub(crate) fn separator(last: &[u8], first: &[u8]) -> Vec<u8> {
    let keep = (shared_prefix(last, first) + 1).min(first.len());
    first.get(..keep).unwrap_or(first).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn attrs(issuance: u64, seq: u64, not_before: Option<i64>, not_after: Option<i64>, bits: u8) -> RowAttrs {
        let (issuer, organization) = ((seq % 7) as u32, (issuance % 3) as u32);
        RowAttrs {
            issuance,
            seq,
            first_seen: seq as i64 - 40,
            not_before,
            not_after,
            issuer,
            organization,
            bits,
        }
    }

    type Generated = (Vec<u8>, u64, Option<i64>, Option<i64>, u8);

    fn rows() -> impl Strategy<Value = Vec<Generated>> {
        let date = proptest::option::of(any::<i32>().prop_map(i64::from));
        let row = (
            proptest::collection::vec(b'a'..b'd', 1..6),
            0u64..20,
            date.clone(),
            date,
            1u8..4,
        );
        proptest::collection::vec(row, 1..BLOCK_ROWS)
    }

    proptest! {
        #[test]
        fn blocks_round_trip(mut generated in rows()) {
            generated.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
            let mut writer = NamesBlockWriter::default();
            let mut before: Option<&Vec<u8>> = None;
            for (key, issuance, not_before, not_after, bits) in &generated {
                let same = before.replace(key) == Some(key);
                writer.push(key, same, &attrs(*issuance, issuance + 5, *not_before, *not_after, *bits));
            }
            let mut payload = Vec::new();
            writer.finish(Codec::Zstd, &mut payload);
            let block = NamesBlock::decode(&payload).unwrap();
            prop_assert_eq!(block.len(), generated.len());
            for (number, (key, issuance, not_before, not_after, bits)) in generated.iter().enumerate() {
                prop_assert_eq!(block.key(number), key.as_slice());
                prop_assert_eq!(block.attrs(number), Some(attrs(*issuance, issuance + 5, *not_before, *not_after, *bits)));
            }
        }

        #[test]
        fn any_payload_is_safe(payload: Vec<u8>) {
            if let Ok(block) = NamesBlock::decode(&payload) {
                for row in 0..block.len() {
                    prop_assert!(block.attrs(row).is_some());
                }
            }
        }

        #[test]
        fn separators_separate(mut keys: [Vec<u8>; 2], issuances: [u64; 2]) {
            for key in &mut keys {
                key.iter_mut().for_each(|byte| *byte = (*byte).max(1));
            }
            keys.sort();
            let [last, first] = [index_key(&keys[0], issuances[0]), index_key(&keys[1], issuances[1])];
            if last < first {
                let between = separator(&last, &first);
                prop_assert!(last < between && between <= first);
            }
        }
    }
}
