//! An open segment: point lookups and what prunes them.
//!
//! # Concurrency
//! Shared by readers behind an `Arc`; nothing in it changes after opening. The file may be unlinked
//! while readers hold it: the descriptor keeps it alive.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::key::KeyRange;
use crate::manifest::{HashPart, Holds, SegmentEntry};
use crate::record::{CertRecord, Position};
use crate::segment::block::BlockKind;
use crate::segment::file::{BlockCache, Blocks};
use crate::segment::filter::LineFilter;
use crate::segment::index::{BlockIndex, Chunk};
use crate::segment::layout::{self, FRAME_BYTES, Footer};
use crate::segment::meta::Meta;
use crate::segment::positions::BLOCKS_PER_GROUP;
use crate::segment::records::RecordsBlock;
use crate::segment::{organizations, salvage};
use crate::windows::SegmentMark;
use crate::{Error, Result};

/// One table of an open segment.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) index: BlockIndex,
    pub(crate) rows: u64,
}

impl Table {
    /// A table that the segment does not have.
    pub(crate) fn absent() -> Self {
        Self {
            index: BlockIndex::flat(Chunk::default()),
            rows: 0,
        }
    }
}

/// The tables of an open segment; those that it does not have are empty.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) names: Table,
    pub(crate) records: Table,
    pub(crate) fingerprints: Table,
    pub(crate) serials: Table,
    pub(crate) issuances: Table,
    pub(crate) organizations: Table,
}

impl Tables {
    /// The look-up of a kind.
    pub(crate) fn look_up(&self, kind: BlockKind) -> &Table {
        match kind {
            BlockKind::Fingerprints => &self.fingerprints,
            BlockKind::Serials => &self.serials,
            _ => &self.issuances,
        }
    }
}

