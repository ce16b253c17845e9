//! From a page as a log served it to a batch for the index and the hashes of its leaves.

use std::sync::{Mutex, PoisonError};

use tamis_ct_index::Batch;
use tamis_ct_index::batch::LogRange;
use tamis_ct_log::answers::Body;
use tamis_ct_log::certificate::ReadOptions;
use tamis_ct_log::input::{Chain, Kind, Scratch};
use tamis_ct_log::merkle::Hash;
use tamis_ct_log::{Input, Reading};

use super::source::{Page, SourceError};
use crate::Observer;

/// Entries of a page, decoded.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// Index of the first one.
    pub(crate) start: u64,
    /// Of each leaf, in order.
    pub(crate) hashes: Vec<Hash>,
    pub(crate) batch: Batch,
    /// Leaves that are hashed and are no entries, and why the first one is none.
    pub(crate) unreadable: u64,
    pub(crate) unreadable_why: Option<String>,
    /// Leaves that say that they belong elsewhere: the first one, and where it says it belongs.
    pub(crate) misplaced: Option<(u64, String)>,
    /// SHA-256 of issuers' certificates that the chains name.
    pub(crate) issuers: Vec<[u8; 32]>,
    /// The page broke off, so that it says nothing about how long pages are.
    pub(crate) is_cut: bool,
    /// Why the leaf behind these cannot be hashed, where the page holds more.
    pub(crate) blocked: Option<String>,
}

impl Decoded {
    /// Behind the last one.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.hashes.len() as u64
    }
}

/// Decodes pages on any thread, with buffers that are used again.
#[derive(Default)]
pub(crate) struct Decoder {
    options: ReadOptions,
    workers: Mutex<Vec<Worker>>,
}

#[derive(Default)]
struct Worker {
    scratch: Scratch,
    reading: Reading,
    observer: Observer,
}

impl Decoder {
    pub(crate) fn new(options: ReadOptions) -> Self {
        Self {
            options,
            workers: Mutex::default(),
        }
    }

    /// Decodes the entries [`start`, `end`) of a page of the log with this number; fewer where the page ends
    /// or breaks off earlier.
    pub(crate) fn decode(
        &self,
        page: &Page,
        log: u16,
        start: u64,
        end: u64,
        now: i64,
    ) -> Result<Decoded, SourceError> {
        let workers = || self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut worker = workers().pop().unwrap_or_default();
        let decoded = self.decode_with(&mut worker, page, log, start, end, now);
        workers().push(worker);
        decoded
    }

    fn decode_with(
        &self,
        worker: &mut Worker,
        page: &Page,
        log: u16,
        start: u64,
        end: u64,
        now: i64,
    ) -> Result<Decoded, SourceError> {
        let no_entries = || SourceError::NoEntries {
            body: Body::of(&page.body),
        };
        let expected = if page.is_tile {
            Kind::DataTile
        } else {
            Kind::Entries
        };
        let input = Input::open(&page.body).map_err(|_| no_entries())?;
        if input.kind() != expected || input.is_compressed() {
            return Err(no_entries());
        }
        let capacity = usize::try_from(end.saturating_sub(start)).unwrap_or(0).min(4_096);
        let mut decoded = Decoded {
            start,
            hashes: Vec::with_capacity(capacity),
            batch: Batch::with_capacity(capacity),
            unreadable: 0,
            unreadable_why: None,
            misplaced: None,
            issuers: Vec::new(),
            is_cut: page.is_cut,
            blocked: None,
        };
        for (raw, index) in input.entries().zip(page.first..end) {
            if index < start {
                continue;
            }
            let step = raw.map_err(|error| error.to_string());
            let hashed = step.and_then(|raw| {
                let hash = self.entry(worker, &raw, index, log, now, &mut decoded)?;
                // Elsewhere a chain holds whole certificates, which nobody needs here.
                if page.is_tile
                    && let Ok(Chain::Fingerprints(chain)) = raw.decode_chain(&mut worker.scratch)
                {
                    note_issuers(chain, &mut decoded.issuers);
                }
                Ok(hash)
            });
            match hashed {
                Ok(hash) => decoded.hashes.push(hash),
                Err(why) => {
                    decoded.blocked = (!page.is_cut).then_some(why);
                    break;
                }
            }
        }
        if decoded.hashes.is_empty() && decoded.blocked.is_none() {
            return Err(no_entries());
        }
        decoded.batch.cover(LogRange {
            log,
            start,
            end: decoded.end(),
        });
        Ok(decoded)
    }

    /// Decodes one entry; gives the hash of its leaf, or why there is none.
    fn entry(
        &self,
        worker: &mut Worker,
        raw: &tamis_ct_log::input::RawEntry<'_>,
        index: u64,
        log: u16,
        now: i64,
        decoded: &mut Decoded,
    ) -> Result<Hash, String> {
        let Worker {
            scratch,
            reading,
            observer,
        } = worker;
        let (hash, entry) = raw.decode_hashed(scratch);
        let read = entry.and_then(|entry| {
            if let Some(Err(error)) = entry.leaf.map(|leaf| leaf.check_index(index)) {
                decoded.misplaced.get_or_insert((index, error.to_string()));
            }
            entry.read(&self.options, reading)
        });
        match (hash, read) {
            (Some(hash), Ok(())) => {
                observer.push(reading, Some((log, index)), now, &mut decoded.batch);
                Ok(hash)
            }
            (Some(hash), Err(error)) => {
                decoded.unreadable += 1;
                decoded.unreadable_why.get_or_insert(error.to_string());
                Ok(hash)
            }
            (None, Err(error)) => Err(error.to_string()),
            (None, Ok(())) => Err("the entry has no leaf".to_owned()),
        }
    }
}

/// Notes the issuers of a chain once each; a page has a handful.
fn note_issuers(chain: &[u8], issuers: &mut Vec<[u8; 32]>) {
    for issuer in chain.as_chunks::<32>().0 {
        if !issuers.contains(issuer) {
            issuers.push(*issuer);
        }
    }
}
