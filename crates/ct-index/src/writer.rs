//! The state behind the writer's lock: judging batches and logging what they bring.
//!
//! # Invariants
//! Everything here happens in the order of the write-ahead log. After an error in [`Writer::log`] the
//! writer must not be used again: records were judged that the log does not hold.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use tamis_durable::frames::FrameWriter;

use crate::batch::Batch;
use crate::coding::{Malformed, Reader};
use crate::commit::CommitHead;
use crate::flush::FlushJob;
use crate::index::Outcome;
use crate::known::{ApartLogs, KnownIssuances, Novelty, Verdict};
use crate::memtable::{Memtable, Place, Run, RunBuilder};
use crate::record::{CertificateKind, WireRecord, put_copy, put_whole_copy};
use crate::recover::{WAL_FORMAT, wal_path};
use crate::totals::Totals;
use crate::view::View;
use crate::windows::{Hint, Windows};
use crate::{Error, Result};

/// What the one writer of a folder holds.
pub(crate) struct Writer {
    pub(crate) wal: FrameWriter,
    pub(crate) known: KnownIssuances,
    /// Spares looking up what no segment can hold.
    pub(crate) windows: Arc<Windows>,
    pub(crate) issuer_numbers: HashMap<Box<str>, u32>,
    pub(crate) active: Memtable,
    /// Logged but not yet synced, with what it adds.
    pub(crate) pending: Vec<(Run, CommitHead)>,
    pub(crate) oldest_pending: Option<Instant>,
    pub(crate) next_seq: u64,
    pub(crate) jobs: Option<SyncSender<FlushJob>>,
}

impl Writer {
    /// Starts a log file, and the memtable that goes with it, behind what `view` holds.
    pub(crate) fn start(
        dir: &Path,
        number: u64,
        known: KnownIssuances,
        windows: Arc<Windows>,
        jobs: SyncSender<FlushJob>,
        view: &mut View,
    ) -> Result<Self> {
        let active = Memtable {
            wal: number,
            ..Memtable::default()
        };
        view.memtables.push(Arc::new(active.clone()));
        let issuers = view.issuers.iter().zip(0..);
        Ok(Self {
            wal: FrameWriter::create(&wal_path(dir, number), WAL_FORMAT, number)?,
            known,
            windows,
            issuer_numbers: issuers
                .map(|(issuer, number)| (Box::from(issuer.as_ref()), number))
                .collect(),
            active,
            pending: Vec::new(),
            oldest_pending: None,
            next_seq: view.next_seq,
            jobs: Some(jobs),
        })
    }

    /// Judges the records of a batch and logs what they bring as one frame.
    pub(crate) fn log(&mut self, batch: &Batch, view: &View) -> Result<Outcome> {
        let mut head = CommitHead {
            first_seq: self.next_seq,
            covers: batch.covers.clone(),
            progress: batch.progress.clone(),
            ..CommitHead::default()
        };
        self.map_issuers(batch, &mut head)?;
        let mut frame = Frame {
            bytes: Vec::with_capacity(batch.bytes.len()),
            run: RunBuilder::default(),
        };
        let mut outcome = Outcome::default();
        let mut wires = Vec::with_capacity(batch.ends.len());
        let mut start = 0;
        for &end in &batch.ends {
            let bytes = batch.bytes.get(start..end as usize).unwrap_or(&[]);
            start = end as usize;
            let wire = WireRecord::read_unchecked(&mut Reader::new(bytes)).map_err(undecodable)?;
            wires.push((wire, bytes));
        }
        let hints = self.hints(&wires, view);
        let apart = ApartLogs::of(&view.logs);
        for ((wire, bytes), hint) in wires.into_iter().zip(hints) {
            let seq = head.first_seq + head.records;
            let issuer = head
                .issuers
                .get(wire.issuer as usize)
                .copied()
                .unwrap_or(u32::MAX);
            let look_up = || match hint {
                Hint::New => Ok(None),
                Hint::Maybe => view.stored(wire.issuance, wire.serial),
            };
            let verdict = self.known.judge(&wire, seq, &apart, look_up)?;
            count_apart(&mut head.totals, &verdict);
            match verdict {
                Verdict::New | Verdict::NewApart => {
                    frame.whole(&wire, bytes, seq, issuer);
                    head.records += 1;
                    outcome.new += 1;
                    outcome.rows += wire.names_count as u64;
                    count_new(&mut head.totals, &wire);
                }
                Verdict::Copy(_, novelty) if novelty.is_nothing() => outcome.duplicates += 1,
                Verdict::Copy(of, novelty) => {
                    if novelty.is_whole() {
                        // Rows carry the earliest date: they are written again and fold.
                        frame.whole_copy(&wire, bytes, of, seq, issuer);
                    } else {
                        frame.slim_copy(&wire, of, &novelty, seq, issuer)?;
                    }
                    head.records += 1;
                    outcome.copies += 1;
                    for print in novelty.fingerprints(&wire) {
                        head.totals.certificates += 1;
                        let is_precertificate = print.kind == CertificateKind::Precertificate;
                        head.totals.precertificates += u64::from(is_precertificate);
                    }
                    head.totals.positions += novelty.positions(&wire).count() as u64;
                    head.totals.name_rows += u64::from(novelty.names);
                    outcome.rows += u64::from(novelty.names);
                }
            }
        }
        self.log_frame(head, frame)?;
        Ok(outcome)
    }

