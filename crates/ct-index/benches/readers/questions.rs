//! What is asked: first pages under domains that certificates name, and certificates by fingerprint.

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tamis_ct_index::Snapshot;
use tamis_ct_index::query::{Filters, NamesQuery, Paging, SearchQuery, Target};
use xxhash_rust::xxh3::xxh3_64;

const PAGE_ROWS: usize = 100;

/// A kind of question.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Names,
    Search,
    BySha256,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Names, Self::Search, Self::BySha256];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Names => "names, first page",
            Self::Search => "search, first page",
            Self::BySha256 => "by SHA-256",
        }
    }
}

#[derive(Default)]
pub(crate) struct Questions {
    pub(crate) domains: Vec<String>,
    pub(crate) fingerprints: Vec<[u8; 32]>,
}

impl Questions {
    /// In an order that has nothing to do with where answers lie.
    pub(crate) fn settle(&mut self) {
        self.domains
            .sort_unstable_by_key(|domain| xxh3_64(domain.as_bytes()));
        self.domains.dedup();
        self.fingerprints.sort_unstable();
        self.fingerprints.dedup();
        self.fingerprints.sort_unstable_by_key(|print| xxh3_64(print));
    }

    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let mut text = self.domains.join("\n");
        for print in &self.fingerprints {
            text.push('\n');
            for byte in print {
                write!(text, "{byte:02x}")?;
            }
        }
        Ok(std::fs::write(path, text)?)
    }

    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut questions = Self::default();
        for line in std::fs::read_to_string(path)?.lines() {
            if line.contains('.') {
                questions.domains.push(line.to_owned());
                continue;
            }
            let mut print = [0; 32];
            for (at, byte) in print.iter_mut().enumerate() {
                let digits = line.get(2 * at..2 * at + 2).context("a fingerprint is short")?;
                *byte = u8::from_str_radix(digits, 16)?;
            }
            questions.fingerprints.push(print);
        }
        Ok(questions)
    }

    /// Asks the n-th question of a kind and answers how much was found; starts anew behind the last.
    pub(crate) fn ask(&self, snapshot: &Snapshot, kind: Kind, number: usize) -> anyhow::Result<usize> {
        let domain = || self.domains.get(number % self.domains.len().max(1));
        let paging = Paging {
            limit: PAGE_ROWS,
            // What is measured is the whole page, however busy the machine is.
            deadline: Duration::from_secs(60),
            ..Paging::default()
        };
        let found = match kind {
            Kind::Names => {
                let under = NamesQuery::under(domain().context("no domains")?);
                black_box(snapshot.names(&NamesQuery { paging, ..under })?)
                    .items
                    .len()
            }
            Kind::Search => {
                let query = SearchQuery {
                    target: Target::Subdomains(domain().context("no domains")?),
                    filters: Filters::default(),
                    paging,
                };
                black_box(snapshot.search(&query)?).items.len()
            }
            Kind::BySha256 => {
                let print = self.fingerprints.get(number % self.fingerprints.len().max(1));
                black_box(snapshot.by_sha256(print.context("no fingerprints")?)?).len()
            }
        };
        anyhow::ensure!(
            found > 0,
            "nothing found for question {number} of {}",
            kind.name()
        );
        Ok(found)
    }
}
