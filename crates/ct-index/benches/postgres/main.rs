//! "Which certificates are below this domain?", asked of Tamis and of PostgreSQL over the same rows:
//! `cargo bench -p tamis-ct-index --bench postgres`. See `docs/benchmarks.md`.
//!
//! PostgreSQL gets what serves it best: rows in the order of their key, a table for these questions alone,
//! every setting and page warm. `TAMIS_BENCH_NAMES` sets the size, `TAMIS_BENCH_POSTGRES` the folder of its
//! programs.
#![forbid(unsafe_code)]

#[path = "../scale/feed.rs"]
mod feed;
mod peer;
mod questions;
mod server;

use std::time::Instant;

use tamis_ct_index::compact::Policy;
use tamis_ct_index::{Index, Options};

use self::feed::Feed;
use self::peer::Peer;
use self::server::Server;

const NAMES: u64 = 2_000_000;
/// `cargo test --benches` passes no `--bench`: so many names show that it runs.
const NAMES_TO_SHOW_THAT_IT_RUNS: u64 = 20_000;
/// Entries of a batch, as an import decodes them.
const BATCH_ENTRIES: usize = 1_024;

fn main() -> anyhow::Result<()> {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let names = match std::env::var("TAMIS_BENCH_NAMES") {
        Ok(names) => names.replace('_', "").parse()?,
        Err(_) if is_bench => NAMES,
        Err(_) => NAMES_TO_SHOW_THAT_IT_RUNS,
    };
    let server = match Server::start() {
        Ok(server) => server,
        Err(error) => {
            eprintln!("SKIPPED: no PostgreSQL to compare with: {error:#}");
            return Ok(());
        }
    };
    let dir = tempfile::tempdir()?;
    // Merged once, at the end.
    let options = Options {
        compaction: None,
        ..Options::default()
    };
    let index = Index::open(dir.path(), options)?;
    let domains = fill(&index, names)?;
    let mut peer = Peer::load(server.connect()?, names)?;
    sizes(&index, &mut peer)?;
    questions::run(&index.snapshot(), &mut peer, &domains)?;
    index.close()?;
    drop(peer);
    server.stop()
}

/// Imports, flushes and merges. Answers domains to ask for.
fn fill(index: &Index, names: u64) -> anyhow::Result<Vec<String>> {
    for log in 1..=feed::LOGS {
        index.register_log(&format!("log-{log}.example"))?;
    }
    let start = Instant::now();
    let mut feed = Feed::new(names);
    loop {
        let batch = feed.batch(BATCH_ENTRIES);
        if batch.is_empty() {
            break;
        }
        index.append(&batch)?;
    }
    index.flush()?;
    let imported = start.elapsed();
    index.compact(&Policy::everything())?;
    println!(
        "== load: {} names of {} entries\n   Tamis: {:.1} s with generating, merged after {:.1} s",
        feed.names,
        feed.entries,
        imported.as_secs_f64(),
        start.elapsed().as_secs_f64()
    );
    Ok(feed.domains)
}

fn sizes(index: &Index, peer: &mut Peer) -> anyhow::Result<()> {
    let stats = index.snapshot().stats();
    let rows = stats.segment_rows;
    anyhow::ensure!(
        rows == peer.rows,
        "not the same rows: {rows} in Tamis, {} in PostgreSQL",
        peer.rows
    );
    let names = |region: &str| matches!(region, "names" | "organizations" | "domains" | "meta");
    let of_names: u64 = stats
        .regions
        .iter()
        .filter(|region| names(region.region))
        .map(|region| region.bytes)
        .sum();
    let (table, key) = peer.bytes()?;
    let per = |bytes: u64| bytes as f64 / rows as f64;
    println!("== bytes a row, {rows} rows in {} segment(s)", stats.segments);
    println!(
        "   Tamis: {:.1} of names; {:.1} with certificates, fingerprints, serials, positions and look-ups by them",
        per(of_names),
        per(stats.segment_bytes)
    );
    println!(
        "   PostgreSQL: {:.1} (table {:.1}, primary key {:.1}), names alone",
        per(table + key),
        per(table),
        per(key)
    );
    Ok(())
}
