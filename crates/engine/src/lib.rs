//! What runs for months: following Certificate Transparency logs into the index.
//!
//! [`follow::follow`] reads logs of both protocols, verified and complete, until it is told to stop.
//! [`Observer`] turns what `ct-log` reads into what `ct-index` takes; imports use it too.
//!
//! # Concurrency
//! Tokio runs one task a log; decoding and appending run on its blocking threads.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing))]

pub mod follow;
mod observe;

pub use observe::{Observer, issuance_key};
