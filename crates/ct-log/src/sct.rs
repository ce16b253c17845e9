//! Signed certificate timestamps: a log's promise to include an entry, and which leaf it will be.
//!
//! # Format
//! Version (1 byte), log id (32), timestamp (8), extensions with a length of 2, and a `DigitallySigned`
//! (RFC 6962 section 3.2). A list is a length of 2 and SCTs, each with a length of 2 (section 3.3).
//!
//! # Limits
//! A list has at most 65,535 bytes, hence fewer than 1,400 SCTs.

use crate::error::Reason;
use crate::key::{DigitallySigned, LogId, PublicKey, SignatureError};
use crate::leaf::{self, Bytes, LeafBody};
use crate::merkle::{Hash, leaf_hash};

/// One promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sct<'a> {
    /// The log that gave it.
    pub log_id: LogId,
    /// When, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// `CtExtensions`, uninterpreted.
    pub extensions: &'a [u8],
    signature: DigitallySigned,
}

/// Why bytes are no promise of this log about this certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SctError {
    /// They do not hold an SCT.
    #[error("the SCT is damaged: {0}")]
    Malformed(#[from] Reason),
    /// It is of a version other than v1.
    #[error("SCT version {0} is unknown")]
    Version(u8),
    /// The signature is malformed, or the log's key did not make it over this certificate.
    #[error("the SCT cannot be trusted")]
    Signature(#[from] SignatureError),
    /// It is of another log than the key.
    #[error("the SCT is of log {sct}, the key of log {key}")]
    OtherLog {
        /// Whose promise it is.
        sct: LogId,
        /// Whose key was given.
        key: LogId,
    },
}

impl<'a> Sct<'a> {
    /// Reads one SCT, to which all of `bytes` must belong.
    ///
    /// # Errors
    /// [`SctError`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, SctError> {
        let mut bytes = Bytes(bytes);
        match bytes.take::<1>("version")? {
            [0] => {}
            [version] => return Err(SctError::Version(*version)),
        }
        let log_id = LogId(*bytes.take("log_id")?);
        let timestamp_ms = u64::from_be_bytes(*bytes.take("timestamp")?);
        let extensions = bytes.opaque16("extensions")?;
        Ok(Self {
            log_id,
            timestamp_ms,
            extensions,
            signature: DigitallySigned::parse(bytes.0)?,
        })
    }

    /// The SCTs of a `SignedCertificateTimestampList`, each read for itself.
    ///
    /// # Errors
    /// The list itself is damaged.
    pub fn list(bytes: &'a [u8]) -> Result<Vec<Result<Self, SctError>>, SctError> {
        let mut bytes = Bytes(bytes);
        let mut list = Bytes(bytes.opaque16("sct_list")?);
        let mut all = Vec::new();
        while !list.0.is_empty() {
            all.push(Self::parse(list.opaque16("sct")?));
        }
        Ok(all)
    }

    /// Checks that the log with this key promised to include `body`.
    ///
    /// # Errors
    /// [`SctError`].
    pub fn verify(&self, body: &LeafBody<'_>, key: &PublicKey) -> Result<(), SctError> {
        let id = key.id();
        if self.log_id != id {
            return Err(SctError::OtherLog {
                sct: self.log_id,
                key: id,
            });
        }
        // What is signed differs from the leaf only in what its first two bytes, both zero, are called.
        let signed = leaf::merkle_tree_leaf(self.timestamp_ms, body, self.extensions)?;
        Ok(self.signature.verify(&signed, key)?)
    }

    /// The hash of the leaf that it promises: what to ask get-proof-by-hash for.
    ///
    /// # Errors
    /// The certificate is larger than a leaf can hold.
    pub fn leaf_hash(&self, body: &LeafBody<'_>) -> Result<Hash, SctError> {
        let leaf = leaf::merkle_tree_leaf(self.timestamp_ms, body, self.extensions)?;
        Ok(leaf_hash(&leaf))
    }

    /// Where a static log says that the entry is; `None` for logs that do not say.
    ///
    /// # Errors
    /// The extensions are damaged.
    pub fn leaf_index(&self) -> Result<Option<u64>, SctError> {
        let damaged = Reason::Unexpected {
            expected: "a list of extensions with at most one leaf_index of 5 bytes",
        };
        leaf::leaf_index(self.extensions).map_err(|()| damaged.into())
    }
}
