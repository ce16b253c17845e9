//! The questions: both are asked for each domain, one after the other, in turns of who is first.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Instant;

use anyhow::ensure;
use tamis_ct_index::Snapshot;
use tamis_ct_index::query::{Filters, Paging, SearchItem, SearchQuery, Target};

use crate::peer::{Answer, Domain, Peer, key};

const PAGE_ROWS: usize = 100;
/// Domains asked for of each size.
const DOMAINS: usize = 2_000;
/// Domains by how many rows answer; a full page is the start of a longer answer.
const SIZES: [(&str, usize, usize); 5] = [
    ("1 row", 1, 1),
    ("2 to 4 rows", 2, 4),
    ("5 to 20 rows", 5, 20),
    ("21 to 99 rows", 21, PAGE_ROWS - 1),
    ("a full page, 100", PAGE_ROWS, PAGE_ROWS),
];

pub(crate) fn run(snapshot: &Snapshot, peer: &mut Peer, domains: &[String]) -> anyhow::Result<()> {
    let mut sizes: [Vec<Domain>; SIZES.len()] = Default::default();
    let distinct: BTreeSet<&String> = domains.iter().collect();
    let mut compared = 0;
    for domain in distinct {
        let domain = Domain::new(domain);
        let found = compare(snapshot, peer, &domain)?;
        compared += 1;
        let size = SIZES
            .iter()
            .position(|(_, least, most)| (*least..=*most).contains(&found));
        if let Some(size) = size.and_then(|size| sizes.get_mut(size))
            && size.len() < DOMAINS
        {
            size.push(domain);
        }
    }
    println!("== first 100 rows at or below a domain, in the order of names, µs p50 / p99, all warm");
    println!("   {compared} domains: both give the same rows");
    if let Some(domain) = sizes.iter().flatten().next() {
        println!("   the server's plan: {}", peer.plan(domain)?);
    }
    let trips = Times::of(DOMAINS, |_| peer.round_trip())?;
    println!(
        "   there and back over its socket with SELECT 1: {}",
        trips.shown()
    );
    println!(
        "   {:17} {:>7} {:>17} {:>17} {:>17} {:>9} {:>9} {:>9}",
        "", "domains", "Tamis", "PostgreSQL", "its executor", "ratio", "p99", "executor"
    );
    for ((name, ..), domains) in SIZES
        .iter()
        .zip(&sizes)
        .filter(|(_, domains)| !domains.is_empty())
    {
        measure(snapshot, peer, name, domains)?;
    }
    let nobody: Vec<Domain> = (0..DOMAINS)
        .map(|number| Domain::new(&format!("nobody-{number}.example")))
        .collect();
    measure(snapshot, peer, "none", &nobody)
}

fn measure(snapshot: &Snapshot, peer: &mut Peer, name: &str, domains: &[Domain]) -> anyhow::Result<()> {
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for (turn, domain) in domains.iter().enumerate() {
        for side in [turn % 2, (turn + 1) % 2] {
            if side == 0 {
                ours.time(|| ask(snapshot, domain).map(black_box))?;
            } else {
                theirs.time(|| peer.ask(domain).map(black_box))?;
            }
        }
    }
    let mut executor = Times::default();
    for domain in domains {
        executor.0.push(peer.executed(domain)?);
    }
    for times in [&mut ours, &mut theirs, &mut executor] {
        times.0.sort_unstable_by(f64::total_cmp);
    }
    println!(
        "   {name:17} {:>7} {:>17} {:>17} {:>17} {:>9.1} {:>9.1} {:>9.1}",
        domains.len(),
        ours.shown(),
        theirs.shown(),
        executor.shown(),
        theirs.at(50) / ours.at(50),
        theirs.at(99) / ours.at(99),
        executor.at(50) / ours.at(50)
    );
    Ok(())
}

/// Asks both, demands the same of both, and gives how many rows there are.
///
/// Where more than a page answers, the two orders differ in a few places (`a.example.com` is the key
/// `com.example.a` in Tamis, before `com.example.a-b`, and here `com.example.a.`, behind it), so that the
/// pages may end elsewhere: then only their size is compared.
fn compare(snapshot: &Snapshot, peer: &mut Peer, domain: &Domain) -> anyhow::Result<usize> {
    let (ours, theirs) = (ask(snapshot, domain)?, peer.ask(domain)?);
    ensure!(
        ours.len() == theirs.len(),
        "{}: {} rows, PostgreSQL has {}",
        domain.domain,
        ours.len(),
        theirs.len()
    );
    if ours.len() < PAGE_ROWS {
        let mut ours: Vec<Answer> = ours.into_iter().map(answer).collect();
        ours.sort_unstable_by(|a, b| (&a.name, a.issuance as i64).cmp(&(&b.name, b.issuance as i64)));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            ensure!(
                ours == theirs,
                "{}: {ours:?}, PostgreSQL has {theirs:?}",
                domain.domain
            );
        }
    }
    Ok(theirs.len())
}

fn ask(snapshot: &Snapshot, domain: &Domain) -> anyhow::Result<Vec<SearchItem>> {
    let query = SearchQuery {
        target: Target::Subdomains(&domain.domain),
        filters: Filters::default(),
        paging: Paging {
            limit: PAGE_ROWS,
            ..Paging::default()
        },
    };
    Ok(snapshot.search(&query)?.items)
}

fn answer(item: SearchItem) -> Answer {
    Answer {
        name: key(&item.name),
        issuance: item.issuance.0,
        first_seen: item.first_seen,
        not_before: item.not_before,
        not_after: item.not_after,
        issuer: item.issuer,
        exact: item.exact,
        wildcard: item.wildcard,
        organization: item.organization,
    }
}

/// Times in µs, sorted before they are read.
#[derive(Default)]
struct Times(Vec<f64>);

impl Times {
    fn of(count: usize, mut ask: impl FnMut(usize) -> anyhow::Result<()>) -> anyhow::Result<Self> {
        let mut times = Self::default();
        for number in 0..count {
            times.time(|| ask(number))?;
        }
        times.0.sort_unstable_by(f64::total_cmp);
        Ok(times)
    }

    fn time<T>(&mut self, ask: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<()> {
        let start = Instant::now();
        let answer = ask()?;
        self.0.push(start.elapsed().as_secs_f64() * 1e6);
        drop(answer);
        Ok(())
    }

    fn at(&self, percent: usize) -> f64 {
        let place = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
        self.0.get(place).copied().unwrap_or(0.0)
    }

    fn shown(&self) -> String {
        format!("{:.1} / {:.1}", self.at(50), self.at(99))
    }
}
