//! The bits behind the header, in pages: asking, setting, counting.
//!
//! # Concurrency
//! Every access is relaxed, and that suffices: a bit is a fact of its own that only goes from 0 to 1, and no
//! other memory is read because of one. Coherence of a single word says that a load ordered after a store sees
//! it or something later; all later values have the bit too, as `fetch_or` loses no bit of another thread. So
//! whoever learned of a set in a way that orders (a join, a channel, a lock) gets no false negative, and whoever
//! did not has raced with it and may get either answer. A stronger ordering would publish what nobody reads.

use std::sync::atomic::{AtomicU64, Ordering};

use tamis_durable::ReadWord;

use crate::geometry::{Geometry, PAGE_BITS};
use crate::key::KeyHash;
use crate::prefetch::prefetch;

pub(crate) const PAGE_WORDS: usize = 512;
const _: () = assert!(PAGE_WORDS as u64 * 64 == PAGE_BITS);

/// How many keys of a batch are prefetched before the first of them is used: enough to keep all line-fill
/// buffers of a core busy, few enough that their lines are still in the nearest cache then. 16 and 64 measure
/// the same.
const BATCH_KEYS: usize = 32;
/// Of a key that is only asked for: a new one is known after two bits on average when the filter is full.
const ASKED_PROBES: usize = 2;
/// How many pages are counted to learn the fill of a bitmap with more: 16 MiB, about a third of a second from
/// a cold disk, and an error of the fill of about one part in two thousand.
const SAMPLE_PAGES_MAX: usize = 4_096;

type Page<W> = [W; PAGE_WORDS];

/// A word that others may change.
pub(crate) trait Word {
    fn load(&self) -> u64;
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
}

impl Word for ReadWord {
    #[inline]
    fn load(&self) -> u64 {
        self.load()
    }
}

/// The pages of a filter, and how keys lie in them.
pub(crate) struct Bitmap<'a, W> {
    /// At least one.
    pages: &'a [Page<W>],
    probes: usize,
    seeds: [u64; 2],
}

impl<'a, W: Word> Bitmap<'a, W> {
    /// Of `words`, which are header and bitmap as `geometry` says.
    #[inline]
    pub(crate) fn new(words: &'a [W], geometry: &Geometry) -> Self {
        Self {
            pages: words.as_chunks().0.get(1..).unwrap_or_default(),
            probes: geometry.probes as usize,
            seeds: geometry.seeds,
        }
    }

    /// Whether all bits of the key are set; stops at the first that is not.
    #[inline]
    pub(crate) fn may_hold(&self, key: KeyHash) -> bool {
        self.bits(key).all(|(word, mask)| word.load() & mask != 0)
    }

    /// [`may_hold`](Self::may_hold) of each key.
    pub(crate) fn may_hold_batch<K: Copy + Into<KeyHash>>(&self, keys: &[K], maybe_seen: &mut [bool]) {
        assert_eq!(keys.len(), maybe_seen.len(), "one answer for each key");
        for (keys, maybe_seen) in keys.chunks(BATCH_KEYS).zip(maybe_seen.chunks_mut(BATCH_KEYS)) {
            self.prefetch(keys, ASKED_PROBES);
            for (&key, maybe_seen) in keys.iter().zip(maybe_seen) {
                *maybe_seen = self.may_hold(key.into());
            }
        }
    }

    /// The fraction of bits set, from all pages or from a sample of them spread evenly.
    pub(crate) fn fill(&self) -> f64 {
        let step = self.pages.len().div_ceil(SAMPLE_PAGES_MAX).max(1);
        let (mut bits_set, mut bits) = (0_u64, 0_u64);
        for page in self.pages.iter().step_by(step) {
            let in_page: u32 = page.iter().map(|word| word.load().count_ones()).sum();
            bits_set += u64::from(in_page);
            bits += PAGE_BITS;
        }
        #[expect(clippy::cast_precision_loss, reason = "at most 2^27 bits are counted")]
        let fill = bits_set as f64 / bits.max(1) as f64;
        fill
    }

    #[inline]
    fn prefetch<K: Copy + Into<KeyHash>>(&self, keys: &[K], probes: usize) {
        for &key in keys {
            for (word, _) in self.bits(key.into()).take(probes) {
                prefetch(word);
            }
        }
    }

    /// The bits of a key, all in one page: the word of each and its place there.
    #[inline]
    fn bits(&self, key: KeyHash) -> impl Iterator<Item = (&'a W, u64)> + use<'a, W> {
        let page = key.page(self.pages.len() as u64, self.seeds);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::indexing_slicing,
            reason = "`page` scales to below the length, and there is a page"
        )]
        let page = &self.pages[page as usize];
        key.positions(self.seeds).take(self.probes).map(move |position| {
            #[expect(clippy::indexing_slicing, reason = "modulo the length")]
            let word = &page[usize::from(position / 64) % PAGE_WORDS];
            // Bit 0 is the lowest of the first byte, on every machine.
            (word, (1_u64 << (position % 64)).to_le())
        })
    }
}

impl Bitmap<'_, AtomicU64> {
    /// Sets all bits of the key; gives whether all were set before.
    ///
    /// A bit that is set already is not written, so that its cache line stays shared and its page clean.
    #[inline]
    pub(crate) fn check_and_set(&self, key: KeyHash) -> bool {
        let mut maybe_seen = true;
        for (word, mask) in self.bits(key) {
            if Word::load(word) & mask == 0 {
                word.fetch_or(mask, Ordering::Relaxed);
                maybe_seen = false;
            }
        }
        maybe_seen
    }

    /// [`check_and_set`](Self::check_and_set) of each key in order; gives how many were new.
    pub(crate) fn check_and_set_batch<K: Copy + Into<KeyHash>>(
        &self,
        keys: &[K],
        maybe_seen: &mut [bool],
    ) -> u64 {
        assert_eq!(keys.len(), maybe_seen.len(), "one answer for each key");
        let mut new = 0;
        for (keys, maybe_seen) in keys.chunks(BATCH_KEYS).zip(maybe_seen.chunks_mut(BATCH_KEYS)) {
            self.prefetch(keys, self.probes);
            for (&key, maybe_seen) in keys.iter().zip(maybe_seen) {
                *maybe_seen = self.check_and_set(key.into());
                new += u64::from(!*maybe_seen);
            }
        }
        new
    }
}
