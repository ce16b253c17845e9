//! Append-only files of checksummed frames: what a write-ahead log is made of.
//!
//! [`FrameWriter`] appends, [`FrameReader`] reads back whatever is whole, [`truncate`] cuts a torn tail off.
//!
//! # Invariants
//! - A frame that [`FrameWriter::commit`] acknowledged survives a crash.
//! - Frames and damage together cover the file after its header, in order, without gap or overlap.
//!
//! # Format
//! `docs/formats/frames.md`.

mod format;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

pub use format::{FRAME_HEADER_BYTES, HEADER_BYTES, PAYLOAD_BYTES_MAX};
pub use reader::{Damage, DamageKind, Frame, FrameReader};
pub use writer::{FrameWriter, PENDING_BYTES_MAX, truncate};
