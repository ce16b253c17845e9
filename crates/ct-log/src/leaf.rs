//! The entries of a log, as RFC 6962 and static-ct-api frame them.
//!
//! # Format
//! `MerkleTreeLeaf` is version (1 byte), leaf type (1), then `TimestampedEntry`: timestamp (8), entry
//! type (2), the certificate with a length of 3 bytes, or the issuer's key hash (32) and the TBS with
//! a length of 3 bytes, and extensions with a length of 2. A `TileLeaf` is a `TimestampedEntry`, for
//! precertificates the submitted one with a length of 3, and the fingerprints of the chain with a
//! length of 2. See <https://c2sp.org/static-ct-api> and RFC 6962 sections 3.4 and 4.6.

use sha2::{Digest as _, Sha256};

use crate::error::Reason;

/// The part of an entry that the Merkle tree covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf<'a> {
    /// When the log took it, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// What was logged.
    pub body: LeafBody<'a>,
    /// `CtExtensions`, uninterpreted.
    pub extensions: &'a [u8],
    /// From the timestamp to the end.
    timestamped_entry: &'a [u8],
    trailing: bool,
}

/// What was logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafBody<'a> {
    /// A certificate.
    X509(&'a [u8]),
    /// A precertificate.
    Precert {
        /// SHA-256 of the issuer's public key.
        issuer_key_hash: &'a [u8; 32],
        /// The TBSCertificate without poison.
        tbs: &'a [u8],
    },
}

impl<'a> Leaf<'a> {
    /// Reads a `MerkleTreeLeaf`, such as `leaf_input` holds.
    ///
    /// # Errors
    /// Unknown versions and types, and bytes that end too early. Bytes behind the end belong to the
    /// hash and are told by [`Leaf::has_trailing_bytes`].
    pub fn parse(merkle_tree_leaf: &'a [u8]) -> Result<Self, Reason> {
        let mut bytes = Bytes(merkle_tree_leaf);
        match bytes.take::<1>("version")? {
            [0] => {}
            [version] => return Err(Reason::LeafVersion(*version)),
        }
        match bytes.take::<1>("leaf_type")? {
            [0] => {}
            [leaf_type] => return Err(Reason::LeafType(*leaf_type)),
        }
        let timestamped_entry = bytes.0;
        let leaf = Self::timestamped_entry(&mut bytes)?;
        Ok(Self {
            timestamped_entry,
            trailing: !bytes.0.is_empty(),
            ..leaf
        })
    }

    fn timestamped_entry(bytes: &mut Bytes<'a>) -> Result<Self, Reason> {
        let all = bytes.0;
        let timestamp_ms = u64::from_be_bytes(*bytes.take("timestamp")?);
        let body = match u16::from_be_bytes(*bytes.take("entry_type")?) {
            0 => LeafBody::X509(bytes.opaque24("certificate")?),
            1 => LeafBody::Precert {
                issuer_key_hash: bytes.take("issuer_key_hash")?,
                tbs: bytes.opaque24("tbs_certificate")?,
            },
            entry_type => return Err(Reason::EntryType(entry_type)),
        };
        let extensions = bytes.opaque16("extensions")?;
        let timestamped_entry = all.get(..all.len() - bytes.0.len()).unwrap_or_default();
        Ok(Self {
            timestamp_ms,
            body,
            extensions,
            timestamped_entry,
            trailing: false,
        })
    }

    /// The leaf hash of the tree: SHA-256 of a zero byte and the `MerkleTreeLeaf`.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        Sha256::new()
            .chain_update([0, 0, 0])
            .chain_update(self.timestamped_entry)
            .finalize()
            .into()
    }

    /// The index that a static log writes into the extensions; `Err` where they are damaged.
    #[expect(
        clippy::result_unit_err,
        reason = "there is one way to be damaged, and it has its deviation"
    )]
    pub fn leaf_index(&self) -> Result<Option<u64>, ()> {
        leaf_index(self.extensions)
    }

    /// Checks that the leaf does not say that it belongs elsewhere; those of RFC 6962 logs, also when
    /// archived as tiles, say nothing.
    ///
    /// # Errors
    /// [`Reason::OtherIndex`], or the extensions are damaged.
    pub fn check_index(&self, expected: u64) -> Result<(), Reason> {
        match self.leaf_index() {
            Ok(Some(found)) if found != expected => Err(Reason::OtherIndex { expected, found }),
            Ok(_) => Ok(()),
            Err(()) => Err(Reason::Unexpected {
                expected: "a list of leaf extensions",
            }),
        }
    }

    /// The bytes of the `MerkleTreeLeaf`, which a tile does not hold as such: its hash is the leaf's.
    #[must_use]
    pub fn merkle_tree_leaf(&self) -> Vec<u8> {
        [&[0, 0], self.timestamped_entry].concat()
    }

    /// Whether bytes follow the leaf.
    #[must_use]
    pub fn has_trailing_bytes(&self) -> bool {
        self.trailing
    }
}

