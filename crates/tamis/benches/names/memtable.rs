//! The memtable alone, as far as it can be told apart from outside: each issuance once, in pages that both
//! sides take.
//!
//! Tamis's runs are private, so their cost is what appending costs, less what judging costs (the same
//! batches once more: all duplicates), less what logging as many bytes costs. The first judgement also
//! fills the map of known issuances, and the first append decodes the batch a second time; both stay in
//! the figure. The original's is building the row and its key, and inserting them.

use std::collections::HashSet;
use std::path::Path;

use tamis_ct_index::{Batch, Index};
use tamis_durable::frames::FrameWriter;
use tamis_durable::sealed::Format;
use tamis_testbed::framing::{TILE_ENTRIES, data_tile};
use tamis_testbed::{Corpus, CorpusOptions, Entry};

use crate::clock::Stage;
use crate::feed::{Framing, Page};
use crate::original::Original;
use crate::ours;
use crate::report::grouped;

/// About as many names as a memtable holds at the default, so that neither side flushes.
const NAMES: usize = 180_000;
const PAGES_PER_BATCH: usize = 4;
const BATCHES_PER_COMMIT: usize = 8;
const FORMAT: Format = Format {
    magic: *b"TAMISBEN",
    version: 1,
};

pub(crate) fn run(names: u64, folder: &Path) -> anyhow::Result<()> {
    let pages = pages(NAMES.min(names as usize));
    let batches = pages
        .chunks(PAGES_PER_BATCH)
        .map(ours::batch)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let index = Index::open(&folder.join("memtable"), ours::options(usize::MAX))?;
    let (mut append, mut judge, mut log) = (Stage::default(), Stage::default(), Stage::default());
    let mut rows = 0;
    for part in batches.chunks(BATCHES_PER_COMMIT) {
        append.time(|| {
            for batch in part {
                rows += index.append(batch)?.rows;
            }
            index.commit()
        })?;
    }
    for batch in &batches {
        judge.time(|| index.append(batch))?;
    }
    let mut frames = FrameWriter::create(&folder.join("frames"), FORMAT, 1)?;
    let payload = vec![0x5a; batches.iter().map(Batch::bytes).max().unwrap_or(0)];
    for part in batches.chunks(BATCHES_PER_COMMIT) {
        log.time(|| {
            for batch in part {
                frames.append(payload.get(..batch.bytes()).unwrap_or(&payload))?;
            }
            frames.commit()
        })?;
    }
    let mut original = Original::create(&folder.join("skip-list"), 2 * rows)?;
    for page in &pages {
        original.page(page, Framing::Tiles)?;
    }
    let mut scan = Stage::default();
    std::hint::black_box(scan.time(|| original.scan()));
    let ours = |stage: Stage| stage.cpu.as_secs_f64() * 1e9 / rows.max(1) as f64;
    let theirs = |stage: Stage| stage.cpu.as_secs_f64() * 1e9 / original.records.max(1) as f64;
    let (runs, insert) = (
        ours(append) - ours(judge) - ours(log),
        theirs(original.stages.memtable),
    );
    println!("\n== memtable, {} rows, CPU ns a row", grouped(rows));
    println!(
        "   Tamis: runs {runs:.0} (appending {:.0}, less judging {:.0}, less logging {:.0}); a scan cannot be timed alone from outside",
        ours(append),
        ours(judge),
        ours(log)
    );
    println!(
        "   SkipMap, {} records: insert {insert:.0}, sorted iteration {:.0}; insert against runs {:.1}",
        grouped(original.records),
        theirs(scan),
        insert / runs
    );
    Ok(())
}

/// The first entry of each issuance, as tiles.
fn pages(names_max: usize) -> Vec<Page> {
    let corpus = Corpus::new(CorpusOptions::spread_over(7, names_max as u64, 180));
    let issuers = corpus.issuers();
    let (mut names, mut seen, mut first) = (0, HashSet::new(), 0);
    let fresh = corpus.filter(|entry| seen.insert(entry.issuance.number));
    let enough = |entry: &Entry| {
        names += entry.issuance.names.len();
        names <= names_max
    };
    let entries: Vec<Entry> = fresh.take_while(enough).collect();
    let page = |entries: &[Entry]| {
        first += entries.len() as u64;
        Page {
            log: 1,
            first: first - entries.len() as u64,
            entries: entries.len() as u64,
            bytes: data_tile(entries, &issuers),
        }
    };
    entries.chunks(TILE_ENTRIES).map(page).collect()
}
