//! Certificate Transparency entries and certificates, read tolerantly and without I/O, and what logs
//! sign, prove and promise about them, verified strictly.
//!
//! **Reading.** Bytes come in, borrowed or reused structures go out: [`Input`] recognises a file or a body
//! and frames it into [`input::RawEntry`]s; each decodes into an [`Entry`] with the buffers of an
//! [`input::Scratch`]; its certificate fills a [`Reading`], names first.
//!
//! **Verifying.** [`log_list`] says which logs there are, and their keys; [`paths`] where to ask;
//! [`head`] makes a [`head::VerifiedHead`] of an answer and its signature; [`merkle`] hashes leaves up to
//! the root that such a head names, or checks a proof that [`answers`] read; [`sct`] checks a promise.
//!
//! # Invariants
//! No bytes make it panic, and no certificate vanishes: what cannot be read is absent and noted as a
//! [`Deviation`], and an entry that holds no certificate is an [`EntryError`] with its place. The other
//! half is the reverse: what does not verify to the last byte is an error that says what to do.
//!
//! # Limits
//! Each is a named constant or a field of [`certificate::ReadOptions`] and [`input::InputLimits`].

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

pub mod answers;
mod base64;
pub mod certificate;
mod der;
mod deviation;
mod error;
pub mod head;
pub mod input;
pub mod key;
pub mod leaf;
pub mod log_list;
pub mod merkle;
pub mod paths;
pub mod sct;

pub use certificate::{Name, Reading};
pub use deviation::{Deviation, Deviations};
pub use error::{Blame, EntryError, Error, Reason};
pub use input::{Entry, Input};
