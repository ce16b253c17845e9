//! Everything that may ever be logged, in one order for all logs: real submissions first, then the
//! corpus without end.
//!
//! Each log walks the pool and takes what its share says, so that any two logs hold many of the same
//! certificates, as real ones do.

use std::collections::HashSet;
use std::sync::Arc;

use super::submission::{Chains, Submission};
use crate::random::Random;
use crate::{Corpus, CorpusOptions, Issuers};

/// Entries and days that the corpus is spread over: a dense half year.
const SPREAD_ENTRIES: u64 = 1_000_000;
const SPREAD_DAYS: u64 = 180;
/// A number that other parts of the testbed do not draw with.
const PURPOSE: u64 = 20;

pub(super) struct Pool {
    seed: u64,
    submissions: Vec<Arc<Submission>>,
    /// How many of them are from files.
    real: usize,
    /// Fingerprints of the generated ones: no log takes a certificate twice.
    seen: HashSet<[u8; 32]>,
    corpus: Corpus,
    issuers: Arc<Issuers>,
    pub(super) chains: Chains,
}

/// Where a log is in the pool, and which log it is.
pub(super) struct Cursor {
    pub(super) log: u64,
    pub(super) at: usize,
    /// Of the generated submissions, in a thousand.
    pub(super) share_per_mille: u64,
}

impl Pool {
    pub(super) fn new(seed: u64, real: Vec<Submission>, chains: Chains) -> Self {
        let corpus = Corpus::new(CorpusOptions::spread_over(seed, SPREAD_ENTRIES, SPREAD_DAYS));
        let mut seen = HashSet::new();
        let distinct = real
            .into_iter()
            .filter(|submission| seen.insert(submission.sha256()));
        let submissions: Vec<_> = distinct.map(Arc::new).collect();
        Self {
            seed,
            real: submissions.len(),
            submissions,
            seen,
            issuers: corpus.issuers(),
            corpus,
            chains,
        }
    }

    /// The next submission for a log.
    pub(super) fn next(&mut self, cursor: &mut Cursor) -> Arc<Submission> {
        loop {
            let at = cursor.at;
            cursor.at += 1;
            let is_taken = at < self.real
                || Random::for_item(self.seed, PURPOSE + cursor.log, at as u64)
                    .chance(cursor.share_per_mille);
            let submission = self.submission(at);
            if is_taken {
                return submission;
            }
        }
    }

    fn submission(&mut self, at: usize) -> Arc<Submission> {
        while self.submissions.len() <= at {
            let Some(entry) = self.corpus.next() else { continue };
            let submission = Submission::generated(entry, &self.issuers, &mut self.chains);
            if self.seen.insert(submission.sha256()) {
                self.submissions.push(Arc::new(submission));
            }
        }
        Arc::clone(&self.submissions[at])
    }
}
