//! Canonical keys of URLs: what to fetch, and what to compare by, kept apart.
//!
//! [`Canonicalizer`] turns any bytes into a [`Canonical`]: the URL to fetch, the key to compare by, and the
//! rules that made the difference. [`Profile`] says which rules those are, [`Rule`] what each does and how
//! safe it is. [`Parser`] and [`Url`] are the URL Standard's parser alone.
//!
//! # Invariants
//! - No input panics, and none takes more than `n log n` time or memory beyond its buffers.
//! - A key is a URL; made again from itself, it stays what it is (not so in the profiles of other tools).
//! - What is refused is refused with a [`Reject`]; nothing is cut or guessed.
//!
//! # Limits
//! No files, sockets or clock. URLs up to [`URL_BYTES_MAX`].
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic))]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "how a test fails"))]

mod batch;
mod canon;
mod compat;
mod explain;
mod fingerprint;
mod key;
mod parse;
mod profile;
mod rule;
mod safe_browsing;
mod sets;

pub use batch::Batch;
pub use canon::{Canonical, Canonicalizer};
pub use explain::{Explanation, Step};
pub use fingerprint::{Fingerprint, Fingerprinter, expected_collisions};
pub use parse::{HostError, HostKind, Parser, Reject, Scheme, URL_BYTES_MAX, Url};
pub use profile::{Profile, UnknownProfile};
pub use rule::{Class, Rule, RuleBits};
pub use safe_browsing::SafeBrowsing;
pub use sets::{BookError, Loaded, Matcher, RuleBook, RuleSet, SetError};

/// Rule sets made of the lists of others, and what their documents hold.
pub mod rules {
    pub use crate::sets::import::{Imported, ListKind, import};
    pub use crate::sets::{Exception, NEVER_GLOBAL, Shape, Shaped, SiteRules, Wrapper};
}
