//! Proving a segment whole: every checksum, order, count and reference; and rebuilding its meta.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tamis_durable::sealed;
use xxhash_rust::xxh3::xxh3_64;

use crate::coding::Reader;
use crate::record::CertRecord;
use crate::segment::block::BlockKind;
use crate::segment::filter::LineFilter;
use crate::segment::hashes::{Entries, Entry, HashesBlock, LOOKUPS};
use crate::segment::meta::{Meta, MetaBuilder};
use crate::segment::names::{NamesBlock, index_key};
use crate::segment::organizations::OrganizationsBlock;
use crate::segment::positions::{self, Bounds};
use crate::segment::reader::{Segment, Table};
use crate::segment::records::RecordsBlock;
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
        &segment.tables.records,
        BlockKind::Records,
        RecordsBlock::decode,
        |_, _, block| {
            for record in &block.records {
                builder.record(record.seq, record.not_after);
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
    /// What look-ups lead to, and what they should lead to by the records: by kind.
    pub(crate) led: [Tally; LOOKUPS.len()],
    pub(crate) expected: [Tally; LOOKUPS.len()],
    pub(crate) faults: Vec<Error>,
}

impl SegmentCheck {
    /// Entries of look-ups.
    pub(crate) fn entries(&self) -> u64 {
        self.led.iter().map(|tally| tally.count).sum()
    }
}

/// A number of seqs and a sum over them, whatever their order: equal for equal ones, and almost never
/// for others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    count: u64,
    sum: u64,
}

impl Tally {
    fn note(&mut self, seq: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(xxh3_64(&seq.to_le_bytes()));
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// Checks everything in a segment.
pub(crate) fn check(segment: &Segment, issuers: u32) -> SegmentCheck {
    let mut checker = Checker {
        segment,
        issuers,
        found: SegmentCheck::default(),
        meta: MetaBuilder::default(),
        records: Records::default(),
    };
    checker.run(|checker| checker.names());
    checker.run(|checker| checker.records());
    checker.run(|checker| checker.issuance_filter());
    for number in 0..LOOKUPS.len() {
        checker.run(|checker| checker.look_up(number));
    }
    checker.run(|checker| checker.position_bounds());
    checker.run(|checker| checker.organizations());
    checker.run(|checker| checker.domains());
    checker.run(|checker| checker.meta());
    checker.found
}

/// What the records table says that other tables must repeat.
#[derive(Default)]
struct Records {
    entries: Entries,
    bounds: Bounds,
    names: u64,
}

impl Records {
    fn note(&mut self, record: &CertRecord) {
        let serial = (!record.slim).then_some(record.serial.as_slice());
        self.entries
            .note(record.seq, record.issuance, serial, &record.fingerprints);
        self.names += record.names.len() as u64;
    }

    /// True when two records are of one issuance hash: their rows fold.
    fn collide(&self) -> bool {
        let [.., issuances] = &self.entries.0;
        issuances
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if a.hash() == b.hash()))
    }
}

