//! Opening a folder: manifest, segments, then everything the write-ahead log still holds.
//!
//! # Invariants
//! Nothing here writes: a second process can load the same folder while its owner goes on. The owner
//! cleans up afterwards, from what [`Loaded`] tells.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tamis_durable::frames::{DamageKind, FrameReader};
use tamis_durable::sealed;

use crate::coding::{Malformed, Reader};
use crate::commit::{self, CommitHead};
use crate::known::{ApartLogs, KnownIssuances};
use crate::manifest::Manifest;
use crate::memtable::{Memtable, Run};
use crate::record::WireRecord;
use crate::segment::{BlockCache, Segment};
use crate::view::View;
use crate::{Error, Result};

pub(crate) const WAL_FORMAT: sealed::Format = sealed::Format {
    magic: commit::MAGIC,
    version: commit::VERSION,
};

/// Folder of the write-ahead log.
pub(crate) fn wal_dir(dir: &Path) -> PathBuf {
    dir.join("wal")
}

/// Path of one write-ahead log file.
pub(crate) fn wal_path(dir: &Path, number: u64) -> PathBuf {
    wal_dir(dir).join(format!("{number:08}.wal"))
}

/// A write-ahead log file that was replayed.
#[derive(Debug)]
pub(crate) struct ReplayedWal {
    pub(crate) number: u64,
    /// Bytes up to the end of the last whole frame.
    pub(crate) append_offset: u64,
    /// A frame in the middle is damaged: the file is kept aside once its rest is in a segment.
    pub(crate) damaged: bool,
}

/// A folder as it was found.
pub(crate) struct Loaded {
    pub(crate) manifest: Manifest,
    pub(crate) view: View,
    pub(crate) wals: Vec<ReplayedWal>,
    pub(crate) known: KnownIssuances,
}

/// Loads a folder. `None` when it holds no index.
pub(crate) fn load(dir: &Path, cache: &Arc<BlockCache>) -> Result<Option<Loaded>> {
    let (manifest, mut faults) = Manifest::read(dir)?;
    let Some(manifest) = manifest else { return Ok(None) };
    let told = faults.len();
    let issuers = crate::dictionary::read(dir, manifest.issuers_bytes, manifest.issuers, &mut faults)?;
    let mut segments = Vec::with_capacity(manifest.segments.len());
    // A search by issuer misses the rows of a lost one.
    let mut rows_lost = faults.len() > told;
    for entry in &manifest.segments {
        match Segment::open_entry(dir, entry, cache) {
            Ok(mut segment) => {
                faults.append(&mut segment.faults);
                rows_lost |= segment.salvaged;
                segments.push(Arc::new(segment));
            }
            Err(error @ Error::Durable(tamis_durable::Error::FutureVersion { .. })) => return Err(error),
            // A reader that raced with the owner tries again; the owner goes on without the segment.
            Err(error) => {
                rows_lost = true;
                faults.push(error);
            }
        }
    }
    let view = View {
        rows_lost,
        dir: dir.to_owned(),
        segments: Arc::new(segments),
        issuers: Arc::new(issuers),
        logs: Arc::new(manifest.logs.clone()),
        totals: manifest.totals.clone(),
        next_seq: manifest.next_seq,
        ..View::default()
    };
    let mut loaded = Loaded {
        manifest,
        view,
        wals: Vec::new(),
        known: KnownIssuances::default(),
    };
    let numbers = wal_numbers(dir)?;
    let first = loaded.manifest.first_wal;
    // The owner makes the file right after the first manifest of a new folder, then publishes again.
    if loaded.manifest.generation > 1 && !numbers.contains(&first) {
        loaded.view.rows_lost = true;
        faults.push(crate::check::missing_wal(dir, first));
    }
    for number in numbers {
        if number >= loaded.manifest.first_wal {
            loaded.replay(number, &mut faults)?;
        }
    }
    loaded.view.rows_lost |= loaded.wals.iter().any(|wal| wal.damaged);
    loaded.view.faults = Arc::new(faults.into_iter().map(Arc::new).collect());
    Ok(Some(loaded))
}

