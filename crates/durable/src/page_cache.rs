//! What the kernel should keep of a file in memory. Advice, never more: failure to give it is no error.

use std::fs::File;
use std::num::NonZeroU64;

use rustix::fs::{Advice, fadvise};

/// Says that a file is read once, front to back: the kernel reads ahead.
pub fn read_ahead(file: &File) {
    let _ = fadvise(file, 0, None, Advice::Sequential);
}

/// Drops what the page cache holds of a file, so that one large pass does not push out what others
/// need. Pages not yet written stay.
pub fn drop_cached(file: &File) {
    let _ = fadvise(file, 0, None, Advice::DontNeed);
}

/// Starts reading a part of a file into the page cache, without waiting for it.
pub fn will_need(file: &File, offset: u64, bytes: u32) {
    let _ = fadvise(file, offset, NonZeroU64::new(bytes.into()), Advice::WillNeed);
}
