//! Why reading pauses: what is behind, and when it is no longer.
//!
//! # Concurrency
//! One task looks twice a second and tells all others.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tamis_ct_index::Index;
use tokio::sync::watch;

use super::status::Board;

/// What is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pressure {
    /// Rows wait in memory for the disk.
    Memtable,
    /// The disk is nearly full.
    Disk,
    /// Entries wait to be proved.
    Verification,
    /// A filter holds nearly as many keys as it was made for.
    Filter,
}

impl Pressure {
    pub(crate) const ALL: [Self; 4] = [Self::Memtable, Self::Disk, Self::Verification, Self::Filter];

    /// As it is written in JSON and in labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memtable => "memtable",
            Self::Disk => "disk",
            Self::Verification => "verification",
            Self::Filter => "filter",
        }
    }
}

/// When to pause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PressureLimits {
    /// Flush thresholds of rows that may wait in memory. Default 5.
    pub memtables: usize,
    /// Part of the disk that may be used, from 0 to 1. Default 0.85.
    pub disk: f64,
    /// Leaves that may wait to be proved, over all logs. Default 4 million.
    pub unproved: u64,
    /// Part of a filter's keys, from 0 to 1; `None` for never. Default `None`: a full filter gets a bigger one
    /// behind it.
    pub filter: Option<f64>,
}

impl Default for PressureLimits {
    fn default() -> Self {
        Self {
            memtables: 5,
            disk: 0.85,
            unproved: 4_000_000,
            filter: None,
        }
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Looks until everything stops.
pub(crate) async fn watch_pressure(
    index: Arc<Index>,
    board: Board,
    limits: PressureLimits,
    told: watch::Sender<Option<Pressure>>,
) {
    loop {
        let looked = {
            let (index, board) = (Arc::clone(&index), board.clone());
            tokio::task::spawn_blocking(move || look(&index, &board, limits)).await
        };
        let now = looked.unwrap_or(None);
        told.send_if_modified(|before| {
            if *before == now {
                return false;
            }
            match now {
                Some(pressure) => tracing::warn!(reason = pressure.as_str(), "reading pauses"),
                None => tracing::warn!("reading goes on"),
            }
            *before = now;
            true
        });
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = told.closed() => return,
        }
    }
}

fn look(index: &Index, board: &Board, limits: PressureLimits) -> Option<Pressure> {
    if index.waiting_rows() >= index.flush_rows().saturating_mul(limits.memtables) {
        return Some(Pressure::Memtable);
    }
    if used_part(index.dir()).is_some_and(|used| used > limits.disk) {
        return Some(Pressure::Disk);
    }
    if board.unproved() > limits.unproved {
        return Some(Pressure::Verification);
    }
    let limit = limits.filter?;
    let (stats, _) = index.filters(0);
    (stats.saturation() > limit).then_some(Pressure::Filter)
}

/// The part of the disk that is used, as those without privileges see it.
fn used_part(dir: &Path) -> Option<f64> {
    let (total, free) = tamis_durable::disk_space(dir).ok()?;
    (total > 0).then(|| 1.0 - free as f64 / total as f64)
}