/// What the manifest says of a segment beyond its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    pub(crate) holds: Holds,
    pub(crate) tier: u32,
    pub(crate) run: u64,
}

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) id: u64,
    /// `None` where it was opened without its entry of the manifest.
    pub(crate) standing: Option<Standing>,
    pub(crate) blocks: Blocks,
    /// Tables as the footer tells them.
    pub(crate) tables: Tables,
    /// Tables found by a scan, once a part of an index turned out to be damaged.
    repaired: OnceLock<Tables>,
    pub(crate) footer: Footer,
    /// `None` while it is damaged and not yet rebuilt: then nothing is pruned.
    pub(crate) meta: Option<Meta>,
    issuances: Option<LineFilter>,
    /// Tells this content from any other that has the same id: numbers are given again after a crash.
    pub(crate) stamp: u64,
    /// Which hashes its look-ups hold.
    pub(crate) hashes: HashPart,
    /// The tables were found by a scan: look-ups may be missing and records are searched one by one.
    pub(crate) salvaged: bool,
    /// A merge met damage here.
    damaged: AtomicBool,
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
            standing: None,
            blocks,
            tables,
            repaired: OnceLock::new(),
            footer,
            meta: None,
            issuances: None,
            stamp: 0,
            hashes: HashPart::default(),
            salvaged,
            damaged: AtomicBool::new(false),
            faults,
        };
        segment.meta = segment
            .side_meta()
            .or_else(|| segment.optional(BlockKind::Meta, Meta::decode));
        segment.stamp = segment.stamp_of();
        segment.issuances = segment.optional(BlockKind::IssuanceFilter, |payload| {
            LineFilter::read(&mut crate::coding::Reader::new(payload))
        });
        Ok(segment)
    }

    /// Opens what the manifest names.
    pub(crate) fn open_entry(dir: &Path, entry: &SegmentEntry, cache: &Arc<BlockCache>) -> Result<Self> {
        let mut segment = Self::open(&entry.path(dir), entry.id, cache)?;
        segment.hashes = entry.hashes;
        segment.standing = Some(Standing {
            holds: entry.holds,
            tier: entry.tier,
            run: entry.run,
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

    /// Footer and meta give where everything lies, counts, ranges and which domains.
    fn stamp_of(&self) -> u64 {
        let meta = self.meta.as_ref().map(Meta::encode).unwrap_or_default();
        xxh3_64_with_seed(&meta, xxh3_64(&self.footer.encode()))
    }

    /// What filters know the segment by.
    pub(crate) fn mark(&self) -> SegmentMark {
        SegmentMark {
            id: self.id,
            stamp: self.stamp,
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

    /// Merges leave the segment alone from here on: what is damaged must not vanish with its file.
    pub(crate) fn note_damage(&self) {
        self.damaged.store(true, Ordering::Relaxed);
    }

    /// True when a part of it is known to be damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_salvaged() || self.damaged.load(Ordering::Relaxed)
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

    /// True when it has look-ups.
    pub(crate) fn leads_to_issuances(&self) -> bool {
        self.is_salvaged() || self.tables.issuances.rows > 0
    }

    /// True when most issuances that it does not hold cost no read.
    pub(crate) fn has_issuance_filter(&self) -> bool {
        self.issuances.is_some()
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

    /// False when no look-up of this kind in the segment leads to a record of this hash.
    pub(crate) fn may_lead(&self, kind: BlockKind, hash: u64) -> bool {
        if self.is_salvaged() {
            return true;
        }
        self.tables.look_up(kind).rows > 0
            && self.hashes.holds(hash)
            && (kind != BlockKind::Issuances || self.may_hold_issuance(hash))
    }

    /// Seqs of the records that a look-up gives for a hash; a few may be wrong.
    pub(crate) fn look_up(&self, kind: BlockKind, hash: u64) -> Result<Vec<u64>> {
        if self.is_salvaged() {
            return Err(self.damage(0, "look-ups of a file that was found by a scan may be missing"));
        }
        let index = &self.tables().look_up(kind).index;
        let mut number = index.floor(&self.blocks, &hash.to_be_bytes())?;
        let mut seqs = Vec::new();
        while let Some(at) = index.at(&self.blocks, number)? {
            let block = self.blocks.hashes(kind, at)?;
            seqs.extend(block.matching(hash));
            // Equal hashes may have begun in the block before.
            let first = block.entry(0).map(|entry| entry.hash());
            if number == 0 || first != Some(block.kept(hash)) {
                break;
            }
            number -= 1;
        }
        Ok(seqs)
    }

    /// False when the segment has no record with this seq.
    pub(crate) fn may_hold_seq(&self, seq: u64) -> bool {
        let within = |meta: &Meta| meta.seqs.is_some_and(|(low, high)| low <= seq && seq <= high);
        self.tables().records.rows > 0 && self.meta.as_ref().is_none_or(within)
    }

    /// The record that was discovered as number `seq`.
    pub(crate) fn of_seq(&self, seq: u64) -> Result<Option<CertRecord>> {
        let index = &self.tables().records.index;
        let number = index.floor(&self.blocks, &seq.to_be_bytes())?;
        let Some(at) = index.at(&self.blocks, number)? else {
            return Ok(None);
        };
        Ok(self.blocks.records(at)?.of_seq(seq).cloned())
    }

    /// Records at one position of a log.
    pub(crate) fn of_position(&self, log: u16, index: u64) -> Result<Vec<CertRecord>> {
        let here = |position: &Position| position.log == log && position.index == index;
        let mut found = Vec::new();
        let table = &self.tables().records;
        for group in self.groups_around(log, index)? {
            for number in group * BLOCKS_PER_GROUP..(group + 1) * BLOCKS_PER_GROUP {
                let Some(at) = table.index.at(&self.blocks, number)? else {
                    break;
                };
                let block = self.blocks.records(at)?;
                let holds = |record: &&CertRecord| record.positions.iter().any(here);
                found.extend(block.records.iter().filter(holds).cloned());
            }
        }
        Ok(found)
    }

    /// Groups of blocks whose bounds enclose a position; all of them without bounds.
    fn groups_around(&self, log: u16, index: u64) -> Result<Vec<u64>> {
        let blocks = self.tables().records.index.block_count();
        let bounds = self.footer.single(BlockKind::PositionBounds);
        // A scan may have missed blocks, so that groups are counted otherwise.
        let Some(at) = bounds.filter(|_| !self.is_salvaged()) else {
            return Ok((0..blocks.div_ceil(BLOCKS_PER_GROUP)).collect());
        };
        Ok(self
            .blocks
            .bounds(at)?
            .iter()
            .filter(|bound| bound.log == log && bound.smallest <= index && index <= bound.largest)
            .map(|bound| u64::from(bound.group))
            .collect())
    }

    /// One block of records, past the cache; `None` behind the last.
    pub(crate) fn records_block(&self, number: u64) -> Result<Option<RecordsBlock>> {
        let Some(at) = self.tables().records.index.at(&self.blocks, number)? else {
            return Ok(None);
        };
        let decode = RecordsBlock::decode;
        self.blocks.file.block(BlockKind::Records, at, decode).map(Some)
    }

    /// One block of records as it is stored, and decoded.
    pub(crate) fn records_payload(&self, number: u64) -> Result<Option<(Vec<u8>, RecordsBlock)>> {
        let Some(at) = self.tables().records.index.at(&self.blocks, number)? else {
            return Ok(None);
        };
        let decode = |payload: &[u8]| Ok((payload.to_vec(), RecordsBlock::decode(payload)?));
        self.blocks.file.block(BlockKind::Records, at, decode).map(Some)
    }

    /// Looks at every record, for when an index or a lookup is damaged. Answers what was found, and the
    /// damage that may have hidden more.
    pub(crate) fn search_all(
        &self,
        wanted: impl Fn(&CertRecord) -> bool,
    ) -> Result<(Vec<CertRecord>, Option<Error>)> {
        if self.tables().records.rows == 0 && !self.is_salvaged() {
            return Ok((Vec::new(), None));
        }
        self.repair()?;
        let (mut found, mut fault) = (Vec::new(), None);
        for number in 0..self.tables().records.index.block_count() {
            let Some(at) = self.tables().records.index.at(&self.blocks, number)? else {
                break;
            };
            match self.blocks.records(at) {
                Ok(block) => found.extend(block.records.iter().filter(|record| wanted(record)).cloned()),
                Err(error @ Error::Corrupt { .. }) => fault = Some(error),
                Err(error) => return Err(error),
            }
        }
        Ok((found, fault))
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
        let Some(entry) = footer.table(kind) else {
            return Ok(Table::absent());
        };
        let index = BlockIndex::open(blocks, entry.top, entry.blocks)?;
        Ok::<_, Error>(Table {
            index,
            rows: entry.rows,
        })
    };
    let tables = Tables {
        names: table(BlockKind::Names)?,
        records: table(BlockKind::Records)?,
        fingerprints: table(BlockKind::Fingerprints)?,
        serials: table(BlockKind::Serials)?,
        issuances: table(BlockKind::Issuances)?,
        organizations: table(BlockKind::Organizations)?,
    };
    Ok((footer, tables))
}
