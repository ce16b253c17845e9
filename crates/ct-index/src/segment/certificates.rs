//! Blocks of the certificates table: records sorted by issuance, in columns.
//!
//! # Format
//! `records u16 | fingerprint bytes u32 | serial bytes u32 | issuance hashes (u64 big-endian each) |
//! fingerprints (32 bytes each) | serials | columns`. What cannot be compressed stands in front; the
//! columns are, in this order: `flags`, `seqs` (smallest, width, fixed), `fingerprints` (count, then a
//! kind each), `serials` (length), `times` (not_before to the one before, validity, first_seen),
//! `issuers`, `organizations`, `oddities` (deviations, names_total - names), `names` (count; then
//! bits, shared, suffix bytes), `suffixes`, `common_names` (count; then 0 = text follows, or
//! 1 + 2 * number of the name + wildcard), `texts`. Log positions stand in the journal, where
//! neighbours share them.

use crate::coding::{Decoded, Malformed, Reader, put_bytes, put_fixed, put_varint, put_zigzag, width_of};
use crate::record::{
    COMMON_NAMES_MAX, CertRecord, FINGERPRINTS_MAX, Fingerprint, NAMES_MAX, NameBits, RecordView,
    SERIAL_BYTES_MAX, kind_code, kind_of,
};
use crate::segment::block::BLOCK_BYTES_MAX;
use crate::segment::columns;
use crate::segment::index::shared_prefix;

/// Records of a full block.
pub(crate) const BLOCK_RECORDS: usize = 64;
/// A block is closed early when its names pass this many bytes.
pub(crate) const BLOCK_NAME_BYTES: usize = 64 << 10;

/// What the names of one block may take in memory: the largest record and a full block beside it.
const DECODED_NAME_BYTES_MAX: usize = NAMES_MAX * (crate::key::KEY_BYTES_MAX + NAME_OVERHEAD) + (1 << 20);
/// Memory of a name beside its bytes.
const NAME_OVERHEAD: usize = 32;

const FLAG_COPY: u8 = 1;
const FLAG_NOT_BEFORE: u8 = 2;
const FLAG_NOT_AFTER: u8 = 4;
const STREAMS: usize = 12;

/// Gathers the records of one block.
#[derive(Debug, Default)]
pub(crate) struct CertificatesBlockWriter {
    issuances: Vec<u64>,
    seqs: Vec<u64>,
    fingerprints: Vec<u8>,
    serials: Vec<u8>,
    streams: [Vec<u8>; STREAMS],
    time: i64,
    key: Vec<u8>,
}

impl CertificatesBlockWriter {
    pub(crate) fn len(&self) -> usize {
        self.issuances.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        let [.., suffixes, _, _] = &self.streams;
        self.len() >= BLOCK_RECORDS || suffixes.len() >= BLOCK_NAME_BYTES
    }

    /// Issuance of the first record.
    pub(crate) fn first(&self) -> Option<u64> {
        self.issuances.first().copied()
    }

    /// Adds a record; records come sorted by issuance. `organization` is its number in the segment.
    pub(crate) fn push(&mut self, record: &RecordView<'_>, organization: u32) {
        self.issuances.push(record.issuance);
        self.seqs.push(record.seq);
        let [
            flags,
            _,
            prints,
            serials,
            times,
            issuers,
            organizations,
            oddities,
            ..,
        ] = &mut self.streams;
        let mut flag = if record.copy { FLAG_COPY } else { 0 };
        flag |= if record.not_before.is_some() {
            FLAG_NOT_BEFORE
        } else {
            0
        };
        flag |= if record.not_after.is_some() {
            FLAG_NOT_AFTER
        } else {
            0
        };
        flags.push(flag);
        put_varint(prints, record.fingerprints.len() as u64);
        for fingerprint in record.fingerprints {
            prints.push(kind_code(fingerprint.kind));
            self.fingerprints.extend_from_slice(&fingerprint.sha256);
        }
        put_varint(serials, record.serial.len() as u64);
        self.serials.extend_from_slice(record.serial);
        let start = record.not_before.unwrap_or(self.time);
        put_zigzag(times, start.wrapping_sub(self.time));
        put_zigzag(times, record.not_after.unwrap_or(start).wrapping_sub(start));
        put_zigzag(times, record.first_seen.wrapping_sub(start));
        self.time = start;
        put_varint(issuers, u64::from(record.issuer));
        put_varint(organizations, u64::from(organization));
        put_varint(oddities, record.deviations);
        put_zigzag(
            oddities,
            (record.names_total as i64).wrapping_sub(record.names.len() as i64),
        );
        self.push_names(record);
    }

    fn push_names(&mut self, record: &RecordView<'_>) {
        let [.., names, suffixes, common_names, texts] = &mut self.streams;
        put_varint(names, record.names.len() as u64);
        let mut before: &[u8] = &[];
        for &(key, bits) in record.names {
            let shared = shared_prefix(before, key);
            let suffix = key.get(shared..).unwrap_or(&[]);
            names.push(bits);
            put_varint(names, shared as u64);
            put_varint(names, suffix.len() as u64);
            suffixes.extend_from_slice(suffix);
            before = key;
        }
        put_varint(common_names, record.common_names.len() as u64);
        for name in record.common_names {
            let code = name_code(name, record.names, &mut self.key);
            put_varint(common_names, code);
            if code == 0 {
                put_bytes(texts, name.as_bytes());
            }
        }
    }

