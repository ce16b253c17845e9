//! Certificate records: what an observation of a certificate adds, how it travels, how two fold.
//!
//! # Format
//! The wire form (write-ahead log, memtable) is described in `docs/formats/wal.md`; encode and
//! decode live here and do no I/O.
//!
//! # Invariants
//! Records of one issuance (equal issuance hash **and** equal serial) fold into one: fingerprints
//! and positions are united, times and `seq` keep the smallest. A copy names the record it belongs to
//! by that record's `seq`.

use crate::coding::{Decoded, Malformed, Reader, put_bytes, put_varint, put_zigzag};
use crate::key::Identifier;
use crate::known::Novelty;

/// Log positions kept for one issuance.
pub const POSITIONS_MAX: usize = 4;
/// Fingerprints kept for one issuance (one precertificate and a final certificate are usual).
pub const FINGERPRINTS_MAX: usize = 16;
/// Serial bytes kept; certificates in the wild stay below 30.
pub const SERIAL_BYTES_MAX: usize = 256;
/// Bytes kept of an organisation or a common name.
pub const TEXT_BYTES_MAX: usize = 1_024;
/// Common names kept of one certificate.
pub const COMMON_NAMES_MAX: usize = 64;
/// Names that one record can carry; callers choose a smaller limit.
pub const NAMES_MAX: usize = 100_000;

/// Bits of a name row: the name itself, and `*.` below it.
pub type NameBits = u8;
/// The certificate is for the name itself.
pub const NAME_SELF: NameBits = 1;
/// The certificate is for `*.name`.
pub const NAME_WILDCARD: NameBits = 2;

/// The identity of an issuance: a hash over the to-be-signed certificate without poison and SCTs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Issuance(pub u64);

/// What was submitted to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CertificateKind {
    /// A precertificate (RFC 6962 §3.1), poison included.
    Precertificate,
    /// A final certificate.
    Certificate,
}

/// SHA-256 of a submitted certificate or precertificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint {
    /// What was hashed.
    pub kind: CertificateKind,
    /// The hash.
    pub sha256: [u8; 32],
}

/// Where a log holds an entry. Log number 0 is the local import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Number of the log in this folder's manifest.
    pub log: u16,
    /// Index of the leaf (48 bits).
    pub index: u64,
    /// Timestamp of the entry in milliseconds since 1970.
    pub timestamp_ms: u64,
}

impl Position {
    /// Log number and index in one number: the record id (16 + 48 bits).
    pub fn id(&self) -> u64 {
        (u64::from(self.log) << 48) | (self.index & 0xffff_ffff_ffff)
    }
}

/// One certificate as a reader saw it, borrowed from whoever read it.
#[derive(Debug, Clone)]
pub struct Observation<'a> {
    /// Identity of the issuance.
    pub issuance: Issuance,
    /// Serial number, raw content bytes.
    pub serial: &'a [u8],
    /// Hash of what was submitted; absent where a log left the precertificate out.
    pub fingerprint: Option<Fingerprint>,
    /// Where a log holds it, if it came from one.
    pub position: Option<Position>,
    /// When the world first saw it, in seconds since 1970: log entry, SCT, or the caller's guess.
    pub first_seen: i64,
    /// Start of validity, if readable.
    pub not_before: Option<i64>,
    /// End of validity, if readable.
    pub not_after: Option<i64>,
    /// Issuer as text (RFC 4514).
    pub issuer: &'a str,
    /// Organisation of the subject; empty when absent.
    pub organization: &'a str,
    /// Names that the certificate held, before any limit.
    pub names_total: u64,
    /// Oddities of the certificate, a bit each; this crate does not know their meaning.
    pub deviations: u64,
}

/// A certificate record, whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertRecord {
    /// Issuance hash.
    pub issuance: u64,
    /// Order of discovery in this folder.
    pub seq: u64,
    /// What this was found to be a copy of, by `seq`; `None` for the first of an issuance.
    pub copy_of: Option<u64>,
    /// A copy that tells only what it adds: no serial number, dates or names.
    pub slim: bool,
    /// Serial number, raw content bytes.
    pub serial: Vec<u8>,
    /// Every fingerprint of the issuance, sorted.
    pub fingerprints: Vec<Fingerprint>,
    /// The first positions, by timestamp.
    pub positions: Vec<Position>,
    /// Seconds since 1970.
    pub first_seen: i64,
    /// Seconds since 1970.
    pub not_before: Option<i64>,
    /// Seconds since 1970.
    pub not_after: Option<i64>,
    /// Number in the issuer dictionary.
    pub issuer: u32,
    /// Organisation of the subject; empty when absent.
    pub organization: String,
    /// Common names of the subject.
    pub common_names: Vec<String>,
    /// Names that the certificate held, before the limit.
    pub names_total: u64,
    /// Oddities, a bit each.
    pub deviations: u64,
    /// Keys and bits of all indexed names, sorted by key.
    pub names: Vec<(Vec<u8>, NameBits)>,
}

