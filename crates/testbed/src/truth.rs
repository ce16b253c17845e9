//! What a reader must find in an entry, as one JSON object a line.

use crate::certificate::Kind;
use crate::corpus::Entry;
use crate::issuers::Issuers;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// One line of the truth file.
#[derive(Debug, Serialize)]
pub struct Truth<'a> {
    log: u16,
    index: u64,
    timestamp_ms: u64,
    kind: &'static str,
    /// Equal for all entries of one issuance.
    issuance: u64,
    names: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    /// Hexadecimal content of the DER integer.
    serial: String,
    /// SHA-256 of the certificate or precertificate, hexadecimal.
    sha256: String,
    issuer: String,
    not_before: u64,
    not_after: u64,
    organisation: Option<&'a str>,
    common_name: Option<&'a str>,
}

impl<'a> Truth<'a> {
    /// The truth about `entry`.
    #[must_use]
    pub fn of(entry: &'a Entry, issuers: &Issuers) -> Self {
        let issuance = &entry.issuance;
        Self {
            log: entry.log,
            index: entry.index,
            timestamp_ms: entry.timestamp_ms,
            kind: match entry.kind {
                Kind::Precertificate => "precertificate",
                Kind::Certificate => "certificate",
            },
            issuance: issuance.number,
            names: &issuance.names,
            ip: issuance.ip.map(|[a, b, c, d]| format!("{a}.{b}.{c}.{d}")),
            serial: hex(&issuance.serial),
            sha256: hex(&Sha256::digest(&entry.der)),
            issuer: issuers.all()[issuance.issuer].display_name(),
            not_before: issuance.not_before,
            not_after: issuance.not_after,
            organisation: issuance.organisation.as_deref(),
            common_name: issuance.common_name.as_deref(),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
        text.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
    }
    text
}
