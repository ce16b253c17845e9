//! An open segment: point lookups and what prunes them.
//!
//! # Concurrency
//! Shared by readers behind an `Arc`; nothing in it changes after opening. The file may be unlinked
//! while readers hold it: the descriptor keeps it alive.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::xxh3_64;

use crate::key::KeyRange;
use crate::record::{CertRecord, Position};
use crate::segment::block::{BlockAt, BlockKind};
use crate::segment::certificates::{BLOCK_RECORDS, CertificatesBlock};
use crate::segment::file::{BlockCache, Blocks};
use crate::segment::filter::LineFilter;
use crate::segment::index::BlockIndex;
use crate::segment::layout::{self, FRAME_BYTES, Footer};
use crate::segment::meta::Meta;
use crate::segment::writer::hash_of_sha256;
use crate::segment::{hashes, journal, organizations, salvage};
use crate::{Error, Result};

/// One table of an open segment.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) index: BlockIndex,
    pub(crate) rows: u64,
}

/// The tables of an open segment.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) names: Table,
    pub(crate) certificates: Table,
    pub(crate) fingerprints: Table,
    pub(crate) serials: Table,
    pub(crate) journal: Table,
    pub(crate) organizations: Table,
}

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) id: u64,
    pub(crate) blocks: Blocks,
    /// Tables as the footer tells them.
    pub(crate) tables: Tables,
    /// Tables found by a scan, once a part of an index turned out to be damaged.
    repaired: OnceLock<Tables>,
    pub(crate) footer: Footer,
    /// `None` while it is damaged and not yet rebuilt: then nothing is pruned.
    pub(crate) meta: Option<Meta>,
    issuances: Option<LineFilter>,
    /// The tables were found by a scan: lookups are missing and certificates are searched one by one.
    pub(crate) salvaged: bool,
    /// A lost part of a record was told already.
    loss_told: AtomicBool,
    /// What was found damaged on opening.
    pub(crate) faults: Vec<Error>,
}

impl Segment {
    /// Opens a segment. Damage to the footer is survived by scanning the file; damage to meta and
    /// filters by doing without. Only a file that cannot be read at all, or of a newer version, fails.
    pub(crate) fn open(path: &Path, id: u64, cache: &Arc<BlockCache>) -> Result<Self> {
        let blocks = Blocks::open(path, Arc::clone(cache))?;
        let mut faults = Vec::new();
        if let Err(error) = check_header(&blocks, id) {
            if matches!(error, Error::Durable(_)) {
                return Err(error);
            }
            faults.push(error);
        }
        let opened = open_tables(&blocks);
        let salvaged = opened.is_err();
        let (footer, tables) = match opened {
            Ok(opened) => opened,
            Err(error @ Error::Durable(_)) => return Err(error),
            Err(error) => {
                faults.push(error);
                (Footer::default(), salvage::scan(&blocks, &mut faults)?)
            }
        };
        let mut segment = Self {
            id,
            blocks,
            tables,
            repaired: OnceLock::new(),
            footer,
            meta: None,
            issuances: None,
            salvaged,
            loss_told: AtomicBool::new(false),
            faults,
        };
        segment.meta = segment
            .side_meta()
            .or_else(|| segment.optional(BlockKind::Meta, Meta::decode));
        segment.issuances = segment.optional(BlockKind::IssuanceFilter, |payload| {
            LineFilter::read(&mut crate::coding::Reader::new(payload))
        });
        Ok(segment)
    }

    /// A single block, or `None` with the fault noted.
    fn optional<T>(
        &mut self,
        kind: BlockKind,
        decode: impl FnOnce(&[u8]) -> crate::coding::Decoded<T>,
    ) -> Option<T> {
        let at = self.footer.single(kind)?;
        match self.blocks.file.block(kind, at, decode) {
            Ok(value) => Some(value),
            Err(error) => {
                self.faults.push(error);
                None
            }
        }
    }

    /// Meta that was rebuilt into a file of its own, if there is any.
    fn side_meta(&self) -> Option<Meta> {
        crate::segment::check::read_side_meta(self.blocks.file.path())
    }

    /// A scan replaced the tables of the footer.
    pub(crate) fn is_repaired(&self) -> bool {
        self.repaired.get().is_some()
    }

    /// Tables with the block numbers of a scan, or of the footer.
    pub(crate) fn tables_of(&self, scanned: bool) -> &Tables {
        self.repaired.get().filter(|_| scanned).unwrap_or(&self.tables)
    }

    /// The tables to read from.
    pub(crate) fn tables(&self) -> &Tables {
        self.repaired.get().unwrap_or(&self.tables)
    }