impl CertRecord {
    /// The record id: the first log position, or the order of discovery for a local import.
    pub fn id(&self) -> u64 {
        self.positions.first().map_or(self.seq, Position::id)
    }

    /// True when `other` tells about the same issuance.
    pub fn same_issuance(&self, other: &Self) -> bool {
        self.issuance == other.issuance
            && (self.first_seq() == other.first_seq()
                || (!self.slim && !other.slim && self.serial == other.serial))
    }

    /// The `seq` of the first record of the issuance.
    fn first_seq(&self) -> u64 {
        self.copy_of.unwrap_or(self.seq)
    }

    /// Folds a record of the same issuance into this one. Commutative and associative up to limits.
    pub fn fold(&mut self, mut other: Self) {
        if self.slim && !other.slim || (self.slim == other.slim && other.seq < self.seq) {
            std::mem::swap(self, &mut other);
        }
        let original = self.copy_of.is_none() || other.copy_of.is_none();
        self.copy_of = if original {
            None
        } else {
            self.copy_of.min(other.copy_of)
        };
        self.seq = self.seq.min(other.seq);
        self.first_seen = self.first_seen.min(other.first_seen);
        self.deviations |= other.deviations;
        self.names_total = self.names_total.max(other.names_total);
        if other.names.len() > self.names.len() {
            // The other was indexed with a larger limit on names.
            self.names = other.names;
        }
        self.fingerprints.append(&mut other.fingerprints);
        self.positions.append(&mut other.positions);
        self.settle();
    }

    /// Sorts and bounds what folding united.
    fn settle(&mut self) {
        settle_fingerprints(&mut self.fingerprints);
        settle_positions(&mut self.positions);
    }
}

/// Sorts united fingerprints and keeps as many as a record holds.
pub(crate) fn settle_fingerprints(fingerprints: &mut Vec<Fingerprint>) {
    fingerprints.sort_unstable();
    fingerprints.dedup();
    fingerprints.truncate(FINGERPRINTS_MAX);
}

/// Sorts united positions by time and keeps the first ones.
pub(crate) fn settle_positions(positions: &mut Vec<Position>) {
    positions.sort_unstable_by_key(|position| (position.timestamp_ms, position.log, position.index));
    positions.dedup_by_key(|position| (position.log, position.index));
    positions.truncate(POSITIONS_MAX);
}

/// A folded record, borrowed from wherever its parts lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordView<'a> {
    pub(crate) issuance: u64,
    pub(crate) seq: u64,
    pub(crate) copy_of: Option<u64>,
    pub(crate) slim: bool,
    pub(crate) serial: &'a [u8],
    pub(crate) fingerprints: &'a [Fingerprint],
    pub(crate) positions: &'a [Position],
    pub(crate) first_seen: i64,
    pub(crate) not_before: Option<i64>,
    pub(crate) not_after: Option<i64>,
    pub(crate) issuer: u32,
    pub(crate) organization: &'a str,
    pub(crate) common_names: &'a [&'a str],
    pub(crate) names_total: u64,
    pub(crate) deviations: u64,
    /// Sorted by key.
    pub(crate) names: &'a [(&'a [u8], NameBits)],
}

