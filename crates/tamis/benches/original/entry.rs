//! Entries as owned structs, and where in them the submitted certificate is.

use anyhow::Context as _;
use base64_simd::STANDARD;
use serde::Deserialize;

/// The body of a get-entries response.
#[derive(Deserialize)]
pub(crate) struct Body {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    leaf_input: String,
    extra_data: String,
}

impl Body {
    pub(crate) fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        serde_json::from_slice(bytes).context("parse a body")
    }

    /// `leaf_input` and `extra_data` of each entry.
    pub(crate) fn decode(&self) -> anyhow::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let decode = |text: &String| STANDARD.decode_to_vec(text).context("decode base64");
        self.entries
            .iter()
            .map(|entry| Ok((decode(&entry.leaf_input)?, decode(&entry.extra_data)?)))
            .collect()
    }
}

/// The DER of what was submitted.
pub(crate) struct Submitted<'a>(pub(crate) &'a [u8]);

impl<'a> Submitted<'a> {
    pub(crate) fn of_leaf(leaf: &'a [u8], extra: &'a [u8]) -> Option<Self> {
        // Version, leaf type and timestamp come before the type of the entry.
        match leaf.get(10..12)? {
            [0, 0] => opaque24(leaf.get(12..)?).map(|(der, _)| Self(der)),
            _ => opaque24(extra).map(|(der, _)| Self(der)),
        }
    }
}

/// The entries of a data tile.
pub(crate) fn tile(mut bytes: &[u8]) -> Vec<Submitted<'_>> {
    let mut found = Vec::new();
    while let Some((submitted, rest)) = tile_entry(bytes) {
        found.push(submitted);
        bytes = rest;
    }
    found
}

fn tile_entry(bytes: &[u8]) -> Option<(Submitted<'_>, &[u8])> {
    let precertificate = bytes.get(8..10)? == [0, 1];
    let (logged, rest) = opaque24(bytes.get(if precertificate { 42 } else { 10 }..)?)?;
    let (_, rest) = opaque16(rest)?;
    let (submitted, rest) = if precertificate {
        opaque24(rest)?
    } else {
        (logged, rest)
    };
    let (_, rest) = opaque16(rest)?;
    Some((Submitted(submitted), rest))
}

fn opaque24(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[high, middle, low], rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes([0, high, middle, low]) as usize)
}

fn opaque16(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}
