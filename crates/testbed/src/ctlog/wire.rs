//! Entries as logs send them: leaves, get-entries JSON and data tiles.
//!
//! Bodies are put together from what is in memory at each request: encoding base64 takes less time than
//! the socket does, and ready pages of every alignment would take several times the memory. Chains, which
//! are most of a page and few, are left where they are: [`Body`] says where they belong.

use std::io::IoSlice;
use std::sync::Arc;

use base64_simd::STANDARD as BASE64;

use super::submission::{Chain, Submission};

/// The length of an empty list.
pub(super) const NO_EXTENSIONS: [u8; 2] = [0, 0];
/// Of an entry in a page, without its chain.
const JSON_ENTRY_BYTES: usize = 3 << 10;

/// A body in pieces: text of its own, and chains between.
#[derive(Default)]
pub(super) struct Body {
    /// What may be written to where there are no chains.
    pub(super) bytes: Vec<u8>,
    chains: Vec<Insert>,
}

/// The base64 of a chain, without its first bytes, and where in the text it belongs.
struct Insert {
    at: usize,
    chain: Arc<Chain>,
    skipped: usize,
}

impl Insert {
    fn text(&self) -> &[u8] {
        self.chain.base64[self.skipped].as_bytes()
    }
}

impl Body {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.chains.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
            + self
                .chains
                .iter()
                .map(|insert| insert.text().len())
                .sum::<usize>()
    }

    /// Puts the chains into the text, for who wants to change it.
    pub(super) fn flat(&mut self) -> &mut Vec<u8> {
        if !self.chains.is_empty() {
            self.bytes = self
                .slices()
                .iter()
                .flat_map(|slice| slice.iter().copied())
                .collect();
            self.chains.clear();
        }
        &mut self.bytes
    }

    /// The pieces, in order.
    pub(super) fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut slices = Vec::with_capacity(2 * self.chains.len() + 1);
        let mut from = 0;
        for insert in &self.chains {
            slices.push(IoSlice::new(&self.bytes[from..insert.at]));
            slices.push(IoSlice::new(insert.text()));
            from = insert.at;
        }
        slices.push(IoSlice::new(&self.bytes[from..]));
        slices
    }
}

/// One entry as a log holds it.
#[derive(Clone, Copy)]
pub(super) struct Held<'a> {
    pub(super) submission: &'a Submission,
    pub(super) timestamp_ms: u64,
    /// What static logs write into the leaf.
    pub(super) leaf_index: Option<u64>,
    /// A bit of the certificate is sent wrong.
    pub(super) flipped: bool,
}

pub(super) fn push_opaque24(bytes: &[u8], out: &mut Vec<u8>) {
    debug_assert!(bytes.len() < 1 << 24, "what was read had such a length");
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(bytes);
}

/// `MerkleTreeLeaf`.
pub(super) fn push_leaf(held: &Held<'_>, out: &mut Vec<u8>) {
    // Version 1, timestamped entry.
    out.extend_from_slice(&[0, 0]);
    push_timestamped_entry(held, out);
}

fn push_timestamped_entry(held: &Held<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&held.timestamp_ms.to_be_bytes());
    out.extend_from_slice(&entry_type(held.submission));
    let rest = &held.submission.leaf_rest;
    out.extend_from_slice(&rest[..rest.len() - NO_EXTENSIONS.len()]);
    if held.flipped
        && let Some(last) = out.last_mut()
    {
        *last ^= 1;
    }
    match held.leaf_index {
        None => out.extend_from_slice(&NO_EXTENSIONS),
        Some(index) => {
            // One extension of type leaf_index with 5 bytes.
            out.extend_from_slice(&[0, 8, 0, 0, 5]);
            out.extend_from_slice(&index.to_be_bytes()[3..]);
        }
    }
}

fn entry_type(submission: &Submission) -> [u8; 2] {
    [0, u8::from(submission.is_precertificate())]
}

/// One `TileLeaf`.
pub(super) fn push_tile_leaf(held: &Held<'_>, out: &mut Vec<u8>) {
    push_timestamped_entry(held, out);
    if let Some(precertificate) = &held.submission.precertificate {
        out.extend_from_slice(precertificate);
    }
    let fingerprints = &held.submission.chain.fingerprints;
    out.extend_from_slice(&(32 * fingerprints.len() as u16).to_be_bytes());
    fingerprints
        .iter()
        .for_each(|fingerprint| out.extend_from_slice(fingerprint));
}

