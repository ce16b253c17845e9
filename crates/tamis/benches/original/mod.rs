//! The layout first asked for, kept as the baseline that Tamis is measured against: owned JSON, full
//! X.509 parse, a Bloom filter as verdict over (fingerprint, domain), a SkipMap memtable, and segments of
//! plain rows under an FST of `{reversed}\0{id}`.
//!
//! # Limits
//! It has no write-ahead log, no recovery and no compaction, all of which favour it in a bench. Where the
//! description leaves a choice, the faster one was taken: base64-simd, XXH3, SHA instructions, one filter
//! over `tld|sld` a segment.

mod bloom;
mod certificate;
mod entry;
mod segment;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use crossbeam_skiplist::SkipMap;

use self::bloom::Bloom;
use self::certificate::Certificate;
use self::entry::{Body, Submitted};
pub(crate) use self::segment::Row;
use self::segment::Segment;
use crate::clock::Stage;
use crate::feed::{Framing, Page};

/// Records of the memtable before it is flushed.
pub(crate) const FLUSH_RECORDS: usize = 200_000;
/// What the filter is planned for: 24 GB for 15 billion keys.
const FILTER_BITS_PER_KEY: f64 = 12.8;

/// Where the time went.
#[derive(Default)]
pub(crate) struct Stages {
    pub(crate) json: Stage,
    pub(crate) base64: Stage,
    pub(crate) certificate: Stage,
    pub(crate) bloom: Stage,
    pub(crate) memtable: Stage,
    pub(crate) flush: Stage,
}

impl Stages {
    pub(crate) fn rows(&self) -> [(&'static str, Stage); 6] {
        [
            ("JSON (serde_json, owned)", self.json),
            ("base64 of both fields; tile framing", self.base64),
            ("x509-parser, SHA-256, owned strings", self.certificate),
            ("Bloom verdict per (fingerprint, domain)", self.bloom),
            ("memtable (SkipMap insert)", self.memtable),
            ("flush (row file, FST, fsync)", self.flush),
        ]
    }
}

/// The whole of it.
pub(crate) struct Original {
    dir: PathBuf,
    bloom: Bloom,
    memtable: SkipMap<Vec<u8>, Vec<u8>>,
    /// Records in the memtable; counting a SkipMap is not free.
    waiting: usize,
    pub(crate) segments: Vec<Segment>,
    pub(crate) stages: Stages,
    pub(crate) records: u64,
    /// Certificates that x509-parser refused.
    pub(crate) refused: u64,
}

impl Original {
    pub(crate) fn create(dir: &Path, planned_records: u64) -> anyhow::Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
        Ok(Self {
            dir: dir.to_owned(),
            bloom: Bloom::planned(planned_records, FILTER_BITS_PER_KEY),
            memtable: SkipMap::new(),
            waiting: 0,
            segments: Vec::new(),
            stages: Stages::default(),
            records: 0,
            refused: 0,
        })
    }

    /// Takes one page of a log.
    pub(crate) fn page(&mut self, page: &Page, framing: Framing) -> anyhow::Result<()> {
        let stages = &mut self.stages;
        let certificates: Vec<Option<Certificate>> = match framing {
            Framing::GetEntries => {
                let body = stages.json.time(|| Body::parse(&page.bytes))?;
                let decoded = stages.base64.time(|| body.decode())?;
                drop(body);
                stages.certificate.time(|| {
                    let submitted = decoded
                        .iter()
                        .map(|(leaf, extra)| Submitted::of_leaf(leaf, extra));
                    submitted
                        .map(|submitted| Certificate::parse(submitted?))
                        .collect()
                })
            }
            Framing::Tiles => {
                let submitted = stages.base64.time(|| entry::tile(&page.bytes));
                stages
                    .certificate
                    .time(|| submitted.into_iter().map(Certificate::parse).collect())
            }
        };
        let bloom = &mut self.bloom;
        let fresh: Vec<Vec<bool>> = stages.bloom.time(|| {
            let verdicts = certificates.iter().map(|certificate| {
                let certificate = certificate.as_ref();
                let names = certificate.map_or(&[][..], |certificate| &certificate.names);
                names
                    .iter()
                    .map(|name| certificate.is_some_and(|it| bloom.insert(&it.sha256, name)))
                    .collect()
            });
            verdicts.collect()
        });
        self.refused += certificates.iter().filter(|it| it.is_none()).count() as u64;
        let (memtable, first) = (&self.memtable, (u64::from(page.log) << 56) | page.first);
        let inserted = stages.memtable.time(|| {
            let mut inserted = 0;
            for ((certificate, fresh), id) in certificates.iter().zip(&fresh).zip(first..) {
                let Some(certificate) = certificate else { continue };
                for (name, _) in certificate.names.iter().zip(fresh).filter(|(_, fresh)| **fresh) {
                    memtable.insert(segment::key(name, id), certificate.row(name));
                    inserted += 1;
                }
            }
            inserted
        });
        self.waiting += inserted;
        self.records += inserted as u64;
        if self.waiting >= FLUSH_RECORDS {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the memtable as a segment and empties it.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        if self.waiting == 0 {
            return Ok(());
        }
        let memtable = std::mem::take(&mut self.memtable);
        self.waiting = 0;
        let path = self.dir.join(format!("{:04}", self.segments.len()));
        let segment = self.stages.flush.time(|| {
            let segment = Segment::write(&path, memtable.iter().map(|item| (item.key().clone(), item)));
            drop(memtable);
            segment
        })?;
        self.segments.push(segment);
        Ok(())
    }

    /// Reads the memtable through, in order.
    pub(crate) fn scan(&self) -> usize {
        let bytes = self
            .memtable
            .iter()
            .map(|item| item.key().len() + item.value().len());
        bytes.sum()
    }

    /// The first rows at or below a domain, segment after segment until there are enough. (A page in
    /// the order of names, as Tamis gives, would have to ask every segment.)
    pub(crate) fn search(&self, domain: &str, limit: usize) -> Vec<Row> {
        let range = segment::Range::of(domain);
        let mut rows = Vec::new();
        for segment in &self.segments {
            segment.search(&range, limit, &mut rows);
            if rows.len() >= limit {
                break;
            }
        }
        rows
    }

    /// The first distinct names at or below a domain, in the same way.
    pub(crate) fn names(&self, domain: &str, limit: usize) -> Vec<String> {
        let range = segment::Range::of(domain);
        let mut names = std::collections::BTreeSet::new();
        for segment in &self.segments {
            segment.names(&range, limit, &mut names);
            if names.len() >= limit {
                break;
            }
        }
        names
            .into_iter()
            .map(|reversed| tamis_hostname::unreverse(&reversed))
            .collect()
    }
}
