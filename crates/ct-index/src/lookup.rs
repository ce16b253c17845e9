//! Finding records by what they hold: a look-up gives seqs, the records tables give the records.
//!
//! # Invariants
//! A look-up is a hint: the record has the last word. Where damage keeps a look-up or an index from
//! answering, every record is looked at; "not found" is never said of what damage may hide.

use std::sync::Arc;

use crate::memtable::Run;
use crate::record::{CertRecord, Fingerprint};
use crate::segment::block::BlockKind;
use crate::segment::{Segment, ahead};
use crate::view::View;
use crate::{Error, Result};

/// Records found, and the damage that may hide more.
#[derive(Default)]
struct Found {
    records: Vec<CertRecord>,
    hidden: Option<Error>,
}

impl Found {
    /// Takes what one segment answers; where damage kept it from answering, looks at all its records.
    fn take(
        &mut self,
        segment: &Segment,
        answer: Result<Vec<CertRecord>>,
        wanted: &dyn Fn(&CertRecord) -> bool,
    ) -> Result<()> {
        match answer {
            Ok(records) => self.records.extend(records),
            Err(Error::Corrupt { .. }) => {
                let (records, fault) = segment.search_all(wanted)?;
                self.records.extend(records);
                self.hidden = self.hidden.take().or(fault);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The records, folded; damage where there are none.
    fn folded(self) -> Result<Vec<CertRecord>> {
        match self.hidden {
            Some(fault) if self.records.is_empty() => Err(fault),
            _ => Ok(fold(self.records)),
        }
    }
}

/// Unites records of one issuance from all sources.
pub(crate) fn fold(mut records: Vec<CertRecord>) -> Vec<CertRecord> {
    // Whole ones first: a slim copy may belong to any record of its issuance that was folded away.
    records.sort_by_key(|record| (record.slim, record.seq));
    let mut folded: Vec<(CertRecord, Vec<u64>)> = Vec::new();
    for record in records {
        let first = record.copy_of.unwrap_or(record.seq);
        let known = folded.iter_mut().find(|(known, seqs)| {
            known.issuance == record.issuance && (known.same_issuance(&record) || seqs.contains(&first))
        });
        match known {
            Some((known, seqs)) => {
                seqs.extend([record.seq, first]);
                known.fold(record);
            }
            None => folded.push((record.clone(), vec![record.seq, first])),
        }
    }
    folded.into_iter().map(|(record, _)| record).collect()
}

impl View {
    fn runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.memtables.iter().flat_map(|memtable| &memtable.runs)
    }

    /// Records of segments that a look-up leads to and `wanted` accepts.
    fn led_to(&self, kind: BlockKind, hash: u64, wanted: &dyn Fn(&CertRecord) -> bool) -> Result<Found> {
        let mut seqs = Vec::new();
        let leading = self.segments.iter();
        let leading: Vec<&Arc<Segment>> = leading.filter(|segment| segment.may_lead(kind, hash)).collect();
        ahead::look_ups(&leading, kind, hash);
        for segment in leading {
            match segment.look_up(kind, hash) {
                Ok(found) => seqs.extend(found),
                Err(Error::Corrupt { .. }) => return self.searched(wanted),
                Err(error) => return Err(error),
            }
        }
        self.fetched(seqs, wanted)
    }

    /// Every record of the segments that `wanted` accepts.
    fn searched(&self, wanted: &dyn Fn(&CertRecord) -> bool) -> Result<Found> {
        let mut found = Found::default();
        for segment in self.segments.iter() {
            let (records, fault) = segment.search_all(wanted)?;
            found.records.extend(records);
            found.hidden = found.hidden.or(fault);
        }
        Ok(found)
    }

    /// The records with these seqs that `wanted` accepts.
    fn fetched(&self, mut seqs: Vec<u64>, wanted: &dyn Fn(&CertRecord) -> bool) -> Result<Found> {
        seqs.sort_unstable();
        seqs.dedup();
        let mut found = Found::default();
        for seq in seqs {
            for segment in self.segments.iter().filter(|segment| segment.may_hold_seq(seq)) {
                let record = segment.of_seq(seq);
                let answer =
                    record.map(|record| record.into_iter().filter(|record| wanted(record)).collect());
                found.take(segment, answer, wanted)?;
            }
        }
        Ok(found)
    }

    /// What the segments hold of an issuance with this serial number.
    pub(crate) fn stored(&self, issuance: u64, serial: &[u8]) -> Result<Option<CertRecord>> {
        let wanted = |record: &CertRecord| record.issuance == issuance;
        let found = self.led_to(BlockKind::Issuances, issuance, &wanted)?;
        // Damage costs at most a duplicate, never a record.
        Ok(fold(found.records)
            .into_iter()
            .find(|record| !record.slim && record.serial == serial))
    }

    /// What the segments hold of an issuance, not folded, and damage that may hide more.
    pub(crate) fn stored_parts(&self, issuance: u64) -> Result<(Vec<CertRecord>, Option<Error>)> {
        let wanted = |record: &CertRecord| record.issuance == issuance;
        let found = self.led_to(BlockKind::Issuances, issuance, &wanted)?;
        Ok((found.records, found.hidden))
    }

    /// Records of one issuance; more than one only if hashes collide.
    pub(crate) fn of_issuance(&self, issuance: u64) -> Result<Vec<CertRecord>> {
        let wanted = |record: &CertRecord| record.issuance == issuance;
        let mut found = self.led_to(BlockKind::Issuances, issuance, &wanted)?;
        for run in self.runs() {
            found.records.extend(run.of_issuance(issuance));
        }
        found.folded()
    }

    /// Records with this SHA-256 fingerprint.
    pub(crate) fn of_sha256(&self, sha256: &[u8; 32]) -> Result<Vec<CertRecord>> {
        let hash = crate::segment::hashes::hash_of_sha256(sha256);
        let same = |print: &Fingerprint| print.sha256 == *sha256;
        let wanted = |record: &CertRecord| record.fingerprints.iter().any(same);
        let mut found = self.led_to(BlockKind::Fingerprints, hash, &wanted)?;
        for run in self.runs() {
            let held = run.find(|wire, _| wire.fingerprints().any(|print| same(&print)));
            found.records.extend(held);
        }
        self.whole(found.folded()?)
    }

    /// Records with this serial number.
    pub(crate) fn of_serial(&self, serial: &[u8]) -> Result<Vec<CertRecord>> {
        let hash = xxhash_rust::xxh3::xxh3_64(serial);
        let wanted = |record: &CertRecord| !record.slim && record.serial == serial;
        let mut found = self.led_to(BlockKind::Serials, hash, &wanted)?;
        for run in self.runs() {
            found.records.extend(run.find(|wire, _| wire.serial == serial));
        }
        self.whole(found.folded()?)
    }

    /// The record that was discovered as number `seq`.
    pub(crate) fn of_seq(&self, seq: u64) -> Result<Vec<CertRecord>> {
        let mut found = self.fetched(vec![seq], &|record| record.seq == seq)?;
        for run in self.runs() {
            found.records.extend(run.find(|_, known| known == seq));
        }
        self.whole(found.folded()?)
    }

    /// Records at one position of a log.
    pub(crate) fn of_position(&self, log: u16, index: u64) -> Result<Vec<CertRecord>> {
        let here = |position: &crate::record::Position| position.log == log && position.index == index;
        let wanted = |record: &CertRecord| record.positions.iter().any(here);
        let mut found = Found::default();
        for segment in self.segments.iter() {
            found.take(segment, segment.of_position(log, index), &wanted)?;
        }
        for run in self.runs() {
            let held = run.find(|wire, _| wire.positions().any(|position| here(&position)));
            found.records.extend(held);
        }
        self.whole(found.folded()?)
    }

    /// Completes records found by one of their parts: the rest of an issuance may lie elsewhere.
    fn whole(&self, found: Vec<CertRecord>) -> Result<Vec<CertRecord>> {
        let mut whole: Vec<CertRecord> = Vec::new();
        for part in found {
            let same = self
                .of_issuance(part.issuance)?
                .into_iter()
                .find(|record| record.same_issuance(&part));
            let record = same.unwrap_or(part);
            if !whole.iter().any(|known| known.same_issuance(&record)) {
                whole.push(record);
            }
        }
        Ok(whole)
    }
}
