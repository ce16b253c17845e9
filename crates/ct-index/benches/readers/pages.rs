//! How many blocks and pages a question reads of each segment when nothing is in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tamis_ct_index::readers::{Reader, record_reads, recorded_reads};

use crate::questions::{Kind, Questions};
use crate::{Way, percentiles, process};

const PAGE_BYTES: u64 = 4096;

/// What was read of one kind of block.
#[derive(Default)]
struct Blocks {
    count: u64,
    bytes: u64,
    pages: u64,
    /// Pages more than its bytes would fill.
    straddles: u64,
}

pub(crate) fn run(dir: &Path, questions: &Questions, count: usize) -> anyhow::Result<()> {
    let way = Way {
        name: "pread, one by one",
        reader: Reader::OneByOne,
        cache_mib: 256,
    };
    record_reads();
    println!("\n== read for a question that finds nothing in memory, {count} questions each");
    for kind in Kind::ALL {
        let mut kinds: BTreeMap<&str, Blocks> = BTreeMap::new();
        let (mut segments, mut pages) = (Vec::new(), Vec::new());
        for number in 0..count {
            let snapshot = way.open(dir)?;
            drop(recorded_reads());
            questions.ask(&snapshot, kind, number)?;
            let mut touched: BTreeMap<PathBuf, BTreeSet<u64>> = BTreeMap::new();
            for read in recorded_reads() {
                let last = (read.offset + read.bytes as u64 - 1) / PAGE_BYTES;
                let span = read.offset / PAGE_BYTES..=last;
                let blocks = kinds.entry(read.kind).or_default();
                blocks.count += 1;
                blocks.bytes += read.bytes as u64;
                blocks.pages += span.clone().count() as u64;
                blocks.straddles += span.clone().count() as u64 - (read.bytes as u64).div_ceil(PAGE_BYTES);
                touched.entry(read.path).or_default().extend(span);
            }
            segments.push(touched.len() as f64);
            pages.extend(touched.values().map(|pages| pages.len() as f64));
        }
        report(kind, &mut segments, &mut pages, &kinds);
    }
    Ok(())
}

fn report(kind: Kind, segments: &mut [f64], pages: &mut [f64], kinds: &BTreeMap<&str, Blocks>) {
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len().max(1) as f64;
    let few = pages.iter().filter(|&&pages| pages <= 4.0).count();
    let (median, late) = percentiles(pages);
    println!(
        "   {:20} segments {:.2} (p99 {:.0}); pages a segment: mean {:.2}, p50 {median:.0}, p99 {late:.0}, most {:.0}; 4 or fewer in {:.1} %",
        kind.name(),
        mean(segments),
        percentiles(segments).1,
        mean(pages),
        pages.last().copied().unwrap_or(0.0),
        100.0 * few as f64 / pages.len().max(1) as f64,
    );
    let asked = segments.len().max(1) as f64;
    for (kind, blocks) in kinds {
        let count = blocks.count.max(1) as f64;
        println!(
            "     {kind:18} {:6.2} a question, {:6.0} bytes and {:.2} pages each, {:.2} of them for straddling",
            blocks.count as f64 / asked,
            blocks.bytes as f64 / count,
            blocks.pages as f64 / count,
            blocks.straddles as f64 / count,
        );
    }
}

/// What one page costs here, to measure the rest by.
pub(crate) fn yardstick(dir: &Path, count: usize) -> anyhow::Result<()> {
    let mut largest: Option<(u64, PathBuf)> = None;
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                largest = largest.max(Some((entry.metadata()?.len(), entry.path())));
            }
        }
    }
    let Some((bytes, path)) = largest else {
        return Ok(());
    };
    process::drop_cached(dir)?;
    let (file, mut page, mut times) = (File::open(path)?, [0; PAGE_BYTES as usize], Vec::new());
    for number in 0..count as u64 {
        let place = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (bytes / PAGE_BYTES).max(1);
        let start = Instant::now();
        let _ = file.read_at(&mut page, place * PAGE_BYTES)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let (median, late) = percentiles(&mut times);
    println!("   one page, cold, by pread: {median:.1} µs, p99 {late:.1}");
    Ok(())
}
