//! The generated corpus as pages of two logs, and what is true of it. Made a chunk at a time, outside of
//! what is timed, so that memory stays flat.

use std::collections::HashSet;
use std::sync::Arc;

use tamis_hostname::PublicSuffixes;
use tamis_testbed::framing::{TILE_ENTRIES, data_tile, get_entries_body};
use tamis_testbed::{Corpus, CorpusOptions, Entry, Issuers, Kind};

const SEED: u64 = 7;
const LOGS: u16 = 2;
const DAYS: u64 = 180;
/// Pages of a chunk: 1,024 entries, as `tamis ct import` decodes them.
const PAGES_PER_CHUNK: usize = 4;
/// One certificate in so many offers its domain as a question.
const ISSUANCES_PER_SAMPLE: u64 = 7;
const SAMPLES_MAX: usize = 200_000;

/// How the pages are framed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Bodies of get-entries.
    GetEntries,
    /// Data tiles of static-ct-api.
    Tiles,
}

impl Framing {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::GetEntries => "get-entries",
            Self::Tiles => "tiles",
        }
    }
}

/// 256 entries of one log, fewer at the end.
pub(crate) struct Page {
    pub(crate) log: u16,
    /// Index of the first entry.
    pub(crate) first: u64,
    pub(crate) entries: u64,
    pub(crate) bytes: Vec<u8>,
}

/// What a reader must find in the pages so far.
#[derive(Default)]
pub(crate) struct Truth {
    pub(crate) entries: u64,
    /// Names of all entries, copies included.
    pub(crate) names: u64,
    pub(crate) bytes: u64,
    pub(crate) issuances: u64,
    /// Distinct certificates and precertificates.
    pub(crate) certificates: u64,
    /// Distinct (identifier, issuance) with `*.name` and `name` as one: what Tamis stores.
    pub(crate) rows: u64,
    /// Distinct (DNS name, fingerprint): what the original stores.
    pub(crate) records: u64,
    /// What was seen of each issuance, a bit for each kind.
    seen: Vec<u8>,
    /// Registrable domains to ask for.
    pub(crate) domains: HashSet<String>,
}

pub(crate) struct Feed {
    corpus: Corpus,
    issuers: Arc<Issuers>,
    framing: Framing,
    names_max: u64,
    waiting: Vec<Vec<Entry>>,
    pub(crate) truth: Truth,
}

impl Feed {
    pub(crate) fn new(framing: Framing, names_max: u64) -> Self {
        // 2.29 names an entry.
        let options = CorpusOptions {
            logs: LOGS,
            ..CorpusOptions::spread_over(SEED, names_max * 100 / 229, DAYS)
        };
        let corpus = Corpus::new(options);
        Self {
            issuers: corpus.issuers(),
            corpus,
            framing,
            names_max,
            waiting: vec![Vec::new(); usize::from(LOGS)],
            truth: Truth::default(),
        }
    }

    /// The next pages; empty at the end.
    pub(crate) fn chunk(&mut self) -> Vec<Page> {
        let mut pages = Vec::new();
        while pages.len() < PAGES_PER_CHUNK && self.truth.names < self.names_max {
            let Some(entry) = self.corpus.next() else { break };
            self.truth.note(&entry);
            let log = usize::from(entry.log);
            self.waiting[log].push(entry);
            if self.waiting[log].len() == TILE_ENTRIES {
                pages.push(self.page(log));
            }
        }
        if pages.len() < PAGES_PER_CHUNK {
            for log in 0..self.waiting.len() {
                if !self.waiting[log].is_empty() {
                    pages.push(self.page(log));
                }
            }
        }
        pages
    }

    fn page(&mut self, log: usize) -> Page {
        let entries = std::mem::take(&mut self.waiting[log]);
        let bytes = match self.framing {
            Framing::GetEntries => get_entries_body(&entries, &self.issuers),
            Framing::Tiles => data_tile(&entries, &self.issuers),
        };
        self.truth.bytes += bytes.len() as u64;
        Page {
            log: log as u16 + 1,
            first: entries.first().map_or(0, |entry| entry.index),
            entries: entries.len() as u64,
            bytes,
        }
    }
}

impl Truth {
    fn note(&mut self, entry: &Entry) {
        let issuance = &entry.issuance;
        self.entries += 1;
        self.names += issuance.names.len() as u64;
        let number = issuance.number as usize;
        if self.seen.len() <= number {
            self.seen.resize(2 * number + 1, 0);
        }
        let before = self.seen[number];
        let now = match entry.kind {
            Kind::Precertificate => 1,
            Kind::Certificate => 2,
        };
        self.seen[number] |= now;
        let common_name = issuance.common_name.iter();
        if before & now == 0 {
            let names: HashSet<&String> = issuance.names.iter().chain(common_name.clone()).collect();
            self.certificates += 1;
            self.records += names.len() as u64;
        }
        if before == 0 {
            let names = issuance.names.iter().chain(common_name);
            let hosts: HashSet<&str> = names.map(|name| host(name)).collect();
            self.issuances += 1;
            self.rows += hosts.len() as u64 + u64::from(issuance.ip.is_some());
            if issuance.number.is_multiple_of(ISSUANCES_PER_SAMPLE) && self.domains.len() < SAMPLES_MAX {
                let domain = issuance.names.first().and_then(|name| registrable(host(name)));
                self.domains.extend(domain);
            }
        }
    }
}

fn host(name: &str) -> &str {
    name.strip_prefix("*.").unwrap_or(name)
}

fn registrable(host: &str) -> Option<String> {
    PublicSuffixes::shipped().registrable(host).map(str::to_owned)
}
