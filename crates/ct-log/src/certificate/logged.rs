//! The TBSCertificate that a log signs and hashes for a precertificate or for its certificate.
//!
//! RFC 6962 section 3.2: without poison and embedded timestamps, and with the final issuer where a
//! Precertificate Signing Certificate stands in between. Only headers are encoded anew; what comes out
//! for bytes that are no DER is whatever they gave.

use sha2::{Digest as _, Sha256};

use super::extensions::{AUTHORITY_KEY, Extension, SCT_LIST, list};
use super::issuance::Signer;
use super::tbs::{self, Tbs};
use crate::der::{self, Walk};
use crate::deviation::Deviations;

/// The TBSCertificate of a `PreCert` entry. `issuer` is the certificate that signed this one; it matters
/// where that is a Precertificate Signing Certificate. `None` for what is no certificate.
#[must_use]
pub fn logged_tbs(certificate: &[u8], issuer: Option<&[u8]>) -> Option<Vec<u8>> {
    let tbs = walk(certificate)?;
    let signer = issuer.and_then(|issuer| Signer::of(issuer, &tbs));
    let mut parts = tbs.before_issuer.to_vec();
    parts.extend(match &signer {
        Some(signer) => signer.issuer,
        None => tbs.issuer?.raw,
    });
    parts.extend(tbs.after_issuer);
    let extensions = extensions(&tbs, signer.as_ref());
    if !extensions.is_empty() {
        append(&mut parts, 0xa3, &element(der::SEQUENCE, &extensions));
    }
    parts.extend(tbs.tail);
    Some(element(der::SEQUENCE, &parts))
}

/// SHA-256 of the public key in a certificate: the `issuer_key_hash` of what it issued. `None` for what
/// is no certificate.
#[must_use]
pub fn public_key_hash(certificate: &[u8]) -> Option<[u8; 32]> {
    Some(Sha256::digest(walk(certificate)?.key?.raw).into())
}

/// The `SignedCertificateTimestampList` embedded in a certificate, for [`crate::sct::Sct::list`].
#[must_use]
pub fn embedded_scts(certificate: &[u8]) -> Option<&[u8]> {
    let mut deviations = Deviations::NONE;
    let (mut walk, _) = list(&walk(certificate)?, &mut deviations)?;
    while let Some(element) = walk.next(&mut deviations) {
        if let Some(extension) = Extension::of(element, &mut deviations)
            && extension.oid == SCT_LIST
        {
            let list = Walk::new(extension.value).next_if(der::OCTET_STRING, &mut deviations)?;
            return Some(list.content);
        }
    }
    None
}

fn walk(certificate: &[u8]) -> Option<Tbs<'_>> {
    let mut deviations = Deviations::NONE;
    let tbs = Tbs::walk(
        tbs::of_certificate(certificate, &mut deviations)?.content,
        &mut deviations,
    );
    tbs.is_plausible().then_some(tbs)
}

/// The extensions that stay. The signer's authority key takes the place of the other: also where there
/// was none, and where the signer has none, as logs do it.
fn extensions(tbs: &Tbs<'_>, signer: Option<&Signer<'_>>) -> Vec<u8> {
    let mut deviations = Deviations::NONE;
    let mut kept = Vec::new();
    let mut lent = signer.map(|signer| signer.authority_key.unwrap_or_default());
    let Some((mut walk, _)) = list(tbs, &mut deviations) else {
        return lent.unwrap_or_default().to_vec();
    };
    while let Some(element) = walk.next(&mut deviations) {
        match Extension::of(element, &mut deviations) {
            Some(extension) if extension.is_log_artefact() => {}
            Some(extension) if extension.oid == AUTHORITY_KEY && signer.is_some() => {
                kept.extend(lent.take().unwrap_or_default());
            }
            _ => kept.extend(element.raw),
        }
    }
    kept.extend(lent.unwrap_or_default());
    kept
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut element = Vec::with_capacity(content.len() + 6);
    append(&mut element, tag, content);
    element
}

fn append(into: &mut Vec<u8>, tag: u8, content: &[u8]) {
    into.push(tag);
    let length = content.len().to_be_bytes();
    let zeros = length.iter().take_while(|byte| **byte == 0).count();
    let digits = length.get(zeros..).unwrap_or_default();
    match content.len() {
        0 => into.push(0),
        1..0x80 => into.extend(digits),
        _ => {
            into.push(0x80 | u8::try_from(digits.len()).unwrap_or_default());
            into.extend(digits);
        }
    }
    into.extend(content);
}
