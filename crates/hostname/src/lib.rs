//! Host names as certificates, people and URLs write them, and as the index keeps them.
//!
//! [`read`] turns any bytes into one of four [`Identifier`]s; [`reverse_into`] and [`SubdomainRange`] make
//! the keys and the bounds that a scan over sorted names needs; [`PublicSuffixes`] tells which part of a
//! name somebody registered; [`to_unicode`] spells a name for people, and [`escape`] makes any text safe
//! to show.
//!
//! # Invariants
//! - Nothing is dropped: what is no host name, address or e-mail address comes back as text.
//! - [`HostName::host`] is canonical: `a-z`, `0-9`, `-`, `_` and single inner dots, at most
//!   [`HOST_BYTES_MAX`] bytes; [`read`] of its [`HostName::display`] gives the same host and keeps only
//!   [`Repairs::PERSISTENT`].
//! - No input panics, and a clean lower-case name is read without an allocation.
//!
//! # Limits
//! No files, no certificates, no URLs beyond cutting the host out of one, no DNS: a host here is a
//! spelling and not a promise that it resolves.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic))]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "how a test fails"))]

mod identifier;
mod idn;
mod read;
mod repair;
mod reversed;
mod scan;
mod suffixes;
mod text;

pub use identifier::{HOST_BYTES_MAX, HostName, Identifier, Repairs, TEXT_BYTES_MAX};
pub use idn::to_unicode;
pub use read::read;
pub use reversed::{SubdomainRange, reverse_into, unreverse};
pub use suffixes::{Error, PublicSuffixes};
pub use text::{escape, is_hidden};
