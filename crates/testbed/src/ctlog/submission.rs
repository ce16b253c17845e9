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

/// A certificate or precertificate as it was submitted.
pub struct Submission {
    /// What the log signs.
    pub(super) body: Body,
    /// The certificate, or the precertificate with its poison, DER.
    pub(super) certificate: Box<[u8]>,
    pub(super) chain: Arc<Chain>,
    pub(super) sha256: [u8; 32],
    /// In the form of certificates, each ended by a line feed.
    names: Box<str>,
    /// When it was logged where it comes from, in milliseconds since 1970.
    pub(super) timestamp_ms: u64,
}

pub(super) enum Body {
    X509,
    Precert {
        issuer_key_hash: [u8; 32],
        /// TBSCertificate without poison.
        tbs: Box<[u8]>,
    },
}

impl Submission {
    pub(super) fn new(
        body: Body,
        certificate: Box<[u8]>,
        chain: Arc<Chain>,
        names: impl Iterator<Item = String>,
        timestamp_ms: u64,
    ) -> Self {
        let names: String = names.flat_map(|name| [name, "\n".to_owned()]).collect();
        Self {
            body,
            sha256: Sha256::digest(&certificate).into(),
            certificate,
            chain,
            names: names.into(),
            timestamp_ms,
        }
    }

    /// One of the corpus.
    pub(super) fn generated(entry: Entry, issuers: &Issuers, chains: &mut Chains) -> Self {
        let issuer = &issuers.all()[entry.issuance.issuer];
        let body = match entry.kind {
            Kind::Certificate => Body::X509,
            Kind::Precertificate => Body::Precert {
                issuer_key_hash: issuer.key_hash,
                tbs: entry.precertificate_tbs.into(),
            },
        };
        let chain = chains.of_certificates(issuer.chain().iter().map(Vec::as_slice));
        let ip = entry.issuance.ip.map(|[a, b, c, d]| format!("{a}.{b}.{c}.{d}"));
        let names = entry.issuance.names.into_iter().chain(ip);
        Self::new(body, entry.der.into(), chain, names, entry.timestamp_ms)
    }

    /// SHA-256 of the certificate or precertificate.
    #[must_use]
    pub fn sha256(&self) -> [u8; 32] {
        self.sha256
    }

    /// The certificate, or the precertificate with its poison, DER.
    #[must_use]
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// Whether it is a precertificate.
    #[must_use]
    pub fn is_precertificate(&self) -> bool {
        matches!(self.body, Body::Precert { .. })
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
