//! What following costs an entry beside what no reader can do without: SHA-256 of the leaf and of the
//! certificate, and reading it. `cargo bench -p tamis-engine --bench follow`; see `docs/benchmarks.md`.
//!
//! The simulated logs run in a process of their own, so that its processor time is told apart.
#![forbid(unsafe_code)]

mod alone;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tamis_ct_index::{Index, Options};
use tamis_ct_log::key::PublicKey;
use tamis_engine::follow::{FollowOptions, SingleLog, Summary, follow};
use tamis_testbed::ctlog::{LogKind, LogOptions, World, WorldOptions};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Entries of each log. `cargo test --benches` passes no `--bench`: so few show that it runs.
const ENTRIES: u64 = 100_000;
const ENTRIES_TO_SHOW_THAT_IT_RUNS: u64 = 600;
const RUNS: usize = 5;
const SERVE: &str = "TAMIS_BENCH_SERVE";

/// A log of the other process.
pub(crate) struct Served {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) key: String,
}

/// The simulator in its own process.
struct Simulator {
    child: Child,
    logs: Vec<Served>,
}

impl Drop for Simulator {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() {
    if let Ok(entries) = std::env::var(SERVE) {
        serve(entries.parse().expect("a number of entries"));
        return;
    }
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (entries, runs) = if is_bench {
        (ENTRIES, RUNS)
    } else {
        (ENTRIES_TO_SHOW_THAT_IT_RUNS, 1)
    };
    let simulator = Simulator::start(entries);
    for (what, names) in [
        ("get-entries", &["alpha", "gamma"][..]),
        ("tiles", &["beta", "delta"]),
        ("both", &["alpha", "beta", "gamma", "delta"]),
    ] {
        let logs: Vec<&Served> = simulator
            .logs
            .iter()
            .filter(|log| names.contains(&log.name.as_str()))
            .collect();
        let total = entries * logs.len() as u64;
        let mut told: Vec<[f64; 4]> = (0..runs)
            .map(|_| {
                let alone = alone::cost(&logs, entries);
                let (wall, cpu, served) = run(&simulator, &logs, total);
                let each = |time: Duration| time.as_secs_f64() * 1e6 / total as f64;
                [
                    total as f64 / wall.as_secs_f64(),
                    each(cpu),
                    each(alone),
                    each(served),
                ]
            })
            .collect();
        told.sort_by(|a, b| (a[1] / a[2]).total_cmp(&(b[1] / b[2])));
        let [rate, cpu, alone, served] = told[runs / 2];
        println!(
            "{what:<12} {rate:>9.0} entries/s   reader {cpu:.2} µs/entry   hashes and reading alone {alone:.2}   ratio {:.2}   simulator {served:.2}",
            cpu / alone
        );
    }
}

/// Serves logs until killed.
fn serve(entries: u64) {
    let mut options = WorldOptions::default();
    for (name, kind, page) in [
        ("alpha", LogKind::Rfc6962, 1_000),
        ("beta", LogKind::Static, 256),
        ("gamma", LogKind::Rfc6962, 256),
        ("delta", LogKind::Static, 256),
    ] {
        options.logs.push(
            LogOptions::new(name, kind)
                .operator(name)
                .entries(entries)
                .page(page, false),
        );
    }
    let world = World::start(options).expect("the logs start");
    for log in world.logs() {
        println!("{} {} {}", log.name(), log.url(), log.key_base64());
    }
    println!();
    loop {
        std::thread::park();
    }
}

impl Simulator {
    fn start(entries: u64) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut child = Command::new(program)
            .env(SERVE, entries.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts again");
        let out = BufReader::new(child.stdout.take().expect("it was piped"));
        let lines = out
            .lines()
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty());
        let logs = lines
            .filter_map(|line| {
                let mut parts = line.split(' ').map(str::to_owned);
                Some(Served {
                    name: parts.next()?,
                    url: parts.next()?,
                    key: parts.next()?,
                })
            })
            .collect();
        Self { child, logs }
    }

    /// Processor time of its process.
    fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let ticks: u64 = after_name
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|ticks| ticks.parse::<u64>().ok())
            .sum();
        Duration::from_millis(ticks * 10)
    }
}

/// Follows logs into a fresh index until everything is read; wall and processor time, and the simulator's.
fn run(simulator: &Simulator, logs: &[&Served], total: u64) -> (Duration, Duration, Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let index = Arc::new(Index::open(folder.path(), Options::default()).expect("an index"));
    let options = FollowOptions {
        logs: logs
            .iter()
            .map(|log| SingleLog {
                url: log.url.clone(),
                key: PublicKey::from_base64(&log.key).expect("a key"),
            })
            .collect(),
        until_caught_up: true,
        ..FollowOptions::default()
    };
    let (wall, cpu, served) = (Instant::now(), process_cpu(), simulator.cpu());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("threads");
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let summary = runtime
        .block_on(follow(Arc::clone(&index), options, stopped))
        .expect("it is followed");
    let (wall, cpu) = (wall.elapsed(), process_cpu().saturating_sub(cpu));
    let served = simulator.cpu().saturating_sub(served);
    check(&summary, total);
    (wall, cpu, served)
}

/// Nothing counts that is not whole and proved.
fn check(summary: &Summary, total: u64) {
    assert_eq!(summary.entries, total);
    for log in &summary.status.logs {
        assert_eq!((log.verified, log.backlog), (log.tree_size, 0), "{log:?}");
    }
}

fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
