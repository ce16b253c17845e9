//! How long questions take.

use std::path::Path;
use std::time::Instant;

use tamis_ct_index::Snapshot;

use crate::questions::{Kind, Questions};
use crate::{CACHE_MIB, Way, percentiles, process, ways};

const PAGE_BYTES: f64 = 4096.0;

/// Times of one way, in microseconds.
#[derive(Default)]
struct Asked {
    first: Vec<f64>,
    again: Vec<f64>,
    /// Pages that the disk gave for each question.
    pages: Vec<f64>,
}

/// Nothing in memory but what an open segment keeps: each question meets a new snapshot and files that the
/// page cache does not hold.
pub(crate) fn cold(dir: &Path, questions: &Questions, count: usize) -> anyhow::Result<()> {
    let ways = ways(256);
    println!("\n== cold, {count} questions each, µs; ratio to {}", ways[0].name);
    for kind in Kind::ALL {
        println!(
            "   {:24} {:>10} {:>10} {:>7} {:>7}   pages from disk a question, mean / p99; without any",
            kind.name(),
            "p50",
            "p99",
            "ratio",
            "p99"
        );
        let mut asked: Vec<Asked> = ways.iter().map(|_| Asked::default()).collect();
        for number in 0..count {
            for at in turns(number, ways.len()) {
                let (way, asked) = (&ways[at], &mut asked[at]);
                // Twice: what the one before read would be mapped on opening, and then stay.
                process::drop_cached(dir)?;
                let snapshot = way.open(dir)?;
                process::drop_cached(dir)?;
                let before = process::bytes_from_disk()?;
                asked.first.push(time(questions, &snapshot, kind, number)?);
                let read = process::bytes_from_disk()?.saturating_sub(before);
                asked.pages.push(read as f64 / PAGE_BYTES);
            }
        }
        let mut base = None;
        for (way, asked) in ways.iter().zip(&mut asked) {
            let (median, late) = percentiles(&mut asked.first);
            let (median_base, late_base) = *base.get_or_insert((median, late));
            let without = asked.pages.iter().filter(|&&pages| pages == 0.0).count();
            let mean = asked.pages.iter().sum::<f64>() / asked.pages.len().max(1) as f64;
            println!(
                "   {:24} {median:10.1} {late:10.1} {:7.2} {:7.2}   {mean:.1} / {:.0}; {without}",
                way.name,
                median_base / median,
                late_base / late,
                percentiles(&mut asked.pages).1,
            );
        }
    }
    Ok(())
}

/// The page cache holds all files; what was decoded is there as far as the budget goes.
pub(crate) fn warm(dir: &Path, questions: &Questions, count: usize) -> anyhow::Result<()> {
    for cache_mib in CACHE_MIB {
        let ways = ways(cache_mib);
        println!(
            "\n== warm, {cache_mib} MiB for decoded blocks, {count} questions each, µs; ratio to {}",
            ways[0].name
        );
        for kind in Kind::ALL {
            warm_kind(dir, questions, &ways, kind, count)?;
        }
    }
    Ok(())
}

fn warm_kind(
    dir: &Path,
    questions: &Questions,
    ways: &[Way],
    kind: Kind,
    count: usize,
) -> anyhow::Result<()> {
    let open = ways.iter().map(|way| way.open(dir));
    let snapshots = open.collect::<anyhow::Result<Vec<_>>>()?;
    let mut asked: Vec<Asked> = ways.iter().map(|_| Asked::default()).collect();
    // The first half of the rounds fills the page cache and what is kept of decoded blocks.
    for round in 0..2 {
        for number in 0..count {
            for at in turns(number, ways.len()) {
                let (snapshot, asked) = (&snapshots[at], &mut asked[at]);
                let first = time(questions, snapshot, kind, number)?;
                let again = time(questions, snapshot, kind, number)?;
                if round > 0 {
                    asked.first.push(first);
                    asked.again.push(again);
                }
            }
        }
    }
    println!(
        "   {:24} {:>10} {:>10} {:>7} {:>7}   at once again: p50, p99, ratio",
        kind.name(),
        "p50",
        "p99",
        "ratio",
        "p99"
    );
    let mut base = None;
    for (way, asked) in ways.iter().zip(&mut asked) {
        let (first, again) = (percentiles(&mut asked.first), percentiles(&mut asked.again));
        let (first_base, again_base) = *base.get_or_insert((first, again));
        println!(
            "   {:24} {:10.1} {:10.1} {:7.2} {:7.2}   {:.1} {:.1} {:.2}",
            way.name,
            first.0,
            first.1,
            first_base.0 / first.0,
            first_base.1 / first.1,
            again.0,
            again.1,
            again_base.0 / again.0,
        );
    }
    Ok(())
}

/// All ways, each question beginning with another: the first finds the processor's caches cold.
fn turns(number: usize, ways: usize) -> impl Iterator<Item = usize> {
    (0..ways).map(move |turn| (number + turn) % ways)
}

fn time(questions: &Questions, snapshot: &Snapshot, kind: Kind, number: usize) -> anyhow::Result<f64> {
    let start = Instant::now();
    questions.ask(snapshot, kind, number)?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}