impl CertRecord {
    /// Lends the record as a view.
    pub(crate) fn with_view<T>(&self, visit: impl FnOnce(&RecordView<'_>) -> T) -> T {
        let names: Vec<(&[u8], NameBits)> = self
            .names
            .iter()
            .map(|(key, bits)| (key.as_slice(), *bits))
            .collect();
        let common_names: Vec<&str> = self.common_names.iter().map(String::as_str).collect();
        visit(&RecordView {
            issuance: self.issuance,
            seq: self.seq,
            copy_of: self.copy_of,
            slim: self.slim,
            serial: &self.serial,
            fingerprints: &self.fingerprints,
            positions: &self.positions,
            first_seen: self.first_seen,
            not_before: self.not_before,
            not_after: self.not_after,
            issuer: self.issuer,
            organization: &self.organization,
            common_names: &common_names,
            names_total: self.names_total,
            deviations: self.deviations,
            names: &names,
        })
    }
}

pub(crate) const FLAG_COPY: u8 = 1;
pub(crate) const FLAG_NOT_BEFORE: u8 = 2;
pub(crate) const FLAG_NOT_AFTER: u8 = 4;
pub(crate) const FLAG_SLIM: u8 = 8;
const FLAGS: u8 = FLAG_COPY | FLAG_NOT_BEFORE | FLAG_NOT_AFTER | FLAG_SLIM;

/// Appends the wire form of an observation; names are appended by [`put_names`].
pub(crate) fn put_observation<'c>(
    out: &mut Vec<u8>,
    seen: &Observation<'_>,
    issuer: u32,
    names: impl ExactSizeIterator<Item = &'c str>,
) {
    let mut flags = if seen.not_before.is_some() {
        FLAG_NOT_BEFORE
    } else {
        0
    };
    flags |= if seen.not_after.is_some() {
        FLAG_NOT_AFTER
    } else {
        0
    };
    out.extend_from_slice(&seen.issuance.0.to_le_bytes());
    out.push(flags);
    put_zigzag(out, seen.first_seen);
    for time in [seen.not_before, seen.not_after].into_iter().flatten() {
        put_zigzag(out, time);
    }
    put_varint(out, u64::from(issuer));
    put_bytes(out, seen.serial.get(..SERIAL_BYTES_MAX).unwrap_or(seen.serial));
    put_varint(out, u64::from(seen.fingerprint.is_some()));
    seen.fingerprint
        .iter()
        .for_each(|print| put_fingerprint(out, print));
    put_varint(out, u64::from(seen.position.is_some()));
    seen.position
        .iter()
        .for_each(|position| put_position(out, position));
    put_bytes(out, cut(seen.organization).as_bytes());
    put_varint(out, names.len().min(COMMON_NAMES_MAX) as u64);
    for name in names.take(COMMON_NAMES_MAX) {
        put_bytes(out, cut(name).as_bytes());
    }
    put_varint(out, seen.names_total);
    put_varint(out, seen.deviations);
}

fn put_fingerprint(out: &mut Vec<u8>, fingerprint: &Fingerprint) {
    out.push(kind_code(fingerprint.kind));
    out.extend_from_slice(&fingerprint.sha256);
}

fn put_position(out: &mut Vec<u8>, position: &Position) {
    put_varint(out, u64::from(position.log));
    put_varint(out, position.index);
    put_varint(out, position.timestamp_ms);
}

/// Bytes of the issuance and the flags, in front of a record.
const HEAD_BYTES: usize = 9;

/// The wire form of a copy of the record `copy_of`: what it adds, and nothing else.
pub(crate) fn put_copy(out: &mut Vec<u8>, wire: &WireRecord<'_>, copy_of: u64, novelty: &Novelty) {
    out.extend_from_slice(&wire.issuance.to_le_bytes());
    out.push(FLAG_COPY | FLAG_SLIM);
    put_varint(out, copy_of);
    put_zigzag(out, wire.first_seen);
    put_varint(out, wire.issuer);
    put_bytes(out, wire.serial);
    put_varint(out, novelty.fingerprints(wire).count() as u64);
    novelty
        .fingerprints(wire)
        .for_each(|print| put_fingerprint(out, &print));
    put_varint(out, novelty.positions(wire).count() as u64);
    novelty
        .positions(wire)
        .for_each(|position| put_position(out, &position));
    put_bytes(out, b"");
    put_varint(out, 0);
    put_varint(out, 0);
    put_varint(out, wire.deviations);
    put_varint(out, 0);
}

/// The wire form of a copy that is written whole; `bytes` are those of the observation.
pub(crate) fn put_whole_copy(out: &mut Vec<u8>, bytes: &[u8], copy_of: u64) {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES).unwrap_or((bytes, &[]));
    out.extend_from_slice(head);
    if let Some(flags) = out.last_mut() {
        *flags |= FLAG_COPY;
    }
    put_varint(out, copy_of);
    out.extend_from_slice(rest);
}