    /// The payload of the block; the writer is empty again.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.len() as u16).to_le_bytes());
        out.extend_from_slice(&(self.fingerprints.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.serials.len() as u32).to_le_bytes());
        for issuance in &self.issuances {
            out.extend_from_slice(&issuance.to_be_bytes());
        }
        out.extend_from_slice(&self.fingerprints);
        out.extend_from_slice(&self.serials);
        let smallest = self.seqs.iter().copied().min().unwrap_or(0);
        let width = width_of(self.seqs.iter().copied().max().unwrap_or(0) - smallest);
        let [_, seqs, ..] = &mut self.streams;
        put_varint(seqs, smallest);
        seqs.push(width as u8);
        for seq in &self.seqs {
            put_fixed(seqs, seq - smallest, width);
        }
        columns::put(out, &columns::join(&self.streams.each_ref().map(Vec::as_slice)));
        *self = Self::default();
    }
}

/// How a common name is told by the names: 0 when it is none of them.
fn name_code(common_name: &str, names: &[(&[u8], NameBits)], key: &mut Vec<u8>) -> u64 {
    let (host, wildcard) = common_name
        .strip_prefix("*.")
        .map_or((common_name, 0), |host| (host, 1));
    key.clear();
    tamis_hostname::reverse_into(host, key);
    match names.binary_search_by(|(known, _)| (*known).cmp(key.as_slice())) {
        Ok(number) if crate::key::space_of(key) == crate::key::KeySpace::Host => {
            1 + 2 * number as u64 + wildcard
        }
        _ => 0,
    }
}

/// A decoded block. Positions are in the journal.
#[derive(Debug, Default)]
pub(crate) struct CertificatesBlock {
    pub(crate) records: Vec<StoredRecord>,
}

/// A record as a block holds it.
#[derive(Debug, Default, Clone)]
pub(crate) struct StoredRecord {
    /// `organization` and `positions` are still empty.
    pub(crate) record: CertRecord,
    /// Number of the organisation in the segment; 0 = none.
    pub(crate) organization: u32,
}

impl CertificatesBlock {
    pub(crate) fn memory_bytes(&self) -> usize {
        self.records
            .iter()
            .map(|stored| {
                let record = &stored.record;
                let names: usize = record.names.iter().map(|(key, _)| key.len() + 32).sum();
                let texts: usize = record.common_names.iter().map(|name| name.len() + 24).sum();
                size_of::<StoredRecord>()
                    + record.serial.len()
                    + record.fingerprints.len() * 33
                    + names
                    + texts
            })
            .sum()
    }

    pub(crate) fn decode(payload: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(payload);
        let count = usize::from(reader.u16()?);
        let fingerprint_bytes = reader.u32()? as usize;
        let serial_bytes = reader.u32()? as usize;
        let mut issuances = Reader::new(reader.take(count * 8)?);
        let fingerprints = Reader::new(reader.take(fingerprint_bytes)?);
        let serials = Reader::new(reader.take(serial_bytes)?);
        let joined = columns::take(&mut reader, BLOCK_BYTES_MAX)?;
        let streams = columns::split::<STREAMS>(&joined)?;
        let mut decoder = Decoder {
            fingerprints,
            serials,
            streams,
            time: 0,
            name_bytes_left: DECODED_NAME_BYTES_MAX,
            smallest: 0,
            width: 0,
        };
        let [_, seqs, ..] = &mut decoder.streams;
        decoder.smallest = seqs.varint()?;
        decoder.width = usize::from(seqs.u8()?);
        let mut block = Self {
            records: Vec::with_capacity(count),
        };
        for _ in 0..count {
            block
                .records
                .push(decoder.record(u64::from_be_bytes(issuances.array()?))?);
        }
        if !decoder.fingerprints.is_empty() || !decoder.serials.is_empty() {
            return Err(Malformed("columns of certificates do not add up"));
        }
        Ok(block)
    }
}

struct Decoder<'a> {
    fingerprints: Reader<'a>,
    serials: Reader<'a>,
    streams: [Reader<'a>; STREAMS],
    time: i64,
    name_bytes_left: usize,
    smallest: u64,
    width: usize,
}