    /// The tables were found by a scan: lookups are missing and rows may be.
    pub(crate) fn is_salvaged(&self) -> bool {
        self.salvaged || self.repaired.get().is_some()
    }

    /// Finds the blocks by a scan, for when a part of an index is damaged. Answers false when that was
    /// done before.
    pub(crate) fn repair(&self) -> Result<bool> {
        if self.is_salvaged() {
            return Ok(false);
        }
        // The damage that leads here is told by who met it.
        let tables = salvage::scan(&self.blocks, &mut Vec::new())?;
        Ok(self.repaired.set(tables).is_ok())
    }

    pub(crate) fn path(&self) -> &Path {
        self.blocks.file.path()
    }

    /// False when no row of the segment lies in `range`.
    pub(crate) fn may_hold(&self, range: &KeyRange) -> bool {
        self.meta.as_ref().is_none_or(|meta| meta.may_hold(range))
    }

    /// False when no record of the segment is of this issuance.
    pub(crate) fn may_hold_issuance(&self, issuance: u64) -> bool {
        self.issuances
            .as_ref()
            .is_none_or(|filter| filter.may_hold(issuance))
    }

    /// The text of an organisation number of this segment.
    pub(crate) fn organization(&self, number: u32) -> Result<String> {
        let Some(place) = number.checked_sub(1) else {
            return Ok(String::new());
        };
        let block = place as usize / organizations::BLOCK_TEXTS;
        let Some(at) = self.tables().organizations.index.at(&self.blocks, block as u64)? else {
            return Err(self.damage(0, format!("organisation {number} is missing")));
        };
        let texts = self.blocks.organizations(at)?;
        let text = texts.texts.get(place as usize % organizations::BLOCK_TEXTS);
        text.cloned()
            .ok_or_else(|| self.damage(at.offset, format!("organisation {number} is missing")))
    }

