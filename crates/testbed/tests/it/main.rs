//! The corpus as its users see it: certificates, pairs, framings and files.

mod certificates;
mod command;
mod ctlog;
mod framings;

use tamis_testbed::{Corpus, CorpusOptions, Entry};

fn entries(seed: u64, count: usize) -> Vec<Entry> {
    Corpus::new(CorpusOptions::spread_over(seed, count as u64, 180))
        .take(count)
        .collect()
}
