//! The first merge: flushes are taken apart into names, records and look-ups, and copies are folded
//! into the records that they are copies of.
//!
//! # Invariants
//! Records come in order of `seq`, and a copy after its original, so that one pass folds: the copies
//! are gathered before. What is folded is no longer there under its own `seq`; the look-ups are made
//! anew from the folded records.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Outputs, lookups, names};
use crate::Result;
use crate::manifest::{HashPart, Holds, KeyPart};
use crate::record::CertRecord;
use crate::segment::Segment;
use crate::segment::hashes::Entries;

/// Merges flushes, given by age.
pub(super) fn merge(inputs: &[Arc<Segment>], outputs: &mut Outputs<'_>) -> Result<()> {
    names::write(inputs, KeyPart::default(), outputs)?;
    let mut found = Entries::default();
    write_records(inputs, outputs, &mut found)?;
    found.sort();
    let count = found.0.iter().map(|entries| entries.len() as u64).sum();
    let sorted = found.0.map(|entries| entries.into_iter().map(Ok));
    lookups::write(sorted, HashPart::default(), count, outputs)
}

fn write_records(inputs: &[Arc<Segment>], outputs: &mut Outputs<'_>, found: &mut Entries) -> Result<()> {
    let mut copies = copies_of(inputs)?.into_iter().peekable();
    let mut folded: HashSet<u64> = HashSet::new();
    let mut open = outputs.open(Holds::Records, KeyPart::default(), HashPart::default())?;
    for input in inputs {
        let mut number = 0;
        while let Some(block) = input.records_block(number)? {
            for mut record in block.records {
                if record.copy_of.is_some() && folded.remove(&record.seq) {
                    continue;
                }
                let seq = record.seq;
                // Those whose original is not here stay as they are.
                while copies.next_if(|copy| copy.copy_of < Some(seq)).is_some() {}
                while let Some(copy) = copies.next_if(|copy| copy.copy_of == Some(seq)) {
                    if record.copy_of.is_none() {
                        folded.insert(copy.seq);
                        record.fold(copy);
                    }
                }
                let serial = (!record.slim).then_some(record.serial.as_slice());
                found.note(record.seq, record.issuance, serial, &record.fingerprints);
                record.with_view(|view| open.writer.record_alone(view))?;
                open.entry.records += 1;
            }
            outputs.pace(&mut open)?;
            number += 1;
        }
    }
    outputs.close(open)
}

/// All copies among the records, by original and seq.
fn copies_of(inputs: &[Arc<Segment>]) -> Result<Vec<CertRecord>> {
    let mut copies = Vec::new();
    for input in inputs {
        let mut number = 0;
        while let Some(block) = input.records_block(number)? {
            copies.extend(
                block
                    .records
                    .into_iter()
                    .filter(|record| record.copy_of.is_some()),
            );
            number += 1;
        }
    }
    copies.sort_unstable_by_key(|copy| (copy.copy_of, copy.seq));
    Ok(copies)
}
