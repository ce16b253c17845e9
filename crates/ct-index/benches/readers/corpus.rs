//! The index that is asked, made once: overlapping segments as flushed, none merged.

use std::collections::BTreeMap;
use std::path::Path;

use tamis_ct_index::key::Identifier;
use tamis_ct_index::record::{
    CertificateKind, Fingerprint, Issuance, NAME_SELF, NAME_WILDCARD, NameBits, Position,
};
use tamis_ct_index::{Batch, Index, Observation, Options};
use tamis_hostname::PublicSuffixes;
use tamis_testbed::{Corpus, CorpusOptions, Entry, Kind};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::questions::Questions;

const SEGMENTS: u64 = 14;
const BATCH_ENTRIES: usize = 1_024;
const BATCHES_PER_COMMIT: usize = 16;
/// One entry in so many offers a domain and a fingerprint as questions.
const ENTRIES_PER_SAMPLE: u64 = 13;

pub(crate) fn build(dir: &Path, rows_min: u64) -> anyhow::Result<Questions> {
    let list = dir.join("questions");
    if list.exists() {
        return Questions::read(&list);
    }
    let options = Options {
        flush_rows: (rows_min / SEGMENTS).max(1) as usize,
        compaction: None,
        ..Options::default()
    };
    let index = Index::open(dir, options)?;
    let logs = [1, 2].map(|log| index.register_log(&format!("log-{log}.example")));
    let logs = logs.into_iter().collect::<Result<Vec<_>, _>>()?;
    // A row takes about one entry.
    let corpus = Corpus::new(CorpusOptions {
        logs: 2,
        ..CorpusOptions::spread_over(7, rows_min, 180)
    });
    let issuers: Vec<String> = corpus
        .issuers()
        .all()
        .iter()
        .map(|issuer| issuer.display_name())
        .collect();
    let (mut batch, mut batches, mut rows) = (Batch::new(), 0, 0);
    let mut questions = Questions::default();
    for (number, entry) in corpus.enumerate() {
        observe(&entry, &logs, &issuers, &mut batch);
        if (number as u64).is_multiple_of(ENTRIES_PER_SAMPLE) {
            sample(&entry, &mut questions);
        }
        if batch.len() == BATCH_ENTRIES {
            rows += index.append(&batch)?.rows;
            batch = Batch::new();
            batches += 1;
            if batches % BATCHES_PER_COMMIT == 0 {
                index.commit()?;
            }
            if rows >= rows_min {
                break;
            }
        }
    }
    index.commit()?;
    index.flush()?;
    questions.settle();
    questions.write(&list)?;
    Ok(questions)
}

/// An entry as `tamis ct import` would observe it, but for hashes, which are made up.
fn observe(entry: &Entry, logs: &[u16], issuers: &[String], batch: &mut Batch) {
    let issuance = &entry.issuance;
    let mut names: BTreeMap<&str, NameBits> = BTreeMap::new();
    for name in issuance.names.iter().chain(&issuance.common_name) {
        match name.strip_prefix("*.") {
            Some(host) => *names.entry(host).or_default() |= NAME_WILDCARD,
            None => *names.entry(name).or_default() |= NAME_SELF,
        }
    }
    let observation = Observation {
        issuance: Issuance(xxh3_64(&issuance.number.to_le_bytes())),
        serial: &issuance.serial,
        fingerprint: Some(Fingerprint {
            kind: match entry.kind {
                Kind::Precertificate => CertificateKind::Precertificate,
                Kind::Certificate => CertificateKind::Certificate,
            },
            sha256: fingerprint(entry),
        }),
        position: logs.get(usize::from(entry.log)).map(|&log| Position {
            log,
            index: entry.index,
            timestamp_ms: entry.timestamp_ms,
        }),
        first_seen: (entry.timestamp_ms / 1_000) as i64,
        not_before: Some(issuance.not_before as i64),
        not_after: Some(issuance.not_after as i64),
        issuer: issuers.get(issuance.issuer).map_or("", String::as_str),
        organization: issuance.organisation.as_deref().unwrap_or(""),
        names_total: issuance.names.len() as u64,
        deviations: 0,
    };
    let common_names: Vec<&str> = issuance.common_name.iter().map(String::as_str).collect();
    let names: Vec<_> = names.into_iter().collect();
    let names = names.iter().map(|&(host, bits)| (Identifier::Host(host), bits));
    batch.push(&observation, common_names.into_iter(), names);
}

/// As random as a real one, and the same in all logs.
fn fingerprint(entry: &Entry) -> [u8; 32] {
    let number = 2 * entry.issuance.number + u64::from(entry.kind == Kind::Certificate);
    let half = xxh3_128(&number.to_le_bytes());
    let mut bytes = [0; 32];
    let halves = [half, xxh3_128(&half.to_le_bytes())];
    for (byte, value) in bytes
        .iter_mut()
        .zip(halves.iter().flat_map(|half| half.to_le_bytes()))
    {
        *byte = value;
    }
    bytes
}

fn sample(entry: &Entry, questions: &mut Questions) {
    questions.fingerprints.push(fingerprint(entry));
    let first = entry.issuance.names.first();
    let host = first.map(|name| name.strip_prefix("*.").unwrap_or(name));
    let domain = host.and_then(|host| PublicSuffixes::shipped().registrable(host));
    questions.domains.extend(domain.map(str::to_owned));
}
