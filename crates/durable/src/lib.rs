//! How Tamis makes bytes durable: the one place that renames, fsyncs, locks and maps files.
//!
//! - [`publish`] replaces a small file atomically; [`sealed`] adds a header and a checksum to it.
//! - [`NewFile`] writes a large file once and syncs it once.
//! - [`frames`] is an append-only log of checksummed frames (the write-ahead log).
//! - [`Map`] reads a file through memory; [`FolderLock`] gives a folder one owner.
//! - [`SharedMap`] changes a file of fixed length through memory, as atomic words; [`SharedView`] watches one.
//!
//! # Invariants
//! - A published file is the old one or the new one, whole, whatever dies when.
//! - After a write or an fsync failed, its writer refuses everything: the kernel may have dropped the dirty
//!   pages and call the next fsync a success, so a retry would promise what is not there.
//! - No byte read from a file reaches an `expect` or an unchecked index.
//!
//! # Limits
//! Unix only. Checksums find accidents, not forgers: who can write the files can write their checksums.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

#[cfg(feature = "batched-reads")]
mod batched_reads;
mod bytes;
mod disk;
mod error;
mod format;
pub mod frames;
mod lock;
mod map;
mod new_file;
mod page_cache;
mod publish;
pub mod sealed;
mod shared_map;

#[cfg(feature = "batched-reads")]
pub use batched_reads::{BatchedReads, Wanted};
pub use disk::{Disk, disk_space};
pub use error::{Blame, Error, Result};
pub use lock::FolderLock;
pub use map::{Advice, Map};
pub use new_file::NewFile;
pub use page_cache::{drop_cached, read_ahead, will_need};
pub use publish::{publish, publish_dir, replace, sync_dir};
pub use shared_map::{ReadWord, SharedMap, SharedView};
