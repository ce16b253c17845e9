//! A window: a chain of filter files, each larger than the one before it.
//!
//! # Invariants
//! - A key is in the chain if one of its files may hold it; only the last file gets new keys, so the others
//!   never change.
//! - Rates of a chain add up to the rate asked for, as long as its last file is not over its plan.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tamis_bloom::{Filter, Geometry, KeyHash};
use xxhash_rust::xxh3::Xxh3;

use super::month::WindowKey;
use super::{FilterOptions, Trouble};

/// A file is planned for this many times the keys of the one before: a window of a hundred million keys has
/// six files to ask if it started with the smallest.
const GROWTH: u64 = 4;
/// More are never asked for one key.
pub(super) const FILES_MAX: usize = 24;
/// What a key takes in the largest filters, for the plan of sizes alone.
const BYTES_PER_KEY: u64 = 2;
/// The part of the budget that the largest file may take.
const FILE_SHARE: u64 = 4;
const RATE_MIN: f64 = 1e-9;
/// Bytes of a filter's header before its count of keys, and where its bits start (`docs/formats/bloom.md`).
const HEADER_FIXED_BYTES: usize = 56;
const BITS_AT: usize = 4_096;
const READ_BYTES: usize = 1 << 20;

/// Whether a window can be believed when it says "new".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// Its files are not yet compared with what is recorded of them.
    Unverified,
    /// It holds every key that belongs to it.
    Complete,
    /// Keys are missing: it is filled again from the segments.
    Incomplete,
    /// It was full beyond use and the budget had no room for another file: its files are gone.
    Closed,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unverified => "unverified",
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
            Self::Closed => "closed",
        }
    }
}

/// A file of a chain.
#[derive(Debug)]
pub(super) struct WindowFile {
    pub(super) id: u64,
    pub(super) filter: Filter,
}

impl WindowFile {
    pub(super) fn is_full(&self) -> bool {
        self.filter.keys() >= self.planned()
    }

    pub(super) fn planned(&self) -> u64 {
        self.filter.geometry().keys_planned()
    }
}

/// The chain, oldest file first.
#[derive(Debug, Clone)]
pub(super) struct Window {
    pub(super) status: Status,
    pub(super) files: Vec<Arc<WindowFile>>,
}

/// A key of a batch and its place there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) key: u64,
    pub(super) at: usize,
}

impl From<Placed> for KeyHash {
    fn from(placed: Placed) -> Self {
        placed.key.into()
    }
}

impl Window {
    /// Removes from `keys` those that a file may hold and tells their places.
    pub(super) fn sift(&self, keys: &mut Vec<Placed>, mut maybe: impl FnMut(usize)) {
        sift(&self.files, keys, |placed| maybe(placed.at));
    }

    pub(super) fn bytes(&self) -> u64 {
        self.files
            .iter()
            .map(|file| file.filter.geometry().file_bytes())
            .sum()
    }

    /// The false-positive rate to expect of the whole chain.
    pub(super) fn expected_rate(&self) -> f64 {
        let new: f64 = self
            .files
            .iter()
            .map(|file| 1.0 - file.filter.expected_false_positive_rate())
            .product();
        1.0 - new
    }

    /// The shape of the file that comes behind the last one and takes `room` bytes at most, if there is one.
    pub(super) fn next_geometry(&self, options: &FilterOptions, room: u64) -> Option<Geometry> {
        if self.files.len() >= FILES_MAX {
            return None;
        }
        let keys_min = options.keys_first.max(1);
        let keys_max = (options.bytes_max / FILE_SHARE / BYTES_PER_KEY).max(keys_min);
        let last = self.files.last().map(|file| file.planned());
        // Where the budget ends a file may be smaller than the last one, but not so small that it fills at once.
        let least = last.map_or(1, |last| last / 2).max(keys_min);
        let mut keys = last
            .map_or(keys_min, |last| last.saturating_mul(GROWTH))
            .clamp(least.min(keys_max), keys_max);
        loop {
            let rate = self.rate_of_next(keys, keys_max, options.rate);
            match Geometry::for_keys(keys, rate) {
                Ok(geometry) if geometry.file_bytes() <= room => return Some(geometry),
                _ if keys / 2 < least => return None,
                _ => keys /= 2,
            }
        }
    }

    /// A quarter of `rate` for the largest file, half as much for one of a quarter of its size, and half as much
    /// again for each file of the chain that is no smaller: the sum of any chain is below `rate`. Small files
    /// take more bits for a key, and there are few keys in them.
    fn rate_of_next(&self, keys: u64, keys_max: u64, rate: f64) -> f64 {
        let no_smaller = self.files.iter().filter(|file| file.planned() >= keys).count();
        let share = (keys as f64 / keys_max as f64).sqrt() / 4.0;
        (rate * share * 0.5_f64.powi(no_smaller as i32)).max(RATE_MIN)
    }
}

/// Removes from `keys` those that one of `files` may hold and tells them.
fn sift<K: Copy + Into<KeyHash>>(files: &[Arc<WindowFile>], keys: &mut Vec<K>, mut maybe: impl FnMut(K)) {
    let mut maybe_seen = Vec::new();
    for file in files.iter().rev() {
        maybe_seen.clear();
        maybe_seen.resize(keys.len(), false);
        file.filter.may_hold_batch(keys, &mut maybe_seen);
        let mut answers = maybe_seen.iter();
        keys.retain(|&key| {
            let seen = answers.next().copied().unwrap_or(true);
            if seen {
                maybe(key);
            }
            !seen
        });
    }
}