/// Numbers of all write-ahead log files, sorted.
pub(crate) fn wal_numbers(dir: &Path) -> Result<Vec<u64>> {
    let dir = wal_dir(dir);
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("list", &dir)(error)),
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry.map_err(Error::io("list", &dir))?.file_name();
        let stem = name.to_str().and_then(|name| name.strip_suffix(".wal"));
        numbers.extend(stem.and_then(|stem| stem.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

impl Loaded {
    /// Replays one file into a memtable of its own.
    fn replay(&mut self, number: u64, faults: &mut Vec<Error>) -> Result<()> {
        let path = wal_path(&self.view.dir, number);
        let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
        self.known.rotate(number, self.manifest.first_wal);
        let mut memtable = Memtable {
            wal: number,
            ..Memtable::default()
        };
        let mut wal = ReplayedWal {
            number,
            append_offset: 0,
            damaged: false,
        };
        match FrameReader::new(&path, &bytes, WAL_FORMAT) {
            Ok(mut frames) => {
                for frame in frames.by_ref() {
                    match frame {
                        Ok(frame) => {
                            if let Err(error) = self.replay_frame(frame.payload, &mut memtable)? {
                                wal.damaged = true;
                                faults.push(Error::malformed(&path, frame.offset)(error));
                            }
                        }
                        Err(damage) if damage.kind == DamageKind::Torn => {
                            let (offset, bytes) = (damage.offset, damage.bytes);
                            tracing::warn!(file = %path.display(), offset, bytes, "torn tail of the write-ahead log ignored");
                        }
                        Err(damage) => {
                            wal.damaged = true;
                            faults.push(damage.to_error(&path).into());
                        }
                    }
                }
                wal.append_offset = frames.append_offset();
            }
            // A file cut off inside its header was never written to.
            Err(_) if bytes.len() < tamis_durable::frames::HEADER_BYTES as usize => {
                tracing::warn!(file = %path.display(), "write-ahead log file without a header ignored");
            }
            Err(error @ tamis_durable::Error::FutureVersion { .. }) => return Err(error.into()),
            Err(error) => {
                wal.damaged = true;
                faults.push(error.into());
            }
        }
        self.view.memtables.push(Arc::new(memtable));
        self.wals.push(wal);
        Ok(())
    }

    /// Replays one commit; the inner error is damage to this frame alone.
    fn replay_frame(
        &mut self,
        payload: &[u8],
        memtable: &mut Memtable,
    ) -> Result<std::result::Result<(), Malformed>> {
        let mut reader = Reader::new(payload);
        let head = match CommitHead::read(&mut reader) {
            Ok(head) => head,
            Err(malformed) => return Ok(Err(malformed)),
        };
        let start = payload.len() - reader.remaining();
        let issuer_of = |number: u64| head.issuers.get(number as usize).copied().unwrap_or(u32::MAX);
        let run = match Run::build(payload.to_vec(), start, head.first_seq, issuer_of) {
            Ok(run) => run,
            Err(malformed) => return Ok(Err(malformed)),
        };
        self.grow_issuers(&head);
        let mut seq = head.first_seq;
        let apart = ApartLogs::of(&self.view.logs);
        while !reader.is_empty() {
            if let Ok(wire) = WireRecord::read(&mut reader) {
                let view = &self.view;
                self.known
                    .replay(&wire, seq, &apart, || view.stored(wire.issuance, wire.serial))?;
            }
            seq = seq.saturating_add(1);
        }
        self.view.next_seq = self
            .view
            .next_seq
            .max(head.first_seq.saturating_add(head.records));
        self.view.totals.add(&head.totals);
        head.advance(&mut self.view.logs);
        memtable.push(run);
        Ok(Ok(()))
    }

    fn grow_issuers(&mut self, head: &CommitHead) {
        if head.new_issuers.is_empty() {
            return;
        }
        let issuers = Arc::make_mut(&mut self.view.issuers);
        for (number, issuer) in (head.first_issuer as usize..).zip(&head.new_issuers) {
            while issuers.len() <= number.min(crate::dictionary::ISSUERS_MAX as usize) {
                issuers.push("(issuer is lost)".into());
            }
            if let Some(slot) = issuers.get_mut(number) {
                *slot = Arc::from(issuer.as_ref());
            }
        }
    }
}
