//! Bloom filters whose every key lies in one page of 4 KiB, in memory and in memory-mapped files.
//!
//! A filter answers "surely new" or "maybe seen". **It is a hint, never a verdict**: what it may hold is looked
//! up where the truth is, so a false positive costs a look-up and never a record, and a bit lost in a crash of
//! the system costs one too.
//!
//! ```
//! use tamis_bloom::{Filter, Geometry};
//!
//! // Room for a million keys with one false positive in a hundred.
//! let filter = Filter::in_memory(Geometry::for_keys(1_000_000, 0.01)?)?;
//! let hash = 0x8c7d_d922_ad47_494f_u64; // of a key, uniform: eight bytes of its SHA-256
//! assert!(!filter.check_and_set(hash), "surely new");
//! assert!(filter.check_and_set(hash), "maybe seen");
//! # Ok::<(), tamis_bloom::Error>(())
//! ```
//!
//! # Invariants
//! - No false negative: what was set before is "maybe seen" to whoever is ordered after it, by any thread and,
//!   through a file, after any death of the process.
//! - A bit is only ever set; only making the filter anew clears it.
//! - The size and the number of probes follow from the number of keys planned and the false-positive rate.
//!
//! # Format
//! `docs/formats/bloom.md`.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

mod bitmap;
mod error;
mod filter;
mod format;
mod geometry;
mod key;
mod prefetch;
mod view;

pub use error::{Blame, Error, Result};
pub use filter::Filter;
pub use geometry::Geometry;
pub use key::KeyHash;
pub use view::FilterView;