struct Checker<'s> {
    segment: &'s Segment,
    issuers: u32,
    found: SegmentCheck,
    meta: MetaBuilder,
    records: Records,
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

    fn records(&mut self) -> Result<()> {
        let Self {
            segment,
            issuers,
            found,
            meta,
            records,
            ..
        } = self;
        let mut last: Option<u64> = None;
        for_each_block(
            segment,
            &segment.tables.records,
            BlockKind::Records,
            RecordsBlock::decode,
            |number, offset, block| {
                let first = segment.tables.records.index.key(&segment.blocks, number)?;
                for (place, record) in block.records.iter().enumerate() {
                    let in_order = last < Some(record.seq)
                        && (place > 0 || first.as_deref() == Some(&record.seq.to_be_bytes()));
                    if !in_order || (!record.slim && record.issuer >= *issuers) {
                        return Err(segment.damage(
                            offset,
                            format!("records block: record {place} is out of order or has no issuer"),
                        ));
                    }
                    records.note(record);
                    records.bounds.note(number, &record.positions);
                    meta.record(record.seq, record.not_after);
                    last = Some(record.seq);
                }
                found.records += block.records.len() as u64;
                Ok(())
            },
        )?;
        self.records.entries.sort();
        for (entries, expected) in self.records.entries.0.iter().zip(&mut self.found.expected) {
            entries.iter().for_each(|entry| expected.note(entry.seq()));
        }
        self.same_count("records", self.found.records, self.segment.tables.records.rows)?;
        let (names, rows) = (self.records.names, self.found.rows);
        if self.holds_both() && names != rows && !self.records.collide() && self.found.faults.is_empty() {
            let reason = format!("records hold {names} names, the names table {rows} rows");
            return Err(self.segment.damage(0, reason));
        }
        Ok(())
    }

    /// True for a flush: its tables must agree with one another.
    fn holds_both(&self) -> bool {
        let footer = &self.segment.footer;
        footer.table(BlockKind::Records).is_some() && footer.table(BlockKind::Issuances).is_some()
    }

    fn look_up(&mut self, number: usize) -> Result<()> {
        let Some(&kind) = LOOKUPS.get(number) else {
            return Ok(());
        };
        let segment = self.segment;
        let expected = self
            .records
            .entries
            .0
            .get_mut(number)
            .map(std::mem::take)
            .unwrap_or_default();
        let exact = self.holds_both() && self.found.faults.is_empty();
        let table = segment.tables.look_up(kind);
        let (mut at, mut last, mut led) = (0, None, Tally::default());
        for_each_block(
            segment,
            table,
            kind,
            HashesBlock::decode,
            |block_number, offset, block| {
                let first = table.index.key(&segment.blocks, block_number)?;
                let first_hash = block.entry(0).map(|entry| entry.hash().to_be_bytes());
                for number in 0..block.len() {
                    let Some(entry) = block.entry(number) else {
                        continue;
                    };
                    let wanted = expected
                        .get(at)
                        .map(|entry| Entry::new(block.kept(entry.hash()), entry.seq()));
                    let in_order = last <= Some(entry.hash()) && segment.hashes.holds(entry.hash());
                    let placed =
                        number > 0 || first.as_deref() == first_hash.as_ref().map(|hash| hash.as_slice());
                    let leads = !exact || wanted == Some(entry);
                    if !in_order || !placed || !leads {
                        let reason = format!(
                            "{} block: entry {number} is out of order or leads nowhere",
                            kind.name()
                        );
                        return Err(segment.damage(offset, reason));
                    }
                    led.note(entry.seq());
                    last = Some(entry.hash());
                    at += 1;
                }
                Ok(())
            },
        )?;
        if let Some(sum) = self.found.led.get_mut(number) {
            *sum = led;
        }
        self.same_count(kind.name(), at as u64, table.rows)
    }

    fn position_bounds(&mut self) -> Result<()> {
        let segment = self.segment;
        let Some(place) = segment.footer.single(BlockKind::PositionBounds) else {
            return Ok(());
        };
        let file = &segment.blocks.file;
        let stored = file.block(BlockKind::PositionBounds, place, positions::decode_bounds)?;
        if stored != self.records.bounds.all() && self.found.faults.is_empty() {
            return Err(segment.damage(place.offset, "position bounds disagree with the records"));
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

    fn issuance_filter(&mut self) -> Result<()> {
        let segment = self.segment;
        let Some(at) = segment.footer.single(BlockKind::IssuanceFilter) else {
            return Ok(());
        };
        let read = |payload: &[u8]| LineFilter::read(&mut Reader::new(payload));
        let filter = segment.blocks.file.block(BlockKind::IssuanceFilter, at, read)?;
        let [.., issuances] = &self.records.entries.0;
        if issuances.iter().all(|entry| filter.may_hold(entry.hash())) {
            return Ok(());
        }
        Err(segment.damage(at.offset, "the issuance filter misses an issuance"))
    }

    fn meta(&mut self) -> Result<()> {
        let segment = self.segment;
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
