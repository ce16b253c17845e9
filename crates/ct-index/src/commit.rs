//! One frame of the write-ahead log: a batch, what it covers, new issuers, and its sequence numbers.
//!
//! # Format
//! See `docs/formats/wal.md`. Everything that must hold together travels in one frame, so a crash
//! neither loses nor replays a part of it.

use std::sync::Arc;

use crate::batch::{LogProgress, LogRange, PROGRESS_BYTES_MAX};
use crate::coding::{Decoded, Malformed, Reader, put_bytes, put_varint};
use crate::manifest::{self, LogEntry};
use crate::totals::Totals;

/// Magic of a write-ahead log file.
pub(crate) const MAGIC: [u8; 8] = *b"TAMISWAL";
/// Version of the format.
pub(crate) const VERSION: u32 = 1;
/// Issuers that one commit can bring.
const ISSUERS_MAX: u64 = 1 << 24;

/// The head of a commit; records in wire form follow it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CommitHead {
    /// Sequence number of the first record.
    pub(crate) first_seq: u64,
    /// Number that the first new issuer gets.
    pub(crate) first_issuer: u32,
    pub(crate) new_issuers: Vec<Box<str>>,
    /// Number in the dictionary of each issuer of the batch.
    pub(crate) issuers: Vec<u32>,
    pub(crate) covers: Vec<LogRange>,
    pub(crate) progress: Vec<LogProgress>,
    pub(crate) totals: Totals,
    pub(crate) records: u64,
}

impl CommitHead {
    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        put_varint(out, self.first_seq);
        put_varint(out, u64::from(self.first_issuer));
        put_varint(out, self.new_issuers.len() as u64);
        for issuer in &self.new_issuers {
            put_bytes(out, issuer.as_bytes());
        }
        put_varint(out, self.issuers.len() as u64);
        for &number in &self.issuers {
            put_varint(out, u64::from(number));
        }
        put_varint(out, self.covers.len() as u64);
        for range in &self.covers {
            put_varint(out, u64::from(range.log));
            put_varint(out, range.start);
            put_varint(out, range.end.saturating_sub(range.start));
        }
        put_varint(out, self.progress.len() as u64);
        for progress in &self.progress {
            put_varint(out, u64::from(progress.log));
            put_bytes(out, &progress.bytes);
        }
        self.totals.encode_into(out);
        put_varint(out, self.records);
    }

    /// Reads a head; the reader then stands at the first record.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Decoded<Self> {
        let mut head = Self {
            first_seq: reader.varint()?,
            ..Self::default()
        };
        head.first_issuer = number(reader)?;
        for _ in 0..reader.bounded(ISSUERS_MAX, "too many new issuers")? {
            head.new_issuers.push(reader.text()?.into());
        }
        for _ in 0..reader.bounded(ISSUERS_MAX, "too many issuers")? {
            head.issuers.push(number(reader)?);
        }
        for _ in 0..reader.bounded(reader.remaining() as u64, "too many ranges")? {
            let log = log_number(reader)?;
            let start = reader.varint()?;
            let end = start
                .checked_add(reader.varint()?)
                .ok_or(Malformed("range overflows"))?;
            head.covers.push(LogRange { log, start, end });
        }
        for _ in 0..reader.bounded(reader.remaining() as u64, "too many logs")? {
            let log = log_number(reader)?;
            let bytes = Arc::from(reader.bytes_within(PROGRESS_BYTES_MAX as u64)?);
            head.progress.push(LogProgress { log, bytes });
        }
        head.totals = Totals::read(reader)?;
        head.records = reader.varint()?;
        Ok(head)
    }

    /// Whether it says anything about how far logs were read.
    pub(crate) fn advances(&self) -> bool {
        !(self.covers.is_empty() && self.progress.is_empty())
    }

    /// Notes how far logs were read.
    pub(crate) fn advance(&self, logs: &mut Arc<Vec<LogEntry>>) {
        if self.advances() {
            manifest::advance(Arc::<Vec<LogEntry>>::make_mut(logs), &self.covers, &self.progress);
        }
    }
}

fn log_number(reader: &mut Reader<'_>) -> Decoded<u16> {
    Ok(reader.bounded(u64::from(u16::MAX), "log number over 16 bits")? as u16)
}

fn number(reader: &mut Reader<'_>) -> Decoded<u32> {
    Ok(reader.bounded(u64::from(u32::MAX), "issuer number over 32 bits")? as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_round_trip_and_refuse_truncation() {
        let head = CommitHead {
            first_seq: 900,
            first_issuer: 3,
            new_issuers: vec!["CN=A".into(), "CN=Ü".into()],
            issuers: vec![0, 3, 4],
            covers: vec![LogRange {
                log: 2,
                start: 5,
                end: 1 << 40,
            }],
            progress: vec![LogProgress {
                log: 2,
                bytes: Arc::from(&b"up to here"[..]),
            }],
            totals: Totals {
                issuances: 2,
                deviations: vec![0, 1],
                ..Totals::default()
            },
            records: 2,
        };
        let mut bytes = Vec::new();
        head.encode_into(&mut bytes);
        assert_eq!(CommitHead::read(&mut Reader::new(&bytes)), Ok(head));
        for length in 0..bytes.len() {
            assert!(
                CommitHead::read(&mut Reader::new(bytes.get(..length).unwrap())).is_err(),
                "{length}"
            );
        }
    }
}
