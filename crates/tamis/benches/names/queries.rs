//! "What is below this domain?": the first page of both layouts, over all their segments as flushed.

use std::collections::{BTreeSet, HashSet};
use std::hint::black_box;
use std::time::{Duration, Instant};

use tamis_ct_index::Snapshot;
use tamis_ct_index::query::{Filters, NamesQuery, Paging, SearchQuery, Target};

use crate::feed::Truth;
use crate::original::Original;

const PAGE_ROWS: usize = 100;
/// Domains asked for of each size.
const DOMAINS_PER_SIZE: usize = 700;
/// Each question is asked so often: first with the page cache warm alone, then at once again.
const ROUNDS: usize = 3;
/// Domains whose names are compared between both.
const COMPARED: usize = 300;
const COUNT_MAX: usize = 2_000;

/// Domains by how many certificates a search finds.
const SIZES: [(&str, usize, usize); 4] = [
    ("1 row", 1, 1),
    ("5 to 20 rows", 5, 20),
    ("50 to 200 rows", 50, 200),
    ("over 200 rows", 201, usize::MAX),
];

pub(crate) fn run(snapshot: &Snapshot, original: &Original, truth: &Truth) -> anyhow::Result<()> {
    println!(
        "   first page (up to {PAGE_ROWS}) of subdomains, warm, µs; {} segments against {} of the original",
        snapshot.stats().segments,
        original.segments.len()
    );
    let mut candidates: Vec<&str> = truth.domains.iter().map(String::as_str).collect();
    candidates.sort_unstable_by_key(|domain| xxhash_rust::xxh3::xxh3_64(domain.as_bytes()));
    let mut sizes: [Vec<&str>; 4] = Default::default();
    for &domain in &candidates {
        if sizes.iter().all(|size| size.len() >= DOMAINS_PER_SIZE) {
            break;
        }
        let found = search(snapshot, domain, COUNT_MAX)?;
        let size = SIZES
            .iter()
            .position(|(_, least, most)| (*least..=*most).contains(&found));
        if let Some(size) = size.filter(|&size| sizes[size].len() < DOMAINS_PER_SIZE) {
            sizes[size].push(domain);
        }
    }
    compare(snapshot, original, &sizes)?;
    println!(
        "   {:30} {:>7}  {:>21}  {:>21}  {:>21}  {:>6} {:>6} {:>6}",
        "", "domains", "Tamis p50 / p99", "at once again", "original p50 / p99", "ratio", "again", "p99"
    );
    for ((name, ..), domains) in SIZES.iter().zip(&sizes) {
        Asked::print(
            &format!("search, {name}"),
            domains,
            &|domain| search(snapshot, domain, PAGE_ROWS),
            &|domain| original.search(domain, PAGE_ROWS).len(),
        )?;
    }
    for ((name, ..), domains) in SIZES.iter().zip(&sizes) {
        Asked::print(
            &format!("names, {name}"),
            domains,
            &|domain| names(snapshot, domain),
            &|domain| original.names(domain, PAGE_ROWS).len(),
        )?;
    }
    let absent: Vec<String> = candidates
        .iter()
        .map(|domain| format!("q{domain}"))
        .filter(|domain| !truth.domains.contains(domain))
        .take(2 * DOMAINS_PER_SIZE)
        .collect();
    let absent: Vec<&str> = absent.iter().map(String::as_str).collect();
    Asked::print(
        "search, none",
        &absent,
        &|domain| search(snapshot, domain, PAGE_ROWS),
        &|domain| original.search(domain, PAGE_ROWS).len(),
    )?;
    Asked::print(
        "names, none",
        &absent,
        &|domain| names(snapshot, domain),
        &|domain| original.names(domain, PAGE_ROWS).len(),
    )
}

fn paging(limit: usize) -> Paging {
    Paging {
        limit,
        // What is measured is the whole page, however busy the machine is.
        deadline: Duration::from_secs(60),
        ..Paging::default()
    }
}

