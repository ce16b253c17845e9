//! A filter in a file that another process may be setting, seen without a lock.

use std::path::Path;
use std::thread;

use tamis_durable::{Advice, ReadWord, SharedView};

use crate::bitmap::Bitmap;
use crate::error::{Error, Result};
use crate::filter::header_bytes;
use crate::format::Header;
use crate::geometry::Geometry;
use crate::key::KeyHash;

/// How often a header is read whose checksum fails, because its writer may be writing it at the time.
const HEADER_READS_MAX: u32 = 100;

/// A filter that this process only asks.
///
/// It sees bits as the process that has the [`Filter`](crate::Filter) sets them, on the same machine. The file
/// must keep its length while the view lives; nothing of ours shortens it.
#[derive(Debug)]
pub struct FilterView {
    view: SharedView,
    geometry: Geometry,
    keys_synced: u64,
}

impl FilterView {
    /// Opens the file of a filter, whoever sets it.
    ///
    /// # Errors
    /// As [`Filter::open`](crate::Filter::open), but nobody is in the way.
    pub fn open(path: &Path) -> Result<Self> {
        let view = SharedView::open(path)?;
        view.advise(Advice::Random)?;
        let header = read_header(path, &view)?;
        Ok(Self {
            view,
            geometry: header.geometry,
            keys_synced: header.keys,
        })
    }

    /// Whether the key may have been set; false means surely not by anyone this process is ordered after.
    #[inline]
    pub fn may_hold(&self, key: impl Into<KeyHash>) -> bool {
        self.bitmap().may_hold(key.into())
    }

    /// [`may_hold`](Self::may_hold) of all `keys`, into `maybe_seen`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn may_hold_batch<K: Copy + Into<KeyHash>>(&self, keys: &[K], maybe_seen: &mut [bool]) {
        self.bitmap().may_hold_batch(keys, maybe_seen);
    }

    /// The shape.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The number of keys that its header had when it was opened, from the writer's last sync or end.
    pub fn keys_synced(&self) -> u64 {
        self.keys_synced
    }

    /// The fraction of bits set now; of up to 4,096 pages spread evenly if there are more.
    pub fn fill(&self) -> f64 {
        self.bitmap().fill()
    }

    #[inline]
    fn bitmap(&self) -> Bitmap<'_, ReadWord> {
        Bitmap::new(self.view.words(), &self.geometry)
    }
}

fn read_header(path: &Path, view: &SharedView) -> Result<Header> {
    let mut reads = 1;
    loop {
        match Header::decode(path, &header_bytes(view.words()), view.bytes()) {
            Err(Error::Corrupt { .. }) if reads < HEADER_READS_MAX => {
                reads += 1;
                thread::yield_now();
            }
            read => return read,
        }
    }
}
