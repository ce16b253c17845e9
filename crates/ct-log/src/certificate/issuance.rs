//! The identity of an issuance: what a precertificate and its certificate have in common.
//!
//! # Format
//! HighwayHash (128 bits) under an [`IdentityKey`] over these pieces of the TBSCertificate, one behind
//! the other: the content before the extensions; each extension, whole, except poison and embedded timestamps; what
//! stands behind the extensions. The outer headers, whose lengths differ between the two, are left
//! out, so nothing is encoded again. Each piece carries its own length, so that two different lists of
//! pieces never give the same bytes.
//!
//! Where a Precertificate Signing Certificate signed the precertificate, its issuer and its authority
//! key identifier take the place of the precertificate's, as RFC 6962 section 3.2 has it.

use highway::{HighwayHash as _, HighwayHasher, Key};

use super::Hashes;
use super::extensions::{AUTHORITY_KEY, EXTENDED_KEY_USAGE, Extension, list};
use super::tbs::{self, Tbs};
use crate::der::{self, Walk};
use crate::deviation::Deviations;

/// 1.3.6.1.4.1.11129.2.4.4
const PRECERT_SIGNING: &[u8] = &[0x2b, 6, 1, 4, 1, 0xd6, 0x79, 2, 4, 4];

/// Put before bytes that are hashed whole; no TBSCertificate starts like it.
const UNPARSED: &[u8] = b"unparsed\0";

/// The key under which identities are computed.
///
/// Identities compare only under one key. Who does not know the key cannot make two issuances that
/// share an identity, not even a certificate authority of ill will: so whoever keeps certificates by
/// identity draws a key at random and keeps it to itself. The default key is public, for those who only
/// compare what they read themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdentityKey(pub [u64; 4]);

impl IdentityKey {
    fn hasher(self) -> HighwayHasher {
        HighwayHasher::new(Key(self.0))
    }
}

/// The running hash.
pub(crate) struct Identity(Option<HighwayHasher>);

impl Identity {
    pub(crate) fn new(hashes: Hashes, key: IdentityKey) -> Self {
        Self((hashes == Hashes::Both).then(|| key.hasher()))
    }

    pub(crate) fn keep(&mut self, run: &[u8]) {
        if let Some(hash) = &mut self.0 {
            hash.append(run);
        }
    }

    pub(crate) fn finish(self) -> [u8; 16] {
        self.0.map_or([0; 16], finished)
    }
}

/// The identity of bytes that could not be walked.
pub(crate) fn of_unparsed(bytes: &[u8], key: IdentityKey) -> [u8; 16] {
    let mut hash = key.hasher();
    hash.append(UNPARSED);
    hash.append(bytes);
    finished(hash)
}

fn finished(hash: HighwayHasher) -> [u8; 16] {
    let [first, second] = hash.finalize128();
    let mut identity = [0; 16];
    let halves = first.to_be_bytes().into_iter().chain(second.to_be_bytes());
    identity.iter_mut().zip(halves).for_each(|(to, from)| *to = from);
    identity
}

/// What a Precertificate Signing Certificate lends to the precertificates it signs.
pub(crate) struct Signer<'a> {
    pub(super) issuer: &'a [u8],
    pub(super) authority_key: Option<&'a [u8]>,
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
pub(crate) fn through_signer(tbs: &Tbs<'_>, signer: &Signer<'_>, key: IdentityKey) -> [u8; 16] {
    let mut deviations = Deviations::NONE;
    let mut hash = key.hasher();
    hash.append(tbs.before_issuer);
    hash.append(signer.issuer);
    hash.append(tbs.after_issuer);
    let mut replaced = false;
    if let Some((mut walk, behind)) = list(tbs, &mut deviations) {
        while let Some(element) = walk.next(&mut deviations) {
            match Extension::of(element, &mut deviations) {
                Some(extension) if extension.is_log_artefact() => {}
                Some(extension) if extension.oid == AUTHORITY_KEY => {
                    replaced = true;
                    hash.append(signer.authority_key.unwrap_or_default());
                }
                _ => hash.append(element.raw),
            }
        }
        hash.append(walk.rest());
        hash.append(behind);
    }
    // A log adds the identifier at the end where the precertificate has none.
    if !replaced {
        hash.append(signer.authority_key.unwrap_or_default());
    }
    hash.append(tbs.tail);
    finished(hash)
}