/// Cuts text at [`TEXT_BYTES_MAX`], on a character.
pub(crate) fn cut(text: &str) -> &str {
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    let end = (0..=TEXT_BYTES_MAX)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0);
    text.get(..end).unwrap_or("")
}

pub(crate) fn kind_code(kind: CertificateKind) -> u8 {
    match kind {
        CertificateKind::Precertificate => 0,
        CertificateKind::Certificate => 1,
    }
}

pub(crate) fn kind_of(code: u8) -> Decoded<CertificateKind> {
    match code {
        0 => Ok(CertificateKind::Precertificate),
        1 => Ok(CertificateKind::Certificate),
        _ => Err(Malformed("unknown kind of fingerprint")),
    }
}

/// Appends the names of a record, each key encoded where it will be read from.
pub(crate) fn put_names<'n>(
    out: &mut Vec<u8>,
    count: usize,
    names: impl Iterator<Item = (Identifier<'n>, NameBits)>,
) {
    put_varint(out, count as u64);
    for (identifier, bits) in names.take(count) {
        out.push(bits & (NAME_SELF | NAME_WILDCARD));
        let at = out.len();
        // Nearly all keys are shorter than 128 bytes: their length takes this one byte.
        out.push(0);
        identifier.encode_into(out);
        let length = out.len() - at - 1;
        if length >= 0x80 {
            out.insert(at + 1, (length >> 7) as u8);
        }
        if let Some(first) = out.get_mut(at) {
            *first = if length < 0x80 {
                length as u8
            } else {
                (length & 0x7f) as u8 | 0x80
            };
        }
    }
}

/// A record in its wire form, checked once and borrowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WireRecord<'a> {
    pub(crate) issuance: u64,
    pub(crate) copy_of: Option<u64>,
    pub(crate) slim: bool,
    pub(crate) first_seen: i64,
    pub(crate) not_before: Option<i64>,
    pub(crate) not_after: Option<i64>,
    /// Number in the table of issuers that travels with the batch.
    pub(crate) issuer: u64,
    pub(crate) serial: &'a [u8],
    /// UTF-8, checked when the record was first read.
    organization: &'a [u8],
    pub(crate) names_total: u64,
    pub(crate) deviations: u64,
    pub(crate) names_count: usize,
    fingerprints: &'a [u8],
    positions: Reader<'a>,
    positions_count: usize,
    common_names: Reader<'a>,
    common_names_count: usize,
    names: Reader<'a>,
}

const FINGERPRINT_BYTES: usize = 33;

