//! What the tasks of all logs share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tamis_ct_index::{Batch, Index, Outcome};
use tamis_ct_log::key::LogId;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::counts::Counts;
use super::decode::Decoder;
use super::http::Http;
use super::issuers::Issuers;
use super::pace::{Gate, Pace};
use super::parameters::Parameters;
use super::pressure::Pressure;
use super::progress::Head;
use super::roots::Roots;
use super::source::Source;
use super::status::{Board, Status};

/// Pages fetched or decoded and not yet appended, over all logs: each has about 1 to 3 MB.
pub(crate) const PAGES_IN_FLIGHT_MAX: usize = 48;

/// How long the end of an archive waits for the issuers in it.
const ISSUERS_PATIENCE: Duration = Duration::from_secs(30);

/// Shared by all tasks.
pub(crate) struct World {
    pub(crate) index: Arc<Index>,
    pub(crate) http: Http,
    pub(crate) decoder: Decoder,
    pub(crate) board: Board,
    pub(crate) counts: Counts,
    pub(crate) issuers: Issuers,
    pub(crate) roots: Roots,
    pub(crate) pages_in_flight: Arc<Semaphore>,
    pub(crate) stop: watch::Receiver<bool>,
    pub(crate) pressure: watch::Receiver<Option<Pressure>>,
    pub(crate) parameters: watch::Receiver<Arc<Parameters>>,
    /// By operator.
    pub(crate) gates: Mutex<HashMap<String, Arc<Gate>>>,
    /// Where evidence, issuers, the last list and the status are kept.
    pub(crate) dir: PathBuf,
    pub(crate) poll_interval: Duration,
    pub(crate) partial_delay: Duration,
    /// Somebody waits for the end: nothing is gained by waiting for a tile to fill.
    pub(crate) reads_partial_at_once: bool,
}

/// Why following cannot go on: the index takes nothing more, or this program is wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fatal {
    #[error(transparent)]
    Index(#[from] tamis_ct_index::Error),
    #[error("a range of leaves cannot be continued; please report this")]
    Range(#[from] tamis_ct_log::merkle::RangeError),
    #[error("a task ended unexpectedly ({0}); please report this")]
    Task(String),
}

impl Fatal {
    pub(crate) fn task(error: &tokio::task::JoinError) -> Self {
        Self::Task(error.to_string())
    }
}

impl World {
    /// Appends a batch on a thread that may block: the index makes writers wait when it falls behind.
    pub(crate) async fn append(&self, batch: Batch) -> Result<Outcome, Fatal> {
        let index = Arc::clone(&self.index);
        let appended = tokio::task::spawn_blocking(move || index.append(&batch)).await;
        Ok(appended.map_err(|error| Fatal::task(&error))??)
    }

    /// The number of a log in the index, on a thread that may block.
    pub(crate) async fn register(&self, name: String) -> Result<u16, Fatal> {
        let index = Arc::clone(&self.index);
        let registered = tokio::task::spawn_blocking(move || index.register_log(&name)).await;
        Ok(registered.map_err(|error| Fatal::task(&error))??)
    }

    /// Why no new pages are asked for now.
    pub(crate) fn pressure(&self) -> Option<Pressure> {
        *self.pressure.borrow()
    }

    /// How everything stands.
    pub(crate) fn status(&self) -> Status {
        self.board.status(self.pressure(), self.static_only())
    }

    /// Issuances that only static logs have, as far as logs were read.
    pub(crate) fn static_only(&self) -> u64 {
        self.index.snapshot().known_apart()
    }

    /// The gate of an operator; logs of one operator share it.
    pub(crate) fn gate(&self, operator: &str, is_loopback: bool) -> Arc<Gate> {
        let limits = self.parameters.borrow().of_operator(operator);
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Gate::new(Pace::of(operator, is_loopback, limits));
        Arc::clone(gates.entry(operator.to_owned()).or_insert_with(made))
    }

    /// Fetches issuers' certificates that are not here yet, once for all logs, beside the reading.
    pub(crate) fn want_issuers(self: &Arc<Self>, source: &Source, issuers: Vec<[u8; 32]>) {
        let wanted = self.issuers.claim(issuers);
        if wanted.is_empty() {
            return;
        }
        let (world, source) = (Arc::clone(self), source.clone());
        tokio::spawn(async move {
            for fingerprint in wanted {
                world.issuers.fetch(&world, &source, fingerprint).await;
            }
        });
    }

    /// Waits until the issuers in an archive are read, since nobody waits for them once its log has ended.
    pub(crate) async fn wait_for_issuers(&self, source: &Source) {
        let patience = Instant::now() + ISSUERS_PATIENCE;
        while source.is_archive() && self.issuers.is_fetching() && Instant::now() < patience {
            if *self.stop.borrow() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Keeps two heads that contradict each other, as they came.
    pub(crate) fn keep_evidence(&self, log: &LogId, known: &Head, seen: &Head) {
        let dir = self.dir.join("evidence");
        let name = format!("{}-{}-{}.json", hex(&log.0[..8]), known.tree.size, seen.tree.size);
        let path = dir.join(name);
        if path.exists() {
            return;
        }
        let head = |head: &Head| {
            serde_json::json!({
                "tree_size": head.tree.size,
                "sha256_root_hash": head.tree.root.to_string(),
                "timestamp": head.timestamp_ms,
                "body": String::from_utf8_lossy(&head.bytes),
            })
        };
        let evidence = serde_json::json!({
            "log_id": log.to_string(),
            "seen_ms": now_ms(),
            "known": head(known),
            "contradicting": head(seen),
        });
        let kept = std::fs::create_dir_all(&dir)
            .map_err(|error| error.to_string())
            .and_then(|()| {
                tamis_durable::publish(&path, evidence.to_string().as_bytes())
                    .map_err(|error| error.to_string())
            });
        if let Err(error) = kept {
            tracing::warn!(path = %path.display(), %error, "evidence could not be kept");
        }
    }
}

/// Waits until everything is to stop.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Without a sender nothing runs any more, which is a stop too.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
