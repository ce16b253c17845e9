//! Entries in the framings that logs serve: get-entries JSON (RFC 6962, 4.6), data tiles
//! (static-ct-api), and PEM.

use crate::certificate::Kind;
use crate::corpus::Entry;
use crate::issuers::Issuers;
use base64_simd::STANDARD as BASE64;

/// Entries in a full data tile.
pub const TILE_ENTRIES: usize = 256;

/// `MerkleTreeLeaf`: what `leaf_input` holds.
pub fn push_leaf(entry: &Entry, issuers: &Issuers, out: &mut Vec<u8>) {
    // Version 1, timestamped entry.
    out.extend_from_slice(&[0, 0]);
    push_timestamped_entry(entry, issuers, out);
    out.extend_from_slice(&[0, 0]);
}

/// What `extra_data` holds: the chain, with the precertificate before it where there is one.
pub fn push_extra_data(entry: &Entry, issuers: &Issuers, out: &mut Vec<u8>) {
    if entry.kind == Kind::Precertificate {
        push_u24_prefixed(&entry.der, out);
    }
    let chain = issuers.all()[entry.issuance.issuer].chain();
    let length: usize = chain.iter().map(|certificate| 3 + certificate.len()).sum();
    push_u24(length, out);
    for certificate in chain {
        push_u24_prefixed(certificate, out);
    }
}

/// The body of a get-entries response.
#[must_use]
pub fn get_entries_body(entries: &[Entry], issuers: &Issuers) -> Vec<u8> {
    let mut body = Vec::with_capacity(entries.len() * 8192 + 16);
    let mut binary = Vec::with_capacity(8192);
    body.extend_from_slice(br#"{"entries":["#);
    for (position, entry) in entries.iter().enumerate() {
        body.extend_from_slice(if position == 0 {
            br#"{"leaf_input":""#
        } else {
            br#",{"leaf_input":""#
        });
        binary.clear();
        push_leaf(entry, issuers, &mut binary);
        push_base64(&binary, &mut body);
        body.extend_from_slice(br#"","extra_data":""#);
        binary.clear();
        push_extra_data(entry, issuers, &mut binary);
        push_base64(&binary, &mut body);
        body.extend_from_slice(br#""}"#);
    }
    body.extend_from_slice(b"]}");
    body
}

/// A data tile: one `TileLeaf` after another.
#[must_use]
pub fn data_tile(entries: &[Entry], issuers: &Issuers) -> Vec<u8> {
    let mut tile = Vec::with_capacity(entries.len() * 3072);
    for entry in entries {
        push_timestamped_entry(entry, issuers, &mut tile);
        // Extensions: one, of type leaf_index, 5 bytes.
        tile.extend_from_slice(&[0, 8, 0, 0, 5]);
        tile.extend_from_slice(&entry.index.to_be_bytes()[3..]);
        if entry.kind == Kind::Precertificate {
            push_u24_prefixed(&entry.der, &mut tile);
        }
        let fingerprints = issuers.all()[entry.issuance.issuer].chain_fingerprints();
        tile.extend_from_slice(&(32 * fingerprints.len() as u16).to_be_bytes());
        fingerprints
            .iter()
            .for_each(|fingerprint| tile.extend_from_slice(fingerprint));
    }
    tile
}

/// Where a data tile lies below a log's monitoring prefix: 1234067 is `tile/data/x001/x234/067`;
/// a tile that is not full ends in `.p/COUNT`.
#[must_use]
pub fn data_tile_path(tile: u64, entries: usize) -> String {
    let mut path = format!("{:03}", tile % 1000);
    let mut rest = tile / 1000;
    while rest > 0 {
        path = format!("x{:03}/{path}", rest % 1000);
        rest /= 1000;
    }
    let partial = if entries < TILE_ENTRIES {
        format!(".p/{entries}")
    } else {
        String::new()
    };
    format!("tile/data/{path}{partial}")
}

/// The certificate as PEM; a precertificate is labelled as a certificate, as tools write it.
pub fn push_pem(entry: &Entry, out: &mut Vec<u8>) {
    const LINE_CHARACTERS: usize = 64;
    out.extend_from_slice(b"-----BEGIN CERTIFICATE-----\n");
    for line in BASE64
        .encode_to_string(&entry.der)
        .as_bytes()
        .chunks(LINE_CHARACTERS)
    {
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.extend_from_slice(b"-----END CERTIFICATE-----\n");
}

/// Timestamp, type and signed entry: what leaf and tile begin with alike.
fn push_timestamped_entry(entry: &Entry, issuers: &Issuers, out: &mut Vec<u8>) {
    out.extend_from_slice(&entry.timestamp_ms.to_be_bytes());
    match entry.kind {
        Kind::Certificate => {
            out.extend_from_slice(&[0, 0]);
            push_u24_prefixed(&entry.der, out);
        }
        Kind::Precertificate => {
            out.extend_from_slice(&[0, 1]);
            out.extend_from_slice(&issuers.all()[entry.issuance.issuer].key_hash);
            push_u24_prefixed(&entry.precertificate_tbs, out);
        }
    }
}

fn push_u24(length: usize, out: &mut Vec<u8>) {
    debug_assert!(length < 1 << 24, "certificates made here are below 16 MB");
    out.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
}

fn push_u24_prefixed(bytes: &[u8], out: &mut Vec<u8>) {
    push_u24(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn push_base64(bytes: &[u8], out: &mut Vec<u8>) {
    BASE64.encode_append(bytes, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tile_paths_are_those_of_the_specification() {
        assert_eq!(data_tile_path(0, 256), "tile/data/000");
        assert_eq!(data_tile_path(1_234_067, 256), "tile/data/x001/x234/067");
        assert_eq!(data_tile_path(1000, 7), "tile/data/x001/000.p/7");
    }
}
