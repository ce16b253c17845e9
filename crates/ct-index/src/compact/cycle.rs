//! The background thread that merges every so often.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::pace::Pace;
use super::{Compacted, Compactor, Policy};
use crate::index::SuffixList;
use crate::manifest::Manifest;
use crate::segment::BlockCache;
use crate::view::Shared;
use crate::windows::Windows;
use crate::{Error, Result};

/// When and how fast the background merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cycle {
    /// Time between two looks for work. Default 30 s.
    pub every: Duration,
    /// What is merged.
    pub policy: Policy,
    /// Bound on bytes written a second, 0 for none. Default 32 MiB: a third of what a merge does on one
    /// core, so that queries and ingestion keep their latency.
    pub bytes_per_second: u64,
}

impl Default for Cycle {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(30),
            policy: Policy::default(),
            bytes_per_second: 32 << 20,
        }
    }
}

/// What a compaction shares with the index.
pub(crate) struct Parts {
    pub(crate) dir: PathBuf,
    pub(crate) shared: Arc<Shared>,
    pub(crate) manifest: Arc<Mutex<Manifest>>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) suffixes: SuffixList,
    pub(crate) windows: Arc<Windows>,
    pub(crate) pace: Pace,
    /// Held by the one compaction that may run.
    pub(crate) running: Mutex<()>,
}

impl Parts {
    /// Merges until the policy finds nothing more, at most so fast (0 for no bound).
    pub(crate) fn compact(
        &self,
        policy: &Policy,
        bytes_per_second: u64,
        mut progress: impl FnMut(&Compacted),
    ) -> Result<Compacted> {
        self.alone(bytes_per_second, |compactor| {
            let mut done = Compacted::default();
            while compactor.step(policy, &mut done)? {
                progress(&done);
            }
            Ok(done)
        })
    }

    /// Does work that changes segments while nothing else merges or prunes.
    pub(crate) fn alone<T>(
        &self,
        bytes_per_second: u64,
        work: impl FnOnce(&Compactor<'_>) -> Result<T>,
    ) -> Result<T> {
        if bytes_per_second == 0 {
            // Somebody waits: what the background merges now need not be slow any more.
            self.pace.limit(0);
        }
        let _one = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        self.pace.limit(bytes_per_second);
        work(&Compactor {
            dir: &self.dir,
            shared: &self.shared,
            manifest: &self.manifest,
            cache: &self.cache,
            suffixes: &self.suffixes,
            windows: &self.windows,
            pace: &self.pace,
        })
    }
}

/// Starts the thread; [`Pace::stop`] ends it.
pub(crate) fn spawn(parts: Arc<Parts>, cycle: Cycle) -> std::io::Result<JoinHandle<()>> {
    let run = move || {
        while !parts.pace.wait(cycle.every) {
            match parts.compact(&cycle.policy, cycle.bytes_per_second, |_| {}) {
                Ok(done) if done.merges > 0 => tracing::debug!(?done, "merged"),
                Ok(_) => {}
                Err(Error::Stopped | Error::Refusing { .. }) => return,
                // The inputs are whole and stay; the next cycle tries again without damaged ones.
                Err(error) => tracing::warn!(%error, "a merge failed; nothing is lost"),
            }
        }
    };
    std::thread::Builder::new()
        .name("tamis-compact".to_owned())
        .spawn(run)
}
