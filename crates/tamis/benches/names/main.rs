//! What an entry costs from a log's page to a flushed segment, what it takes on disk and how fast it is
//! found again, beside the layout first asked for, on one corpus in one run:
//! `cargo bench -p tamis --bench names`. See `docs/benchmarks.md`.
#![forbid(unsafe_code)]

mod clock;
mod feed;
mod memtable;
#[path = "../original/mod.rs"]
mod original;
mod ours;
mod queries;
mod report;

use std::path::Path;

use self::clock::Stage;
use self::feed::{Feed, Framing, Truth};
use self::original::Original;
use self::ours::Pipeline;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const NAMES: u64 = 5_000_000;
/// `cargo test --benches` passes no `--bench`: so many names show that it runs.
const NAMES_TO_SHOW_THAT_IT_RUNS: u64 = 20_000;
/// Rows of a memtable: the default, and what fewer and larger segments would cost.
const FLUSH_ROWS: [usize; 2] = [200_000, 1_000_000];

/// What the runs are about.
struct Plan {
    names: u64,
    /// Only these parts: `ours`, `original`, `queries`, `memtable`; empty for all.
    only: Vec<String>,
    framings: Vec<Framing>,
}

impl Plan {
    fn read() -> anyhow::Result<Self> {
        let is_bench = std::env::args().any(|argument| argument == "--bench");
        let words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
        let (framings, only): (Vec<_>, Vec<_>) =
            words.partition(|word| word == "get-entries" || word == "tiles");
        Ok(Self {
            names: match std::env::var("TAMIS_BENCH_NAMES") {
                Ok(names) => names.replace('_', "").parse()?,
                Err(_) if is_bench => NAMES,
                Err(_) => NAMES_TO_SHOW_THAT_IT_RUNS,
            },
            framings: [Framing::GetEntries, Framing::Tiles]
                .into_iter()
                .filter(|framing| framings.is_empty() || framings.iter().any(|word| word == framing.name()))
                .collect(),
            only,
        })
    }

    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

fn main() -> anyhow::Result<()> {
    let plan = Plan::read()?;
    let folder = tempfile::tempdir()?;
    for &framing in &plan.framings {
        run(&plan, framing, folder.path())?;
    }
    if plan.wants("memtable") {
        memtable::run(plan.names, folder.path())?;
    }
    Ok(())
}

fn run(plan: &Plan, framing: Framing, folder: &Path) -> anyhow::Result<()> {
    let wants_original = plan.wants("original") || plan.wants("queries");
    let mut all_ours = Vec::new();
    if plan.wants("ours") || plan.wants("queries") {
        for flush_rows in FLUSH_ROWS {
            let dir = folder.join(format!("ours-{}-{flush_rows}", framing.name()));
            let (pipeline, truth) = ours(framing, plan.names, flush_rows, &dir)?;
            report::ours(framing, flush_rows, &pipeline, &truth);
            all_ours.push((flush_rows, pipeline, truth));
        }
    }
    if !wants_original {
        return Ok(());
    }
    let records = all_ours.first().map_or(plan.names, |(.., truth)| truth.records);
    let dir = folder.join(format!("original-{}", framing.name()));
    let (original, truth) = original(framing, plan.names, records, &dir)?;
    report::original(framing, &original, &truth);
    for (flush_rows, pipeline, _) in &all_ours {
        report::ratio(*flush_rows, pipeline, &original, &truth);
        report::sizes(*flush_rows, pipeline, &original);
        // The same rows come out of both framings.
        if framing == Framing::GetEntries && plan.wants("queries") {
            println!(
                "-- as flushed, segments of {} rows",
                report::grouped(*flush_rows as u64)
            );
            queries::run(&pipeline.index.snapshot(), &original, &truth)?;
            if flush_rows == FLUSH_ROWS.first().unwrap_or(&0) {
                report::merge(&pipeline.index, truth.entries)?;
                queries::run(&pipeline.index.snapshot(), &original, &truth)?;
            }
        }
    }
    Ok(())
}

fn ours(framing: Framing, names: u64, flush_rows: usize, dir: &Path) -> anyhow::Result<(Pipeline, Truth)> {
    let mut feed = Feed::new(framing, names);
    let mut pipeline = Pipeline::create(dir, flush_rows)?;
    loop {
        let pages = feed.chunk();
        if pages.is_empty() {
            break;
        }
        pipeline.chunk(&pages)?;
    }
    pipeline.finish()?;
    Ok((pipeline, feed.truth))
}

fn original(framing: Framing, names: u64, planned: u64, dir: &Path) -> anyhow::Result<(Original, Truth)> {
    let mut feed = Feed::new(framing, names);
    let mut original = Original::create(dir, planned)?;
    loop {
        let pages = feed.chunk();
        if pages.is_empty() {
            break;
        }
        for page in &pages {
            original.page(page, framing)?;
        }
    }
    original.flush()?;
    Ok((original, feed.truth))
}

/// All stages together.
fn total(stages: &[(&'static str, Stage)]) -> Stage {
    stages.iter().fold(Stage::default(), |sum, (_, stage)| Stage {
        cpu: sum.cpu + stage.cpu,
        wall: sum.wall + stage.wall,
    })
}
