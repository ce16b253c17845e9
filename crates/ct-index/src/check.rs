//! Proving a folder whole: every file that the manifest names, every checksum, order and count.

use std::path::Path;

use tamis_durable::frames::{DamageKind, FrameReader};

use crate::coding::Reader;
use crate::commit::CommitHead;
use crate::manifest::{Holds, Manifest, NAMES};
use crate::memtable::Run;
use crate::recover::{WAL_FORMAT, wal_numbers, wal_path};
use crate::segment::check::Tally;
use crate::segment::{BlockCache, Segment};
use crate::{Error, Result, dictionary, segment};

/// What a check found.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// Files looked at.
    pub files: u64,
    /// Bytes of those files.
    pub bytes: u64,
    /// Name rows in segments and write-ahead log.
    pub rows: u64,
    /// Certificate records in segments and write-ahead log.
    pub records: u64,
    /// Everything that is not as it was written, with file and offset.
    pub faults: Vec<Error>,
    /// What is no fault but worth telling, such as the torn tail that a crash leaves.
    pub notes: Vec<String>,
}

/// Attempts to check a folder while its owner replaces files.
const ATTEMPTS: u32 = 10;

/// Checks the folder of an index. `progress` is told each file before it is read and its size.
pub fn check(dir: &Path, mut progress: impl FnMut(&Path, u64)) -> Result<CheckReport> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let generation = Manifest::read(dir)?.0.map(|manifest| manifest.generation);
        let report = check_once(dir, &mut progress);
        let whole = report.as_ref().is_ok_and(|report| report.faults.is_empty());
        // Files that went meanwhile are no faults when a newer manifest says what took their place.
        let now = Manifest::read(dir)?.0.map(|manifest| manifest.generation);
        if whole || now == generation || attempt == ATTEMPTS {
            return report;
        }
    }
}

fn check_once(dir: &Path, mut progress: impl FnMut(&Path, u64)) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let (manifest, faults) = Manifest::read(dir)?;
    report.faults.extend(faults);
    let manifest = manifest.ok_or_else(|| Error::NoIndex { path: dir.to_owned() })?;
    for name in NAMES {
        note_file(&dir.join(name), &mut report, &mut progress);
    }
    if manifest.issuers > 0 {
        note_file(&dictionary::path(dir), &mut report, &mut progress);
        dictionary::read(dir, manifest.issuers_bytes, manifest.issuers, &mut report.faults)?;
    }
    // No cache: each block is read once.
    let cache = BlockCache::new(1 << 20);
    let (mut led, mut expected) = <([Tally; 3], [Tally; 3])>::default();
    for entry in &manifest.segments {
        let path = entry.path(dir);
        note_file(&path, &mut report, &mut progress);
        match Segment::open_entry(dir, entry, &cache) {
            Ok(mut opened) => {
                let at_opening = std::mem::take(&mut opened.faults);
                let found = segment::check::check(&opened, manifest.issuers);
                add(&mut led, found.led);
                add(&mut expected, found.expected);
                let rows = if entry.holds == Holds::Lookups {
                    found.entries()
                } else {
                    found.rows
                };
                if at_opening.is_empty()
                    && found.faults.is_empty()
                    && (rows, found.records) != (entry.rows, entry.records)
                {
                    report.faults.push(Error::corrupt(
                        &path,
                        0,
                        "rows or records differ from what the manifest says",
                    ));
                }
                report.rows += found.rows;
                report.records += found.records;
                let unseen = found.faults.into_iter().filter(|fault| {
                    !at_opening
                        .iter()
                        .any(|known| known.to_string() == fault.to_string())
                });
                report.faults.extend(unseen.collect::<Vec<_>>());
                report.faults.extend(at_opening);
            }
            Err(error) => report.faults.push(error),
        }
    }
    if report.faults.is_empty() && led != expected {
        let reason = "the look-ups do not lead to the records that there are";
        report.faults.push(Error::corrupt(dir, 0, reason));
    }
    let wals = wal_numbers(dir)?;
    if manifest.generation > 1 && !wals.contains(&manifest.first_wal) {
        report.faults.push(missing_wal(dir, manifest.first_wal));
    }
    for number in wals {
        if number >= manifest.first_wal {
            let path = wal_path(dir, number);
            note_file(&path, &mut report, &mut progress);
            check_wal(&path, &mut report)?;
        }
    }
    Ok(report)
}

/// The log file that the manifest says comes next; a folder that was opened once always has it.
pub(crate) fn missing_wal(dir: &Path, number: u64) -> Error {
    let path = wal_path(dir, number);
    Error::corrupt(
        &path,
        0,
        "the file is missing; what was not yet in a segment is lost",
    )
}

fn add(sums: &mut [Tally; 3], others: [Tally; 3]) {
    for (sum, other) in sums.iter_mut().zip(others) {
        sum.add(other);
    }
}

fn note_file(path: &Path, report: &mut CheckReport, progress: &mut impl FnMut(&Path, u64)) {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    progress(path, bytes);
    report.files += 1;
    report.bytes += bytes;
}

fn check_wal(path: &Path, report: &mut CheckReport) -> Result<()> {
    let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
    let frames = match FrameReader::new(path, &bytes, WAL_FORMAT) {
        Ok(frames) => frames,
        Err(error) => {
            report.faults.push(error.into());
            return Ok(());
        }
    };
    for frame in frames {
        match frame {
            Ok(frame) => match check_commit(frame.payload) {
                Ok((rows, records)) => {
                    report.rows += rows;
                    report.records += records;
                }
                Err(malformed) => report
                    .faults
                    .push(Error::malformed(path, frame.offset)(malformed)),
            },
            Err(damage) if damage.kind == DamageKind::Torn => report.notes.push(format!(
                "{}: {} bytes from byte {} are a write that did not end; after a crash nothing acknowledged is in them, \
                 after anything else the file was cut",
                path.display(),
                damage.bytes,
                damage.offset
            )),
            Err(damage) => report.faults.push(damage.to_error(path).into()),
        }
    }
    Ok(())
}

fn check_commit(payload: &[u8]) -> crate::coding::Decoded<(u64, u64)> {
    let mut reader = Reader::new(payload);
    let head = CommitHead::read(&mut reader)?;
    let start = payload.len() - reader.remaining();
    let run = Run::build(payload.to_vec(), start, head.first_seq, |_| 0)?;
    if run.records() as u64 != head.records {
        return Err(crate::coding::Malformed(
            "a commit holds another number of records than it says",
        ));
    }
    Ok((run.rows() as u64, run.records() as u64))
}
