//! What a log was asked, and how it answered: the measure of how polite a reader is.
//!
//! # Limits
//! [`USER_AGENTS_MAX`] different User-Agents of 200 bytes; what comes after them is counted as `…`.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::lock;

const USER_AGENTS_MAX: usize = 64;
const USER_AGENT_BYTES_MAX: usize = 200;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// get-sth
    Sth,
    /// get-entries
    Entries,
    /// get-sth-consistency
    Consistency,
    /// get-proof-by-hash
    Proof,
    /// get-entry-and-proof
    EntryAndProof,
    /// get-roots
    Roots,
    /// A checkpoint.
    Checkpoint,
    /// A full tile of hashes.
    LevelTile,
    /// A partial tile of hashes.
    PartialLevelTile,
    /// A full tile of entries.
    DataTile,
    /// A partial tile of entries.
    PartialDataTile,
    /// A full tile of names.
    NamesTile,
    /// A partial tile of names.
    PartialNamesTile,
    /// The certificate of an issuer.
    Issuer,
    /// `log.v3.json`
    Metadata,
    /// Anything else below the log's prefix.
    Other,
}

impl RequestKind {
    /// Whether it asks for a head.
    #[must_use]
    pub fn is_head(self) -> bool {
        matches!(self, Self::Sth | Self::Checkpoint)
    }

    /// Whether it asks for a tile of any kind.
    #[must_use]
    pub fn is_tile(self) -> bool {
        matches!(
            self,
            Self::LevelTile
                | Self::PartialLevelTile
                | Self::DataTile
                | Self::PartialDataTile
                | Self::NamesTile
                | Self::PartialNamesTile
        )
    }
}

/// What a log was asked since the start or the last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Requests by kind.
    pub requests: BTreeMap<RequestKind, u64>,
    /// Answers by status; 0 for connections that were broken instead. Counted before the last byte goes, so
    /// that who has an answer finds it here.
    pub statuses: BTreeMap<u16, u64>,
    /// Of bodies that were sent.
    pub bytes: u64,
    /// Most requests that were being answered at one time.
    pub concurrency_max: u64,
    /// Shortest time between the starts of two requests, in microseconds.
    pub gap_us_min: Option<u64>,
    /// Requests by User-Agent.
    pub user_agents: BTreeMap<String, u64>,
}

impl Report {
    /// Requests of one kind.
    #[must_use]
    pub fn count(&self, kind: RequestKind) -> u64 {
        self.requests.get(&kind).copied().unwrap_or(0)
    }

    /// All requests.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.requests.values().sum()
    }

    /// Requests for tiles of any kind.
    #[must_use]
    pub fn tiles(&self) -> u64 {
        let tiles = self.requests.iter().filter(|(kind, _)| kind.is_tile());
        tiles.map(|(_, count)| count).sum()
    }

    /// Answers with this status.
    #[must_use]
    pub fn status(&self, status: u16) -> u64 {
        self.statuses.get(&status).copied().unwrap_or(0)
    }
}

/// Counts while requests are answered.
#[derive(Default)]
pub(super) struct Counter(Mutex<Counting>);

#[derive(Default)]
struct Counting {
    report: Report,
    in_flight: u64,
    last: Option<Instant>,
}

impl Counter {
    pub(super) fn begin(&self, kind: RequestKind, user_agent: &str) {
        let mut counting = lock(&self.0);
        let now = Instant::now();
        if let Some(last) = counting.last.replace(now) {
            let gap = now.duration_since(last).as_micros() as u64;
            let known = counting.report.gap_us_min.unwrap_or(u64::MAX);
            counting.report.gap_us_min = Some(gap.min(known));
        }
        counting.in_flight += 1;
        let in_flight = counting.in_flight;
        let report = &mut counting.report;
        report.concurrency_max = report.concurrency_max.max(in_flight);
        *report.requests.entry(kind).or_default() += 1;
        let agent: String = user_agent.chars().take(USER_AGENT_BYTES_MAX).collect();
        let is_known = report.user_agents.contains_key(&agent);
        let agent = if is_known || report.user_agents.len() < USER_AGENTS_MAX {
            agent
        } else {
            "…".to_owned()
        };
        *report.user_agents.entry(agent).or_default() += 1;
    }

    pub(super) fn end(&self, status: u16, bytes: u64) {
        let mut counting = lock(&self.0);
        counting.in_flight = counting.in_flight.saturating_sub(1);
        counting.report.bytes += bytes;
        *counting.report.statuses.entry(status).or_default() += 1;
    }

    pub(super) fn report(&self) -> Report {
        lock(&self.0).report.clone()
    }

    pub(super) fn reset(&self) {
        let mut counting = lock(&self.0);
        counting.report = Report::default();
        counting.last = None;
    }
}