fn search(snapshot: &Snapshot, domain: &str, limit: usize) -> anyhow::Result<usize> {
    let query = SearchQuery {
        target: Target::Subdomains(domain),
        filters: Filters::default(),
        paging: paging(limit),
    };
    let page = snapshot.search(&query)?;
    anyhow::ensure!(page.faults.is_empty(), "damage under {domain}");
    Ok(black_box(page).items.len())
}

fn names(snapshot: &Snapshot, domain: &str) -> anyhow::Result<usize> {
    let query = NamesQuery {
        paging: paging(PAGE_ROWS),
        ..NamesQuery::under(domain)
    };
    Ok(black_box(snapshot.names(&query)?).items.len())
}

/// The same names come out of both, but for what the Bloom filter lost.
fn compare(snapshot: &Snapshot, original: &Original, sizes: &[Vec<&str>]) -> anyhow::Result<()> {
    let (mut compared, mut lost) = (0, 0);
    for domain in sizes
        .iter()
        .flat_map(|domains| domains.iter().take(COMPARED / sizes.len()))
    {
        let query = NamesQuery {
            paging: paging(1_000_000),
            ..NamesQuery::under(domain)
        };
        let ours: BTreeSet<String> = snapshot
            .names(&query)?
            .items
            .into_iter()
            .map(|item| item.name)
            .collect();
        let theirs: HashSet<String> = original
            .names(domain, 1_000_000)
            .into_iter()
            .map(|name| name.strip_prefix("*.").map_or(name.clone(), str::to_owned))
            .collect();
        let strangers: Vec<&String> = theirs.iter().filter(|name| !ours.contains(*name)).collect();
        anyhow::ensure!(strangers.is_empty(), "only the original has {strangers:?}");
        compared += ours.len();
        lost += ours.iter().filter(|name| !theirs.contains(*name)).count();
    }
    println!("   {compared} names compared, {lost} only in Tamis");
    Ok(())
}

/// Times of one question over many domains.
#[derive(Default)]
struct Asked {
    first: Vec<Duration>,
    again: Vec<Duration>,
}

impl Asked {
    /// Asks both, turn about, so that a busy machine slows both.
    fn print(
        what: &str,
        domains: &[&str],
        ours: &dyn Fn(&str) -> anyhow::Result<usize>,
        theirs: &dyn Fn(&str) -> usize,
    ) -> anyhow::Result<()> {
        if domains.is_empty() {
            println!("   {what:30} {:7}", 0);
            return Ok(());
        }
        let (mut tamis, mut original) = (Self::new(domains.len()), Self::new(domains.len()));
        for round in 0..ROUNDS {
            for (at, domain) in domains.iter().enumerate() {
                tamis.ask(at, round, &mut || ours(domain).map(drop))?;
                original.ask(at, round, &mut || {
                    black_box(theirs(domain));
                    Ok(())
                })?;
            }
        }
        let [first, again, peer] =
            [&mut tamis.first, &mut tamis.again, &mut original.again].map(|times| percentiles(times));
        println!(
            "   {what:30} {:7}  {:10.1} /{:9.1}  {:10.1} /{:9.1}  {:10.1} /{:9.1}  {:6.2} {:6.2} {:6.2}",
            domains.len(),
            first.0,
            first.1,
            again.0,
            again.1,
            peer.0,
            peer.1,
            peer.0 / first.0,
            peer.0 / again.0,
            peer.1 / again.1
        );
        Ok(())
    }

    fn new(count: usize) -> Self {
        Self {
            first: vec![Duration::MAX; count],
            again: vec![Duration::MAX; count],
        }
    }

    /// Keeps the best of all rounds but the first, which warms the page cache.
    fn ask(
        &mut self,
        at: usize,
        round: usize,
        question: &mut dyn FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        for repeat in 0..ROUNDS {
            let start = Instant::now();
            question()?;
            let time = start.elapsed();
            let best = if repeat == 0 {
                &mut self.first
            } else {
                &mut self.again
            };
            if round > 0 {
                best[at] = best[at].min(time);
            }
        }
        Ok(())
    }
}

/// Median and 99th percentile in microseconds.
fn percentiles(times: &mut [Duration]) -> (f64, f64) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e6;
    (at(50), at(99))
}
