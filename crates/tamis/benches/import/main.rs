//! `tamis ct import` as users run it, over files on disk, on all cores and on one:
//! `cargo bench -p tamis --bench import`. See `docs/benchmarks.md`.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tamis_testbed::framing::{TILE_ENTRIES, data_tile, data_tile_path, get_entries_body};
use tamis_testbed::{Corpus, CorpusOptions, Entry};

const NAMES: u64 = 500_000;
/// `cargo test --benches` passes no `--bench`: so many names show that it runs.
const NAMES_TO_SHOW_THAT_IT_RUNS: u64 = 10_000;
/// Runs of each kind, of which the best is told: other work on the machine only adds.
const ROUNDS: usize = 3;
/// The unit of processor time in `/proc`, on every Linux that Rust runs on.
const TICKS_PER_SECOND: f64 = 100.0;

fn main() -> anyhow::Result<()> {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let names = match std::env::var("TAMIS_BENCH_NAMES") {
        Ok(names) => names.replace('_', "").parse()?,
        Err(_) if is_bench => NAMES,
        Err(_) => NAMES_TO_SHOW_THAT_IT_RUNS,
    };
    let rounds = if is_bench { ROUNDS } else { 1 };
    let folder = tempfile::tempdir()?;
    let corpus = write_corpus(names, folder.path())?;
    println!(
        "{} entries with {names} names: {:.2} GB of get-entries bodies, {:.2} GB of tiles",
        corpus.entries,
        corpus.bytes[0] as f64 / 1e9,
        corpus.bytes[1] as f64 / 1e9
    );
    println!(
        "{:12} {:9} {:>8} {:>12} {:>8} {:>20}",
        "files", "cores", "wall s", "entries/s", "CPU s", "entries/s per core"
    );
    for (name, files) in [("get-entries", "pages"), ("tiles", "tile")] {
        for cores in [Cores::All, Cores::One] {
            let runs = (0..rounds).map(|_| import(&folder.path().join(files), folder.path(), cores));
            let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
            let Some(best) = runs.into_iter().min_by_key(|run| run.wall) else {
                continue;
            };
            println!(
                "{name:12} {:9} {:8.2} {:12.0} {:8.2} {:20.0}",
                match cores {
                    Cores::All => format!("all ({})", std::thread::available_parallelism()?),
                    Cores::One => "one".to_owned(),
                },
                best.wall.as_secs_f64(),
                corpus.entries as f64 / best.wall.as_secs_f64(),
                best.cpu_s,
                corpus.entries as f64 / best.cpu_s.max(1.0 / TICKS_PER_SECOND)
            );
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Cores {
    All,
    One,
}

struct Written {
    entries: u64,
    /// Of get-entries bodies and of tiles.
    bytes: [u64; 2],
}

fn write_corpus(names_max: u64, folder: &Path) -> anyhow::Result<Written> {
    let corpus = Corpus::new(CorpusOptions::spread_over(7, names_max * 100 / 229, 180));
    let issuers = corpus.issuers();
    let mut written = Written {
        entries: 0,
        bytes: [0; 2],
    };
    let (mut names, mut page) = (0, Vec::<Entry>::new());
    for entry in corpus {
        names += entry.issuance.names.len() as u64;
        page.push(entry);
        let enough = names >= names_max;
        if page.len() < TILE_ENTRIES && !enough {
            continue;
        }
        let first = written.entries;
        let files = [
            (
                format!("pages/{first:012}.json"),
                get_entries_body(&page, &issuers),
            ),
            (
                data_tile_path(first / TILE_ENTRIES as u64, page.len()),
                data_tile(&page, &issuers),
            ),
        ];
        for ((path, content), bytes) in files.into_iter().zip(&mut written.bytes) {
            write(&folder.join(path), &content)?;
            *bytes += content.len() as u64;
        }
        written.entries += page.len() as u64;
        page.clear();
        if enough {
            break;
        }
    }
    Ok(written)
}

fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    std::fs::write(path, content).with_context(|| format!("write {}", path.display()))
}

/// One run of the binary.
struct Run {
    wall: Duration,
    cpu_s: f64,
}

fn import(files: &Path, folder: &Path, cores: Cores) -> anyhow::Result<Run> {
    let data: PathBuf = folder.join("index");
    if data.exists() {
        std::fs::remove_dir_all(&data).with_context(|| format!("remove {}", data.display()))?;
    }
    let tamis = env!("CARGO_BIN_EXE_tamis");
    let mut command = match cores {
        Cores::All => Command::new(tamis),
        Cores::One => {
            let mut command = Command::new("taskset");
            command.args(["-c", "0", tamis]).env("RAYON_NUM_THREADS", "1");
            command
        }
    };
    command.args(["ct", "import", "--log", "log.example", "--start", "0", "--data"]);
    command.arg(&data).arg(files).stdout(Stdio::null());
    let (cpu_s, start) = (children_cpu_s()?, Instant::now());
    let status = command.status().context("run tamis (one core needs taskset)")?;
    let wall = start.elapsed();
    anyhow::ensure!(status.success(), "the import ended with {status}");
    Ok(Run {
        wall,
        cpu_s: children_cpu_s()? - cpu_s,
    })
}

/// Processor time of the children that ended.
fn children_cpu_s() -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("read processor times")?;
    // The name of the program may hold anything, so fields are counted behind its bracket.
    let (_, fields) = stat.rsplit_once(')').context("read processor times")?;
    let ticks = fields.split_whitespace().skip(13).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / TICKS_PER_SECOND)
}
