//! A segment: rows back to back in one file, an FST of `{reversed}\0{id}` to their offsets in another,
//! both mapped, and a filter over the first two labels.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Context as _;
use crossbeam_skiplist::map::Entry;
use fst::{IntoStreamer as _, MapBuilder, Streamer as _};
use tamis_durable::{Advice, Map};

use super::bloom::Bloom;
use super::certificate::HEADER_BYTES;

const FILTER_BITS_PER_KEY: f64 = 10.0;

pub(crate) struct Segment {
    rows: Map,
    index: fst::Map<Map>,
    filter: Bloom,
}

/// `{reversed}\0{id}`; the id in decimal, which makes the smaller FST.
pub(crate) fn key(name: &str, id: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + 20);
    tamis_hostname::reverse_into(name, &mut key);
    key.push(0);
    let _ = write!(key, "{id}");
    key
}

/// What a search asks of a segment: the name itself, and what is below it.
pub(crate) struct Range {
    reversed: Vec<u8>,
}

impl Range {
    pub(crate) fn of(domain: &str) -> Self {
        let mut reversed = Vec::new();
        tamis_hostname::reverse_into(domain, &mut reversed);
        Self { reversed }
    }

    /// Bounds of the two scans.
    fn scans(&self) -> [(Vec<u8>, Vec<u8>); 2] {
        let with = |byte| [self.reversed.as_slice(), &[byte]].concat();
        [(with(0), with(1)), (with(b'.'), with(b'.' + 1))]
    }
}

/// `tld|sld` of a reversed name.
fn two_labels(reversed: &[u8]) -> &[u8] {
    let mut dots = reversed
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'.')
        .map(|(at, _)| at);
    dots.nth(1)
        .and_then(|end| reversed.get(..end))
        .unwrap_or(reversed)
}

fn name_of(key: &[u8]) -> &[u8] {
    key.split(|&byte| byte == 0).next().unwrap_or(key)
}

impl Segment {
    pub(crate) fn write<'m>(
        path: &Path,
        records: impl Iterator<Item = (Vec<u8>, Entry<'m, Vec<u8>, Vec<u8>>)>,
    ) -> anyhow::Result<Self> {
        let (rows_path, index_path) = (path.with_extension("seg"), path.with_extension("fst"));
        let mut rows = BufWriter::with_capacity(1 << 20, create(&rows_path)?);
        let mut index = MapBuilder::new(BufWriter::with_capacity(1 << 20, create(&index_path)?))?;
        let (mut offset, mut domains) = (0, Vec::<Vec<u8>>::new());
        for (key, entry) in records {
            index.insert(&key, offset)?;
            rows.write_all(entry.value())?;
            offset += entry.value().len() as u64;
            let domain = two_labels(name_of(&key));
            if domains.last().is_none_or(|last| last != domain) {
                domains.push(domain.to_vec());
            }
        }
        let mut filter = Bloom::planned(domains.len() as u64, FILTER_BITS_PER_KEY);
        domains.iter().for_each(|domain| filter.add(domain));
        rows.into_inner()?.sync_all()?;
        index.into_inner()?.into_inner()?.sync_all()?;
        Ok(Self {
            rows: Map::open(&rows_path, Advice::Normal)?,
            index: fst::Map::new(Map::open(&index_path, Advice::Normal)?)?,
            filter,
        })
    }

    /// Bytes of rows, of the FST and of the filter.
    pub(crate) fn bytes(&self) -> [u64; 3] {
        [
            self.rows.len() as u64,
            self.index.as_fst().size() as u64,
            self.filter.bytes(),
        ]
    }

    pub(crate) fn search(&self, range: &Range, limit: usize, rows: &mut Vec<Row>) {
        if !self.filter.may_contain(two_labels(&range.reversed)) {
            return;
        }
        for (start, end) in range.scans() {
            let mut stream = self.index.range().ge(start).lt(end).into_stream();
            while rows.len() < limit {
                let Some((_, offset)) = stream.next() else { break };
                rows.extend(self.rows.get(offset as usize..).and_then(Row::read));
            }
        }
    }

    /// Adds reversed names until there are `limit`.
    pub(crate) fn names(&self, range: &Range, limit: usize, names: &mut BTreeSet<Vec<u8>>) {
        if !self.filter.may_contain(two_labels(&range.reversed)) {
            return;
        }
        for (start, end) in range.scans() {
            let mut stream = self.index.range().ge(start).lt(end).into_stream();
            while names.len() < limit {
                let Some((key, _)) = stream.next() else { break };
                let name = name_of(key);
                if !names.contains(name) {
                    names.insert(name.to_vec());
                }
            }
        }
    }
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("create {}", path.display()))
}

/// A row, owned, as a search answers it.
#[expect(dead_code, reason = "an answer is made whole, whoever reads it")]
pub(crate) struct Row {
    sha256: [u8; 32],
    not_before: u32,
    not_after: u32,
    name: String,
    common_name: String,
    organization: String,
    issuer: String,
}

impl Row {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (header, mut texts) = bytes.split_at_checked(HEADER_BYTES)?;
        let number = |at: usize| Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?));
        let mut text = |at: usize| {
            let length = u16::from_le_bytes(header.get(at..at + 2)?.try_into().ok()?);
            let (text, rest) = texts.split_at_checked(usize::from(length))?;
            texts = rest;
            Some(std::str::from_utf8(text).ok()?.to_owned())
        };
        Some(Self {
            sha256: header.get(..32)?.try_into().ok()?,
            not_before: number(32)?,
            not_after: number(36)?,
            name: text(40)?,
            common_name: text(42)?,
            organization: text(44)?,
            issuer: text(46)?,
        })
    }
}
