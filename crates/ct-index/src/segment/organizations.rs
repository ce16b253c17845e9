//! Blocks of the organisations of one segment, numbered from 1 in order of first sight.
//!
//! # Format
//! `count u16 | columns` of length-prefixed texts. Organisations run to millions and are therefore
//! kept a segment at a time, unlike the few thousand issuers.

use crate::coding::{Decoded, Reader, put_bytes};
use crate::segment::columns::{self, Codec};

/// Texts of a full block.
pub(crate) const BLOCK_TEXTS: usize = 128;

/// The payload of a block.
pub(crate) fn encode(texts: &[String], out: &mut Vec<u8>) {
    let mut raw = Vec::new();
    for text in texts {
        put_bytes(&mut raw, text.as_bytes());
    }
    out.extend_from_slice(&(texts.len() as u16).to_le_bytes());
    columns::put(out, &raw, Codec::Zstd);
}

/// A decoded block.
#[derive(Debug, Default)]
pub(crate) struct OrganizationsBlock {
    pub(crate) texts: Vec<String>,
}

impl OrganizationsBlock {
    pub(crate) fn decode(payload: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(payload);
        let count = usize::from(reader.u16()?);
        let raw = columns::take(&mut reader, columns::SMALL_BYTES_MAX)?;
        let mut reader = Reader::new(&raw);
        let mut block = Self::default();
        for _ in 0..count {
            block.texts.push(reader.text()?.to_owned());
        }
        Ok(block)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.texts.iter().map(|text| text.len() + 24).sum()
    }
}
