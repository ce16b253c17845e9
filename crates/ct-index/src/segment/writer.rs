//! Writes a segment in one pass: rows first, then records, then what leads to them.
//!
//! # Invariants
//! Rows come sorted by (key, issuance), records by seq, entries of a look-up by (hash, seq); all folded.
//! One file, one fsync; the file counts for nothing until the manifest names it.
//!
//! # Limits
//! Of a flush, memory grows with its records (about 90 bytes each, for the look-ups). What merges
//! write is streamed, but for the domain filter and the set of domains, which grow with the distinct
//! domains of a part; parts are cut at a set number of rows.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use crate::index::SuffixList;
use crate::manifest::Holds;
use crate::record::RecordView;
use crate::row::RowAttrs;
use crate::segment::block::{BlockAt, BlockKind};
use crate::segment::columns::Codec;
use crate::segment::file::Output;
use crate::segment::filter::LineFilter;
use crate::segment::hashes::{self, Entries, Entry, LOOKUPS};
use crate::segment::index::IndexWriter;
use crate::segment::layout::{self, Footer, TableEntry};
use crate::segment::meta::MetaBuilder;
use crate::segment::names::{self, NamesBlockWriter};
use crate::segment::organizations;
use crate::segment::positions::Bounds;
use crate::segment::records::{RecordsBlock, RecordsBlockWriter};
use crate::{Error, Result};

/// Bits an issuance of the filter that import asks before it looks a copy up: every new issuance asks
/// every segment, and a false positive decodes a block (0.1 % at 16 bits, 1 % at 10).
const ISSUANCE_FILTER_BITS: u64 = 16;

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
    holds: Holds,
    codec: Codec,
    domains: BTreeSet<Box<str>>,
    last_domain: Vec<u8>,
    suffixes: SuffixList,
    records: TableWriter,
    records_block: RecordsBlockWriter,
    blocks_of_records: u64,
    first_seq: u64,
    bounds: Bounds,
    entries: Entries,
    organizations: Vec<String>,
    organization_numbers: HashMap<String, u32>,
}

impl SegmentWriter {
    /// `suffixes` decide which domains are registrable.
    pub(crate) fn create(path: &Path, id: u64, holds: Holds, suffixes: SuffixList) -> Result<Self> {
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
            holds,
            codec: if holds == Holds::Everything {
                Codec::Raw
            } else {
                Codec::Zstd
            },
            domains: BTreeSet::new(),
            last_domain: Vec::new(),
            suffixes,
            records: TableWriter::new(BlockKind::Records),
            records_block: RecordsBlockWriter::default(),
            blocks_of_records: 0,
            first_seq: 0,
            bounds: Bounds::default(),
            entries: Entries::default(),
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
            if self.holds == Holds::Names {
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
        self.names_block.finish(self.codec, &mut self.payload);
        self.names
            .block(&separator, rows, &self.payload, &mut self.output)?;
        self.last_index_key = names::index_key(last_key, last_issuance);
        Ok(())
    }

    /// Bytes written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.output.position()
    }

    /// Says that all rows came; records follow.
    pub(crate) fn finish_rows(&mut self) -> Result<()> {
        self.close_names(b"", 0)?;
        let table = std::mem::replace(&mut self.names, TableWriter::new(BlockKind::Names));
        self.footer.tables.push(table.finish(&mut self.output)?);
        Ok(())
    }

    /// Adds a record and what leads to it.
    pub(crate) fn record(&mut self, record: &RecordView<'_>) -> Result<()> {
        let serial = (!record.slim).then_some(record.serial);
        self.entries
            .note(record.seq, record.issuance, serial, record.fingerprints);
        self.record_alone(record)
    }

    /// Adds a record to a file without look-ups.
    pub(crate) fn record_alone(&mut self, record: &RecordView<'_>) -> Result<()> {
        self.meta.record(record.seq, record.not_after);
        self.bounds.note(self.blocks_of_records, record.positions);
        if self.records_block.len() == 0 {
            self.first_seq = record.seq;
        }
        self.records_block.push(record);
        if self.records_block.is_full() {
            self.close_records()
        } else {
            Ok(())
        }
    }

    /// Adds a block of records as another file holds it.
    pub(crate) fn records_block(&mut self, payload: &[u8], block: &RecordsBlock) -> Result<()> {
        for record in &block.records {
            self.meta.record(record.seq, record.not_after);
            self.bounds.note(self.blocks_of_records, &record.positions);
        }
        self.blocks_of_records += 1;
        let key = block.records.first().map_or(0, |record| record.seq).to_be_bytes();
        self.records
            .block(&key, block.records.len(), payload, &mut self.output)
    }

