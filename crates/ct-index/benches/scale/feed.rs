//! Observations of a generated corpus, without certificates.

use tamis_ct_index::key::Identifier;
use tamis_ct_index::record::{
    CertificateKind, Fingerprint, Issuance, NAME_SELF, NAME_WILDCARD, NameBits, Position,
};
use tamis_ct_index::{Batch, Observation};
use tamis_testbed::{Corpus, CorpusOptions, Entry, Kind};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

pub(crate) const LOGS: u16 = 2;
const SEED: u64 = 7;
const DAYS: u64 = 180;
/// One issuance in so many offers its domain as a question.
const ISSUANCES_PER_QUESTION: u64 = 97;
const QUESTIONS_MAX: usize = 40_000;

pub(crate) struct Feed {
    corpus: Corpus,
    issuers: Vec<String>,
    names_max: u64,
    pub(crate) names: u64,
    pub(crate) entries: u64,
    pub(crate) domains: Vec<String>,
}

impl Feed {
    pub(crate) fn new(names_max: u64) -> Self {
        // 2.29 names an entry; about ten certificates a domain.
        let options = CorpusOptions {
            logs: LOGS,
            der: false,
            domains: names_max / 20 + 1_000,
            ..CorpusOptions::spread_over(SEED, names_max * 100 / 229, DAYS)
        };
        let corpus = Corpus::new(options);
        let issuers =
            (0..corpus.issuers().all().len()).map(|number| format!("CN=Example CA {number},O=Example"));
        Self {
            issuers: issuers.collect(),
            corpus,
            names_max,
            names: 0,
            entries: 0,
            domains: Vec::new(),
        }
    }

    /// The next observations; empty at the end.
    pub(crate) fn batch(&mut self, entries: usize) -> Batch {
        let mut batch = Batch::with_capacity(entries);
        while batch.len() < entries {
            let Some(entry) = self.entry() else { break };
            self.push(&entry, &mut batch);
        }
        batch
    }

    /// The next entry; none once there were enough names.
    pub(crate) fn entry(&mut self) -> Option<Entry> {
        if self.names >= self.names_max {
            return None;
        }
        let entry = self.corpus.next()?;
        self.note(&entry);
        Some(entry)
    }

    pub(crate) fn issuer(&self, entry: &Entry) -> &str {
        self.issuers.get(entry.issuance.issuer).map_or("", String::as_str)
    }

    fn note(&mut self, entry: &Entry) {
        let issuance = &entry.issuance;
        self.entries += 1;
        self.names += issuance.names.len() as u64;
        if issuance.number.is_multiple_of(ISSUANCES_PER_QUESTION)
            && self.domains.len() < QUESTIONS_MAX
            && let Some(name) = issuance.names.first()
        {
            let suffixes = tamis_hostname::PublicSuffixes::shipped();
            let domain = suffixes.registrable(name.strip_prefix("*.").unwrap_or(name));
            self.domains.extend(domain.map(str::to_owned));
        }
    }

    fn push(&self, entry: &Entry, batch: &mut Batch) {
        let issuance = &entry.issuance;
        let kind = match entry.kind {
            Kind::Precertificate => CertificateKind::Precertificate,
            Kind::Certificate => CertificateKind::Certificate,
        };
        let mut sha256 = [0; 32];
        for (half, seed) in sha256.chunks_exact_mut(16).zip([entry.kind as u64, 9]) {
            half.copy_from_slice(&xxh3_128_with_seed(&issuance.number.to_le_bytes(), seed).to_le_bytes());
        }
        let seen = Observation {
            issuance: Issuance(issuance_key(entry)),
            serial: &issuance.serial,
            fingerprint: Some(Fingerprint { kind, sha256 }),
            position: Some(Position {
                log: entry.log + 1,
                index: entry.index,
                timestamp_ms: entry.timestamp_ms,
            }),
            first_seen: (entry.timestamp_ms / 1_000) as i64,
            not_before: Some(issuance.not_before as i64),
            not_after: Some(issuance.not_after as i64),
            issuer: self.issuer(entry),
            organization: issuance.organisation.as_deref().unwrap_or(""),
            names_total: issuance.names.len() as u64,
            deviations: 0,
        };
        // As an import reads them: `name` and `*.name` are one.
        let mut names: Vec<(&str, NameBits)> = Vec::with_capacity(issuance.names.len());
        for name in &issuance.names {
            let (host, bits) = match name.strip_prefix("*.") {
                Some(host) => (host, NAME_WILDCARD),
                None => (name.as_str(), NAME_SELF),
            };
            match names.iter_mut().find(|(known, _)| *known == host) {
                Some((_, known)) => *known |= bits,
                None => names.push((host, bits)),
            }
        }
        let names = names
            .into_iter()
            .map(|(host, bits)| (Identifier::Host(host), bits));
        batch.push(&seen, issuance.common_name.iter().map(String::as_str), names);
    }
}

/// Under which copies of an entry meet.
pub(crate) fn issuance_key(entry: &Entry) -> u64 {
    xxh3_64(&entry.issuance.number.to_le_bytes())
}
