//! The index of names and certificates: what is known about every host name that certificates reveal.
//!
//! Write side: [`Batch`] (encoded observations) → [`Index`] (judge, log, memtable) → segments.
//! Read side: [`Snapshot`] (a consistent picture) → [`query`] (pages of names and certificates).
//! Reading order of the code: [`key`], [`record`], [`batch`], [`index`], `memtable`, `segment`,
//! `recover`, [`query`], `lookup`; then [`compact`] (merges, prune), `windows` (filters), [`mod@backup`].
//!
//! # Invariants
//! - An acknowledged observation survives a crash and is there once.
//! - Two observations of one issuance are one row per name and one certificate record, however many
//!   logs, files and segments they came through.
//! - Readers never block and never wait; damage to one block costs its rows and is told.
//!
//! # Limits
//! It knows neither log protocols nor HTTP, and reads no environment.

#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing, clippy::expect_used)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::expect_used
    )
)]

pub mod backup;
pub mod batch;
mod check;
mod coding;
mod commit;
pub mod compact;
mod dictionary;
mod error;
mod flush;
mod folder;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod index;
pub mod inspect;
pub mod key;
mod known;
mod lookup;
mod manifest;
mod memtable;
mod merge;
pub mod query;
#[cfg(feature = "readers")]
pub mod readers;
pub mod record;
mod recover;
mod row;
mod segment;
mod snapshot;
pub mod stats;
pub mod totals;
mod view;
mod windows;
mod writer;

pub use backup::backup;
pub use batch::Batch;
pub use check::{CheckReport, check};
pub use error::{Blame, Error, Result};
pub use index::{Index, Options, Outcome, SuffixList};
pub use manifest::LogEntry;
pub use record::Observation;
pub use snapshot::Snapshot;
pub use windows::{
    FilterFiles, FilterMode, FilterOptions, FiltersState, WindowFiles, WindowStats, WindowsStats,
};
