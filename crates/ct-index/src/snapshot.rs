//! A consistent picture of the index for readers, in the owner's process or another one.

use std::path::Path;
use std::sync::Arc;

use crate::index::Options;
use crate::manifest::{LogEntry, Manifest};
use crate::record::{CertRecord, Issuance};
use crate::recover::Loaded;
use crate::segment::BlockCache;
use crate::stats::Stats;
use crate::view::View;
use crate::windows::{self, FilterFiles};
use crate::{Error, Result, recover};

/// Attempts to load a folder while its owner replaces files.
const LOAD_ATTEMPTS: u32 = 10;

/// Everything that was committed at one moment. Cheap to keep; never changes.
#[derive(Debug, Clone)]
pub struct Snapshot {
    view: Arc<View>,
}

impl Snapshot {
    pub(crate) fn of(view: Arc<View>) -> Self {
        Self { view }
    }

    /// Loads a folder without owning it: the last manifest and what the write-ahead log holds beyond it.
    pub fn open(dir: &Path, options: &Options) -> Result<Self> {
        let cache = BlockCache::of(options);
        for _ in 1..LOAD_ATTEMPTS {
            match recover::load(dir, &cache) {
                // Files that the owner removed meanwhile: its next manifest says what took their place.
                Ok(Some(loaded)) if Self::raced(dir, &loaded) => {}
                Err(error) if error.is_gone() => {}
                loaded => return Self::of_loaded(dir, loaded?),
            }
        }
        Self::of_loaded(dir, recover::load(dir, &cache)?)
    }

    /// True when the owner published while the folder was loaded: a log file that went between reading
    /// the manifest and listing the logs would be missed in silence.
    fn raced(dir: &Path, loaded: &Loaded) -> bool {
        let now = Manifest::read(dir).ok().and_then(|(manifest, _)| manifest);
        now.is_none_or(|now| now.generation != loaded.manifest.generation)
            || loaded.view.faults.iter().any(|fault| fault.is_gone())
    }

    fn of_loaded(dir: &Path, loaded: Option<Loaded>) -> Result<Self> {
        let loaded = loaded.ok_or_else(|| Error::NoIndex { path: dir.to_owned() })?;
        Ok(Self {
            view: Arc::new(loaded.view),
        })
    }

    pub(crate) fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// Records of an issuance, folded over all segments and memtables. Positions may come from several.
    pub fn by_issuance(&self, issuance: Issuance) -> Result<Vec<CertRecord>> {
        self.view.of_issuance(issuance.0)
    }

    /// Records with this SHA-256 fingerprint, of a precertificate or a final certificate.
    pub fn by_sha256(&self, sha256: &[u8; 32]) -> Result<Vec<CertRecord>> {
        self.view.of_sha256(sha256)
    }

    /// Records with this serial number (raw content bytes).
    pub fn by_serial(&self, serial: &[u8]) -> Result<Vec<CertRecord>> {
        self.view.of_serial(serial)
    }

    /// The record with this id: log number and index, or the order of discovery for log 0.
    pub fn by_id(&self, id: u64) -> Result<Vec<CertRecord>> {
        let (log, index) = ((id >> 48) as u16, id & 0xffff_ffff_ffff);
        if log == 0 {
            self.view.of_seq(index)
        } else {
            self.view.of_position(log, index)
        }
    }

    /// The text of an issuer number.
    pub fn issuer(&self, number: u32) -> Arc<str> {
        self.view.issuer(number)
    }

    /// Issuances known from logs counted apart alone ([`LogEntry::apart`]). One that had four positions in
    /// such logs and was forgotten in between may be counted as seen elsewhere more than once.
    pub fn known_apart(&self) -> u64 {
        let totals = &self.view.totals;
        totals.apart_seen.saturating_sub(totals.apart_joined)
    }

    /// Logs that entries came from.
    pub fn logs(&self) -> &[LogEntry] {
        &self.view.logs
    }

    /// Damage known since the folder was opened.
    pub fn faults(&self) -> impl Iterator<Item = &Error> {
        self.view.faults.iter().map(AsRef::as_ref)
    }

    /// True when some of that damage may have taken rows and records: answers may lack them.
    pub fn rows_lost(&self) -> bool {
        self.view.rows_lost
    }

    /// What the filter files of the folder say now, about the segments of this picture; their owner goes on
    /// meanwhile. With `questions`, how often each window says "maybe" to so many random issuances.
    pub fn filter_files(&self, questions: u64) -> FilterFiles {
        windows::look(&self.view.dir, &self.view.marks(), questions)
    }

    /// Counts and sizes.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.view)
    }
}
