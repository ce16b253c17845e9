//! Heads of logs: what a log signs about its tree, and how two of them relate.
//!
//! An RFC 6962 log answers get-sth with JSON (section 4.3), a static log serves a checkpoint; both carry
//! the same signature over the same bytes (section 3.5). A [`VerifiedHead`] exists only where that
//! signature was checked with the key of the log.
//!
//! # Limits
//! [`crate::answers::ANSWER_BYTES_MAX`], [`CHECKPOINT_BYTES_MAX`], [`CHECKPOINT_SIGNATURES_MAX`].

mod checkpoint;

use std::borrow::Cow;

use serde::Deserialize;

pub use self::checkpoint::{
    CHECKPOINT_BYTES_MAX, CHECKPOINT_SIGNATURES_MAX, Checkpoint, CheckpointError, NoteSignature,
};
use crate::answers::{self, ANSWER_BYTES_MAX, AnswerError};
use crate::key::{DigitallySigned, LogId, PublicKey, SignatureError};
use crate::merkle::{Hash, TREE_SIZE_MAX, Tree};

/// Of a signature in base64; RSA with 8,192 bits has 1,028 bytes.
const SIGNATURE_BYTES_MAX: usize = 2_048;

/// A head as a log sent it: nothing about it is proved yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTreeHead {
    tree: Tree,
    timestamp_ms: u64,
    signature: DigitallySigned,
}

/// A head that the log with this id signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedHead {
    tree: Tree,
    timestamp_ms: u64,
    log_id: LogId,
}

/// Why an answer gives no verified head.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeadError {
    /// It is no get-sth answer.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// It is no checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The signature is malformed, or the log's key did not make it.
    #[error("the head cannot be trusted")]
    Signature(#[from] SignatureError),
    /// The tree is larger than any log may be.
    #[error("the head claims {size} leaves, more than the limit of {TREE_SIZE_MAX}")]
    TooLarge {
        /// Of the tree.
        size: u64,
    },
}

impl HeadError {
    /// Whether asking again may help: something else came than a head. Anything else deserves a look.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Answer(error) => error.is_retryable(),
            Self::Checkpoint(error) => matches!(error, CheckpointError::NotNote { .. }),
            Self::Signature(_) | Self::TooLarge { .. } => false,
        }
    }
}

/// How a newly seen head relates to the one that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Relation {
    /// The same tree; the timestamp may differ.
    Same,
    /// The tree grew: take it once a consistency proof from the known size to this one holds.
    Grown,
    /// The tree is smaller. A replica that lags behind shows this, and no fork: keep the known head and
    /// ask again. That the smaller is the start of the known one can be proved too.
    Lagging,
    /// Same size, another root, both signed: the log forked. Keep both heads, they are the evidence.
    Fork,
    /// The heads are of different logs, and say nothing about each other.
    OtherLog,
}

#[derive(Deserialize)]
struct Answer<'a> {
    tree_size: u64,
    timestamp: u64,
    #[serde(borrow)]
    sha256_root_hash: Cow<'a, str>,
    #[serde(borrow)]
    tree_head_signature: Cow<'a, str>,
}

impl SignedTreeHead {
    /// Reads a get-sth answer (RFC 6962 section 4.3).
    ///
    /// # Errors
    /// [`HeadError`].
    pub fn from_json(body: &[u8]) -> Result<Self, HeadError> {
        let answer: Answer<'_> = answers::json(body, ANSWER_BYTES_MAX)?;
        let bad = |field| AnswerError::Field { field };
        let root = Hash::from_base64(&answer.sha256_root_hash).ok_or(bad("sha256_root_hash"))?;
        let signature = crate::base64::decode(&answer.tree_head_signature, SIGNATURE_BYTES_MAX)
            .ok_or(bad("tree_head_signature"))?;
        let tree = Tree {
            size: answer.tree_size,
            root,
        };
        Self::new(tree, answer.timestamp, &signature)
    }

    fn new(tree: Tree, timestamp_ms: u64, signature: &[u8]) -> Result<Self, HeadError> {
        if tree.size > TREE_SIZE_MAX {
            return Err(HeadError::TooLarge { size: tree.size });
        }
        Ok(Self {
            tree,
            timestamp_ms,
            signature: DigitallySigned::parse(signature)?,
        })
    }

    /// What it claims about the tree, before its signature was checked: for messages only.
    #[must_use]
    pub fn claimed_tree(&self) -> &Tree {
        &self.tree
    }

    /// Checks the signature with the key of the log.
    ///
    /// # Errors
    /// [`HeadError::Signature`].
    pub fn verify(&self, key: &PublicKey) -> Result<VerifiedHead, HeadError> {
        self.signature
            .verify(&signed_bytes(&self.tree, self.timestamp_ms), key)?;
        Ok(VerifiedHead {
            tree: self.tree,
            timestamp_ms: self.timestamp_ms,
            log_id: key.id(),
        })
    }
}