impl Decoder<'_> {
    fn record(&mut self, issuance: u64) -> Decoded<StoredRecord> {
        let width = self.width;
        let [
            flags,
            seqs,
            prints,
            serials,
            times,
            issuers,
            organizations,
            oddities,
            ..,
        ] = &mut self.streams;
        let flag = flags.u8()?;
        let mut record = CertRecord {
            issuance,
            copy: flag & FLAG_COPY != 0,
            ..CertRecord::default()
        };
        record.seq = self.smallest.wrapping_add(seqs.fixed(width)?);
        for _ in 0..prints.bounded(FINGERPRINTS_MAX as u64, "too many fingerprints")? {
            let kind = kind_of(prints.u8()?)?;
            record.fingerprints.push(Fingerprint {
                kind,
                sha256: self.fingerprints.array()?,
            });
        }
        let length = serials.bounded(SERIAL_BYTES_MAX as u64, "serial longer than the limit")?;
        record.serial = self.serials.take(length)?.to_vec();
        let start = self.time.wrapping_add(times.zigzag()?);
        let end = start.wrapping_add(times.zigzag()?);
        record.first_seen = start.wrapping_add(times.zigzag()?);
        record.not_before = (flag & FLAG_NOT_BEFORE != 0).then_some(start);
        record.not_after = (flag & FLAG_NOT_AFTER != 0).then_some(end);
        self.time = start;
        record.issuer = issuers.bounded(u64::from(u32::MAX), "issuer number over 32 bits")? as u32;
        let organization =
            organizations.bounded(u64::from(u32::MAX), "organisation number over 32 bits")? as u32;
        record.deviations = oddities.varint()?;
        let unindexed = oddities.zigzag()?;
        self.names(&mut record)?;
        record.names_total = (record.names.len() as i64).wrapping_add(unindexed) as u64;
        Ok(StoredRecord { record, organization })
    }

    fn names(&mut self, record: &mut CertRecord) -> Decoded<()> {
        let [.., names, suffixes, common_names, texts] = &mut self.streams;
        let mut key: Vec<u8> = Vec::new();
        for _ in 0..names.bounded(NAMES_MAX as u64, "too many names")? {
            let bits = names.u8()?;
            let shared = names.bounded(key.len() as u64, "prefix longer than the name before")?;
            let suffix = names.bounded(crate::key::KEY_BYTES_MAX as u64, "suffix longer than a key")?;
            if shared + suffix > crate::key::KEY_BYTES_MAX {
                return Err(Malformed("key longer than the limit"));
            }
            if suffix == 0 && !key.is_empty() {
                return Err(Malformed("a name stands twice"));
            }
            key.truncate(shared);
            key.extend_from_slice(suffixes.take(suffix)?);
            self.name_bytes_left = self
                .name_bytes_left
                .checked_sub(key.len() + NAME_OVERHEAD)
                .ok_or(Malformed("more names than a block holds"))?;
            record.names.push((key.clone(), bits));
        }
        for _ in 0..common_names.bounded(COMMON_NAMES_MAX as u64, "too many common names")? {
            let code = common_names.varint()?;
            let text = match code.checked_sub(1) {
                None => texts.text()?.to_owned(),
                Some(code) => {
                    let (key, _) = record
                        .names
                        .get((code / 2) as usize)
                        .ok_or(Malformed("a common name is no name"))?;
                    let host = crate::key::display(key);
                    if code % 2 == 1 { format!("*.{host}") } else { host }
                }
            };
            record.common_names.push(text);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::CertificateKind;
    use proptest::prelude::*;

    fn record(issuance: u64, names: &[&str], common_names: &[&str]) -> CertRecord {
        let mut keys: Vec<(Vec<u8>, NameBits)> = names
            .iter()
            .map(|name| {
                let mut key = Vec::new();
                crate::key::Identifier::Host(name).encode_into(&mut key);
                (key, 1)
            })
            .collect();
        keys.sort();
        CertRecord {
            issuance,
            seq: issuance * 3,
            copy: issuance.is_multiple_of(2),
            serial: vec![7; (issuance % 20) as usize],
            fingerprints: vec![Fingerprint {
                kind: CertificateKind::Certificate,
                sha256: [issuance as u8; 32],
            }],
            positions: Vec::new(),
            first_seen: 1_700_000_000,
            not_before: (!issuance.is_multiple_of(3)).then_some(1_690_000_000),
            not_after: (!issuance.is_multiple_of(5)).then_some(1_710_000_000),
            issuer: 9,
            organization: String::new(),
            common_names: common_names.iter().map(|&name| name.to_owned()).collect(),
            names_total: names.len() as u64 + issuance,
            deviations: issuance << 40,
            names: keys,
        }
    }

    #[test]
    fn blocks_round_trip() {
        let records = [
            record(
                1,
                &["a.example.com", "example.com"],
                &["example.com", "*.a.example.com", "Some CA"],
            ),
            record(2, &[], &[]),
            record(15, &["z.example.org"], &["Z.example.org"]),
        ];
        let mut writer = CertificatesBlockWriter::default();
        for (number, record) in records.iter().enumerate() {
            record.with_view(|view| writer.push(view, number as u32));
        }
        let mut payload = Vec::new();
        writer.finish(&mut payload);
        let block = CertificatesBlock::decode(&payload).unwrap();
        let decoded: Vec<CertRecord> = block.records.iter().map(|stored| stored.record.clone()).collect();
        assert_eq!(decoded, records);
        assert_eq!(block.records[2].organization, 2);
    }

    proptest! {
        #[test]
        fn any_payload_is_safe(payload: Vec<u8>) {
            let _ = CertificatesBlock::decode(&payload);
        }
    }
}
