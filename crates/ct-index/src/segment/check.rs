//! Proving a segment whole: every checksum, order, count and reference; and rebuilding its meta.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tamis_durable::sealed;
use xxhash_rust::xxh3::xxh3_64;

use crate::coding::Reader;
use crate::segment::block::BlockKind;
use crate::segment::certificates::{BLOCK_RECORDS, CertificatesBlock};
use crate::segment::filter::LineFilter;
use crate::segment::hashes::{self, HashesBlock};
use crate::segment::journal::{self, JournalBlock, JournalRow};
use crate::segment::meta::{Meta, MetaBuilder};
use crate::segment::names::{NamesBlock, index_key};
use crate::segment::organizations::OrganizationsBlock;
use crate::segment::reader::{Segment, Table};
use crate::segment::writer::hash_of_sha256;
use crate::{Error, Result};

/// Magic of meta that was rebuilt into a file of its own.
pub(crate) const MAGIC: [u8; 8] = *b"TAMISMET";
/// Version of the format.
pub(crate) const VERSION: u32 = 1;
const SIDE_META: sealed::Format = sealed::Format {
    magic: MAGIC,
    version: VERSION,
};
const SIDE_META_BYTES_MAX: u64 = 1 << 30;

fn side_meta_path(segment: &Path) -> PathBuf {
    segment.with_extension("meta")
}

/// Meta beside a segment, if it is there and whole.
pub(crate) fn read_side_meta(segment: &Path) -> Option<Meta> {
    let payload = sealed::read(&side_meta_path(segment), SIDE_META, SIDE_META_BYTES_MAX).ok()?;
    Meta::decode(&payload).ok()
}

/// Rebuilds meta from the tables and publishes it beside the segment.
pub(crate) fn rebuild_meta(segment: &Segment) -> Result<()> {
    let mut builder = MetaBuilder::default();
    for_each_block(
        segment,
        &segment.tables.names,
        BlockKind::Names,
        NamesBlock::decode,
        |_, _, block| {
            for row in 0..block.len() {
                if let Some(attrs) = block.attrs(row) {
                    builder.row(block.key(row), false, &attrs);
                }
            }
            Ok(())
        },
    )?;
    for_each_block(
        segment,
        &segment.tables.certificates,
        BlockKind::Certificates,
        CertificatesBlock::decode,
        |_, _, block| {
            for stored in &block.records {
                builder.record(stored.record.seq, stored.record.not_after);
            }
            Ok(())
        },
    )?;
    Ok(sealed::publish(
        &side_meta_path(segment.path()),
        SIDE_META,
        &builder.finish().encode(),
    )?)
}

/// Visits the blocks of a table in order, past the cache.
fn for_each_block<T>(
    segment: &Segment,
    table: &Table,
    kind: BlockKind,
    decode: impl Fn(&[u8]) -> crate::coding::Decoded<T>,
    mut visit: impl FnMut(u64, u64, T) -> Result<()>,
) -> Result<()> {
    let blocks = &segment.blocks;
    for number in 0..table.index.block_count() {
        let at = table.index.at(blocks, number)?;
        let at =
            at.ok_or_else(|| segment.damage(0, format!("{} block {number} has no place", kind.name())))?;
        visit(number, at.offset, blocks.file.block(kind, at, &decode)?)?;
    }
    Ok(())
}

/// What a check found in one segment.
#[derive(Debug, Default)]
pub(crate) struct SegmentCheck {
    pub(crate) rows: u64,
    pub(crate) records: u64,
    pub(crate) faults: Vec<Error>,
}

/// Checks everything in a segment.
pub(crate) fn check(segment: &Segment, issuers: u32) -> SegmentCheck {
    let mut checker = Checker {
        segment,
        issuers,
        found: SegmentCheck::default(),
        meta: MetaBuilder::default(),
        certificates: Certificates::default(),
    };
    checker.run(|checker| checker.names());
    checker.run(|checker| checker.certificates());
    checker.run(|checker| checker.fingerprints());
    checker.run(|checker| checker.serials());
    checker.run(|checker| checker.journal());
    checker.run(|checker| checker.organizations());
    checker.run(|checker| checker.domains());
    checker.run(|checker| checker.meta_and_filter());
    checker.found
}

/// What the certificates table says that other tables must repeat.
#[derive(Default)]
struct Certificates {
    fingerprints: Vec<(u64, u32)>,
    serials: Vec<(u64, u32)>,
    seqs: Vec<(u64, u32)>,
    issuances: Vec<u64>,
    names: u64,
    collisions: bool,
}

