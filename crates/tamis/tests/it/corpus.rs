//! Generated entries in many small files, and what an index of any of them must hold.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tamis_ct_index::key::display;
use tamis_ct_index::query::{Filters, NamesQuery, Paging, SearchQuery, Target};
use tamis_ct_index::record::{CertRecord, CertificateKind, NAME_SELF, NAME_WILDCARD};
use tamis_ct_index::{Options, Snapshot};
use tamis_testbed::{CorpusOptions, Truth, framing};

use crate::run::{deflate, text, texts};

/// Name of the log that the corpus is imported as; the first one, so its number is 1.
pub(crate) const LOG: &str = "corpus";
const LOG_NUMBER: u16 = 1;

/// Numbers that differ enough, the same for the same seed.
pub(crate) struct Numbers(u64);

impl Numbers {
    /// Seeded by `TAMIS_TEST_SEED`, else by the time; told, so that a failure can be had again.
    pub(crate) fn told(what: &str) -> Self {
        let seed = std::env::var("TAMIS_TEST_SEED").map_or_else(
            |_| {
                let now = std::time::SystemTime::now();
                now.duration_since(std::time::UNIX_EPOCH)
                    .unwrap()
                    .subsec_nanos()
                    .into()
            },
            |seed| seed.parse().expect("TAMIS_TEST_SEED is a number"),
        );
        eprintln!("{what}: TAMIS_TEST_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// What an entry says.
struct Fact {
    index: u64,
    issuance: u64,
    sha256: String,
    kind: CertificateKind,
    serial: String,
    seconds: i64,
    /// Hosts with the bits of the index.
    names: BTreeMap<String, u8>,
    ip: Option<String>,
}

impl Fact {
    fn of(truth: &Value) -> Self {
        let mut names = BTreeMap::new();
        for name in texts(truth, "names") {
            match name.strip_prefix("*.") {
                Some(host) => *names.entry(host.to_owned()).or_default() |= NAME_WILDCARD,
                None => *names.entry(name).or_default() |= NAME_SELF,
            }
        }
        Self {
            index: truth["index"].as_u64().unwrap(),
            issuance: truth["issuance"].as_u64().unwrap(),
            sha256: text(truth, "sha256").to_owned(),
            kind: match text(truth, "kind") {
                "precertificate" => CertificateKind::Precertificate,
                _ => CertificateKind::Certificate,
            },
            serial: text(truth, "serial").to_owned(),
            seconds: (truth["timestamp_ms"].as_u64().unwrap() / 1_000) as i64,
            names,
            ip: truth["ip"].as_str().map(str::to_owned),
        }
    }
}

/// A corpus on disk, in files that hold a few entries each.
pub(crate) struct Corpus {
    pub(crate) folder: PathBuf,
    /// Entries of each file, by its name; names sort in the order of entries.
    pub(crate) files: BTreeMap<String, Range<usize>>,
    facts: Vec<Fact>,
}

impl Corpus {
    /// Writes `entries` entries into `folder`, `per_file` or fewer in a file, as pages, compressed
    /// pages and tiles in turn.
    pub(crate) fn write(folder: &Path, entries: u64, per_file: usize) -> Self {
        let options = CorpusOptions {
            domains: 2_000,
            ..CorpusOptions::spread_over(11, entries, 90)
        };
        let corpus = tamis_testbed::Corpus::new(options);
        let issuers = corpus.issuers();
        let all: Vec<tamis_testbed::Entry> = corpus.take(entries as usize).collect();
        let facts: Vec<Fact> = all
            .iter()
            .map(|entry| Fact::of(&serde_json::to_value(Truth::of(entry, &issuers)).unwrap()))
            .collect();
        std::fs::create_dir_all(folder).unwrap();
        let (mut files, mut start) = (BTreeMap::new(), 0);
        while start < all.len() {
            let number = files.len();
            let end = all.len().min(start + 1 + number % per_file);
            let part = &all[start..end];
            let bytes = match number % 3 {
                0 => framing::get_entries_body(part, &issuers),
                1 => deflate(&framing::get_entries_body(part, &issuers)),
                _ => framing::data_tile(part, &issuers),
            };
            let name = format!("{number:06}");
            std::fs::write(folder.join(&name), bytes).unwrap();
            files.insert(name, start..end);
            start = end;
        }
        Self {
            folder: folder.to_owned(),
            files,
            facts,
        }
    }

    /// Arguments that import all of it.
    pub(crate) fn arguments(&self) -> [&str; 5] {
        [self.folder.to_str().unwrap(), "--log", LOG, "--start", "0"]
    }

    /// Top-level domains of all names, sorted.
    pub(crate) fn endings(&self) -> BTreeSet<&str> {
        let names = self.facts.iter().flat_map(|fact| fact.names.keys());
        names.map(|name| name.rsplit('.').next().unwrap()).collect()
    }

    /// Asserts that the index holds each entry of the `acknowledged` files whole and once, and nothing
    /// that the corpus does not say. Gives the number of entries it holds.
    pub(crate) fn assert_held(&self, data: &Path, acknowledged: &BTreeSet<String>) -> usize {
        let snapshot = Snapshot::open(data, &Options::default()).unwrap();
        assert_eq!(
            snapshot.faults().map(ToString::to_string).collect::<Vec<_>>(),
            [""; 0]
        );
        let records = self.records(&snapshot);
        let mut held = BTreeSet::new();
        for (issuance, record) in &records {
            held.extend(self.assert_true(*issuance, record));
        }
        for (file, range) in &self.files {
            let lost: Vec<u64> = range
                .clone()
                .map(|at| at as u64)
                .filter(|at| !held.contains(at))
                .collect();
            assert!(
                !acknowledged.contains(file) || lost.is_empty(),
                "{file} was acknowledged, but {lost:?} of {range:?} are not there"
            );
        }
        self.assert_counts(&snapshot, &records);
        // The way of `show`, for some.
        for at in held.iter().step_by(97) {
            let fact = &self.facts[*at as usize];
            let found = snapshot
                .by_sha256(&unhex(&fact.sha256).try_into().unwrap())
                .unwrap();
            assert_eq!(found.len(), 1, "{}", fact.sha256);
            assert_eq!(found[0], records[&fact.issuance], "{}", fact.sha256);
        }
        held.len()
    }

    /// All records, by the number of their issuance in the corpus.
    fn records(&self, snapshot: &Snapshot) -> HashMap<u64, CertRecord> {
        let by_sha256: HashMap<&str, u64> = self
            .facts
            .iter()
            .map(|fact| (fact.sha256.as_str(), fact.issuance))
            .collect();
        let (mut seen, mut records) = (BTreeSet::new(), HashMap::new());
        for ending in self.endings() {
            let query = SearchQuery {
                target: Target::Subdomains(ending),
                filters: Filters::default(),
                paging: all(),
            };
            let page = snapshot.search(&query).unwrap();
            assert!(page.next.is_none() && page.faults.is_empty(), "{ending}");
            let mut rows = BTreeSet::new();
            for item in page.items {
                assert!(
                    rows.insert((item.name.clone(), item.issuance)),
                    "{item:?} came twice"
                );
                if !seen.insert(item.issuance) {
                    continue;
                }
                let found = snapshot.by_issuance(item.issuance).unwrap();
                let [record] = &found[..] else {
                    panic!("{} records of one issuance", found.len())
                };
                let issuances: BTreeSet<u64> = record
                    .fingerprints
                    .iter()
                    .map(|print| by_sha256[hex(&print.sha256).as_str()])
                    .collect();
                assert_eq!(issuances.len(), 1, "fingerprints of one issuance");
                let issuance = *issuances.first().unwrap();
                assert!(
                    records.insert(issuance, record.clone()).is_none(),
                    "one record an issuance"
                );
            }
        }
        records
    }

    /// Asserts that a record says what its entries say; gives their indexes.
    fn assert_true(&self, issuance: u64, record: &CertRecord) -> Vec<u64> {
        let held: Vec<u64> = record.positions.iter().map(|position| position.index).collect();
        let facts: Vec<&Fact> = held.iter().map(|&index| &self.facts[index as usize]).collect();
        let first = facts[0];
        for (fact, position) in facts.iter().zip(&record.positions) {
            assert_eq!((position.log, position.index), (LOG_NUMBER, fact.index));
            assert_eq!((position.timestamp_ms / 1_000) as i64, fact.seconds);
            assert_eq!(fact.issuance, issuance, "entry {}", fact.index);
        }
        let prints: BTreeSet<(CertificateKind, &str)> = facts
            .iter()
            .map(|fact| (fact.kind, fact.sha256.as_str()))
            .collect();
        let hexed: Vec<(CertificateKind, String)> = record
            .fingerprints
            .iter()
            .map(|print| (print.kind, hex(&print.sha256)))
            .collect();
        assert_eq!(hexed.len(), prints.len(), "entry {}", first.index);
        assert!(
            hexed
                .iter()
                .all(|(kind, sha256)| prints.contains(&(*kind, sha256.as_str())))
        );
        let mut names: BTreeMap<String, u8> = record
            .names
            .iter()
            .map(|(key, bits)| (display(key), *bits))
            .collect();
        if let Some(ip) = &first.ip {
            assert_eq!(names.remove(ip), Some(NAME_SELF), "entry {}", first.index);
        }
        assert_eq!(names, first.names, "entry {}", first.index);
        assert_eq!(hex(&record.serial), first.serial, "entry {}", first.index);
        let earliest = facts.iter().map(|fact| fact.seconds).min();
        assert_eq!(Some(record.first_seen), earliest, "entry {}", first.index);
        held
    }

    /// Asserts that `names` counts each issuance once under each of its names.
    fn assert_counts(&self, snapshot: &Snapshot, records: &HashMap<u64, CertRecord>) {
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for fact in self.distinct(records) {
            for name in fact.names.keys() {
                *expected.entry(name.clone()).or_default() += 1;
            }
        }
        let mut counted = BTreeMap::new();
        for ending in self.endings() {
            let mut query = NamesQuery::under(ending);
            query.paging = all();
            let page = snapshot.names(&query).unwrap();
            counted.extend(page.items.into_iter().map(|item| (item.name, item.issuances)));
        }
        assert_eq!(counted, expected);
    }

    /// One entry of each issuance that is held.
    fn distinct(&self, records: &HashMap<u64, CertRecord>) -> Vec<&Fact> {
        let held = |record: &CertRecord| &self.facts[record.positions[0].index as usize];
        records.values().map(held).collect()
    }
}

/// One page for everything, however long it takes.
fn all() -> Paging {
    Paging {
        limit: 1_000_000,
        cursor: None,
        deadline: std::time::Duration::from_secs(600),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}
