//! Entries as logs send them: leaves, get-entries JSON and data tiles.
//!
//! Bodies are put together from what is in memory at each request: encoding base64 takes less time than
//! the socket does, and ready pages of every alignment would take several times the memory.

use base64_simd::STANDARD as BASE64;

use super::submission::{Body, Submission};

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
    match &held.submission.body {
        Body::X509 => {
            out.extend_from_slice(&[0, 0]);
            push_opaque24(&held.submission.certificate, out);
        }
        Body::Precert { issuer_key_hash, tbs } => {
            out.extend_from_slice(&[0, 1]);
            out.extend_from_slice(issuer_key_hash);
            push_opaque24(tbs, out);
        }
    }
    if held.flipped
        && let Some(last) = out.last_mut()
    {
        *last ^= 1;
    }
    match held.leaf_index {
        None => out.extend_from_slice(&[0, 0]),
        Some(index) => {
            // One extension of type leaf_index with 5 bytes.
            out.extend_from_slice(&[0, 8, 0, 0, 5]);
            out.extend_from_slice(&index.to_be_bytes()[3..]);
        }
    }
}

/// One `TileLeaf`.
pub(super) fn push_tile_leaf(held: &Held<'_>, out: &mut Vec<u8>) {
    push_timestamped_entry(held, out);
    if held.submission.is_precertificate() {
        push_opaque24(&held.submission.certificate, out);
    }
    let fingerprints = &held.submission.chain.fingerprints;
    out.extend_from_slice(&(32 * fingerprints.len() as u16).to_be_bytes());
    fingerprints
        .iter()
        .for_each(|fingerprint| out.extend_from_slice(fingerprint));
}

/// The body of a get-entries answer. `scratch` keeps its memory from one page to the next.
pub(super) fn push_page<'a>(
    entries: impl Iterator<Item = Held<'a>>,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(br#"{"entries":["#);
    for (position, held) in entries.enumerate() {
        if position > 0 {
            out.push(b',');
        }
        push_json_entry(&held, scratch, out);
    }
    out.extend_from_slice(b"]}");
}

/// `{"leaf_input":…,"extra_data":…}`
fn push_json_entry(held: &Held<'_>, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"leaf_input":""#);
    push_leaf_base64(held, scratch, out);
    out.extend_from_slice(br#"","extra_data":""#);
    push_extra_base64(held.submission, scratch, out);
    out.extend_from_slice(br#""}"#);
}

pub(super) fn push_leaf_base64(held: &Held<'_>, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    scratch.clear();
    push_leaf(held, scratch);
    BASE64.encode_append(&*scratch, out);
}

/// The chain, with the precertificate before it where there is one. Of the chain only the bytes that
/// share a group of four characters with the precertificate are encoded anew.
pub(super) fn push_extra_base64(submission: &Submission, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    let chain = &submission.chain;
    scratch.clear();
    if submission.is_precertificate() {
        push_opaque24(&submission.certificate, scratch);
    }
    let shared = (3 - scratch.len() % 3) % 3;
    scratch.extend_from_slice(&chain.list[..shared]);
    BASE64.encode_append(&*scratch, out);
    out.extend_from_slice(chain.base64[shared].as_bytes());
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
        let mut page = Vec::new();
        push_page(view(|_| None), &mut Vec::new(), &mut page);
        assert!(page == get_entries_body(&entries, &issuers), "the pages differ");
        let mut tile = Vec::new();
        view(|index| Some(index as u64)).for_each(|held| push_tile_leaf(&held, &mut tile));
        assert!(tile == data_tile(&entries, &issuers), "the tiles differ");
    }
}
