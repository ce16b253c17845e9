//! The index at scale: how import, merges, memory, bytes and questions behave as rows grow:
//! `TAMIS_BENCH_NAMES=20_000_000 cargo bench -p tamis-ct-index --bench scale`. See `docs/benchmarks.md`.
//!
//! Observations are generated without certificates, so what is timed is the index alone: judging,
//! logging, flushing, and merges in the background meanwhile. `TAMIS_BENCH_DIR` names a folder to use
//! and keep; `TAMIS_BENCH_PACE` bounds merges in MiB a second (0: not at all).
#![forbid(unsafe_code)]

mod feed;
mod machine;
mod questions;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tamis_ct_index::compact::{Cycle, Policy};
use tamis_ct_index::{Index, Options, Outcome};

use self::feed::Feed;
use self::machine::{Memory, thread_cpu};

/// As in the program: freed memory goes back.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const NAMES: u64 = 2_000_000;
/// `cargo test --benches` passes no `--bench`: so many names show that it runs.
const NAMES_TO_SHOW_THAT_IT_RUNS: u64 = 20_000;
/// Entries of a batch, as an import decodes them.
const BATCH_ENTRIES: usize = 1_024;
/// Reports while importing.
const REPORTS: u64 = 20;
/// Memory for decoded blocks.
const CACHE_BYTES: usize = 128 << 20;

fn main() -> anyhow::Result<()> {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let names = match std::env::var("TAMIS_BENCH_NAMES") {
        Ok(names) => names.replace('_', "").parse()?,
        Err(_) if is_bench => NAMES,
        Err(_) => NAMES_TO_SHOW_THAT_IT_RUNS,
    };
    let mut kept = None;
    let dir = match std::env::var_os("TAMIS_BENCH_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => kept.insert(tempfile::tempdir()?).path().to_owned(),
    };
    let pace: u64 = std::env::var("TAMIS_BENCH_PACE").map_or(Ok(0), |pace| pace.parse())?;
    let options = Options {
        cache_bytes: CACHE_BYTES,
        compaction: Some(Cycle {
            every: Duration::from_secs(2),
            policy: Policy::default(),
            bytes_per_second: pace << 20,
        }),
        ..Options::default()
    };
    let index = Index::open(&dir, options)?;
    let domains = import(&index, names)?;
    merges(&index)?;
    sizes(&index, &dir, names)?;
    questions::run(&index, &dir, &domains)?;
    println!("\nresident at the end: {}", Memory::now());
    index.close()?;
    Ok(())
}

/// Imports, and tells the rate as it goes. Answers domains to ask for.
fn import(index: &Index, names: u64) -> anyhow::Result<Vec<String>> {
    for log in 1..=feed::LOGS {
        index.register_log(&format!("log-{log}.example"))?;
    }
    println!("== import: {names} names of entries, merges in the background");
    println!(
        "   {:>12} {:>12} {:>12} {:>12} {:>9}  memory",
        "entries", "rows", "entries/s", "CPU µs/entry", "segments"
    );
    let mut feed = Feed::new(names);
    let (mut outcome, mut reported) = (Outcome::default(), (0u64, 0u64));
    let (mut wall, mut cpu) = (Duration::ZERO, Duration::ZERO);
    let all = Instant::now();
    loop {
        let batch = feed.batch(BATCH_ENTRIES);
        if batch.is_empty() {
            break;
        }
        let (cpu_before, before) = (thread_cpu(), Instant::now());
        outcome += index.append(&batch)?;
        cpu += thread_cpu().saturating_sub(cpu_before);
        wall += before.elapsed();
        let share = feed.names * REPORTS / names.max(1);
        if share > reported.1 {
            let entries = feed.entries - reported.0;
            report(index, &feed, &outcome, entries, wall, cpu);
            reported = (feed.entries, share);
            (wall, cpu) = (Duration::ZERO, Duration::ZERO);
        }
    }
    index.flush()?;
    println!(
        "   in all {:.1} s with generating; {} entries, {} issuances, {} rows",
        all.elapsed().as_secs_f64(),
        feed.entries,
        outcome.new,
        outcome.rows
    );
    Ok(feed.domains)
}

fn report(index: &Index, feed: &Feed, outcome: &Outcome, entries: u64, wall: Duration, cpu: Duration) {
    println!(
        "   {:>12} {:>12} {:>12.0} {:>12.3} {:>9}  {}",
        feed.entries,
        outcome.rows,
        entries as f64 / wall.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / entries as f64,
        index.snapshot().stats().segments,
        Memory::now()
    );
}

/// Merges what the background has left.
fn merges(index: &Index) -> anyhow::Result<()> {
    let before = index.snapshot().stats();
    let start = Instant::now();
    let done = index.compact(&Policy::default())?;
    let wall = start.elapsed().as_secs_f64();
    let megabytes = (done.bytes_before + done.bytes_after) as f64 / 1e6;
    println!(
        "== merges left for the end: {} of {} segments, {megabytes:.0} MB read and written in {wall:.1} s, {:.0} MB/s; {} left; {}",
        done.merges,
        before.segments,
        megabytes / wall.max(1e-9),
        index.snapshot().stats().segments,
        Memory::now()
    );
    Ok(())
}

/// Bytes by region, and what they would be at fifteen billion names.
fn sizes(index: &Index, dir: &Path, names: u64) -> anyhow::Result<()> {
    let stats = index.snapshot().stats();
    let (rows, issuances) = (stats.totals.name_rows as f64, stats.totals.issuances as f64);
    println!(
        "== bytes: {rows:.0} rows of {issuances:.0} issuances in {}",
        dir.display()
    );
    let mut of_names = 0u64;
    for region in &stats.regions {
        let is_names = matches!(region.region, "names" | "organizations" | "domains");
        of_names += if is_names { region.bytes } else { 0 };
        println!(
            "   {:18} {:>14} bytes {:>12} rows {:>8.2} a row of names {:>8.2} an issuance",
            region.region,
            region.bytes,
            region.rows,
            region.bytes as f64 / rows,
            region.bytes as f64 / issuances
        );
    }
    let rest = stats.segment_bytes - of_names;
    println!(
        "   {:.1} bytes a name row; an issuance {:.1} besides names, {:.1} with everything",
        of_names as f64 / rows,
        rest as f64 / issuances,
        stats.segment_bytes as f64 / issuances
    );
    let scale = 15e9 / rows;
    println!(
        "   at 15 billion name rows: {:.0} GB of names, {:.0} GB of the rest, {:.0} segments like the largest here ({names} names imported)",
        of_names as f64 * scale / 1e9,
        rest as f64 * scale / 1e9,
        scale * stats.segments as f64
    );
    Ok(())
}
