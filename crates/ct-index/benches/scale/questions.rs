//! "Which names are below this domain?", warm and cold, by how many rows answer.

use std::path::Path;
use std::time::{Duration, Instant};

use tamis_ct_index::query::{Filters, NamesQuery, Paging, SearchQuery, Target};
use tamis_ct_index::{Index, Snapshot};

use crate::machine::disk_bytes;

const PAGE_ROWS: usize = 100;
/// Domains asked for of each size, warm and cold.
const WARM: usize = 2_000;
const COLD: usize = 300;
/// Domains by how many rows a search finds.
const SIZES: [(&str, usize, usize); 4] = [
    ("1 row", 1, 1),
    ("2 to 4 rows", 2, 4),
    ("5 to 20 rows", 5, 20),
    ("21 to 100 rows", 21, 100),
];

pub(crate) fn run(index: &Index, dir: &Path, domains: &[String]) -> anyhow::Result<()> {
    let snapshot = index.snapshot();
    let segments = snapshot.stats().segments;
    let mut sizes: [Vec<&str>; SIZES.len()] = Default::default();
    for domain in domains {
        let found = search(&snapshot, domain)?;
        let size = SIZES
            .iter()
            .position(|(_, least, most)| (*least..=*most).contains(&found));
        if let Some(size) = size.and_then(|size| sizes.get_mut(size))
            && size.len() < WARM
        {
            size.push(domain);
        }
    }
    println!("== first page of a search below a domain, µs; {segments} segments");
    println!(
        "   {:16} {:>7} {:>20} {:>12} {:>22} {:>14}",
        "", "domains", "warm p50 / p99", "a row", "cold p50 / p99", "KiB from disk"
    );
    for ((name, ..), domains) in SIZES
        .iter()
        .zip(&sizes)
        .filter(|(_, domains)| !domains.is_empty())
    {
        let mut rows = 0;
        let warm = Times::of(domains, |domain| {
            rows += search(&snapshot, domain)?;
            Ok(())
        })?;
        let (cold, bytes) = cold(dir, domains)?;
        println!(
            "   {name:16} {:>7} {:>9.1} / {:>8.1} {:>12.2} {:>10.0} / {:>9.0} {:>14.1}",
            domains.len(),
            warm.at(50),
            warm.at(99),
            warm.at(50) * domains.len() as f64 / rows as f64,
            cold.at(50),
            cold.at(99),
            bytes / 1_024.0
        );
    }
    absent(&snapshot)
}

/// Names that nobody has.
fn absent(snapshot: &Snapshot) -> anyhow::Result<()> {
    let domains: Vec<String> = (0..WARM)
        .map(|number| format!("nobody-{number}.example"))
        .collect();
    let domains: Vec<&str> = domains.iter().map(String::as_str).collect();
    let times = Times::of(&domains, |domain| search(snapshot, domain).map(drop))?;
    println!(
        "   {:16} {:>7} {:>9.1} / {:>8.1}",
        "none",
        domains.len(),
        times.at(50),
        times.at(99)
    );
    let times = Times::of(&domains, |domain| {
        snapshot.names(&NamesQuery::under(domain))?;
        Ok(())
    })?;
    println!(
        "   {:16} {:>7} {:>9.1} / {:>8.1}",
        "none, names",
        domains.len(),
        times.at(50),
        times.at(99)
    );
    Ok(())
}

/// Each question on a snapshot of its own, whose files are in no cache. Bytes a question beside.
fn cold(dir: &Path, domains: &[&str]) -> anyhow::Result<(Times, f64)> {
    let step = (domains.len() / COLD).max(1);
    let some: Vec<&str> = domains.iter().step_by(step).copied().collect();
    let options = tamis_ct_index::Options {
        cache_bytes: 1 << 20,
        ..tamis_ct_index::Options::default()
    };
    let snapshot = Snapshot::open(dir, &options)?;
    let before = std::cell::Cell::new(0);
    let mut read = 0;
    let mut times = Vec::with_capacity(some.len());
    for domain in &some {
        drop_caches(dir)?;
        before.set(disk_bytes());
        let start = Instant::now();
        search(&snapshot, domain)?;
        times.push(start.elapsed());
        read += disk_bytes() - before.get();
    }
    Ok((Times::sorted(times), read as f64 / some.len() as f64))
}

/// Drops what the page cache holds of every file of the index.
fn drop_caches(dir: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            drop_caches(&path)?;
        } else {
            tamis_durable::drop_cached(&std::fs::File::open(path)?);
        }
    }
    Ok(())
}

fn search(snapshot: &Snapshot, domain: &str) -> anyhow::Result<usize> {
    let query = SearchQuery {
        target: Target::Subdomains(domain),
        filters: Filters::default(),
        paging: Paging {
            limit: PAGE_ROWS,
            ..Paging::default()
        },
    };
    Ok(snapshot.search(&query)?.items.len())
}

/// Times of questions, sorted.
struct Times(Vec<Duration>);

impl Times {
    fn of(domains: &[&str], mut ask: impl FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<Self> {
        let mut times = Vec::with_capacity(domains.len());
        for domain in domains {
            let start = Instant::now();
            ask(domain)?;
            times.push(start.elapsed());
        }
        Ok(Self::sorted(times))
    }

    fn sorted(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// A percentile in microseconds.
    fn at(&self, percent: usize) -> f64 {
        let place = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
        self.0.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    }
}