/// One entry of a data tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileLeaf<'a> {
    /// What the Merkle tree covers.
    pub leaf: Leaf<'a>,
    /// The submitted precertificate, for precertificate entries.
    pub precertificate: Option<&'a [u8]>,
    /// SHA-256 of each certificate of the chain, 32 bytes each. Not covered by the Merkle tree.
    pub chain_fingerprints: &'a [u8],
}

impl<'a> TileLeaf<'a> {
    /// Reads the first entry of `bytes` and gives what follows it.
    ///
    /// # Errors
    /// An unknown entry type, or bytes that end too early.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Reason> {
        let mut bytes = Bytes(bytes);
        let leaf = Leaf::timestamped_entry(&mut bytes)?;
        let precertificate = match leaf.body {
            LeafBody::X509(_) => None,
            LeafBody::Precert { .. } => Some(bytes.opaque24("pre_certificate")?),
        };
        let chain_fingerprints = bytes.opaque16("certificate_chain")?;
        Ok((
            Self {
                leaf,
                precertificate,
                chain_fingerprints,
            },
            bytes.0,
        ))
    }
}

/// Certificates one behind the other, each with a length of 3 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct CertificateList<'a> {
    rest: &'a [u8],
}

impl<'a> CertificateList<'a> {
    /// Over the certificates themselves, without the length of the list.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Over a list with its length before it, such as `extra_data` of a certificate entry is.
    ///
    /// # Errors
    /// The bytes end too early.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Reason> {
        Ok(Self {
            rest: Bytes(bytes).opaque24("chain")?,
        })
    }
}

impl<'a> Iterator for CertificateList<'a> {
    type Item = &'a [u8];

    /// Ends early where a length leads out of the list.
    fn next(&mut self) -> Option<&'a [u8]> {
        let mut bytes = Bytes(self.rest);
        let certificate = bytes.opaque24("certificate").ok()?;
        self.rest = bytes.0;
        Some(certificate)
    }
}

/// The submitted precertificate and what follows it in the `extra_data` of a precertificate entry.
///
/// # Errors
/// The bytes end too early.
pub fn split_precert_extra_data(extra_data: &[u8]) -> Result<(&[u8], &[u8]), Reason> {
    let mut bytes = Bytes(extra_data);
    let precertificate = bytes.opaque24("pre_certificate")?;
    Ok((precertificate, bytes.0))
}

/// Puts a `MerkleTreeLeaf` together (RFC 6962 section 3.4).
///
/// # Errors
/// The certificate or the extensions are longer than their lengths can say.
pub(crate) fn merkle_tree_leaf(
    timestamp_ms: u64,
    body: &LeafBody<'_>,
    extensions: &[u8],
) -> Result<Vec<u8>, Reason> {
    let too_long = Reason::Unexpected {
        expected: "a certificate of legal size",
    };
    let mut leaf = vec![0, 0];
    leaf.extend(timestamp_ms.to_be_bytes());
    let certificate = match body {
        LeafBody::X509(certificate) => {
            leaf.extend([0, 0]);
            certificate
        }
        LeafBody::Precert { issuer_key_hash, tbs } => {
            leaf.extend([0, 1]);
            leaf.extend(*issuer_key_hash);
            tbs
        }
    };
    let length = u32::try_from(certificate.len()).unwrap_or(u32::MAX);
    let [0, length @ ..] = length.to_be_bytes() else {
        return Err(too_long);
    };
    leaf.extend(length);
    leaf.extend(*certificate);
    leaf.extend(
        u16::try_from(extensions.len())
            .map_err(|_| too_long)?
            .to_be_bytes(),
    );
    leaf.extend(extensions);
    Ok(leaf)
}

/// The index that a static log writes into `CtExtensions`; `Err` where they are damaged.
pub(crate) fn leaf_index(extensions: &[u8]) -> Result<Option<u64>, ()> {
    let mut bytes = Bytes(extensions);
    let mut index = None;
    while !bytes.0.is_empty() {
        let [kind] = *bytes.take("extension type").map_err(|_| ())?;
        let value = bytes.opaque16("extension").map_err(|_| ())?;
        if kind == 0 {
            let (&[a, b, c, d, e], None) = (value, index) else {
                return Err(());
            };
            index = Some(u64::from_be_bytes([0, 0, 0, a, b, c, d, e]));
        }
    }
    Ok(index)
}

/// The wire forms of TLS.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn take<const N: usize>(&mut self, field: &'static str) -> Result<&'a [u8; N], Reason> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Reason::CutOff { field })?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn opaque16(&mut self, field: &'static str) -> Result<&'a [u8], Reason> {
        let length = u16::from_be_bytes(*self.take(field)?);
        self.split(usize::from(length), field)
    }

    fn opaque24(&mut self, field: &'static str) -> Result<&'a [u8], Reason> {
        let &[high, middle, low] = self.take(field)?;
        self.split(u32::from_be_bytes([0, high, middle, low]) as usize, field)
    }

    fn split(&mut self, length: usize, field: &'static str) -> Result<&'a [u8], Reason> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Reason::CutOff { field })?;
        self.0 = rest;
        Ok(taken)
    }
}
