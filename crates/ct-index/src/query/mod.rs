//! Questions and pages of answers.
//!
//! # Invariants
//! - A page ends at its limit or at its deadline and says which: `partial` marks the deadline.
//! - A cursor is a place in the order of keys, so it survives flushes and merges, and it strictly
//!   advances: a page that ran out of time still passed at least one row.

pub(crate) mod cursor;
mod names;
mod scan;
mod search;

use std::time::{Duration, Instant};

pub use names::{NameItem, NamesQuery};
pub use search::{Filters, SearchItem, SearchQuery, Target};

use crate::{Error, Result};

/// A scan looks at the clock after this many rows.
pub(crate) const ROWS_PER_CHECK: u64 = 256;
/// Default deadline of a page.
pub const DEADLINE: Duration = Duration::from_millis(500);
/// Most items of a page.
pub const LIMIT_MAX: usize = 1_000_000;

/// Where and when a page ends.
#[derive(Debug, Clone)]
pub struct Paging {
    /// Most items; at most [`LIMIT_MAX`].
    pub limit: usize,
    /// Cursor of the page before.
    pub cursor: Option<String>,
    /// Time for the page.
    pub deadline: Duration,
}

impl Default for Paging {
    fn default() -> Self {
        Self {
            limit: 1_000,
            cursor: None,
            deadline: DEADLINE,
        }
    }
}

/// A page of answers.
#[derive(Debug)]
pub struct Page<T> {
    /// The answers, in the order of keys.
    pub items: Vec<T>,
    /// Where the next page starts; `None` when there is nothing more.
    pub next: Option<String>,
    /// The deadline passed before the page was full or the answer complete.
    pub partial: bool,
    /// Rows looked at.
    pub scanned: u64,
    /// Damage met on the way; rows of damaged blocks are missing.
    pub faults: Vec<Error>,
}

/// Counts down the time of a page.
#[derive(Debug)]
pub(crate) struct Deadline {
    ends: Instant,
    checked: u64,
}

impl Deadline {
    pub(crate) fn after(time: Duration) -> Self {
        Self {
            ends: Instant::now() + time,
            checked: 0,
        }
    }

    /// True when time is over; looks at the clock every [`ROWS_PER_CHECK`] rows scanned.
    pub(crate) fn passed(&mut self, scanned: u64) -> bool {
        if scanned < self.checked + ROWS_PER_CHECK {
            return false;
        }
        self.checked = scanned;
        Instant::now() >= self.ends
    }
}

pub(crate) fn check_limit(limit: usize) -> Result<usize> {
    match limit {
        1..=LIMIT_MAX => Ok(limit),
        _ => Err(Error::BadQuery(format!(
            "the limit must be between 1 and {LIMIT_MAX}, not {limit}"
        ))),
    }
}