impl VerifiedHead {
    /// The tree.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Of leaves.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.tree.size
    }

    /// When the log signed it, in milliseconds since 1970. Everything that the log promised one maximum
    /// merge delay before is in the tree.
    #[must_use]
    pub fn timestamp_ms(&self) -> u64 {
        self.timestamp_ms
    }

    /// The log that signed it.
    #[must_use]
    pub fn log_id(&self) -> LogId {
        self.log_id
    }

    /// How `seen`, a head of the same log that came later, relates to this one, which is known.
    #[must_use]
    pub fn relation(&self, seen: &Self) -> Relation {
        if self.log_id != seen.log_id {
            return Relation::OtherLog;
        }
        match seen.tree.size.cmp(&self.tree.size) {
            std::cmp::Ordering::Less => Relation::Lagging,
            std::cmp::Ordering::Greater => Relation::Grown,
            std::cmp::Ordering::Equal if seen.tree.root == self.tree.root => Relation::Same,
            std::cmp::Ordering::Equal => Relation::Fork,
        }
    }
}

/// The `TreeHeadSignature` that a log signs (RFC 6962 section 3.5).
fn signed_bytes(tree: &Tree, timestamp_ms: u64) -> Vec<u8> {
    let version_and_type = [0, 1];
    [
        &version_and_type[..],
        &timestamp_ms.to_be_bytes(),
        &tree.size.to_be_bytes(),
        &tree.root.0,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Google's log Argon2024, as recorded in the tests of transparency-dev/formats (Apache-2.0).
    const KEY: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEHblsqctplMVc5ramA7vSuNxUQxcomQwGAVAdnWTAWUYr3MgDHQW0LagJ95lB7QT75Ve6JgT2EVLOFGU7L3YrwA==";
    const STH: &str = r#"{"tree_size":1267285836,"timestamp":1711642477482,"sha256_root_hash":"SHySaYoaGIV5oCMANTytRfUjfzXb7wvO9xQiGkDJlfQ=","tree_head_signature":"BAMARzBFAiAQWbsL/MbJdeR4jk8xYKWDBDGHyDcntBim9Jr1BvwPnAIhAMedQo0YuBo+ajNd9xyVOMvhOdVAeJYgOhBLQn8rca94"}"#;

    fn key() -> PublicKey {
        PublicKey::from_base64(KEY).unwrap()
    }

    #[test]
    fn a_real_head_verifies() {
        let head = SignedTreeHead::from_json(STH.as_bytes())
            .unwrap()
            .verify(&key())
            .unwrap();
        assert_eq!(
            (head.size(), head.timestamp_ms()),
            (1_267_285_836, 1_711_642_477_482)
        );
        assert_eq!(head.log_id(), key().id());
    }

    #[test]
    fn no_byte_of_it_can_be_changed() {
        for at in 0..STH.len() {
            for flip in [1, 2, 0x10, 0x80] {
                let mut other = STH.as_bytes().to_vec();
                other[at] ^= flip;
                let verified = SignedTreeHead::from_json(&other).and_then(|head| head.verify(&key()));
                assert!(
                    verified.is_err(),
                    "byte {at} xor {flip}: {}",
                    String::from_utf8_lossy(&other)
                );
            }
        }
    }

    #[test]
    fn what_is_no_head_says_why() {
        let error = |body: &str| {
            SignedTreeHead::from_json(body.as_bytes())
                .unwrap_err()
                .to_string()
        };
        assert!(error("<html><title>429</title>").contains("a web page (\"429\")"));
        assert!(error(&STH.replace("1267285836", "-1")).contains("another shape"));
        assert!(error(&STH.replace("SHyS", "SHy")).contains("sha256_root_hash"));
        assert!(error(&STH.replace("1267285836", "18446744073709551615")).contains("more than the limit"));
        let retryable = |body: &str| {
            SignedTreeHead::from_json(body.as_bytes())
                .unwrap_err()
                .is_retryable()
        };
        assert!(retryable("<html>") && retryable(&STH[..80]) && !retryable("{}"));
        let unsigned = STH.replace("BAMARzBF", "AAMARzBF");
        let unsigned = SignedTreeHead::from_json(unsigned.as_bytes());
        assert!(matches!(
            unsigned,
            Err(HeadError::Signature(SignatureError::HashAlgorithm(0)))
        ));
    }

    #[test]
    fn heads_relate() {
        let log_id = key().id();
        let head = |size, root: u8, timestamp_ms| VerifiedHead {
            tree: Tree {
                size,
                root: Hash([root; 32]),
            },
            timestamp_ms,
            log_id,
        };
        let known = head(10, 1, 50);
        assert_eq!(known.relation(&known), Relation::Same);
        assert_eq!(known.relation(&head(10, 1, 70)), Relation::Same);
        assert_eq!(known.relation(&head(10, 2, 70)), Relation::Fork);
        assert_eq!(known.relation(&head(11, 2, 40)), Relation::Grown);
        assert_eq!(known.relation(&head(9, 2, 70)), Relation::Lagging);
        let other = VerifiedHead {
            log_id: LogId([0; 32]),
            ..known
        };
        assert_eq!(known.relation(&other), Relation::OtherLog);
    }
}
