//! Counts that never move when the same certificates are imported again.

use serde::{Deserialize, Serialize};

use crate::coding::{Decoded, Reader, put_varint};

/// What an index holds, or what one commit added to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Distinct issuances.
    pub issuances: u64,
    /// Distinct certificates and precertificates (by SHA-256).
    pub certificates: u64,
    /// Precertificates among them.
    pub precertificates: u64,
    /// Distinct log positions kept.
    pub positions: u64,
    /// Name rows: pairs of identifier and issuance.
    pub name_rows: u64,
    /// Issuances that were seen first in logs counted apart ([`crate::LogEntry::apart`]), ever.
    pub apart_seen: u64,
    /// Those of them that were seen elsewhere since: the others are known from such logs alone.
    pub apart_joined: u64,
    /// Issuances that carry each deviation, by bit.
    pub deviations: Vec<u64>,
}

impl Totals {
    /// Adds what a commit brought.
    pub fn add(&mut self, delta: &Self) {
        self.issuances = self.issuances.saturating_add(delta.issuances);
        self.certificates = self.certificates.saturating_add(delta.certificates);
        self.precertificates = self.precertificates.saturating_add(delta.precertificates);
        self.positions = self.positions.saturating_add(delta.positions);
        self.name_rows = self.name_rows.saturating_add(delta.name_rows);
        self.apart_seen = self.apart_seen.saturating_add(delta.apart_seen);
        self.apart_joined = self.apart_joined.saturating_add(delta.apart_joined);
        if self.deviations.len() < delta.deviations.len() {
            self.deviations.resize(delta.deviations.len(), 0);
        }
        for (sum, add) in self.deviations.iter_mut().zip(&delta.deviations) {
            *sum = sum.saturating_add(*add);
        }
    }

    /// Takes off what no longer counts.
    pub(crate) fn subtract(&mut self, less: &Self) {
        for (count, less) in [
            (&mut self.issuances, less.issuances),
            (&mut self.certificates, less.certificates),
            (&mut self.precertificates, less.precertificates),
            (&mut self.positions, less.positions),
            (&mut self.name_rows, less.name_rows),
        ] {
            *count = count.saturating_sub(less);
        }
        for (count, less) in self.deviations.iter_mut().zip(&less.deviations) {
            *count = count.saturating_sub(*less);
        }
        // As if the last bits had never been seen.
        while self.deviations.last() == Some(&0) {
            self.deviations.pop();
        }
    }

    /// Counts the deviations of one issuance.
    pub(crate) fn count_deviations(&mut self, mut bits: u64) {
        while bits != 0 {
            let bit = bits.trailing_zeros() as usize;
            if self.deviations.len() <= bit {
                self.deviations.resize(bit + 1, 0);
            }
            if let Some(count) = self.deviations.get_mut(bit) {
                *count += 1;
            }
            bits &= bits - 1;
        }
    }

    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        for count in [
            self.issuances,
            self.certificates,
            self.precertificates,
            self.positions,
            self.name_rows,
            self.apart_seen,
            self.apart_joined,
        ] {
            put_varint(out, count);
        }
        put_varint(out, self.deviations.len() as u64);
        for &count in &self.deviations {
            put_varint(out, count);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Decoded<Self> {
        let mut totals = Self {
            issuances: reader.varint()?,
            certificates: reader.varint()?,
            precertificates: reader.varint()?,
            positions: reader.varint()?,
            name_rows: reader.varint()?,
            apart_seen: reader.varint()?,
            apart_joined: reader.varint()?,
            deviations: Vec::new(),
        };
        for _ in 0..reader.bounded(64, "more than 64 deviations")? {
            totals.deviations.push(reader.varint()?);
        }
        Ok(totals)
    }
}
