//! What authorities submit, once for all logs: a certificate or precertificate with its chain.
//!
//! Every log that takes a submission holds a reference to it; only the timestamp and, in static logs,
//! the index are its own.

use std::collections::HashMap;
use std::sync::Arc;

use base64_simd::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};

use super::wire;
use crate::{Entry, Issuers, Kind};

/// A certificate or precertificate as it was submitted, framed as logs send it.
pub struct Submission {
    /// What follows timestamp and type in the leaf of an RFC 6962 log: the certificate, or issuer key hash
    /// and TBSCertificate, and empty extensions.
    pub(super) leaf_rest: Box<[u8]>,
    /// The precertificate with its length before it.
    pub(super) precertificate: Option<Box<[u8]>>,
    pub(super) chain: Arc<Chain>,
    sha256: [u8; 32],
    /// In the form of certificates, each ended by a line feed.
    names: Box<str>,
    /// When it was logged where it comes from, in milliseconds since 1970.
    pub(super) timestamp_ms: u64,
}

/// What was submitted, DER.
pub(super) enum Submitted<'a> {
    Certificate(&'a [u8]),
    Precertificate {
        /// With its poison.
        der: &'a [u8],
        issuer_key_hash: &'a [u8; 32],
        /// TBSCertificate without poison: what the log signs.
        tbs: &'a [u8],
    },
}

impl Submission {
    pub(super) fn new(
        submitted: &Submitted<'_>,
        chain: Arc<Chain>,
        names: impl Iterator<Item = String>,
        timestamp_ms: u64,
    ) -> Self {
        let names: String = names.flat_map(|name| [name, "\n".to_owned()]).collect();
        let mut leaf_rest = Vec::new();
        let mut precertificate = None;
        let sha256 = match submitted {
            Submitted::Certificate(der) => {
                wire::push_opaque24(der, &mut leaf_rest);
                Sha256::digest(der)
            }
            Submitted::Precertificate {
                der,
                issuer_key_hash,
                tbs,
            } => {
                leaf_rest.extend_from_slice(*issuer_key_hash);
                wire::push_opaque24(tbs, &mut leaf_rest);
                let mut framed = Vec::with_capacity(3 + der.len());
                wire::push_opaque24(der, &mut framed);
                precertificate = Some(framed.into());
                Sha256::digest(der)
            }
        };
        leaf_rest.extend_from_slice(&wire::NO_EXTENSIONS);
        Self {
            leaf_rest: leaf_rest.into(),
            precertificate,
            chain,
            sha256: sha256.into(),
            names: names.into(),
            timestamp_ms,
        }
    }

    /// One of the corpus.
    pub(super) fn generated(entry: Entry, issuers: &Issuers, chains: &mut Chains) -> Self {
        let issuer = &issuers.all()[entry.issuance.issuer];
        let submitted = match entry.kind {
            Kind::Certificate => Submitted::Certificate(&entry.der),
            Kind::Precertificate => Submitted::Precertificate {
                der: &entry.der,
                issuer_key_hash: &issuer.key_hash,
                tbs: &entry.precertificate_tbs,
            },
        };
        let chain = chains.of_certificates(issuer.chain().iter().map(Vec::as_slice));
        let ip = entry.issuance.ip.map(|[a, b, c, d]| format!("{a}.{b}.{c}.{d}"));
        let names = entry.issuance.names.into_iter().chain(ip);
        Self::new(&submitted, chain, names, entry.timestamp_ms)
    }

    /// SHA-256 of the certificate or precertificate.
    #[must_use]
    pub fn sha256(&self) -> [u8; 32] {
        self.sha256
    }

    /// The certificate, or the precertificate with its poison, DER.
    #[must_use]
    pub fn certificate(&self) -> &[u8] {
        match &self.precertificate {
            Some(framed) => &framed[3..],
            None => &self.leaf_rest[3..self.leaf_rest.len() - wire::NO_EXTENSIONS.len()],
        }
    }

    /// Whether it is a precertificate.
    #[must_use]
    pub fn is_precertificate(&self) -> bool {
        self.precertificate.is_some()
    }

    /// The names and addresses in it, wildcards with their `*.`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.lines()
    }
}

/// The certificates above a submitted one.
pub(super) struct Chain {
    pub(super) fingerprints: Vec<[u8; 32]>,
    /// As `extra_data` has it; without certificates of which only the fingerprint is known.
    pub(super) list: Vec<u8>,
    /// Base64 of the list without its first 0, 1 and 2 bytes: what fits behind any precertificate.
    pub(super) base64: [String; 3],
}

/// All chains and issuers of a world, each once.
#[derive(Default)]
pub(super) struct Chains {
    chains: HashMap<Vec<[u8; 32]>, Arc<Chain>>,
    issuers: HashMap<[u8; 32], Arc<[u8]>>,
}

impl Chains {
    pub(super) fn of_certificates<'a>(&mut self, certificates: impl Iterator<Item = &'a [u8]>) -> Arc<Chain> {
        let fingerprints = certificates.map(|der| self.add_issuer(der)).collect();
        self.of_fingerprints(fingerprints)
    }

    /// The certificates should have been added before; what is not known then is left out of get-entries.
    pub(super) fn of_fingerprints(&mut self, fingerprints: Vec<[u8; 32]>) -> Arc<Chain> {
        if let Some(chain) = self.chains.get(&fingerprints) {
            return Arc::clone(chain);
        }
        let mut certificates = Vec::new();
        for der in fingerprints
            .iter()
            .filter_map(|fingerprint| self.issuers.get(fingerprint))
        {
            wire::push_opaque24(der, &mut certificates);
        }
        let mut list = Vec::with_capacity(certificates.len() + 3);
        wire::push_opaque24(&certificates, &mut list);
        let chain = Arc::new(Chain {
            fingerprints: fingerprints.clone(),
            base64: [0, 1, 2].map(|skipped| BASE64.encode_to_string(&list[skipped..])),
            list,
        });
        self.chains.insert(fingerprints, Arc::clone(&chain));
        chain
    }

    pub(super) fn add_issuer(&mut self, der: &[u8]) -> [u8; 32] {
        let fingerprint: [u8; 32] = Sha256::digest(der).into();
        self.issuers.entry(fingerprint).or_insert_with(|| der.into());
        fingerprint
    }

    pub(super) fn issuer(&self, fingerprint: &[u8; 32]) -> Option<Arc<[u8]>> {
        self.issuers.get(fingerprint).cloned()
    }

    /// All issuers with their fingerprints, in the order of these.
    pub(super) fn issuers(&self) -> Vec<([u8; 32], Arc<[u8]>)> {
        let mut all: Vec<_> = self
            .issuers
            .iter()
            .map(|(id, der)| (*id, Arc::clone(der)))
            .collect();
        all.sort_unstable_by_key(|(fingerprint, _)| *fingerprint);
        all
    }

    /// The last certificates of all chains.
    pub(super) fn roots(&self) -> Vec<Arc<[u8]>> {
        let lasts = self.chains.keys().filter_map(|chain| chain.last().copied());
        let mut lasts: Vec<_> = lasts.collect();
        lasts.sort_unstable();
        lasts.dedup();
        lasts.iter().filter_map(|last| self.issuer(last)).collect()
    }
}
