//! The roots that each log accepts, asked for once a day: what a log leaves out is part of what it says.
//!
//! Certificates are kept with those of issuers, once for all logs, since most logs accept the same.
//!
//! # Format
//! `follow/roots/<log id, hex>.json` in the folder of the index: [`Accepted`].
//!
//! # Concurrency
//! One list at a time over all logs, beside the reading: a failure is no failure of the log, and nobody waits.
//!
//! # Limits
//! `tamis_ct_log::answers` limits the body and the count; [`super::issuers`] how many certificates are kept.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tamis_ct_log::answers;
use tokio::time::Instant;

use super::source::{Source, SourceError};
use super::world::{World, hex, now_ms};

/// Between two questions to a log that answers.
const REFRESH: Duration = Duration::from_secs(86_400);
/// Between two questions to one that does not.
const RETRY: Duration = Duration::from_secs(3_600);
/// Of a file that is read back; one with the most roots that a log may have has 3.4 MB.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// What a log accepts.
#[derive(Debug, Serialize, Deserialize)]
struct Accepted {
    /// SHA-256 of the log's key, base64.
    log_id: String,
    /// Where it was asked.
    url: String,
    /// When, milliseconds since 1970.
    fetched_ms: u64,
    /// SHA-256 of each certificate, hex, sorted.
    roots: Vec<String>,
}

/// When to ask whom.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    due: Mutex<HashMap<[u8; 32], Instant>>,
    /// Held by whoever fetches.
    fetching: tokio::sync::Mutex<()>,
}

impl Roots {
    /// Whether a log is to be asked now; if so, it is not again until [`RETRY`] has passed.
    fn claim(&self, log: [u8; 32]) -> bool {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if due.get(&log).is_some_and(|due| now < *due) {
            return false;
        }
        due.insert(log, now + RETRY);
        true
    }

    fn rest(&self, log: [u8; 32], wait: Duration) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.insert(log, Instant::now() + wait);
    }
}

impl World {
    /// Asks a log for its roots if it is time, beside the reading.
    pub(crate) fn want_roots(self: &Arc<Self>, source: &Source) {
        let id = source.log.id().0;
        let Some(prefix) = source.roots_prefix() else {
            return;
        };
        if !self.roots.claim(id) {
            return;
        }
        let (world, source, prefix) = (Arc::clone(self), source.clone(), prefix.to_owned());
        tokio::spawn(async move {
            let _one_at_a_time = world.roots.fetching.lock().await;
            match world.refresh_roots(&source, &prefix).await {
                Ok(wait) => world.roots.rest(id, wait),
                Err(why) => tracing::debug!(log = %source.log.description, why, "no accepted roots"),
            }
        });
    }

    /// Shows what is known, and asks if that is old; gives how long it holds.
    async fn refresh_roots(self: &Arc<Self>, source: &Source, prefix: &str) -> Result<Duration, String> {
        let id = source.log.id();
        let path = self.dir.join("roots").join(format!("{}.json", hex(&id.0)));
        let kept = blocking({
            let path = path.clone();
            move || read(&path)
        })
        .await?;
        if let Some(kept) = kept {
            self.board.show_roots(&id, kept.roots.len());
            let age = Duration::from_millis(now_ms().saturating_sub(kept.fetched_ms));
            if age < REFRESH && kept.fetched_ms <= now_ms() {
                return Ok(REFRESH.saturating_sub(age));
            }
        }
        let body = source
            .roots(prefix)
            .await
            .map_err(|error: SourceError| error.told())?;
        let accepted = Accepted {
            log_id: id.to_string(),
            url: prefix.to_owned(),
            fetched_ms: now_ms(),
            roots: Vec::new(),
        };
        let world = Arc::clone(self);
        let count = blocking(move || world.keep_roots(&path, accepted, &body)).await??;
        self.board.show_roots(&id, count);
        Ok(REFRESH)
    }

    /// Keeps a list and its certificates; gives how many it has.
    fn keep_roots(&self, path: &Path, mut accepted: Accepted, body: &[u8]) -> Result<usize, String> {
        let roots = answers::roots(body).map_err(|error| error.to_string())?;
        let mut fingerprints = BTreeSet::new();
        for der in &roots {
            if *self.stop.borrow() {
                return Err("told to stop".to_owned());
            }
            let fingerprint = Sha256::digest(der).into();
            if fingerprints.insert(fingerprint) {
                self.issuers.keep_root(fingerprint, der);
            }
        }
        accepted.roots = fingerprints.iter().map(|fingerprint| hex(fingerprint)).collect();
        let text = serde_json::to_vec(&accepted).map_err(|error| error.to_string())?;
        let dir = path.parent().unwrap_or(path);
        std::fs::create_dir_all(dir).map_err(|error| error.to_string())?;
        tamis_durable::publish(path, &text).map_err(|error| error.to_string())?;
        Ok(accepted.roots.len())
    }
}

fn read(path: &Path) -> Option<Accepted> {
    let length = std::fs::metadata(path).ok()?.len();
    if length > FILE_BYTES_MAX {
        return None;
    }
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| error.to_string())
}
