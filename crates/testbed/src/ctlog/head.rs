//! Heads of simulated logs: get-sth answers and checkpoints, signed.
//!
//! # Format
//! As `ct-log` reads them: RFC 6962 sections 3.5 and 4.3, and the `RFC6962NoteSignature` of
//! <https://c2sp.org/static-ct-api>.

use anyhow::Result;
use base64_simd::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};
use tamis_ct_log::merkle::Tree;

use super::keys::SigningKey;

/// A head and its signature.
#[derive(Clone)]
pub(super) struct SignedHead {
    pub(super) tree: Tree,
    pub(super) timestamp_ms: u64,
    /// `DigitallySigned`.
    signature: Vec<u8>,
}

impl SignedHead {
    pub(super) fn sign(tree: Tree, timestamp_ms: u64, key: &SigningKey) -> Result<Self> {
        let mut signed = vec![0, 1];
        signed.extend(timestamp_ms.to_be_bytes());
        signed.extend(tree.size.to_be_bytes());
        signed.extend(tree.root.0);
        Ok(Self {
            tree,
            timestamp_ms,
            signature: key.digitally_signed(&signed)?,
        })
    }

    /// The get-sth answer.
    pub(super) fn push_json(&self, out: &mut Vec<u8>) {
        let Self {
            tree,
            timestamp_ms,
            signature,
        } = self;
        out.extend_from_slice(
            format!(
                r#"{{"tree_size":{},"timestamp":{timestamp_ms},"sha256_root_hash":"{}","tree_head_signature":"{}"}}"#,
                tree.size,
                tree.root,
                BASE64.encode_to_string(signature)
            )
            .as_bytes(),
        );
    }

    /// The checkpoint of the log with this origin and id, with `cosignatures` lines by others.
    pub(super) fn push_checkpoint(
        &self,
        origin: &str,
        log_id: &[u8; 32],
        cosignatures: u32,
        out: &mut Vec<u8>,
    ) {
        let key_id = Sha256::new()
            .chain_update(origin)
            .chain_update([b'\n', 5])
            .chain_update(log_id)
            .finalize();
        let mut signature = key_id[..4].to_vec();
        signature.extend(self.timestamp_ms.to_be_bytes());
        signature.extend(&self.signature);
        let Tree { size, root } = self.tree;
        let mut text = format!("{origin}\n{size}\n{root}\n\n");
        text.push_str(&format!(
            "\u{2014} {origin} {}\n",
            BASE64.encode_to_string(signature)
        ));
        for witness in 0..cosignatures {
            // Every second one is as long as a post-quantum signature.
            let bytes = if witness % 2 == 0 {
                4 + 8 + 64
            } else {
                4 + 8 + 2_420
            };
            let other = vec![witness as u8; bytes];
            text.push_str(&format!(
                "\u{2014} witness{witness}.example {}\n",
                BASE64.encode_to_string(other)
            ));
        }
        out.extend_from_slice(text.as_bytes());
    }
}
