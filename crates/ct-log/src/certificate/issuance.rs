//! The identity of an issuance: what a precertificate and its certificate have in common.
//!
//! # Format
//! The first 16 bytes of SHA-256 over these pieces of the TBSCertificate, one behind the other: the
//! content before the extensions; each extension, whole, except poison and embedded timestamps; what
//! stands behind the extensions. The outer headers, whose lengths differ between the two, are left
//! out, so nothing is encoded again. Each piece carries its own length, so that two different lists of
//! pieces never give the same bytes.
//!
//! Where a Precertificate Signing Certificate signed the precertificate, its issuer and its authority
//! key identifier take the place of the precertificate's, as RFC 6962 section 3.2 has it.

use sha2::{Digest as _, Sha256};

use super::Hashes;
use super::extensions::{AUTHORITY_KEY, EXTENDED_KEY_USAGE, Extension, list};
use super::tbs::{self, Tbs};
use crate::der::{self, Walk};
use crate::deviation::Deviations;

/// 1.3.6.1.4.1.11129.2.4.4
const PRECERT_SIGNING: &[u8] = &[0x2b, 6, 1, 4, 1, 0xd6, 0x79, 2, 4, 4];

/// Put before bytes that are hashed whole; no TBSCertificate starts like it.
const UNPARSED: &[u8] = b"unparsed\0";

/// The running hash.
pub(crate) struct Identity(Option<Sha256>);

impl Identity {
    pub(crate) fn new(hashes: Hashes) -> Self {
        Self((hashes == Hashes::Both).then(Sha256::new))
    }

    pub(crate) fn keep(&mut self, run: &[u8]) {
        if let Some(hash) = &mut self.0 {
            hash.update(run);
        }
    }

    pub(crate) fn finish(self) -> [u8; 16] {
        self.0.map_or([0; 16], truncated)
    }
}

/// The identity of bytes that could not be walked.
pub(crate) fn of_unparsed(bytes: &[u8]) -> [u8; 16] {
    truncated(Sha256::new().chain_update(UNPARSED).chain_update(bytes))
}

fn truncated(hash: Sha256) -> [u8; 16] {
    let [identity @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _]: [u8; 32] = hash.finalize().into();
    identity
}

/// What a Precertificate Signing Certificate lends to the precertificates it signs.
pub(crate) struct Signer<'a> {
    issuer: &'a [u8],
    authority_key: Option<&'a [u8]>,
}

impl<'a> Signer<'a> {
    /// Looks whether `certificate` is one and issued `precert`.
    pub(crate) fn of(certificate: &'a [u8], precert: &Tbs<'_>) -> Option<Self> {
        let mut deviations = Deviations::NONE;
        let tbs = Tbs::walk(
            tbs::of_certificate(certificate, &mut deviations)?.content,
            &mut deviations,
        );
        if tbs.subject?.raw != precert.issuer?.raw {
            return None;
        }
        let mut authority_key = None;
        let mut signs_precerts = false;
        let (mut walk, _) = list(&tbs, &mut deviations)?;
        while let Some(element) = walk.next(&mut deviations) {
            let Some(extension) = Extension::of(element, &mut deviations) else {
                continue;
            };
            if extension.oid == AUTHORITY_KEY {
                authority_key = Some(extension.raw);
            } else if extension.oid == EXTENDED_KEY_USAGE {
                signs_precerts |= lists_precert_signing(extension.value);
            }
        }
        let issuer = tbs.issuer?.raw;
        signs_precerts.then_some(Self {
            issuer,
            authority_key,
        })
    }
}

fn lists_precert_signing(value: &[u8]) -> bool {
    let mut deviations = Deviations::NONE;
    let Some(list) = Walk::new(value).next_if(der::SEQUENCE, &mut deviations) else {
        return false;
    };
    let mut purposes = list.children();
    while let Some(purpose) = purposes.next(&mut deviations) {
        if purpose.content == PRECERT_SIGNING {
            return true;
        }
    }
    false
}

/// The identity of a precertificate as if its signer's issuer had signed it.
pub(crate) fn through_signer(tbs: &Tbs<'_>, signer: &Signer<'_>) -> [u8; 16] {
    let mut deviations = Deviations::NONE;
    let mut hash = Sha256::new();
    hash.update(tbs.before_issuer);
    hash.update(signer.issuer);
    hash.update(tbs.after_issuer);
    let mut replaced = false;
    if let Some((mut walk, behind)) = list(tbs, &mut deviations) {
        while let Some(element) = walk.next(&mut deviations) {
            match Extension::of(element, &mut deviations) {
                Some(extension) if extension.is_log_artefact() => {}
                Some(extension) if extension.oid == AUTHORITY_KEY => {
                    replaced = true;
                    hash.update(signer.authority_key.unwrap_or_default());
                }
                _ => hash.update(element.raw),
            }
        }
        hash.update(walk.rest());
        hash.update(behind);
    }
    // A log adds the identifier at the end where the precertificate has none.
    if !replaced {
        hash.update(signer.authority_key.unwrap_or_default());
    }
    hash.update(tbs.tail);
    truncated(hash)
}
