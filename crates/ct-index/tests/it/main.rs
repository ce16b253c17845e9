//! The index as its users see it: batches in, pages out, across crashes, damage and reopening.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)]

mod damage;
mod golden;
mod model;
mod prune;
mod queries;
#[cfg(feature = "readers")]
mod readers;
mod world;
