//! What a question costs by each way of reading blocks, warm and cold, how many pages it reads, and what
//! stays in memory: `cargo bench -p tamis-ct-index --features readers --bench readers`, or some parts of it:
//! `… -- times`, `pages`, `memory`. See `docs/benchmarks.md`.
//!
//! Readers take turns at every question, so that a busy machine slows all of them.
#![forbid(unsafe_code)]

mod corpus;
mod memory;
mod pages;
mod process;
mod questions;
mod times;

use std::path::{Path, PathBuf};

use tamis_ct_index::readers::Reader;
use tamis_ct_index::{Options, Snapshot};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const ROWS: u64 = 2_000_000;
/// `cargo test --benches` passes no `--bench`: so many rows show that it runs.
const ROWS_TO_SHOW_THAT_IT_RUNS: u64 = 5_000;

/// A way to read, and how much of what was decoded is kept.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    reader: Reader,
    cache_mib: usize,
}

impl Way {
    fn options(&self) -> Options {
        Options {
            cache_bytes: self.cache_mib << 20,
            reader: self.reader,
            ..Options::default()
        }
    }

    fn open(&self, dir: &Path) -> anyhow::Result<Snapshot> {
        Ok(Snapshot::open(dir, &self.options())?)
    }
}

/// All ways, the one that others are compared with first.
fn ways(cache_mib: usize) -> Vec<Way> {
    let way = |name, reader| Way {
        name,
        reader,
        cache_mib,
    };
    vec![
        way("pread, one by one", Reader::OneByOne),
        way("pread, asked ahead", Reader::Shipped),
        way("map", Reader::Map),
        Way {
            cache_mib: 0,
            ..way("map, nothing kept", Reader::Map)
        },
        way("direct", Reader::Direct),
        way("io_uring", Reader::Uring),
        way("io_uring, direct", Reader::UringDirect),
    ]
}

const CACHE_MIB: [usize; 2] = [16, 256];

/// What the run is about.
struct Plan {
    dir: PathBuf,
    _temporary: Option<tempfile::TempDir>,
    rows: u64,
    /// Only these parts; empty for all.
    only: Vec<String>,
    is_bench: bool,
}

impl Plan {
    fn read() -> anyhow::Result<Self> {
        let is_bench = std::env::args().any(|argument| argument == "--bench");
        let words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
        let rows = match std::env::var("TAMIS_BENCH_ROWS") {
            Ok(rows) => rows.replace('_', "").parse()?,
            Err(_) if is_bench => ROWS,
            Err(_) => ROWS_TO_SHOW_THAT_IT_RUNS,
        };
        let temporary = match std::env::var_os("TAMIS_BENCH_DIR") {
            Some(_) => None,
            None => Some(tempfile::tempdir()?),
        };
        let dir = match (&temporary, std::env::var_os("TAMIS_BENCH_DIR")) {
            (Some(folder), _) => folder.path().to_owned(),
            (None, dir) => PathBuf::from(dir.unwrap_or_default()),
        };
        Ok(Self {
            dir: dir.join(format!("readers-{rows}")),
            _temporary: temporary,
            rows,
            only: words.collect(),
            is_bench,
        })
    }

    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }

    /// Fewer of something when it is only to show that it runs.
    fn count(&self, whole: usize) -> usize {
        if self.is_bench { whole } else { whole.min(20) }
    }
}

fn main() -> anyhow::Result<()> {
    if memory::asked()? {
        return Ok(());
    }
    let plan = Plan::read()?;
    let questions = corpus::build(&plan.dir, plan.rows)?;
    let snapshot = Snapshot::open(&plan.dir, &Options::default())?;
    let stats = snapshot.stats();
    println!(
        "{} rows of {} issuances in {} segments, {:.0} MB; {} domains and {} fingerprints to ask for",
        stats.segment_rows,
        stats.totals.issuances,
        stats.segments,
        stats.segment_bytes as f64 / 1e6,
        questions.domains.len(),
        questions.fingerprints.len()
    );
    if plan.wants("pages") {
        pages::run(&plan.dir, &questions, plan.count(500))?;
        pages::yardstick(&plan.dir, plan.count(500))?;
    }
    if plan.wants("times") {
        times::cold(&plan.dir, &questions, plan.count(200))?;
        times::warm(&plan.dir, &questions, plan.count(2_000))?;
    }
    if plan.wants("memory") {
        memory::run(&plan.dir, plan.count(100_000))?;
    }
    Ok(())
}

/// Median and 99th percentile.
fn percentiles(numbers: &mut [f64]) -> (f64, f64) {
    numbers.sort_unstable_by(f64::total_cmp);
    let at = |share: usize| {
        let place = numbers.len().saturating_sub(1) * share / 100;
        numbers.get(place).copied().unwrap_or(f64::NAN)
    };
    (at(50), at(99))
}