    fn close_records(&mut self) -> Result<()> {
        let records = self.records_block.len();
        if records == 0 {
            return Ok(());
        }
        self.payload.clear();
        self.records_block.finish(self.codec, &mut self.payload);
        self.blocks_of_records += 1;
        let key = self.first_seq.to_be_bytes();
        self.records.block(&key, records, &self.payload, &mut self.output)
    }

    fn finish_records(&mut self) -> Result<()> {
        self.close_records()?;
        let table = std::mem::replace(&mut self.records, TableWriter::new(BlockKind::Records));
        self.footer.tables.push(table.finish(&mut self.output)?);
        let bounds = self.bounds.encode();
        self.single(BlockKind::PositionBounds, &bounds)?;
        Ok(())
    }

    /// Writes what follows rows and records; one fsync. Answers the size of the file.
    pub(crate) fn finish(mut self) -> Result<u64> {
        match self.holds {
            Holds::Everything => {
                self.finish_records()?;
                self.look_ups()?;
                self.organizations_table()?;
            }
            Holds::Names => {
                self.organizations_table()?;
                self.domains_block()?;
            }
            Holds::Records => self.finish_records()?,
            Holds::Lookups => {}
        }
        let meta = std::mem::take(&mut self.meta).finish().encode();
        self.single(BlockKind::Meta, &meta)?;
        let footer = self.output.block(BlockKind::Footer, &self.footer.encode())?;
        self.output.raw(&layout::trailer(footer))?;
        self.output.finish()
    }

    /// The look-ups of the records that came.
    fn look_ups(&mut self) -> Result<()> {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort();
        let [.., issuances] = &entries.0;
        let issuances: Vec<u64> = issuances.iter().map(|entry| entry.hash()).collect();
        for (kind, entries) in LOOKUPS.into_iter().zip(entries.0) {
            let mut table = self.look_up(kind, hashes::shift_for(entries.len() as u64, 0));
            for entry in entries {
                table.push(entry)?;
            }
            table.finish()?;
        }
        let mut filter = Vec::new();
        LineFilter::build(&issuances, ISSUANCE_FILTER_BITS).encode_into(&mut filter);
        self.single(BlockKind::IssuanceFilter, &filter)?;
        Ok(())
    }

    /// Starts a look-up table; its entries come sorted.
    pub(crate) fn look_up(&mut self, kind: BlockKind, shift: u32) -> LookupWriter<'_> {
        LookupWriter {
            table: TableWriter::new(kind),
            shift,
            entries: Vec::with_capacity(hashes::BLOCK_ENTRIES),
            writer: self,
        }
    }

    fn single(&mut self, kind: BlockKind, payload: &[u8]) -> Result<BlockAt> {
        let at = self.output.block(kind, payload)?;
        self.footer.singles.push((kind, at));
        Ok(at)
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
        let domains = std::mem::take(&mut self.domains);
        // Keys come sorted and distinct out of the set, which is all the builder asks for.
        let set = fst::Set::from_iter(domains.iter().map(AsRef::as_ref))
            .map_err(|error| Error::Bug(format!("build the set of domains: {error}")))?;
        self.single(BlockKind::Domains, set.as_fst().as_bytes())?;
        Ok(())
    }
}

/// Writes one look-up table.
pub(crate) struct LookupWriter<'w> {
    writer: &'w mut SegmentWriter,
    table: TableWriter,
    shift: u32,
    entries: Vec<Entry>,
}

impl LookupWriter<'_> {
    pub(crate) fn push(&mut self, entry: Entry) -> Result<()> {
        self.entries.push(entry);
        if self.entries.len() == hashes::BLOCK_ENTRIES {
            self.close()
        } else {
            Ok(())
        }
    }

    fn close(&mut self) -> Result<()> {
        let Some(first) = self.entries.first() else {
            return Ok(());
        };
        let key = (first.hash() >> self.shift << self.shift).to_be_bytes();
        let SegmentWriter { payload, output, .. } = self.writer;
        payload.clear();
        hashes::encode(&self.entries, self.shift, payload);
        self.table.block(&key, self.entries.len(), payload, output)?;
        self.entries.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<()> {
        self.close()?;
        let table = self.table.finish(&mut self.writer.output)?;
        self.writer.footer.tables.push(table);
        Ok(())
    }
}