impl<'a> WireRecord<'a> {
    /// Reads one record and moves `reader` behind it. Everything is checked here, so that the
    /// iterators below cannot fail.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Decoded<Self> {
        let record = Self::read_unchecked(reader)?;
        record.check()?;
        Ok(record)
    }

    /// Texts and keys of a record that came from outside this process.
    fn check(&self) -> Decoded<()> {
        let mut common_names = self.common_names;
        for _ in 0..self.common_names_count {
            common_names.text()?;
        }
        std::str::from_utf8(self.organization).map_err(|_| Malformed("text is not UTF-8"))?;
        let mut names = self.names;
        for _ in 0..self.names_count {
            let (_, key) = read_name(&mut names)?;
            if key.is_empty() || key.contains(&0) {
                return Err(Malformed("a key that no identifier has"));
            }
        }
        Ok(())
    }

    /// As [`Self::read`], for bytes that this process encoded or checked before: texts and keys are
    /// not looked at again.
    pub(crate) fn read_unchecked(reader: &mut Reader<'a>) -> Decoded<Self> {
        let issuance = reader.u64()?;
        let flags = reader.u8()?;
        if flags & !FLAGS != 0 {
            return Err(Malformed("unknown flags in a record"));
        }
        let copy_of = if flags & FLAG_COPY != 0 {
            Some(reader.varint()?)
        } else {
            None
        };
        let first_seen = reader.zigzag()?;
        let not_before = if flags & FLAG_NOT_BEFORE != 0 {
            Some(reader.zigzag()?)
        } else {
            None
        };
        let not_after = if flags & FLAG_NOT_AFTER != 0 {
            Some(reader.zigzag()?)
        } else {
            None
        };
        let issuer = reader.varint()?;
        let serial = reader.bytes()?;
        let count = reader.bounded(FINGERPRINTS_MAX as u64, "too many fingerprints")?;
        let fingerprints = reader.take(count * FINGERPRINT_BYTES)?;
        for fingerprint in fingerprints.chunks_exact(FINGERPRINT_BYTES) {
            kind_of(fingerprint.first().copied().unwrap_or(u8::MAX))?;
        }
        let positions_count = reader.bounded(POSITIONS_MAX as u64, "too many positions")?;
        let positions = *reader;
        for _ in 0..positions_count {
            read_position(reader)?;
        }
        let organization = reader.bytes()?;
        let common_names_count = reader.bounded(COMMON_NAMES_MAX as u64, "too many common names")?;
        let common_names = *reader;
        for _ in 0..common_names_count {
            reader.bytes()?;
        }
        let names_total = reader.varint()?;
        let deviations = reader.varint()?;
        let names_count = reader.bounded(NAMES_MAX as u64, "too many names")?;
        let names = *reader;
        for _ in 0..names_count {
            read_name(reader)?;
        }
        Ok(Self {
            issuance,
            copy_of,
            slim: flags & FLAG_SLIM != 0,
            first_seen,
            not_before,
            not_after,
            issuer,
            serial,
            organization,
            names_total,
            deviations,
            names_count,
            fingerprints,
            positions,
            positions_count,
            common_names,
            common_names_count,
            names,
        })
    }

    pub(crate) fn fingerprints(&self) -> impl Iterator<Item = Fingerprint> + use<'a> {
        self.fingerprints
            .chunks_exact(FINGERPRINT_BYTES)
            .filter_map(|bytes| {
                let (kind, hash) = bytes.split_first()?;
                Some(Fingerprint {
                    kind: kind_of(*kind).ok()?,
                    sha256: hash.try_into().ok()?,
                })
            })
    }

    pub(crate) fn positions(&self) -> impl Iterator<Item = Position> + use<'a> {
        let mut reader = self.positions;
        (0..self.positions_count).filter_map(move |_| read_position(&mut reader).ok())
    }

    pub(crate) fn has_organization(&self) -> bool {
        !self.organization.is_empty()
    }

    pub(crate) fn organization(&self) -> &'a str {
        std::str::from_utf8(self.organization).unwrap_or_default()
    }

    pub(crate) fn common_names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut reader = self.common_names;
        (0..self.common_names_count).filter_map(move |_| reader.text().ok())
    }

    /// Keys and bits, in the order of the certificate.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&'a [u8], NameBits)> + use<'a> {
        let mut reader = self.names;
        (0..self.names_count).filter_map(move |_| read_name(&mut reader).ok().map(|(bits, key)| (key, bits)))
    }

    /// The owned record.
    pub(crate) fn to_record(self, seq: u64, issuer: u32) -> CertRecord {
        let mut names: Vec<(Vec<u8>, NameBits)> =
            self.names().map(|(key, bits)| (key.to_vec(), bits)).collect();
        sort_names(&mut names);
        let mut record = CertRecord {
            issuance: self.issuance,
            seq,
            copy_of: self.copy_of,
            slim: self.slim,
            serial: self.serial.to_vec(),
            fingerprints: self.fingerprints().collect(),
            positions: self.positions().collect(),
            first_seen: self.first_seen,
            not_before: self.not_before,
            not_after: self.not_after,
            issuer,
            organization: self.organization().to_owned(),
            common_names: self.common_names().map(str::to_owned).collect(),
            names_total: self.names_total,
            deviations: self.deviations,
            names,
        };
        record.settle();
        record
    }
}

/// Sorts names and unites the bits of equal keys.
pub(crate) fn sort_names<K: Ord>(names: &mut Vec<(K, NameBits)>) {
    names.sort_unstable();
    names.dedup_by(|later, earlier| {
        let same = later.0 == earlier.0;
        if same {
            earlier.1 |= later.1;
        }
        same
    });
}

fn read_position(reader: &mut Reader<'_>) -> Decoded<Position> {
    let log = reader.bounded(u64::from(u16::MAX), "log number over 16 bits")? as u16;
    Ok(Position {
        log,
        index: reader.varint()?,
        timestamp_ms: reader.varint()?,
    })
}

fn read_name<'a>(reader: &mut Reader<'a>) -> Decoded<(NameBits, &'a [u8])> {
    let bits = reader.u8()?;
    let key = reader.bytes()?;
    if key.len() > crate::key::KEY_BYTES_MAX {
        return Err(Malformed("a key that no identifier has"));
    }
    Ok((bits, key))
}
