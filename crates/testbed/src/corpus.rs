//! The corpus: what logs would hold after months of issuance, entry by entry in time order.
//!
//! Sites appear, and most come back for a renewal after 60 to 90 days with the same names and a
//! new serial, key and dates. Seven issuances in ten reach a log both as precertificate and as
//! certificate; three submissions in ten also reach another log (or the same one again when the
//! corpus has one log).
//!
//! # Limits
//! Memory grows with the sites that still renew, 40 bytes each.

use crate::certificate::{Issuance, Kind, Order, encode};
use crate::issuers::Issuers;
use crate::random::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

const DAY_MS: u64 = 86_400_000;
/// 2026-06-01 00:00 UTC.
const START_MS: u64 = 1_780_272_000_000;
/// Entries that one issuance makes on average: 1.7 forms, 1.3 logs.
const ENTRIES_PER_ISSUANCE: f64 = 2.21;

/// How to make a corpus. The same options make the same corpus on every machine.
#[derive(Debug, Clone)]
pub struct CorpusOptions {
    /// Everything follows from it.
    pub seed: u64,
    /// Registrable domains to draw from.
    pub domains: u64,
    /// Logs that entries are spread over, from 1.
    pub logs: u16,
    /// Time between two issuances.
    pub issuance_interval_ms: f64,
    /// Encode certificates; without, entries say what they would hold at a fifth of the cost.
    pub der: bool,
}

impl CorpusOptions {
    /// One log, five million domains, and time running so that `entries` entries cover `days`.
    #[must_use]
    pub fn spread_over(seed: u64, entries: u64, days: u64) -> Self {
        let issuances = (entries.max(1) as f64 / ENTRIES_PER_ISSUANCE).max(1.0);
        Self {
            seed,
            domains: 5_000_000,
            logs: 1,
            issuance_interval_ms: (days * DAY_MS) as f64 / issuances,
            der: true,
        }
    }
}

/// One log entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Which of the corpus's logs holds it, from 0.
    pub log: u16,
    /// Position in that log, from 0.
    pub index: u64,
    /// When the log took it, in milliseconds since 1970; never smaller than the one before it.
    pub timestamp_ms: u64,
    /// Precertificate or certificate.
    pub kind: Kind,
    /// What the certificate says.
    pub issuance: Issuance,
    /// The certificate, or the precertificate with its poison, DER; empty without
    /// [`CorpusOptions::der`].
    pub der: Vec<u8>,
    /// For precertificates, the TBS that the log hashes (no poison); else empty.
    pub precertificate_tbs: Vec<u8>,
}

/// The endless corpus; take as many entries as you need.
pub struct Corpus {
    options: CorpusOptions,
    issuers: Arc<Issuers>,
    random: Random,
    issuances: u64,
    /// Entries emitted, by log.
    lengths: Vec<u64>,
    next_site: u64,
    submissions: BinaryHeap<Reverse<Submission>>,
    renewals: BinaryHeap<Reverse<Renewal>>,
}

/// Ordered by time, then by what tells two apart, so that the order never depends on the heap.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Submission {
    at_ms: u64,
    order: Order,
    kind: Kind,
    log: u16,
    copy: bool,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Renewal {
    at_ms: u64,
    site: u64,
    generation: u32,
}

impl Corpus {
    /// The corpus of these options.
    #[must_use]
    pub fn new(options: CorpusOptions) -> Self {
        let options = CorpusOptions {
            logs: options.logs.max(1),
            domains: options.domains.max(1),
            ..options
        };
        Self {
            issuers: Arc::new(Issuers::new(options.seed)),
            random: Random::for_item(options.seed, 5, 0),
            issuances: 0,
            lengths: vec![0; usize::from(options.logs)],
            next_site: 0,
            submissions: BinaryHeap::new(),
            renewals: BinaryHeap::new(),
            options,
        }
    }

    /// The authorities that signed the entries.
    #[must_use]
    pub fn issuers(&self) -> Arc<Issuers> {
        Arc::clone(&self.issuers)
    }

    /// When the next issuance happens.
    fn clock_ms(&self) -> u64 {
        START_MS + (self.issuances as f64 * self.options.issuance_interval_ms) as u64
    }

    fn issue(&mut self) {
        let now = self.clock_ms();
        let (site, generation) = self.take_renewal(now).unwrap_or_else(|| {
            self.next_site += 1;
            (self.next_site - 1, 0)
        });
        let order = Order {
            number: self.issuances,
            site,
            generation,
            issued_at_ms: now,
        };
        self.issuances += 1;
        // Sites die: a quarter does not come back.
        if self.random.chance(750) {
            let at_ms = now + self.random.between(60 * DAY_MS, 90 * DAY_MS);
            self.renewals.push(Reverse(Renewal {
                at_ms,
                site,
                generation: generation + 1,
            }));
        }
        self.submit(order);
    }

    /// Site and generation of a renewal that is due.
    fn take_renewal(&mut self, now: u64) -> Option<(u64, u32)> {
        let Reverse(renewal) = self.renewals.peek()?;
        if renewal.at_ms > now {
            return None;
        }
        let Reverse(renewal) = self.renewals.pop()?;
        Some((renewal.site, renewal.generation))
    }

    fn submit(&mut self, order: Order) {
        let (precertificate, certificate) = match self.random.below(100) {
            0..=69 => (true, true),
            70..=84 => (true, false),
            _ => (false, true),
        };
        // Delays are counted in issuances, so that a dense corpus and a sparse one look alike.
        let interval = self.options.issuance_interval_ms.max(1.0) as u64;
        let mut at_ms = order.issued_at_ms;
        for (kind, submitted) in [
            (Kind::Precertificate, precertificate),
            (Kind::Certificate, certificate),
        ] {
            at_ms += self.random.between(1, 100 * interval + 2);
            if !submitted {
                continue;
            }
            let log = self.random.below(u64::from(self.options.logs)) as u16;
            self.submissions.push(Reverse(Submission {
                at_ms,
                order,
                kind,
                log,
                copy: false,
            }));
            if self.random.chance(300) {
                let at_ms = at_ms + self.random.between(1, 20 * interval + 2);
                let log = (log + 1) % self.options.logs;
                self.submissions.push(Reverse(Submission {
                    at_ms,
                    order,
                    kind,
                    log,
                    copy: true,
                }));
            }
        }
    }

    fn entry(&mut self, submission: &Submission) -> Entry {
        let Submission {
            at_ms,
            order,
            kind,
            log,
            ..
        } = *submission;
        let kind_of_der = self.options.der.then_some(kind);
        let encoded = encode(
            self.options.seed,
            self.options.domains,
            order,
            kind_of_der,
            &self.issuers,
        );
        let length = &mut self.lengths[usize::from(log)];
        *length += 1;
        Entry {
            log,
            index: *length - 1,
            timestamp_ms: at_ms,
            kind,
            issuance: encoded.issuance,
            der: encoded.der,
            precertificate_tbs: encoded.precertificate_tbs,
        }
    }
}

impl Iterator for Corpus {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            let now = self.clock_ms();
            if self
                .submissions
                .peek()
                .is_some_and(|Reverse(submission)| submission.at_ms <= now)
            {
                let Reverse(submission) = self.submissions.pop()?;
                return Some(self.entry(&submission));
            }
            self.issue();
        }
    }
}
