//! What is read out of one certificate, whatever state the certificate is in.
//!
//! # Invariants
//! Every field degrades alone: what cannot be read is absent and noted as a [`Deviation`]; it never
//! takes another field with it.
//!
//! # Limits
//! Names: [`ReadOptions::names_max`] of at most [`TEXT_BYTES_MAX`] bytes each. Common names:
//! [`COMMON_NAMES_MAX`]. Serial number: [`SERIAL_BYTES_MAX`], issuer: [`ISSUER_BYTES_MAX`]. A
//! [`Reading`] is cleared and filled again without allocation.

mod distinguished_name;
mod extensions;
mod issuance;
mod logged;
mod names;
mod reading;
mod salvage;
mod serial;
mod subject;
mod tbs;
mod text;
pub(crate) mod time;

use sha2::{Digest as _, Sha256};

pub use self::distinguished_name::{display as display_name, organisation};
pub use self::issuance::IdentityKey;
use self::issuance::Signer;
pub use self::logged::{embedded_scts, logged_tbs, public_key_hash};
pub use self::names::{Name, TEXT_BYTES_MAX};
pub use self::reading::Reading;
pub use self::serial::{canonical as canonical_serial, parse as parse_serial, signed_hex};
pub use self::tbs::NotCertificate;
use self::tbs::Tbs;
use crate::der::{self, Element};
use crate::deviation::Deviation;

/// Of one certificate; the subject of a real one has rarely more than two.
pub const COMMON_NAMES_MAX: usize = 64;
/// A real serial number has at most 20 bytes.
pub const SERIAL_BYTES_MAX: usize = 256;
/// A real issuer has about 100 bytes.
pub const ISSUER_BYTES_MAX: usize = 16 << 10;

/// How much to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// How many names of one certificate are kept; the rest is counted.
    pub names_max: usize,
    /// What is hashed.
    pub hashes: Hashes,
    /// Under which key the identity of the issuance is computed.
    pub identity_key: IdentityKey,
}

/// What is hashed of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hashes {
    /// The fingerprint and the identity of the issuance.
    Both,
    /// Neither; both stay empty. For those who want names and nothing to key them by.
    Neither,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            names_max: 1_000,
            hashes: Hashes::Both,
            identity_key: IdentityKey::default(),
        }
    }
}

/// Reads a certificate, or a precertificate with its poison, given as DER.
///
/// `issuer` is the certificate that came next to it, if any: where it is a Precertificate Signing
/// Certificate and the issuer of this precertificate, the identity of the issuance is computed as the
/// log would.
///
/// # Errors
/// [`NotCertificate`] says what the bytes are instead. `reading` is empty then.
pub fn read(
    der: &[u8],
    issuer: Option<&[u8]>,
    options: &ReadOptions,
    reading: &mut Reading,
) -> Result<(), NotCertificate> {
    reading.clear();
    let mut deviations = reading.deviations;
    let walked = tbs::of_certificate(der, &mut deviations)
        .map(|element| Tbs::walk(element.content, &mut deviations))
        .filter(Tbs::is_plausible);
    match walked {
        Some(tbs) => {
            reading.deviations = deviations;
            fill(&tbs, Submitted::Certificate { issuer }, options, reading);
        }
        None => salvage_or(der, tbs::identify(der), options, reading)?,
    }
    if options.hashes == Hashes::Both {
        reading.fingerprint = Some(Sha256::digest(der).into());
    }
    Ok(())
}

/// Reads the TBSCertificate of a precertificate entry of a log; `submitted` is the precertificate
/// that its fingerprint is taken of.
///
/// # Errors
/// As [`read`].
pub fn read_precert_entry(
    tbs_der: &[u8],
    submitted: Option<&[u8]>,
    options: &ReadOptions,
    reading: &mut Reading,
) -> Result<(), NotCertificate> {
    reading.clear();
    let mut deviations = reading.deviations;
    let mut outer = der::Walk::new(tbs_der);
    let element = outer.next(&mut deviations);
    deviations.insert_if(
        !element.is_some_and(|element| element.is_sequence()),
        Deviation::OddTag,
    );
    deviations.insert_if(!outer.rest().is_empty(), Deviation::TrailingBytes);
    let walked = element
        .map(|element| Tbs::walk(element.content, &mut deviations))
        .filter(Tbs::is_plausible);
    match walked {
        Some(tbs) => {
            reading.deviations = deviations;
            fill(&tbs, Submitted::Tbs, options, reading);
        }
        None => salvage_or(tbs_der, NotCertificate::Nothing, options, reading)?,
    }
    reading.precert = true;
    match submitted {
        Some(der) if options.hashes == Hashes::Both => reading.fingerprint = Some(Sha256::digest(der).into()),
        Some(_) => {}
        None => reading.deviations.insert(Deviation::PrecertMissing),
    }
    Ok(())
}

/// Fills `reading` for bytes that nothing is found in but that a log says are a certificate.
pub(crate) fn note_unparsed(der: &[u8], options: &ReadOptions, reading: &mut Reading) {
    reading.clear();
    reading.deviations.insert(Deviation::Unparsed);
    if options.hashes == Hashes::Both {
        reading.issuance = issuance::of_unparsed(der, options.identity_key);
        reading.fingerprint = Some(Sha256::digest(der).into());
    }
}

/// What the walked TBSCertificate came in.
#[derive(Clone, Copy)]
enum Submitted<'a> {
    Certificate { issuer: Option<&'a [u8]> },
    Tbs,
}

fn fill(tbs: &Tbs<'_>, submitted: Submitted<'_>, options: &ReadOptions, reading: &mut Reading) {
    reading.set_version(tbs);
    reading.set_serial(tbs.serial);
    reading.set_validity(tbs.validity);
    reading.set_issuer(tbs.issuer);
    let subject = subject::read(tbs.subject, reading);
    let mut identity = issuance::Identity::new(options.hashes, options.identity_key);
    let found = extensions::read(tbs, options, reading, |run| identity.keep(run));
    subject::add_names(&subject, options, reading);
    reading.finish_names();
    reading.precert = found.poison;
    let signer = match submitted {
        Submitted::Certificate { issuer } if found.poison => {
            reading
                .deviations
                .insert_if(issuer.is_none(), Deviation::PrecertWithoutIssuer);
            issuer.and_then(|issuer| Signer::of(issuer, tbs))
        }
        _ => None,
    };
    if options.hashes == Hashes::Neither {
        return;
    }
    reading.issuance = match signer {
        Some(signer) => {
            reading.deviations.insert(Deviation::PrecertSigningCertificate);
            issuance::through_signer(tbs, &signer, options.identity_key)
        }
        None => identity.finish(),
    };
}

fn salvage_or(
    der: &[u8],
    identified: NotCertificate,
    options: &ReadOptions,
    reading: &mut Reading,
) -> Result<(), NotCertificate> {
    if identified != NotCertificate::Nothing || !salvage::read(der, options, reading) {
        reading.clear();
        return Err(identified);
    }
    reading.deviations.insert(Deviation::Unparsed);
    if options.hashes == Hashes::Both {
        reading.issuance = issuance::of_unparsed(der, options.identity_key);
    }
    Ok(())
}

/// Whether a certificate carries the poison, found without a walk; it may be wrong for bytes that
/// only look like it.
pub(crate) fn may_be_precert(der: &[u8]) -> bool {
    memchr::memmem::find(der, extensions::POISON).is_some()
}

impl Element<'_> {
    fn is_sequence(&self) -> bool {
        self.tag == der::SEQUENCE
    }
}
