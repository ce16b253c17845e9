//! Blocks of the records table: records in order of discovery (`seq`), in columns.
//!
//! # Format
//! `records u16 | fingerprint bytes u32 | serial bytes u32 | issuance hashes (u64 each) | fingerprints
//! (32 bytes each) | serials | columns`. What cannot be compressed stands in front; the columns are, in
//! this order: `flags`, `seqs` (first, then differences), `originals` (seq - that of the record this is
//! a copy of), `fingerprints` (count, then a kind each), `serials` (length), `times` (not_before to the
//! one before, validity, first_seen), `issuers`, `organizations` (0 = none, k = k-th text of this
//! block), `oddities` (deviations, names_total - names), `names` (count; then bits, shared, suffix
//! bytes), `suffixes`, `common_names` (count; then 0 = text follows, or 1 + 2 * number of the name +
//! wildcard), `texts` (organisations and common names), `positions` (count, then a log each),
//! `indexes`, `timestamps`. A slim copy has no entry in `serials` to `issuers`, `organizations`,
//! `names` and `common_names`, and deviations alone in `oddities`.

use crate::coding::{Decoded, Malformed, Reader, put_bytes, put_varint, put_zigzag};
use crate::record::{
    COMMON_NAMES_MAX, CertRecord, FINGERPRINTS_MAX, FLAG_COPY, FLAG_NOT_AFTER, FLAG_NOT_BEFORE, FLAG_SLIM,
    Fingerprint, NAMES_MAX, NameBits, RecordView, SERIAL_BYTES_MAX, kind_code, kind_of,
};
use crate::segment::block::BLOCK_BYTES_MAX;
use crate::segment::columns::{self, Codec};
use crate::segment::index::shared_prefix;
use crate::segment::positions;

/// Records of a full block.
pub(crate) const BLOCK_RECORDS: usize = 64;
/// A block is closed early when its names pass this many bytes.
pub(crate) const BLOCK_NAME_BYTES: usize = 64 << 10;

/// What the names of one block may take in memory: the largest record and a full block beside it.
const DECODED_NAME_BYTES_MAX: usize = NAMES_MAX * (crate::key::KEY_BYTES_MAX + NAME_OVERHEAD) + (1 << 20);
/// Memory of a name beside its bytes.
const NAME_OVERHEAD: usize = 32;

const STREAMS: usize = 16;

/// Gathers the records of one block.
#[derive(Debug, Default)]
pub(crate) struct RecordsBlockWriter {
    issuances: Vec<u64>,
    fingerprints: Vec<u8>,
    serials: Vec<u8>,
    streams: [Vec<u8>; STREAMS],
    seq: u64,
    time: i64,
    organizations: Vec<String>,
    positions: positions::Before,
    key: Vec<u8>,
}

impl RecordsBlockWriter {
    pub(crate) fn len(&self) -> usize {
        self.issuances.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        let [.., suffixes, _, _, _, _, _] = &self.streams;
        self.len() >= BLOCK_RECORDS || suffixes.len() >= BLOCK_NAME_BYTES
    }

    /// Adds a record; records come sorted by seq.
    pub(crate) fn push(&mut self, record: &RecordView<'_>) {
        self.issuances.push(record.issuance);
        let [flags, seqs, originals, prints, .., counts, indexes, timestamps] = &mut self.streams;
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        flags.push(
            flag(record.copy_of.is_some(), FLAG_COPY)
                | flag(record.not_before.is_some(), FLAG_NOT_BEFORE)
                | flag(record.not_after.is_some(), FLAG_NOT_AFTER)
                | flag(record.slim, FLAG_SLIM),
        );
        put_varint(seqs, record.seq.wrapping_sub(self.seq));
        self.seq = record.seq;
        if let Some(original) = record.copy_of {
            put_zigzag(originals, record.seq.wrapping_sub(original) as i64);
        }
        put_varint(prints, record.fingerprints.len() as u64);
        for fingerprint in record.fingerprints {
            prints.push(kind_code(fingerprint.kind));
            self.fingerprints.extend_from_slice(&fingerprint.sha256);
        }
        positions::put(record.positions, &mut self.positions, counts, indexes, timestamps);
        if record.slim {
            let [_, _, _, _, _, _, _, _, oddities, ..] = &mut self.streams;
            put_varint(oddities, record.deviations);
        } else {
            self.push_whole(record);
            self.push_names(record);
        }
    }

