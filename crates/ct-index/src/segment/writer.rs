//! Writes a segment in one pass: rows first, then records, then what leads to them.
//!
//! # Invariants
//! Rows come sorted by (key, issuance), records by (issuance, serial); both folded. One file, one
//! fsync; the file counts for nothing until the manifest names it.
//!
//! # Limits
//! Memory grows with the records of the segment (about 60 bytes each, for the lookups), never with
//! names or rows; compaction bounds it by bounding segments.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use crate::index::SuffixList;
use crate::record::RecordView;
use crate::row::RowAttrs;
use crate::segment::block::{BlockAt, BlockKind};
use crate::segment::certificates::{self, CertificatesBlockWriter};
use crate::segment::file::Output;
use crate::segment::filter::LineFilter;
use crate::segment::index::IndexWriter;
use crate::segment::journal::{self, Bound, JournalRow};
use crate::segment::layout::{self, Footer, TableEntry};
use crate::segment::meta::MetaBuilder;
use crate::segment::names::{self, NamesBlockWriter};
use crate::segment::{hashes, organizations};
use crate::{Error, Result};

/// Bits an issuance of the filter that import asks before it looks a copy up: every new issuance asks
/// every segment, and a false positive decodes a block (0.1 % at 16 bits, 1 % at 10).
const ISSUANCE_FILTER_BITS: u64 = 16;

/// What a segment is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// A memtable: short-lived, so it goes without the set of domains, a sixth of the cost of a flush.
    Flushed,
    /// Other segments.
    Merged,
}

/// A table while it is written.
struct TableWriter {
    kind: BlockKind,
    index: IndexWriter,
    rows: u64,
    bytes: u64,
}

impl TableWriter {
    fn new(kind: BlockKind) -> Self {
        Self {
            kind,
            index: IndexWriter::default(),
            rows: 0,
            bytes: 0,
        }
    }

    fn block(&mut self, key: &[u8], rows: usize, payload: &[u8], output: &mut Output) -> Result<()> {
        let at = output.block(self.kind, payload)?;
        self.rows += rows as u64;
        self.bytes += u64::from(at.bytes);
        self.index.push(key, at, output)
    }

    fn finish(self, output: &mut Output) -> Result<TableEntry> {
        let (top, blocks) = self.index.finish(output)?;
        Ok(TableEntry {
            kind: self.kind,
            rows: self.rows,
            blocks,
            bytes: self.bytes,
            top,
        })
    }
}

/// Writes one segment.
pub(crate) struct SegmentWriter {
    output: Output,
    footer: Footer,
    meta: MetaBuilder,
    payload: Vec<u8>,
    names: TableWriter,
    names_block: NamesBlockWriter,
    last_key: Vec<u8>,
    last_index_key: Vec<u8>,
    content: Content,
    domains: BTreeSet<Box<str>>,
    last_domain: Vec<u8>,
    suffixes: SuffixList,
    certificates: TableWriter,
    certificates_block: CertificatesBlockWriter,
    blocks_of_certificates: u32,
    fingerprints: Vec<(u64, u32)>,
    serials: Vec<(u64, u32)>,
    journal: Vec<JournalRow>,
    issuances: Vec<u64>,
    organizations: Vec<String>,
    organization_numbers: HashMap<String, u32>,
}

impl SegmentWriter {
    /// `suffixes` decide which domains are registrable.
    pub(crate) fn create(path: &Path, id: u64, content: Content, suffixes: SuffixList) -> Result<Self> {
        let mut output = Output::create(path)?;
        output.raw(&layout::header(id))?;
        Ok(Self {
            output,
            footer: Footer::default(),
            meta: MetaBuilder::default(),
            payload: Vec::new(),
            names: TableWriter::new(BlockKind::Names),
            names_block: NamesBlockWriter::default(),
            last_key: Vec::new(),
            last_index_key: Vec::new(),
            content,
            domains: BTreeSet::new(),
            last_domain: Vec::new(),
            suffixes,
            certificates: TableWriter::new(BlockKind::Certificates),
            certificates_block: CertificatesBlockWriter::default(),
            blocks_of_certificates: 0,
            fingerprints: Vec::new(),
            serials: Vec::new(),
            journal: Vec::new(),
            issuances: Vec::new(),
            organizations: Vec::new(),
            organization_numbers: HashMap::new(),
        })
    }