/// The body of a get-entries answer.
pub(super) fn push_page<'a>(entries: impl ExactSizeIterator<Item = Held<'a>>, body: &mut Body) {
    body.bytes.reserve(entries.len() * JSON_ENTRY_BYTES);
    body.bytes.extend_from_slice(br#"{"entries":["#);
    for (position, held) in entries.enumerate() {
        if position > 0 {
            body.bytes.push(b',');
        }
        body.bytes.extend_from_slice(br#"{"leaf_input":""#);
        push_leaf_base64(&held, &mut body.bytes);
        body.bytes.extend_from_slice(br#"","extra_data":""#);
        let skipped = push_extra_start_base64(held.submission, &mut body.bytes);
        body.chains.push(Insert {
            at: body.bytes.len(),
            chain: Arc::clone(&held.submission.chain),
            skipped,
        });
        body.bytes.extend_from_slice(br#""}"#);
    }
    body.bytes.extend_from_slice(b"]}");
}

pub(super) fn push_leaf_base64(held: &Held<'_>, out: &mut Vec<u8>) {
    if held.leaf_index.is_some() || held.flipped {
        let mut leaf = Vec::new();
        push_leaf(held, &mut leaf);
        return BASE64.encode_append(&leaf, out);
    }
    // Version, leaf type, timestamp and entry type have 12 bytes, so what follows is encoded by itself.
    let mut start = [0; 12];
    start[2..10].copy_from_slice(&held.timestamp_ms.to_be_bytes());
    start[10..].copy_from_slice(&entry_type(held.submission));
    BASE64.encode_append(start, out);
    BASE64.encode_append(&held.submission.leaf_rest, out);
}

/// The chain, with the precertificate before it where there is one.
pub(super) fn push_extra_base64(submission: &Submission, out: &mut Vec<u8>) {
    let skipped = push_extra_start_base64(submission, out);
    out.extend_from_slice(submission.chain.base64[skipped].as_bytes());
}

/// The precertificate, and as many bytes of the chain as share a group of four characters with it; how many
/// these are.
fn push_extra_start_base64(submission: &Submission, out: &mut Vec<u8>) -> usize {
    let Some(precertificate) = &submission.precertificate else {
        return 0;
    };
    let (whole, rest) = precertificate.split_at(precertificate.len() - precertificate.len() % 3);
    BASE64.encode_append(whole, out);
    if rest.is_empty() {
        return 0;
    }
    let skipped = 3 - rest.len();
    let mut group = [0; 3];
    group[..rest.len()].copy_from_slice(rest);
    group[rest.len()..].copy_from_slice(&submission.chain.list[..skipped]);
    BASE64.encode_append(group, out);
    skipped
}

#[cfg(test)]
mod tests {
    use super::super::submission::Chains;
    use super::*;
    use crate::framing::{data_tile, get_entries_body};
    use crate::{Corpus, CorpusOptions};

    /// The corpus writes the same entries by other code.
    #[test]
    fn pages_and_tiles_are_those_of_the_corpus() {
        let corpus = Corpus::new(CorpusOptions::spread_over(5, 64, 30));
        let issuers = corpus.issuers();
        let entries: Vec<_> = corpus.take(64).collect();
        let mut chains = Chains::default();
        let held: Vec<_> = entries
            .iter()
            .map(|entry| Submission::generated(entry.clone(), &issuers, &mut chains))
            .collect();
        let view = |leaf_index: fn(usize) -> Option<u64>| {
            held.iter().enumerate().map(move |(index, submission)| Held {
                submission,
                timestamp_ms: submission.timestamp_ms,
                leaf_index: leaf_index(index),
                flipped: false,
            })
        };
        let mut page = Body::default();
        push_page(view(|_| None), &mut page);
        let expected = get_entries_body(&entries, &issuers);
        assert_eq!(page.len(), expected.len());
        let slices = page.slices();
        let joined: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        assert!(joined == expected, "the pages differ");
        assert!(*page.flat() == expected, "the pages differ");
        assert_eq!(page.len(), expected.len());
        let mut tile = Vec::new();
        view(|index| Some(index as u64)).for_each(|held| push_tile_leaf(&held, &mut tile));
        assert!(tile == data_tile(&entries, &issuers), "the tiles differ");
    }
}