    fn push_whole(&mut self, record: &RecordView<'_>) {
        let organization = self.organization(record.organization);
        let [
            _,
            _,
            _,
            _,
            serials,
            times,
            issuers,
            organizations,
            oddities,
            ..,
            texts,
            _,
            _,
            _,
        ] = &mut self.streams;
        put_varint(serials, record.serial.len() as u64);
        self.serials.extend_from_slice(record.serial);
        let start = record.not_before.unwrap_or(self.time);
        put_zigzag(times, start.wrapping_sub(self.time));
        put_zigzag(times, record.not_after.unwrap_or(start).wrapping_sub(start));
        put_zigzag(times, record.first_seen.wrapping_sub(start));
        self.time = start;
        put_varint(issuers, u64::from(record.issuer));
        put_varint(organizations, organization);
        if organization > self.organizations.len() as u64 {
            self.organizations.push(record.organization.to_owned());
            put_bytes(texts, record.organization.as_bytes());
        }
        put_varint(oddities, record.deviations);
        put_zigzag(
            oddities,
            (record.names_total as i64).wrapping_sub(record.names.len() as i64),
        );
    }

    /// 0 for none, else the number of the text in this block; one more than there are for a new one.
    fn organization(&self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        let known = self.organizations.iter().position(|known| known == text);
        1 + known.unwrap_or(self.organizations.len()) as u64
    }

    fn push_names(&mut self, record: &RecordView<'_>) {
        let [.., names, suffixes, common_names, texts, _, _, _] = &mut self.streams;
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
    pub(crate) fn finish(&mut self, codec: Codec, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.len() as u16).to_le_bytes());
        out.extend_from_slice(&(self.fingerprints.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.serials.len() as u32).to_le_bytes());
        for issuance in &self.issuances {
            out.extend_from_slice(&issuance.to_le_bytes());
        }
        out.extend_from_slice(&self.fingerprints);
        out.extend_from_slice(&self.serials);
        columns::put_joined(out, &self.streams.each_ref().map(Vec::as_slice), codec);
        self.clear();
    }

    /// Empty again, with its buffers.
    fn clear(&mut self) {
        self.issuances.clear();
        self.fingerprints.clear();
        self.serials.clear();
        self.streams.iter_mut().for_each(Vec::clear);
        self.seq = 0;
        self.time = 0;
        self.organizations.clear();
        self.positions = positions::Before::default();
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

/// A decoded block.
#[derive(Debug, Default)]
pub(crate) struct RecordsBlock {
    /// Sorted by seq.
    pub(crate) records: Vec<CertRecord>,
}

impl RecordsBlock {
    /// Memory as it is allocated: lists of a few elements have room for more, and a record is a dozen
    /// small allocations, each rounded up.
    pub(crate) fn memory_bytes(&self) -> usize {
        let rounded = |bytes: usize| bytes.next_multiple_of(16);
        let size = |record: &CertRecord| {
            let names = record.names.iter().map(|(key, _)| rounded(key.capacity()));
            let texts = record.common_names.iter().map(|name| rounded(name.capacity()));
            let lists = record.names.capacity() * size_of::<(Vec<u8>, NameBits)>()
                + record.common_names.capacity() * size_of::<String>()
                + record.positions.capacity() * size_of::<crate::record::Position>()
                + record.fingerprints.capacity() * size_of::<Fingerprint>();
            let single = rounded(record.serial.capacity()) + rounded(record.organization.capacity());
            lists + single + names.chain(texts).sum::<usize>()
        };
        let records: usize = self.records.iter().map(size).sum();
        records + self.records.capacity() * size_of::<CertRecord>()
    }

    /// The record with this seq.
    pub(crate) fn of_seq(&self, seq: u64) -> Option<&CertRecord> {
        let at = self.records.partition_point(|record| record.seq < seq);
        self.records.get(at).filter(|record| record.seq == seq)
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
            seq: 0,
            time: 0,
            organizations: Vec::new(),
            positions: positions::Before::default(),
            name_bytes_left: DECODED_NAME_BYTES_MAX,
        };
        let mut block = Self {
            records: Vec::with_capacity(count),
        };
        for number in 0..count {
            let before = decoder.seq;
            let record = decoder.record(issuances.u64()?)?;
            if number > 0 && record.seq <= before {
                return Err(Malformed("records out of order"));
            }
            block.records.push(record);
        }
        if !decoder.fingerprints.is_empty() || !decoder.serials.is_empty() {
            return Err(Malformed("columns of records do not add up"));
        }
        Ok(block)
    }
}

struct Decoder<'a> {
    fingerprints: Reader<'a>,
    serials: Reader<'a>,
    streams: [Reader<'a>; STREAMS],
    seq: u64,
    time: i64,
    organizations: Vec<&'a str>,
    positions: positions::Before,
    name_bytes_left: usize,
}

