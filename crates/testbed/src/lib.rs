//! Pretends to be the outside world: generated corpora for tests and benches, and logs that serve them.
//!
//! A [`Corpus`] is an endless, reproducible stream of log entries. Its certificates have the
//! structure, sizes and names of real ones; keys, signatures and SCTs are random bytes, so nothing
//! here verifies, and nothing here can be mistaken for a working certificate.
//!
//! [`ctlog`] puts such entries, and real ones, into simulated logs whose heads do verify.
#![forbid(unsafe_code)]

mod random;

mod der;
mod oid;

mod words;

mod issuers;
mod site;

mod certificate;
mod corpus;

pub mod framing;
mod truth;

pub mod ctlog;

pub use certificate::{Issuance, Kind};
pub use corpus::{Corpus, CorpusOptions, Entry};
pub use issuers::{Issuer, Issuers};
pub use truth::Truth;
