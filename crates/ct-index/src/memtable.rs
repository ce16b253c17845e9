//! The memtable: immutable sorted runs, one a batch, merged a few at a time.
//!
//! # Invariants
//! A run never changes once made; readers hold it through an `Arc`. Rows of a run are sorted by key
//! and issuance. Why not a skip list: five to eight times the cost a row, see
//! `docs/decisions/003-memtable-of-sorted-runs.md`.

use std::sync::Arc;

use crate::coding::{Malformed, Reader};
use crate::key::KeyRange;
use crate::record::{CertRecord, WireRecord};
use crate::row::{RowAttrs, RowCursor};

/// How many rows ahead memory is touched while rows are walked.
const TOUCH_AHEAD: usize = 12;

/// Runs of similar size are merged when this many have gathered.
const RUNS_PER_TIER: usize = 16;

/// A record of a run, its fixed part decoded once.
#[derive(Debug, Clone, Copy)]
struct RunRecord {
    attrs: RowAttrs,
    copy_of: Option<u64>,
    slim: bool,
    arena: u32,
    offset: u32,
}

/// Where a row's key lies; the first sixteen key bytes decide most comparisons.
#[derive(Debug, Clone, Copy)]
struct RowRef {
    prefix: u128,
    arena: u32,
    key: u32,
    record: u32,
    key_bytes: u16,
    bits: u8,
}

/// An immutable sorted run over records in their wire form.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// Commits in wire form; merged runs share them instead of copying.
    arenas: Vec<Arc<Vec<u8>>>,
    records: Vec<RunRecord>,
    rows: Vec<RowRef>,
}

impl Run {
    /// Builds a run of records that came from outside this process and lie back to back in `bytes` from
    /// `start`; `issuer_of` maps numbers of the batch to the dictionary.
    pub(crate) fn build(
        bytes: Vec<u8>,
        start: usize,
        first_seq: u64,
        issuer_of: impl Fn(u64) -> u32,
    ) -> Result<Self, Malformed> {
        let mut run = RunBuilder::default();
        let mut reader = Reader::new(bytes.get(start..).unwrap_or(&[]));
        let mut seq = first_seq;
        while !reader.is_empty() {
            let offset = bytes.len() - reader.remaining();
            let record = WireRecord::read(&mut reader)?;
            let source = bytes.get(offset..).unwrap_or(&[]);
            let issuer = issuer_of(record.issuer);
            run.add(
                &record,
                source,
                Place {
                    at: offset,
                    inserted: 0,
                },
                seq,
                issuer,
            );
            seq = seq.checked_add(1).ok_or(Malformed("seq overflows"))?;
        }
        Ok(run.finish(bytes))
    }

    /// One run of several; the inputs stay for their readers and share their bytes.
    pub(crate) fn merge(runs: &[Arc<Self>]) -> Self {
        let mut merged = Self::default();
        merged
            .rows
            .reserve_exact(runs.iter().map(|run| run.rows.len()).sum());
        merged
            .records
            .reserve_exact(runs.iter().map(|run| run.records.len()).sum());
        for run in runs {
            let arena_base = merged.arenas.len() as u32;
            let record_base = merged.records.len() as u32;
            merged.arenas.extend(run.arenas.iter().cloned());
            merged.records.extend(run.records.iter().map(|record| {
                let mut moved = *record;
                moved.arena += arena_base;
                if moved.attrs.organization != 0 {
                    moved.attrs.organization += record_base;
                }
                moved
            }));
            merged.rows.extend(run.rows.iter().map(|row| RowRef {
                arena: row.arena + arena_base,
                record: row.record + record_base,
                ..*row
            }));
        }
        merged.sort();
        merged
    }

    /// A stable merge sort: it finds the sorted stretches of merged runs by itself.
    fn sort(&mut self) {
        let Self {
            arenas,
            records,
            rows,
        } = self;
        let issuance_of = |row: &RowRef| {
            records
                .get(row.record as usize)
                .map(|record| record.attrs.issuance)
        };
        rows.sort_by(|a, b| {
            a.prefix
                .cmp(&b.prefix)
                .then_with(|| key_at(arenas, a).cmp(key_at(arenas, b)))
                .then_with(|| issuance_of(a).cmp(&issuance_of(b)))
        });
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn records(&self) -> usize {
        self.records.len()
    }

    /// Bytes held in memory, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.arenas.iter().map(|arena| arena.len()).sum::<usize>()
            + self.records.len() * size_of::<RunRecord>()
            + self.rows.len() * size_of::<RowRef>()
    }

