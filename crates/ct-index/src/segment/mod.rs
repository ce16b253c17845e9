//! Segments: immutable sorted tables of one flush or merge, in one file.
//!
//! Reading order: [`layout`] (header, footer, trailer), [`block`] (what is read and checked),
//! [`index`] (how a block is found), then the tables [`names`], [`records`] with its [`positions`],
//! [`hashes`] (look-ups), [`organizations`], and what spares reading them, [`meta`] and [`filter`].
//! [`writer`] makes a segment, [`Segment`] reads one, [`check`] proves one whole.
//!
//! # Invariants
//! A segment never changes. A damaged block costs its own rows and nothing else: readers report it
//! and go on; a file without its footer is read by scanning it.

pub(crate) mod ahead;
pub(crate) mod block;
pub(crate) mod check;
pub(crate) mod columns;
mod cursor;
pub(crate) mod file;
pub(crate) mod filter;
pub(crate) mod hashes;
pub(crate) mod index;
pub(crate) mod layout;
pub(crate) mod meta;
pub(crate) mod names;
pub(crate) mod organizations;
pub(crate) mod positions;
mod reader;
pub(crate) mod records;
mod salvage;
pub(crate) mod writer;

pub(crate) use cursor::SegmentCursor;
pub(crate) use file::BlockCache;
pub(crate) use reader::{Segment, Standing};
pub(crate) use writer::SegmentWriter;