    /// The number of an organisation in this segment; 0 for none.
    pub(crate) fn organization(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        if let Some(&number) = self.organization_numbers.get(text) {
            return number;
        }
        self.organizations.push(text.to_owned());
        let number = self.organizations.len() as u32;
        self.organization_numbers.insert(text.to_owned(), number);
        number
    }

    /// Adds a row; its organisation is a number of this segment.
    pub(crate) fn row(&mut self, key: &[u8], attrs: &RowAttrs) -> Result<()> {
        let same_key = self.last_key == key;
        if !same_key {
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
            if self.content == Content::Merged {
                self.note_domain(key);
            }
        }
        self.meta.row(key, same_key, attrs);
        self.names_block.push(key, same_key, attrs);
        if self.names_block.is_full() {
            self.close_names(key, attrs.issuance)
        } else {
            Ok(())
        }
    }

    /// Remembers the registrable domain, once: rows of one domain are neighbours.
    fn note_domain(&mut self, key: &[u8]) {
        if crate::key::space_of(key) != crate::key::KeySpace::Host {
            return;
        }
        let below = key
            .strip_prefix(self.last_domain.as_slice())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."));
        if below && !self.last_domain.is_empty() {
            return;
        }
        let host = crate::key::display(key);
        self.last_domain.clear();
        if let Some(domain) = self.suffixes.get().registrable(&host) {
            tamis_hostname::reverse_into(domain, &mut self.last_domain);
            self.domains.insert(domain.into());
        }
    }

    fn close_names(&mut self, last_key: &[u8], last_issuance: u64) -> Result<()> {
        let Some((key, issuance)) = self.names_block.first() else {
            return Ok(());
        };
        let first = names::index_key(key, issuance);
        let separator = names::separator(&self.last_index_key, &first);
        let rows = self.names_block.rows();
        self.payload.clear();
        self.names_block.finish(&mut self.payload);
        self.names
            .block(&separator, rows, &self.payload, &mut self.output)?;
        self.last_index_key = names::index_key(last_key, last_issuance);
        Ok(())
    }

    /// Says that all rows came; records follow.
    pub(crate) fn finish_rows(&mut self) -> Result<()> {
        self.close_names(b"", 0)?;
        let table = std::mem::replace(&mut self.names, TableWriter::new(BlockKind::Names));
        self.footer.tables.push(table.finish(&mut self.output)?);
        Ok(())
    }

    /// Adds a record.
    pub(crate) fn record(&mut self, record: &RecordView<'_>) -> Result<()> {
        let places = certificates::BLOCK_RECORDS as u32;
        let block = self
            .blocks_of_certificates
            .checked_mul(places)
            .filter(|&first| first <= u32::MAX - places);
        let first = block.ok_or(Error::TooLarge {
            what: "records of a segment",
            found: u64::from(self.blocks_of_certificates) * u64::from(places),
            limit: u64::from(u32::MAX),
        })?;
        let ordinal = first + self.certificates_block.len() as u32;
        let organization = self.organization(record.organization);
        self.meta.record(record.seq, record.not_after);
        for fingerprint in record.fingerprints {
            self.fingerprints
                .push((hash_of_sha256(&fingerprint.sha256), ordinal));
        }
        self.serials.push((xxh3_64(record.serial), ordinal));
        self.issuances.push(record.issuance);
        let positions = record.positions.to_vec();
        self.journal.push(JournalRow {
            seq: record.seq,
            ordinal,
            positions,
        });
        self.certificates_block.push(record, organization);
        if self.certificates_block.is_full() {
            self.close_certificates()
        } else {
            Ok(())
        }
    }

    fn close_certificates(&mut self) -> Result<()> {
        let Some(first) = self.certificates_block.first() else {
            return Ok(());
        };
        let records = self.certificates_block.len();
        self.payload.clear();
        self.certificates_block.finish(&mut self.payload);
        self.blocks_of_certificates += 1;
        self.certificates
            .block(&first.to_be_bytes(), records, &self.payload, &mut self.output)
    }