/// Sets `keys` in the last of `files`, unless an earlier one may hold them: that one answers "maybe" already, and
/// for good.
pub(super) fn set(files: &[Arc<WindowFile>], keys: &[u64]) {
    if let Some((last, earlier)) = files.split_last() {
        let mut keys = keys.to_vec();
        sift(earlier, &mut keys, drop);
        let mut seen = vec![false; keys.len()];
        last.filter.check_and_set_batch(&keys, &mut seen);
    }
}

pub(super) fn path_of(folder: &Path, window: WindowKey, id: u64) -> PathBuf {
    folder.join(format!("{window}-{id:016x}{SUFFIX}"))
}

/// How the names of filter files end.
pub(super) const SUFFIX: &str = ".bloom";

/// A checksum (XXH3-64) over all of a filter file that does not change without a key: its shape and its bits,
/// not the count of keys and the state of its writer.
pub(super) fn digest_of(path: &Path, geometry: &Geometry) -> Result<u64, Trouble> {
    let mut file = File::open(path)?;
    let mut start = [0; BITS_AT];
    file.read_exact(&mut start)?;
    let mut hasher = Xxh3::new();
    hasher.update(start.get(..HEADER_FIXED_BYTES).unwrap_or(&start));
    let bits_bytes = geometry.bits() / 8;
    let mut rest = file.take(bits_bytes);
    let mut buffer = vec![0; READ_BYTES];
    let mut read = 0;
    loop {
        let bytes = rest.read(&mut buffer)?;
        if bytes == 0 {
            break;
        }
        hasher.update(buffer.get(..bytes).unwrap_or(&buffer));
        read += bytes as u64;
    }
    if read == bits_bytes {
        Ok(hasher.digest())
    } else {
        Err(format!("{} ends early", path.display()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Window {
        Window {
            status: Status::Complete,
            files: Vec::new(),
        }
    }

    fn grow(window: &mut Window, geometry: Geometry) {
        let filter = Filter::in_memory(geometry).unwrap();
        window.files.push(Arc::new(WindowFile { id: 0, filter }));
    }

    #[test]
    fn files_grow_up_to_a_share_of_the_budget_and_rates_stay_below_the_one_asked_for() {
        let options = FilterOptions {
            bytes_max: 4 << 20,
            keys_first: 1_000,
            rate: 0.01,
            ..FilterOptions::default()
        };
        let mut window = empty();
        let mut planned = Vec::new();
        while let Some(geometry) = window.next_geometry(&options, options.bytes_max - window.bytes()) {
            planned.push(geometry.keys_planned());
            grow(&mut window, geometry);
            let sum: f64 = window
                .files
                .iter()
                .map(|file| file.filter.geometry().false_positive_rate_planned())
                .sum();
            assert!(sum < options.rate, "{sum} of {planned:?}");
        }
        assert_eq!(planned[..5], [1_000, 4_000, 16_000, 64_000, 256_000]);
        assert!(
            planned.iter().all(|&keys| keys <= 524_288) && planned.contains(&524_288),
            "{planned:?}"
        );
        assert!(
            window.bytes() <= options.bytes_max && window.bytes() > options.bytes_max / 2,
            "{}",
            window.bytes()
        );
        assert!(planned.len() < 12, "no crumbs at the end: {planned:?}");
    }

    #[test]
    fn a_budget_of_nothing_plans_nothing() {
        for bytes_max in [0, 1, 4_096] {
            let options = FilterOptions {
                bytes_max,
                ..FilterOptions::default()
            };
            assert_eq!(empty().next_geometry(&options, bytes_max), None);
        }
        let endless = FilterOptions {
            bytes_max: u64::MAX,
            keys_first: u64::MAX,
            ..FilterOptions::default()
        };
        assert_eq!(empty().next_geometry(&endless, u64::MAX), None);
    }

    #[test]
    fn keys_that_an_earlier_file_holds_take_no_room_in_the_last() {
        let options = FilterOptions {
            keys_first: 1_000,
            ..FilterOptions::default()
        };
        let mut window = empty();
        let keys: Vec<u64> = (0..800_u64)
            .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        for _ in 0..2 {
            let geometry = window.next_geometry(&options, u64::MAX).unwrap();
            grow(&mut window, geometry);
            set(&window.files, &keys);
        }
        assert!(
            keys.iter()
                .all(|&key| window.files.iter().any(|file| file.filter.may_hold(key)))
        );
        assert_eq!(window.files[1].filter.keys(), 0);
    }

    #[test]
    fn a_digest_changes_with_every_bit_and_not_with_the_state_of_the_writer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let geometry = Geometry::for_keys(100, 0.01).unwrap().with_seeds([1, 2]);
        let filter = Filter::create(&path, geometry).unwrap();
        filter.check_and_set(7_u64);
        let open = digest_of(&path, &geometry).unwrap();
        drop(filter);
        assert_eq!(digest_of(&path, &geometry).unwrap(), open);
        let bytes = std::fs::read(&path).unwrap();
        for at in (0..HEADER_FIXED_BYTES).chain(BITS_AT..bytes.len()) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            std::fs::write(&path, flipped).unwrap();
            assert_ne!(digest_of(&path, &geometry).unwrap(), open, "flip at {at}");
        }
        for length in [0, 100, BITS_AT, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert!(digest_of(&path, &geometry).is_err(), "cut at {length}");
        }
    }
}