    /// Every record with its number in the dictionary and its seq, in order of arrival.
    pub(crate) fn wire_records(&self) -> impl Iterator<Item = (WireRecord<'_>, u64, u32)> {
        (0..self.records.len()).filter_map(|number| self.wire_record(number))
    }

    /// One record by its place in the order of arrival.
    pub(crate) fn wire_record(&self, number: usize) -> Option<(WireRecord<'_>, u64, u32)> {
        let record = self.records.get(number)?;
        Some((self.wire_at(record)?, record.attrs.seq, record.attrs.issuer))
    }

    /// Seq of a record and of what it is a copy of, by its place in the order of arrival.
    pub(crate) fn seqs(&self, number: usize) -> Option<(u64, Option<u64>)> {
        let record = self.records.get(number)?;
        Some((record.attrs.seq, record.copy_of))
    }

    /// Issuance and end of validity of each record that is not slim.
    pub(crate) fn issuances(&self) -> impl Iterator<Item = (u64, Option<i64>)> + '_ {
        let whole = self.records.iter().filter(|record| !record.slim);
        whole.map(|record| (record.attrs.issuance, record.attrs.not_after))
    }

    fn wire_at(&self, record: &RunRecord) -> Option<WireRecord<'_>> {
        let arena = self.arenas.get(record.arena as usize)?;
        WireRecord::read_unchecked(&mut Reader::new(arena.get(record.offset as usize..)?)).ok()
    }

    /// The records that `wanted` accepts by their fixed part and wire form.
    pub(crate) fn find(&self, wanted: impl Fn(&WireRecord<'_>, u64) -> bool) -> Vec<CertRecord> {
        self.wire_records()
            .filter(|(wire, seq, _)| wanted(wire, *seq))
            .map(|(wire, seq, issuer)| wire.to_record(seq, issuer))
            .collect()
    }

    /// Records of one issuance; cheap, since only the fixed parts are looked at.
    pub(crate) fn of_issuance(&self, issuance: u64) -> Vec<CertRecord> {
        self.records
            .iter()
            .filter(|record| record.attrs.issuance == issuance)
            .filter_map(|record| {
                Some(
                    self.wire_at(record)?
                        .to_record(record.attrs.seq, record.attrs.issuer),
                )
            })
            .collect()
    }

    /// All rows, sorted by key and issuance.
    pub(crate) fn rows_in_order(&self) -> impl Iterator<Item = (&[u8], RowAttrs)> {
        self.rows.iter().enumerate().filter_map(|(number, row)| {
            self.touch(number + TOUCH_AHEAD);
            let record = self.records.get(row.record as usize)?;
            let attrs = RowAttrs {
                bits: row.bits,
                ..record.attrs
            };
            Some((key_at(&self.arenas, row), attrs))
        })
    }

    /// Reads a little of what a later row needs: its key and its record lie anywhere, and the processor
    /// can wait for several of them at once.
    fn touch(&self, number: usize) {
        if let Some(row) = self.rows.get(number) {
            let record = self.records.get(row.record as usize);
            let arena = self.arenas.get(row.arena as usize);
            std::hint::black_box((
                record.map(|record| record.attrs.issuer),
                arena.and_then(|arena| arena.get(row.key as usize)).copied(),
            ));
        }
    }

    /// The organisation of this number in the run.
    pub(crate) fn organization(&self, number: u32) -> &str {
        let record = self.records.get((number as usize).wrapping_sub(1));
        let wire = record.and_then(|record| self.wire_at(record));
        wire.map(|wire| wire.organization()).unwrap_or_default()
    }

    /// A cursor over the rows of a key range that lie behind `after` (key and issuance), if given.
    pub(crate) fn cursor(self: &Arc<Self>, range: &KeyRange, after: Option<(&[u8], u64)>) -> RunCursor {
        let start = self.rows.partition_point(|row| {
            let key = key_at(&self.arenas, row);
            key < range.start.as_slice() || after.is_some_and(|after| (key, self.issuance_of(row)) <= after)
        });
        let end = self
            .rows
            .partition_point(|row| key_at(&self.arenas, row) < range.end.as_slice());
        let mut cursor = RunCursor {
            run: Arc::clone(self),
            at: start,
            end,
            attrs: None,
        };
        cursor.settle();
        cursor
    }

    fn issuance_of(&self, row: &RowRef) -> u64 {
        self.records
            .get(row.record as usize)
            .map_or(0, |record| record.attrs.issuance)
    }
}

/// Where a record lies in the bytes of its run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Its first byte.
    pub(crate) at: usize,
    /// Bytes that it has more than where it was read from, in front of its names.
    pub(crate) inserted: usize,
}