    /// What the filters say of each record that is not remembered. They are asked for all at once, and only
    /// where asking the segments would cost more.
    fn hints(&self, wires: &[(WireRecord<'_>, &[u8])], view: &View) -> Vec<Hint> {
        let mut hints = vec![Hint::Maybe; wires.len()];
        if view.is_quickly_asked() {
            return hints;
        }
        let unknown = wires
            .iter()
            .enumerate()
            .filter(|(_, (wire, _))| !self.known.holds(wire));
        let (places, questions): (Vec<usize>, Vec<_>) = unknown
            .map(|(place, (wire, _))| (place, (wire.issuance, wire.not_after)))
            .unzip();
        for (place, hint) in places.into_iter().zip(self.windows.may_know_batch(&questions)) {
            if let Some(slot) = hints.get_mut(place) {
                *slot = hint;
            }
        }
        hints
    }

    fn log_frame(&mut self, head: CommitHead, frame: Frame) -> Result<()> {
        if head.records == 0
            && head.new_issuers.is_empty()
            && head.totals.apart_joined == 0
            && !head.advances()
        {
            return Ok(());
        }
        let Frame { mut bytes, run } = frame;
        let mut encoded = Vec::with_capacity(256);
        head.encode_into(&mut encoded);
        self.wal.append_parts(&[&encoded, &bytes])?;
        if bytes.len() < bytes.capacity() / 2 {
            // The memtable keeps these bytes: mostly copies take little room.
            bytes.shrink_to_fit();
        }
        self.next_seq += head.records;
        self.pending.push((run.finish(bytes), head));
        self.oldest_pending.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Numbers the issuers of a batch; new ones travel in the frame.
    fn map_issuers(&mut self, batch: &Batch, head: &mut CommitHead) -> Result<()> {
        head.first_issuer = self.issuer_numbers.len() as u32;
        for issuer in &batch.issuers {
            let number = match self.issuer_numbers.get(issuer) {
                Some(&number) => number,
                None => {
                    let number = self.issuer_numbers.len() as u32;
                    if number >= crate::dictionary::ISSUERS_MAX {
                        let limit = u64::from(crate::dictionary::ISSUERS_MAX);
                        return Err(Error::TooLarge {
                            what: "issuers",
                            found: limit + 1,
                            limit,
                        });
                    }
                    head.new_issuers.push(issuer.clone());
                    self.issuer_numbers.insert(issuer.clone(), number);
                    number
                }
            };
            head.issuers.push(number);
        }
        Ok(())
    }
}

/// What a batch brings, as it is logged, and the run over it.
struct Frame {
    bytes: Vec<u8>,
    run: RunBuilder,
}

impl Frame {
    fn whole(&mut self, wire: &WireRecord<'_>, bytes: &[u8], seq: u64, issuer: u32) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.run.add(wire, bytes, Place { at, inserted: 0 }, seq, issuer);
    }

    fn whole_copy(&mut self, wire: &WireRecord<'_>, bytes: &[u8], of: u64, seq: u64, issuer: u32) {
        let at = self.bytes.len();
        put_whole_copy(&mut self.bytes, bytes, of);
        let inserted = self.bytes.len() - at - bytes.len();
        let mut copy = *wire;
        copy.copy_of = Some(of);
        self.run.add(&copy, bytes, Place { at, inserted }, seq, issuer);
    }

    fn slim_copy(
        &mut self,
        wire: &WireRecord<'_>,
        of: u64,
        novelty: &Novelty,
        seq: u64,
        issuer: u32,
    ) -> Result<()> {
        let at = self.bytes.len();
        put_copy(&mut self.bytes, wire, of, novelty);
        let bytes = self.bytes.get(at..).unwrap_or(&[]);
        let slim = WireRecord::read_unchecked(&mut Reader::new(bytes)).map_err(undecodable)?;
        self.run.add(&slim, bytes, Place { at, inserted: 0 }, seq, issuer);
        Ok(())
    }
}

/// A batch that this process encoded does not decode: a bug, never the input's fault.
fn undecodable(malformed: Malformed) -> Error {
    Error::Bug(format!("a batch does not decode: {}", malformed.0))
}

/// Counts who is known from logs counted apart alone, and who no longer is.
fn count_apart(totals: &mut Totals, verdict: &Verdict) {
    totals.apart_seen += u64::from(*verdict == Verdict::NewApart);
    let joined = matches!(verdict, Verdict::Copy(_, novelty) if novelty.joined);
    totals.apart_joined += u64::from(joined);
}

fn count_new(totals: &mut Totals, wire: &WireRecord<'_>) {
    totals.issuances += 1;
    totals.certificates += wire.fingerprints().count() as u64;
    totals.positions += wire.positions().count() as u64;
    totals.name_rows += wire.names_count as u64;
    totals.count_deviations(wire.deviations);
    let kinds = wire.fingerprints().map(|print| print.kind);
    totals.precertificates += kinds
        .filter(|kind| *kind == CertificateKind::Precertificate)
        .count() as u64;
}