    /// All records of one issuance (more than one only if hashes collide).
    pub(crate) fn of_issuance(&self, issuance: u64) -> Result<Vec<CertRecord>> {
        let mut found = Vec::new();
        if !self.may_hold_issuance(issuance) {
            return Ok(found);
        }
        let key = issuance.to_be_bytes();
        self.scan(&self.tables().certificates, &key, |number, at| {
            let block = self.blocks.certificates(at)?;
            let start = block
                .records
                .partition_point(|stored| stored.record.issuance < issuance);
            for (place, stored) in block.records.iter().enumerate().skip(start) {
                if stored.record.issuance != issuance {
                    break;
                }
                found.push(self.complete(&block, number as usize * BLOCK_RECORDS + place)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Records with this fingerprint.
    pub(crate) fn of_fingerprint(&self, sha256: &[u8; 32]) -> Result<Vec<CertRecord>> {
        let candidates = self.candidates(
            BlockKind::Fingerprints,
            &self.tables().fingerprints,
            hash_of_sha256(sha256),
        )?;
        self.records(candidates, |record| {
            record.fingerprints.iter().any(|known| known.sha256 == *sha256)
        })
    }

    /// Records with this serial number.
    pub(crate) fn of_serial(&self, serial: &[u8]) -> Result<Vec<CertRecord>> {
        let candidates = self.candidates(BlockKind::Serials, &self.tables().serials, xxh3_64(serial))?;
        self.records(candidates, |record| record.serial == serial)
    }

    /// The record that was discovered as number `seq`.
    pub(crate) fn of_seq(&self, seq: u64) -> Result<Vec<CertRecord>> {
        let index = &self.tables().journal.index;
        let number = index.floor(&self.blocks, &seq.to_be_bytes())?;
        let Some(at) = index.at(&self.blocks, number)? else {
            return Ok(Vec::new());
        };
        let ordinal = self.blocks.journal(at)?.of_seq(seq).map(|row| row.ordinal);
        self.records(ordinal.into_iter().collect(), |record| record.seq == seq)
    }

    /// Records at one position of a log.
    pub(crate) fn of_position(&self, log: u16, index: u64) -> Result<Vec<CertRecord>> {
        let mut ordinals = Vec::new();
        for number in self.journal_blocks_around(log, index)? {
            let Some(at) = self.tables().journal.index.at(&self.blocks, number)? else {
                continue;
            };
            let holds = |row: &&journal::JournalRow| {
                row.positions
                    .iter()
                    .any(|known| known.log == log && known.index == index)
            };
            ordinals.extend(
                self.blocks
                    .journal(at)?
                    .rows
                    .iter()
                    .filter(holds)
                    .map(|row| row.ordinal),
            );
        }
        self.records(ordinals, |record| {
            record
                .positions
                .iter()
                .any(|known| known.log == log && known.index == index)
        })
    }

    /// Numbers of the journal blocks whose bounds enclose a position; all of them without bounds.
    fn journal_blocks_around(&self, log: u16, index: u64) -> Result<Vec<u64>> {
        let Some(at) = self.footer.single(BlockKind::JournalBounds) else {
            return Ok((0..self.tables().journal.index.block_count()).collect());
        };
        let bounds = self
            .blocks
            .file
            .block(BlockKind::JournalBounds, at, journal::decode_bounds)?;
        let around =
            |bound: &&journal::Bound| bound.log == log && bound.smallest <= index && index <= bound.largest;
        Ok(bounds
            .iter()
            .filter(around)
            .map(|bound| u64::from(bound.block))
            .collect())
    }

    /// Ordinals that a lookup table gives for a hash; a few may be wrong.
    fn candidates(&self, kind: BlockKind, table: &Table, hash: u64) -> Result<Vec<u32>> {
        if self.is_salvaged() {
            return Ok(self.all_ordinals());
        }
        let shift = hashes::shift_for(table.rows);
        let key = (hash >> shift << shift).to_be_bytes();
        let mut ordinals = Vec::new();
        self.scan(table, &key, |_, at| {
            ordinals.extend(self.blocks.hashes(kind, at)?.matching(hash));
            Ok(())
        })?;
        Ok(ordinals)
    }

    /// Positions of all records that have any, sorted by seq.
    pub(crate) fn all_positions(&self) -> Result<Vec<(u64, Vec<Position>)>> {
        let index = &self.tables().journal.index;
        let mut positions = Vec::new();
        for number in 0..index.block_count() {
            let Some(at) = index.at(&self.blocks, number)? else {
                break;
            };
            let decode = journal::JournalBlock::decode;
            let block = self.blocks.file.block(BlockKind::Journal, at, decode)?;
            let held = block.rows.into_iter().filter(|row| !row.positions.is_empty());
            positions.extend(held.map(|row| (row.seq, row.positions)));
        }
        Ok(positions)
    }

    /// One block of certificates, past the cache; `None` behind the last.
    pub(crate) fn certificates_block(&self, number: u64) -> Result<Option<CertificatesBlock>> {
        let Some(at) = self.tables().certificates.index.at(&self.blocks, number)? else {
            return Ok(None);
        };
        let decode = CertificatesBlock::decode;
        self.blocks
            .file
            .block(BlockKind::Certificates, at, decode)
            .map(Some)
    }

    fn all_ordinals(&self) -> Vec<u32> {
        let blocks = self.tables().certificates.index.block_count() as u32;
        (0..blocks.saturating_mul(BLOCK_RECORDS as u32)).collect()
    }

    /// Looks at every record, for when an index or a lookup is damaged. Answers what was found, and the
    /// damage that may have hidden more.
    pub(crate) fn search_all(
        &self,
        wanted: impl Fn(&CertRecord) -> bool,
    ) -> Result<(Vec<CertRecord>, Option<Error>)> {
        self.repair()?;
        let (mut found, mut fault) = (Vec::new(), None);
        for number in 0..self.tables().certificates.index.block_count() {
            let Some(at) = self.tables().certificates.index.at(&self.blocks, number)? else {
                break;
            };
            match self.blocks.certificates(at) {
                Ok(block) => {
                    for place in 0..block.records.len() {
                        found.extend(Some(self.complete(&block, place)?).filter(|record| wanted(record)));
                    }
                }
                Err(error @ Error::Corrupt { .. }) => fault = Some(error),
                Err(error) => return Err(error),
            }
        }
        Ok((found, fault))
    }

    /// Visits the blocks that can hold `key` in a table keyed by numbers.
    fn scan(
        &self,
        table: &Table,
        key: &[u8; 8],
        mut visit: impl FnMut(u64, BlockAt) -> Result<()>,
    ) -> Result<()> {
        let mut number = table.index.floor(&self.blocks, key)?;
        while number > 0
            && table
                .index
                .key(&self.blocks, number)?
                .is_some_and(|first| first.as_slice() == key)
        {
            number -= 1;
        }
        while let Some(at) = table.index.at(&self.blocks, number)? {
            visit(number, at)?;
            number += 1;
            if table
                .index
                .key(&self.blocks, number)?
                .is_none_or(|first| first.as_slice() > key.as_slice())
            {
                break;
            }
        }
        Ok(())
    }

    /// The records at these ordinals that `wanted` accepts.
    fn records(
        &self,
        mut ordinals: Vec<u32>,
        wanted: impl Fn(&CertRecord) -> bool,
    ) -> Result<Vec<CertRecord>> {
        ordinals.sort_unstable();
        ordinals.dedup();
        let mut found = Vec::new();
        for ordinal in ordinals {
            let number = ordinal as usize / BLOCK_RECORDS;
            let at = self.tables().certificates.index.at(&self.blocks, number as u64)?;
            let at = at.ok_or_else(|| self.damage(0, format!("certificate {ordinal} is missing")))?;
            let block = self.blocks.certificates(at)?;
            // A block closed early has fewer places than ordinals.
            if block.records.len() <= ordinal as usize % BLOCK_RECORDS {
                continue;
            }
            let record = self.complete(&block, ordinal as usize)?;
            if wanted(&record) {
                found.push(record);
            }
        }
        Ok(found)
    }

    /// The record at `ordinal` with its organisation and positions; where those are damaged, without.
    fn complete(&self, block: &CertificatesBlock, ordinal: usize) -> Result<CertRecord> {
        let stored = block.records.get(ordinal % BLOCK_RECORDS);
        let stored = stored.ok_or_else(|| self.damage(0, format!("certificate {ordinal} is missing")))?;
        let mut record = stored.record.clone();
        record.organization = self.spared(self.organization(stored.organization))?;
        record.positions = self.spared(self.positions_of(record.seq))?;
        Ok(record)
    }

    fn positions_of(&self, seq: u64) -> Result<Vec<Position>> {
        let index = &self.tables().journal.index;
        let number = index.floor(&self.blocks, &seq.to_be_bytes())?;
        let Some(at) = index.at(&self.blocks, number)? else {
            return Ok(Vec::new());
        };
        let journal = self.blocks.journal(at)?;
        Ok(journal
            .of_seq(seq)
            .map(|row| row.positions.clone())
            .unwrap_or_default())
    }

    /// Damage to a part of a record is told, and does not take the record with it.
    fn spared<T: Default>(&self, part: Result<T>) -> Result<T> {
        match part {
            Err(error @ Error::Corrupt { .. }) => {
                if !self.loss_told.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "parts of records are lost; further ones of this file are not told");
                }
                Ok(T::default())
            }
            part => part,
        }
    }

    pub(crate) fn damage(&self, offset: u64, reason: impl Into<String>) -> Error {
        Error::corrupt(self.path(), offset, reason)
    }
}

fn check_header(blocks: &Blocks, id: u64) -> Result<()> {
    let path = blocks.file.path();
    let bytes = blocks.file.raw(0, FRAME_BYTES)?;
    let (version, found) = layout::read_header(&bytes).map_err(Error::malformed(path, 0))?;
    refuse_newer(path, version)?;
    if found != id {
        return Err(Error::corrupt(
            path,
            16,
            format!("the header names segment {found}, the manifest {id}"),
        ));
    }
    Ok(())
}

fn refuse_newer(path: &Path, version: u32) -> Result<()> {
    if version == layout::VERSION {
        return Ok(());
    }
    let (path, supported) = (path.to_owned(), layout::VERSION);
    Err(Error::Durable(tamis_durable::Error::FutureVersion {
        path,
        found: version,
        supported,
    }))
}

fn open_tables(blocks: &Blocks) -> Result<(Footer, Tables)> {
    let path = blocks.file.path();
    let start = blocks.file.len().saturating_sub(FRAME_BYTES as u64);
    let bytes = blocks.file.raw(start, FRAME_BYTES)?;
    let (version, at) = layout::read_trailer(&bytes).map_err(Error::malformed(path, start))?;
    refuse_newer(path, version)?;
    let footer = blocks.file.block(BlockKind::Footer, at, Footer::decode)?;
    let table = |kind: BlockKind| {
        let entry = footer.table(kind).ok_or_else(|| {
            Error::corrupt(
                path,
                at.offset,
                format!("the footer names no {} table", kind.name()),
            )
        })?;
        let index = BlockIndex::open(blocks, entry.top, entry.blocks)?;
        Ok::<_, Error>(Table {
            index,
            rows: entry.rows,
        })
    };
    let tables = Tables {
        names: table(BlockKind::Names)?,
        certificates: table(BlockKind::Certificates)?,
        fingerprints: table(BlockKind::Fingerprints)?,
        serials: table(BlockKind::Serials)?,
        journal: table(BlockKind::Journal)?,
        organizations: table(BlockKind::Organizations)?,
    };
    Ok((footer, tables))
}
