//! Nanoseconds a call beside named peers in the same run: `cargo bench -p tamis-hostname`.
//!
//! Peers: `idna::domain_to_ascii_cow` for reading (it maps and checks, and mends nothing), the
//! `publicsuffix` crate for registrable domains. Rounds of both sides alternate, so that a busy machine
//! slows both; the medians are printed with their ratio.

use std::hint::black_box;
use std::time::Instant;

use idna::AsciiDenyList;
use publicsuffix::{List, Psl};
use tamis_hostname::{Identifier, PublicSuffixes, SubdomainRange, read, reverse_into, to_unicode};

const CISCO: &str = include_str!("../../../testdata/names/cisco.txt");
const ROUNDS: usize = 201;

fn main() {
    // `cargo test --benches` passes `--test`: one round shows that it runs.
    let rounds = if std::env::args().any(|argument| argument == "--bench") {
        ROUNDS
    } else {
        1
    };
    let bench = Bench { rounds };
    let clean: Vec<_> = CISCO.lines().map(str::to_owned).collect();
    let mixed_case: Vec<_> = clean.iter().map(|name| name.to_ascii_uppercase()).collect();
    let unicode: Vec<_> = clean
        .iter()
        .map(|name| name.replacen(['a', 'o', 'u'], "ü", 1))
        .collect();
    let a_labels: Vec<_> = unicode
        .iter()
        .filter_map(|name| idna::domain_to_ascii(name).ok())
        .collect();
    let urls: Vec<_> = clean
        .iter()
        .map(|name| format!("https://{name}:443/index.html"))
        .collect();
    let wildcards: Vec<_> = clean.iter().map(|name| format!("*.{name}")).collect();

    for (what, names) in [
        ("read, clean", &clean),
        ("read, wildcards", &wildcards),
        ("read, upper case", &mixed_case),
        ("read, Unicode", &unicode),
        ("read, A-labels", &a_labels),
    ] {
        bench.compare(what, names, read_host, "idna", to_ascii);
    }
    // No peer reads these as names.
    let ns = bench.median(&urls, &mut read_host);
    println!("{:18} {ns:8.1} ns", "read, URLs");
    bench.suffixes(&clean);
    bench.keys(&clean, &a_labels);
}

struct Bench {
    rounds: usize,
}

impl Bench {
    fn suffixes(&self, hosts: &[String]) {
        let ours = PublicSuffixes::shipped();
        let theirs: List = include_str!("../data/public_suffix_list.dat")
            .parse()
            .unwrap_or_default();
        self.compare(
            "registrable",
            hosts,
            |host| ours.registrable(host).map_or(0, str::len),
            "publicsuffix",
            |host| {
                theirs
                    .domain(host.as_bytes())
                    .map_or(0, |domain| domain.as_bytes().len())
            },
        );
    }

    fn keys(&self, hosts: &[String], a_labels: &[String]) {
        let mut key = Vec::new();
        let ns = self.median(hosts, &mut |host| {
            key.clear();
            reverse_into(host, &mut key);
            key.len()
        });
        println!("{:18} {ns:8.1} ns", "reverse_into");
        let ns = self.median(hosts, &mut |host| SubdomainRange::new(host).below_end().len());
        println!("{:18} {ns:8.1} ns", "SubdomainRange");
        let ns = self.median(a_labels, &mut |host| to_unicode(host).len());
        println!("{:18} {ns:8.1} ns", "to_unicode");
    }

    fn compare(
        &self,
        what: &str,
        names: &[String],
        mut ours: impl FnMut(&str) -> usize,
        peer: &str,
        mut theirs: impl FnMut(&str) -> usize,
    ) {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..self.rounds {
            times[0].push(round(names, &mut ours));
            times[1].push(round(names, &mut theirs));
        }
        let [ours, theirs] = times.map(median);
        println!(
            "{what:18} {ours:8.1} ns   {peer:12} {theirs:8.1} ns   ratio {:5.2}",
            theirs / ours
        );
    }

    fn median(&self, names: &[String], call: &mut impl FnMut(&str) -> usize) -> f64 {
        median((0..self.rounds).map(|_| round(names, call)).collect())
    }
}

/// Nanoseconds a name over one pass.
fn round(names: &[String], call: &mut impl FnMut(&str) -> usize) -> f64 {
    let start = Instant::now();
    for name in names {
        black_box(call(black_box(name)));
    }
    start.elapsed().as_nanos() as f64 / names.len().max(1) as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn read_host(name: &str) -> usize {
    match read(name.as_bytes()) {
        Identifier::Host(host) => host.host().len(),
        _ => 0,
    }
}

fn to_ascii(name: &str) -> usize {
    idna::domain_to_ascii_cow(name.as_bytes(), AsciiDenyList::URL).map_or(0, |name| name.len())
}
