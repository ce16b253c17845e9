//! Follows Certificate Transparency logs: every entry once, verified up to what the log signed.
//!
//! ```text
//! list ──► roster ──► a reader per log ──► decoder ──► index (entries and progress in one frame)
//!            │            │   ▲
//!            │        source: heads, pages, proofs ◄── gate: the pace of the operator ◄── http or archive
//!            └── status.json, metrics ◄── board ◄── all of them
//! ```
//!
//! # Invariants
//! Positions and proofs commit with the entries they are about. What contradicts a signature is noted as a
//! [`Lie`], shown, and never stops reading.
//!
//! # Limits
//! Pages in flight, bodies, spans, lies: each has its constant where it lives.

mod ahead;
mod archive;
mod asked;
mod counts;
mod decode;
#[cfg(fuzzing)]
pub mod fuzzing;
mod heads;
mod http;
mod issuers;
mod lie;
mod metrics;
mod pace;
mod pages;
mod parameters;
mod passed_over;
mod plan;
mod pressure;
mod progress;
mod progress_format;
mod reader;
mod report;
mod roots;
mod roster;
mod setbacks;
mod settle;
mod source;
mod status;
mod supervisor;
mod world;
mod zip_index;

pub use self::archive::is_archive;
pub use self::lie::{Lie, LieKind};
pub use self::parameters::Parameters;
pub use self::pressure::{Pressure, PressureLimits};
pub use self::report::{Report, report};
pub use self::roster::{ListOptions, SingleLog};
pub use self::status::{Activity, ListStatus, LogStatus, Status};
pub use self::supervisor::{Error, FollowOptions, Summary, follow};