struct Checker<'s> {
    segment: &'s Segment,
    issuers: u32,
    found: SegmentCheck,
    meta: MetaBuilder,
    certificates: Certificates,
}

impl Checker<'_> {
    /// One part; its fault does not keep the others from being looked at.
    fn run(&mut self, part: impl FnOnce(&mut Self) -> Result<()>) {
        if let Err(error) = part(self) {
            self.found.faults.push(error);
        }
    }

    fn names(&mut self) -> Result<()> {
        let Self {
            segment,
            issuers,
            found,
            meta,
            ..
        } = self;
        let organizations = segment.tables.organizations.rows;
        let mut last: Vec<u8> = Vec::new();
        for_each_block(
            segment,
            &segment.tables.names,
            BlockKind::Names,
            NamesBlock::decode,
            |number, offset, block| {
                let separator = segment
                    .tables
                    .names
                    .index
                    .key(&segment.blocks, number)?
                    .unwrap_or_default();
                for row in 0..block.len() {
                    let Some(attrs) = block.attrs(row) else { continue };
                    let key = index_key(block.key(row), attrs.issuance);
                    let in_order =
                        last < key && (row > 0 || (last < separator && separator <= key) || number == 0);
                    let known = attrs.issuer < *issuers
                        && u64::from(attrs.organization) <= organizations
                        && attrs.bits != 0;
                    if !in_order || !known {
                        return Err(segment.damage(
                            offset,
                            format!("names block: row {row} is out of order or refers to nothing"),
                        ));
                    }
                    meta.row(block.key(row), false, &attrs);
                    last = key;
                }
                found.rows += block.len() as u64;
                Ok(())
            },
        )?;
        self.same_count("names", self.found.rows, self.segment.tables.names.rows)
    }

    fn certificates(&mut self) -> Result<()> {
        let Self {
            segment,
            issuers,
            found,
            meta,
            certificates,
            ..
        } = self;
        let mut last: Option<(u64, Vec<u8>)> = None;
        let decode = CertificatesBlock::decode;
        for_each_block(
            segment,
            &segment.tables.certificates,
            BlockKind::Certificates,
            decode,
            |number, offset, block| {
                for (place, stored) in block.records.iter().enumerate() {
                    let record = &stored.record;
                    let ordinal = number as u32 * BLOCK_RECORDS as u32 + place as u32;
                    let identity = (record.issuance, record.serial.clone());
                    if last.as_ref().is_some_and(|last| *last >= identity) || record.issuer >= *issuers {
                        return Err(segment.damage(
                            offset,
                            format!("certificates block: record {place} is out of order or has no issuer"),
                        ));
                    }
                    certificates.collisions |= last.as_ref().is_some_and(|last| last.0 == record.issuance);
                    certificates.fingerprints.extend(
                        record
                            .fingerprints
                            .iter()
                            .map(|print| (hash_of_sha256(&print.sha256), ordinal)),
                    );
                    certificates.serials.push((xxh3_64(&record.serial), ordinal));
                    certificates.seqs.push((record.seq, ordinal));
                    certificates.issuances.push(record.issuance);
                    certificates.names += record.names.len() as u64;
                    meta.record(record.seq, record.not_after);
                    last = Some(identity);
                }
                found.records += block.records.len() as u64;
                Ok(())
            },
        )?;
        self.same_count(
            "certificates",
            self.found.records,
            self.segment.tables.certificates.rows,
        )?;
        if self.certificates.names != self.found.rows
            && !self.certificates.collisions
            && self.found.faults.is_empty()
        {
            let (names, rows) = (self.certificates.names, self.found.rows);
            return Err(self.segment.damage(
                0,
                format!("certificates hold {names} names, the names table {rows} rows"),
            ));
        }
        Ok(())
    }

    fn fingerprints(&mut self) -> Result<()> {
        let expected = std::mem::take(&mut self.certificates.fingerprints);
        self.hashes(
            BlockKind::Fingerprints,
            &self.segment.tables.fingerprints,
            expected,
        )
    }

    fn serials(&mut self) -> Result<()> {
        let expected = std::mem::take(&mut self.certificates.serials);
        self.hashes(BlockKind::Serials, &self.segment.tables.serials, expected)
    }

    fn hashes(&self, kind: BlockKind, table: &Table, mut expected: Vec<(u64, u32)>) -> Result<()> {
        expected.sort_unstable();
        let shift = hashes::shift_for(table.rows);
        let mut at = 0;
        for_each_block(
            self.segment,
            table,
            kind,
            HashesBlock::decode,
            |_, offset, block| {
                for number in 0..block.len() {
                    let wanted = expected.get(at).map(|&(hash, ordinal)| (hash >> shift, ordinal));
                    if block.entry(number) != wanted && self.found.faults.is_empty() {
                        return Err(self.segment.damage(
                            offset,
                            format!("{} block: entry {number} leads nowhere", kind.name()),
                        ));
                    }
                    at += 1;
                }
                Ok(())
            },
        )?;
        self.same_count(kind.name(), at as u64, table.rows)
    }

    fn journal(&mut self) -> Result<()> {
        let mut expected = std::mem::take(&mut self.certificates.seqs);
        expected.sort_unstable();
        let segment = self.segment;
        let (mut at, mut bounds) = (0, Vec::new());
        let whole = self.found.faults.is_empty();
        for_each_block(
            segment,
            &segment.tables.journal,
            BlockKind::Journal,
            JournalBlock::decode,
            |number, offset, block| {
                bounds.extend(journal::bounds_of(number as u32, &block.rows));
                for row in &block.rows {
                    let JournalRow { seq, ordinal, .. } = *row;
                    if whole && expected.get(at) != Some(&(seq, ordinal)) {
                        return Err(segment.damage(
                            offset,
                            format!("journal block: seq {seq} leads to the wrong record"),
                        ));
                    }
                    at += 1;
                }
                Ok(())
            },
        )?;
        self.same_count("journal", at as u64, segment.tables.journal.rows)?;
        if let Some(place) = segment.footer.single(BlockKind::JournalBounds) {
            let stored =
                segment
                    .blocks
                    .file
                    .block(BlockKind::JournalBounds, place, journal::decode_bounds)?;
            if stored != bounds {
                return Err(segment.damage(place.offset, "journal bounds disagree with the journal"));
            }
        }
        Ok(())
    }

    fn organizations(&mut self) -> Result<()> {
        let mut count = 0;
        let table = &self.segment.tables.organizations;
        for_each_block(
            self.segment,
            table,
            BlockKind::Organizations,
            OrganizationsBlock::decode,
            |_, _, block| {
                count += block.texts.len() as u64;
                Ok(())
            },
        )?;
        self.same_count("organizations", count, table.rows)
    }

    fn domains(&mut self) -> Result<()> {
        let Some(at) = self.segment.footer.single(BlockKind::Domains) else {
            return Ok(());
        };
        let bytes = self
            .segment
            .blocks
            .file
            .block(BlockKind::Domains, at, |payload| Ok(payload.to_vec()))?;
        fst::Set::new(bytes)
            .map(drop)
            .map_err(|error| self.segment.damage(at.offset, format!("domains: {error}")))
    }

    fn meta_and_filter(&mut self) -> Result<()> {
        let segment = self.segment;
        if let Some(at) = segment.footer.single(BlockKind::IssuanceFilter) {
            let read = |payload: &[u8]| LineFilter::read(&mut Reader::new(payload));
            let filter = segment.blocks.file.block(BlockKind::IssuanceFilter, at, read)?;
            if !self
                .certificates
                .issuances
                .iter()
                .all(|&issuance| filter.may_hold(issuance))
            {
                return Err(segment.damage(at.offset, "the issuance filter misses an issuance"));
            }
        }
        let Some(at) = segment.footer.single(BlockKind::Meta) else {
            return Ok(());
        };
        let stored = segment.blocks.file.block(BlockKind::Meta, at, Meta::decode)?;
        if self.found.faults.is_empty() && std::mem::take(&mut self.meta).finish() != stored {
            return Err(segment.damage(at.offset, "meta disagrees with the tables"));
        }
        Ok(())
    }

    fn same_count(&self, what: &str, found: u64, told: u64) -> Result<()> {
        // Damage already reported makes counts differ; it is not told twice.
        if found == told || !self.found.faults.is_empty() {
            return Ok(());
        }
        Err(self.segment.damage(
            0,
            format!("the {what} table holds {found} rows, the footer says {told}"),
        ))
    }
}

/// Registrable domains of a segment, for searches by automaton.
pub(crate) fn domains(segment: &Segment) -> Result<BTreeSet<String>> {
    let Some(at) = segment.footer.single(BlockKind::Domains) else {
        return Ok(BTreeSet::new());
    };
    let bytes = segment
        .blocks
        .file
        .block(BlockKind::Domains, at, |payload| Ok(payload.to_vec()))?;
    let set = fst::Set::new(bytes).map_err(|error| segment.damage(at.offset, format!("domains: {error}")))?;
    Ok(set
        .stream()
        .into_strs()
        .map_err(|error| segment.damage(at.offset, format!("domains: {error}")))?
        .into_iter()
        .collect())
}
