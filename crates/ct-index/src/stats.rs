//! Counts and sizes of an index, by region.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::manifest::{Holds, LogEntry};
use crate::segment::block::BlockKind;
use crate::segment::{Segment, Standing};
use crate::totals::Totals;
use crate::view::View;

/// What an index holds and what it costs.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Stats {
    /// Counts that a second import does not move.
    pub totals: Totals,
    /// Issuers in the dictionary.
    pub issuers: u64,
    /// Live segments.
    pub segments: u64,
    /// Name rows in segments; copies that a merge will fold are counted apart.
    pub segment_rows: u64,
    /// Certificate records in segments.
    pub segment_records: u64,
    /// Rows not yet in a segment.
    pub memtable_rows: u64,
    /// Bytes of all segment files.
    pub segment_bytes: u64,
    /// Bytes by region of the segment files.
    pub regions: Vec<Region>,
    /// Segments by tier and kind.
    pub tiers: Vec<Tier>,
    /// Next sequence number: observations accepted so far.
    pub next_seq: u64,
    /// Logs that entries came from.
    pub logs: Vec<LogEntry>,
    /// Damage known since the folder was opened.
    pub faults: Vec<String>,
}

/// One region over all segments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Region {
    /// Name of the region.
    pub region: &'static str,
    /// Rows or entries.
    pub rows: u64,
    /// Bytes, block headers included.
    pub bytes: u64,
}

/// Segments of one kind that lie behind as many merges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tier {
    /// Merges that lie behind them: 0 for flushes.
    pub tier: u32,
    /// What they hold: `flushes` (everything), `names`, `records` or `look-ups`.
    pub kind: &'static str,
    /// Files.
    pub segments: u64,
    /// Results of a merge, or flushes; a run is cut into parts.
    pub runs: u64,
    /// Name rows, or entries of look-ups.
    pub rows: u64,
    /// Certificate records.
    pub records: u64,
    /// Bytes of the files.
    pub bytes: u64,
}

fn kind_name(holds: Holds) -> &'static str {
    match holds {
        Holds::Everything => "flushes",
        Holds::Names => "names",
        Holds::Records => "records",
        Holds::Lookups => "look-ups",
    }
}

/// Gathers segments by tier and kind.
#[derive(Default)]
struct Tiers(BTreeMap<(u32, Holds), (Tier, BTreeSet<u64>)>);

impl Tiers {
    fn note(&mut self, segment: &Segment) {
        let Some(standing) = segment.standing else {
            return;
        };
        let Standing { holds, tier, run } = standing;
        let (told, runs) = self.0.entry((tier, holds)).or_default();
        let tables = &segment.tables;
        told.segments += 1;
        told.rows += if holds == Holds::Lookups {
            tables.fingerprints.rows + tables.serials.rows + tables.issuances.rows
        } else {
            tables.names.rows
        };
        told.records += tables.records.rows;
        told.bytes += segment.blocks.file.len();
        runs.insert(run);
    }

    fn told(self) -> Vec<Tier> {
        let told = self.0.into_iter().map(|((tier, holds), (told, runs))| Tier {
            tier,
            kind: kind_name(holds),
            runs: runs.len() as u64,
            ..told
        });
        told.collect()
    }
}

impl Stats {
    pub(crate) fn of(view: &View) -> Self {
        let mut stats = Self {
            totals: view.totals.clone(),
            issuers: view.issuers.len() as u64,
            segments: view.segments.len() as u64,
            memtable_rows: view.memtable_rows() as u64,
            next_seq: view.next_seq,
            logs: view.logs.to_vec(),
            faults: view.faults.iter().map(|fault| fault.to_string()).collect(),
            ..Self::default()
        };
        let mut regions: Vec<Region> = BlockKind::ALL
            .iter()
            .map(|kind| Region {
                region: kind.name(),
                ..Region::default()
            })
            .collect();
        let mut tiers = Tiers::default();
        for segment in view.segments.iter() {
            tiers.note(segment);
            let length = segment.blocks.file.len();
            stats.segment_bytes += length;
            stats.segment_rows += segment.tables.names.rows;
            stats.segment_records += segment.tables.records.rows;
            let tables = segment.footer.tables.iter().flat_map(|table| {
                [
                    (table.kind, table.rows, table.bytes),
                    (BlockKind::IndexTop, table.blocks, u64::from(table.top.bytes)),
                ]
            });
            let singles = segment
                .footer
                .singles
                .iter()
                .map(|(kind, at)| (*kind, 1, u64::from(at.bytes)));
            let mut parts: Vec<(BlockKind, u64, u64)> = tables.chain(singles).collect();
            // What is left are the chunks of the indexes, the footer, header and trailer.
            let told: u64 = parts.iter().map(|(.., bytes)| bytes).sum();
            parts.push((BlockKind::IndexChunk, 0, length.saturating_sub(told)));
            for (kind, rows, bytes) in parts {
                if let Some(region) = regions.iter_mut().find(|region| region.region == kind.name()) {
                    region.rows += rows;
                    region.bytes += bytes;
                }
            }
        }
        stats.tiers = tiers.told();
        regions.retain(|region| region.bytes > 0);
        stats.regions = regions;
        stats
    }
}