/// Gathers the records of a run while they are judged.
#[derive(Debug, Default)]
pub(crate) struct RunBuilder(Run);

impl RunBuilder {
    /// Adds a record that was read from the start of `source`.
    pub(crate) fn add(
        &mut self,
        record: &WireRecord<'_>,
        source: &[u8],
        place: Place,
        seq: u64,
        issuer: u32,
    ) {
        let Self(run) = self;
        let base = source.as_ptr() as usize;
        let number = run.records.len() as u32;
        run.records.push(RunRecord {
            attrs: attrs_of(record, seq, issuer, number),
            copy_of: record.copy_of,
            slim: record.slim,
            arena: 0,
            offset: place.at as u32,
        });
        for (key, bits) in record.names() {
            let key_at = key.as_ptr() as usize - base + place.at + place.inserted;
            run.rows.push(RowRef {
                prefix: prefix_of(key),
                arena: 0,
                key: key_at as u32,
                record: number,
                key_bytes: key.len() as u16,
                bits,
            });
        }
    }

    /// The run over `bytes`.
    pub(crate) fn finish(self, bytes: Vec<u8>) -> Run {
        let Self(mut run) = self;
        run.arenas.push(Arc::new(bytes));
        run.sort();
        run
    }
}

fn attrs_of(record: &WireRecord<'_>, seq: u64, issuer: u32, number: u32) -> RowAttrs {
    RowAttrs {
        issuance: record.issuance,
        seq,
        first_seen: record.first_seen,
        not_before: record.not_before,
        not_after: record.not_after,
        issuer,
        organization: if !record.has_organization() { 0 } else { number + 1 },
        bits: 0,
    }
}

fn key_at<'a>(arenas: &'a [Arc<Vec<u8>>], row: &RowRef) -> &'a [u8] {
    let start = row.key as usize;
    let arena = arenas.get(row.arena as usize);
    arena
        .and_then(|arena| arena.get(start..start + usize::from(row.key_bytes)))
        .unwrap_or(&[])
}

fn prefix_of(key: &[u8]) -> u128 {
    if let Some(head) = key.first_chunk::<16>() {
        return u128::from_be_bytes(*head);
    }
    let mut word = [0u8; 16];
    for (to, from) in word.iter_mut().zip(key) {
        *to = *from;
    }
    u128::from_be_bytes(word)
}

/// Walks the rows of a run within a range.
pub(crate) struct RunCursor {
    run: Arc<Run>,
    at: usize,
    end: usize,
    attrs: Option<RowAttrs>,
}

impl RunCursor {
    fn settle(&mut self) {
        self.attrs = (self.at < self.end)
            .then(|| self.run.rows.get(self.at))
            .flatten()
            .and_then(|row| {
                let record = self.run.records.get(row.record as usize)?;
                Some(RowAttrs {
                    bits: row.bits,
                    ..record.attrs
                })
            });
    }
}

impl RowCursor for RunCursor {
    fn row(&self) -> Option<(&[u8], &RowAttrs)> {
        let row = self.run.rows.get(self.at)?;
        Some((key_at(&self.run.arenas, row), self.attrs.as_ref()?))
    }

    fn advance(&mut self) -> crate::Result<()> {
        self.at += 1;
        self.settle();
        Ok(())
    }

    fn organization(&self, number: u32) -> crate::Result<String> {
        Ok(self.run.organization(number).to_owned())
    }
}

/// The runs that one write-ahead log file covers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memtable {
    pub(crate) runs: Vec<Arc<Run>>,
    /// Number of the write-ahead log file that holds the same records.
    pub(crate) wal: u64,
}

impl Memtable {
    pub(crate) fn rows(&self) -> usize {
        self.runs.iter().map(|run| run.rows()).sum()
    }

    /// Adds a run and merges the newest ones while enough of similar size have gathered.
    pub(crate) fn push(&mut self, run: Run) {
        self.runs.push(Arc::new(run));
        while let Some(tail) = self.runs.len().checked_sub(RUNS_PER_TIER) {
            let Some(candidates) = self.runs.get(tail..) else {
                return;
            };
            let largest = candidates.iter().map(|run| run.memory_bytes()).max().unwrap_or(0);
            let total: usize = candidates.iter().map(|run| run.memory_bytes()).sum();
            if largest * 2 > total {
                return;
            }
            let merged = Run::merge(candidates);
            self.runs.truncate(tail);
            self.runs.push(Arc::new(merged));
        }
    }
}