    /// Writes lookups, meta and footer; one fsync. Answers the size of the file.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.close_certificates()?;
        let table = std::mem::replace(&mut self.certificates, TableWriter::new(BlockKind::Certificates));
        self.footer.tables.push(table.finish(&mut self.output)?);
        let fingerprints = std::mem::take(&mut self.fingerprints);
        self.hash_table(BlockKind::Fingerprints, fingerprints)?;
        let serials = std::mem::take(&mut self.serials);
        self.hash_table(BlockKind::Serials, serials)?;
        self.journal_table()?;
        self.organizations_table()?;
        self.domains_block()?;
        let mut filter = Vec::new();
        LineFilter::build(&self.issuances, ISSUANCE_FILTER_BITS).encode_into(&mut filter);
        self.single(BlockKind::IssuanceFilter, &filter)?;
        let meta = std::mem::take(&mut self.meta).finish().encode();
        self.single(BlockKind::Meta, &meta)?;
        let footer = self.output.block(BlockKind::Footer, &self.footer.encode())?;
        self.output.raw(&layout::trailer(footer))?;
        self.output.finish()
    }

    fn single(&mut self, kind: BlockKind, payload: &[u8]) -> Result<BlockAt> {
        let at = self.output.block(kind, payload)?;
        self.footer.singles.push((kind, at));
        Ok(at)
    }

    fn hash_table(&mut self, kind: BlockKind, mut entries: Vec<(u64, u32)>) -> Result<()> {
        entries.sort_unstable();
        let shift = hashes::shift_for(entries.len() as u64);
        let mut table = TableWriter::new(kind);
        for block in entries.chunks(hashes::BLOCK_ENTRIES) {
            let first = block.first().map_or(0, |(hash, _)| hash >> shift << shift);
            self.payload.clear();
            hashes::encode(block, shift, &mut self.payload);
            table.block(&first.to_be_bytes(), block.len(), &self.payload, &mut self.output)?;
        }
        self.footer.tables.push(table.finish(&mut self.output)?);
        Ok(())
    }

    fn journal_table(&mut self) -> Result<()> {
        let mut rows = std::mem::take(&mut self.journal);
        rows.sort_unstable_by_key(|row| row.seq);
        let mut table = TableWriter::new(BlockKind::Journal);
        let mut bounds: Vec<Bound> = Vec::new();
        for (number, block) in rows.chunks(journal::BLOCK_ROWS).enumerate() {
            let first = block.first().map_or(0, |row| row.seq);
            bounds.extend(journal::bounds_of(number as u32, block));
            self.payload.clear();
            journal::encode(block, &mut self.payload);
            table.block(&first.to_be_bytes(), block.len(), &self.payload, &mut self.output)?;
        }
        self.footer.tables.push(table.finish(&mut self.output)?);
        self.single(BlockKind::JournalBounds, &journal::encode_bounds(&bounds))?;
        Ok(())
    }

    fn organizations_table(&mut self) -> Result<()> {
        let texts = std::mem::take(&mut self.organizations);
        let mut table = TableWriter::new(BlockKind::Organizations);
        for (number, block) in texts.chunks(organizations::BLOCK_TEXTS).enumerate() {
            let first = (number * organizations::BLOCK_TEXTS) as u64 + 1;
            self.payload.clear();
            organizations::encode(block, &mut self.payload);
            table.block(&first.to_be_bytes(), block.len(), &self.payload, &mut self.output)?;
        }
        self.footer.tables.push(table.finish(&mut self.output)?);
        Ok(())
    }

    fn domains_block(&mut self) -> Result<()> {
        if self.content == Content::Flushed {
            return Ok(());
        }
        let domains = std::mem::take(&mut self.domains);
        // Keys come sorted and distinct out of the set, which is all the builder asks for.
        let set = fst::Set::from_iter(domains.iter().map(AsRef::as_ref))
            .map_err(|error| Error::Bug(format!("build the set of domains: {error}")))?;
        self.single(BlockKind::Domains, set.as_fst().as_bytes())?;
        Ok(())
    }
}

/// The hash of a fingerprint: it is uniform already.
pub(crate) fn hash_of_sha256(sha256: &[u8; 32]) -> u64 {
    sha256
        .first_chunk::<8>()
        .map_or(0, |head| u64::from_be_bytes(*head))
}