impl Decoder<'_> {
    fn record(&mut self, issuance: u64) -> Decoded<CertRecord> {
        let [flags, seqs, originals, prints, .., counts, indexes, timestamps] = &mut self.streams;
        let flag = flags.u8()?;
        self.seq = self.seq.wrapping_add(seqs.varint()?);
        let mut record = CertRecord {
            issuance,
            seq: self.seq,
            slim: flag & FLAG_SLIM != 0,
            ..CertRecord::default()
        };
        if flag & FLAG_COPY != 0 {
            record.copy_of = Some(self.seq.wrapping_sub(originals.zigzag()? as u64));
        }
        for _ in 0..prints.bounded(FINGERPRINTS_MAX as u64, "too many fingerprints")? {
            let kind = kind_of(prints.u8()?)?;
            record.fingerprints.push(Fingerprint {
                kind,
                sha256: self.fingerprints.array()?,
            });
        }
        record.positions = positions::take(&mut self.positions, counts, indexes, timestamps)?;
        if record.slim {
            let [_, _, _, _, _, _, _, _, oddities, ..] = &mut self.streams;
            record.deviations = oddities.varint()?;
            // Not earlier than the record itself, or it would be whole.
            record.first_seen = i64::MAX;
        } else {
            self.whole(&mut record, flag)?;
            self.names(&mut record)?;
        }
        Ok(record)
    }

    fn whole(&mut self, record: &mut CertRecord, flag: u8) -> Decoded<()> {
        let [
            _,
            _,
            _,
            _,
            serials,
            times,
            issuers,
            organizations,
            oddities,
            ..,
            texts,
            _,
            _,
            _,
        ] = &mut self.streams;
        let length = serials.bounded(SERIAL_BYTES_MAX as u64, "serial longer than the limit")?;
        record.serial = self.serials.take(length)?.to_vec();
        let start = self.time.wrapping_add(times.zigzag()?);
        let end = start.wrapping_add(times.zigzag()?);
        record.first_seen = start.wrapping_add(times.zigzag()?);
        record.not_before = (flag & FLAG_NOT_BEFORE != 0).then_some(start);
        record.not_after = (flag & FLAG_NOT_AFTER != 0).then_some(end);
        self.time = start;
        record.issuer = issuers.bounded(u64::from(u32::MAX), "issuer number over 32 bits")? as u32;
        let count = self.organizations.len() as u64 + 1;
        let organization = organizations.bounded(count, "an organisation that no text tells")?;
        if organization as u64 == count {
            self.organizations.push(texts.text()?);
        }
        if let Some(text) = organization
            .checked_sub(1)
            .and_then(|at| self.organizations.get(at))
        {
            record.organization = (*text).to_owned();
        }
        record.deviations = oddities.varint()?;
        // What is not indexed; the names are added once they are read.
        record.names_total = oddities.zigzag()? as u64;
        Ok(())
    }

    fn names(&mut self, record: &mut CertRecord) -> Decoded<()> {
        let [.., names, suffixes, common_names, texts, _, _, _] = &mut self.streams;
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
        record.names_total = record.names_total.wrapping_add(record.names.len() as u64);
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
    use crate::record::{CertificateKind, Position};
    use proptest::prelude::*;

    fn record(seq: u64, names: &[&str], common_names: &[&str], organization: &str) -> CertRecord {
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
            issuance: seq * 3,
            seq,
            copy_of: seq.is_multiple_of(2).then_some(seq / 2),
            slim: false,
            serial: vec![7; (seq % 20) as usize],
            fingerprints: vec![Fingerprint {
                kind: CertificateKind::Certificate,
                sha256: [seq as u8; 32],
            }],
            positions: vec![Position {
                log: 3,
                index: seq + 70,
                timestamp_ms: seq * 1_000,
            }],
            first_seen: 1_700_000_000,
            not_before: (!seq.is_multiple_of(3)).then_some(1_690_000_000),
            not_after: (!seq.is_multiple_of(5)).then_some(1_710_000_000),
            issuer: 9,
            organization: organization.to_owned(),
            common_names: common_names.iter().map(|&name| name.to_owned()).collect(),
            names_total: names.len() as u64 + seq,
            deviations: seq << 40,
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
                "Example Ltd",
            ),
            record(2, &[], &[], ""),
            CertRecord {
                issuance: 3,
                seq: 7,
                copy_of: Some(1),
                slim: true,
                first_seen: i64::MAX,
                deviations: 5,
                fingerprints: record(4, &[], &[], "").fingerprints,
                ..CertRecord::default()
            },
            record(15, &["z.example.org"], &["Z.example.org"], "Example Ltd"),
            record(16, &[], &[], "Another"),
        ];
        let mut writer = RecordsBlockWriter::default();
        for _ in 0..2 {
            for record in &records {
                record.with_view(|view| writer.push(view));
            }
            let mut payload = Vec::new();
            writer.finish(Codec::Zstd, &mut payload);
            let block = RecordsBlock::decode(&payload).unwrap();
            assert_eq!(block.records, records);
            assert_eq!(block.of_seq(7), records.get(2));
            assert_eq!(block.of_seq(8), None);
        }
    }

    proptest! {
        #[test]
        fn any_payload_is_safe(payload: Vec<u8>) {
            let _ = RecordsBlock::decode(&payload);
        }
    }
}
