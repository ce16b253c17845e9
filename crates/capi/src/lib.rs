//! The C ABI of Tamis: canonical keys of URLs and their fingerprints, for C and whatever calls C.
//!
//! `include/tamis.h` is generated from this crate and says what each function promises.
//!
//! # Invariants
//! - No panic leaves a function, and no NULL is followed: both come back as a [`TamisStatus`].
//! - A code, once given out, keeps its number and its meaning; a new meaning gets a new number.
//! - Under our own profiles without rule sets, a key or a fingerprint of a URL with an ASCII host is made
//!   without allocating once the buffers of a handle have grown.
//!
//! # Concurrency
//! A handle is one lock around its buffers. A second thread that comes meanwhile is sent away with
//! [`TamisStatus::Busy`] instead of waiting: threads are meant to have a handle each.
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic))]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "how a test fails"))]

mod entry;
mod memory;
mod status;

pub use entry::{
    TamisCanon, tamis_abi_version, tamis_canon_fetch_url, tamis_canon_fingerprint, tamis_canon_free,
    tamis_canon_id, tamis_canon_key, tamis_canon_new, tamis_canon_new_with_rules, tamis_status_text,
};
pub use memory::TamisBytes;
pub use status::TamisStatus;
