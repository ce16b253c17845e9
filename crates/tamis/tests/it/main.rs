//! The command line from end to end: the real binary, real files, and generated ones of known content.
//!
//! `run` starts the binary, `corpus` makes entries and knows what must be found in them; each other
//! module asks one kind of question.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod corpus;
mod run;

mod backup;
mod commands;
mod filters;
mod follow;
mod inputs;
mod issuances;
mod large;
mod logs;
mod messages;
mod output;
mod paging;
mod prune;
mod urls;

mod crash;
mod damage;
mod disk_full;
mod failing_disk;
mod processes;
mod read_only;
