//! Certificate Transparency logs on the loopback: real trees, real signatures, made-up faults.
//!
//! A [`World`] holds several logs and their signed list behind one address. What they hold is made once
//! and shared: real entries from files first, then the corpus ([`crate::Corpus`]). They are read over both
//! interfaces, RFC 6962 and static-ct-api, with `ct-log` as the reference: what a simulated log serves
//! verifies there unless a [`Fault`] says otherwise. Each fault counts how often it showed, each log what
//! it was asked ([`Report`]) and what it holds ([`Log::expected`]).
//!
//! Reading order: `tree` and `keys`, `submission`, `pool` and `wire` (what there is to log, and its bytes),
//! `log` and `head` (one log), `request` and `answers` (what it is asked and says), `faults` and `serve`
//! (what goes wrong), `http`, `list`, `control`, `world` (all of them behind one address), `archive`.
//!
//! # Concurrency
//! A thread a connection, one that accepts and one that lets logs grow. Dropping the [`World`] ends them.
//!
//! # Limits
//! 40 logs, 1,024 connections; about 2.6 kB of memory for each certificate and 100 bytes for each log that
//! holds it.

mod keys;
mod tree;

mod pool;
mod source;
mod submission;
mod wire;

mod head;
mod log;
mod options;

mod answers;
mod report;
mod request;

mod faults;
mod serve;

mod http;
mod list;
mod shutdown;

mod archive;
mod control;
mod world;

pub use control::HELP as CONTROL_HELP;
pub use faults::{Fault, FaultRule};
pub use list::{ListChange, ListSignature};
pub use options::{ListedState, LogKind, LogOptions, WorldOptions};
pub use report::{Report, RequestKind};
pub use submission::Submission;
pub use world::{Log, World};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lock of a mutex whose holders leave it whole at any time, also when they panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
