//! One certificate by x509-parser, in owned strings, and its row.

use sha2::{Digest as _, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::entry::Submitted;

/// Bytes before the strings of a row: fingerprint, two dates, four lengths.
pub(crate) const HEADER_BYTES: usize = 48;

pub(crate) struct Certificate {
    pub(crate) sha256: [u8; 32],
    /// Distinct, in lower case, wildcards as they are.
    pub(crate) names: Vec<String>,
    common_name: String,
    organization: String,
    issuer: String,
    not_before: i64,
    not_after: i64,
}

impl Certificate {
    pub(crate) fn parse(submitted: Submitted<'_>) -> Option<Self> {
        let Submitted(der) = submitted;
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let mut names: Vec<String> = Vec::new();
        if let Some(extension) = certificate.subject_alternative_name().ok()? {
            let dns_names = extension
                .value
                .general_names
                .iter()
                .filter_map(|name| match name {
                    GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
                    _ => None,
                });
            names.extend(dns_names);
        }
        let subject = certificate.subject();
        let common_name = subject.iter_common_name().find_map(|name| name.as_str().ok());
        let organization = subject.iter_organization().find_map(|name| name.as_str().ok());
        names.extend(
            common_name
                .filter(|name| name.contains('.') && !name.contains(' '))
                .map(str::to_ascii_lowercase),
        );
        names.sort_unstable();
        names.dedup();
        Some(Self {
            sha256: Sha256::digest(der).into(),
            names,
            common_name: common_name.unwrap_or_default().to_owned(),
            organization: organization.unwrap_or_default().to_owned(),
            issuer: certificate.issuer().to_string(),
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
        })
    }

    /// The row under one of its names.
    pub(crate) fn row(&self, name: &str) -> Vec<u8> {
        let texts = [name, &self.common_name, &self.organization, &self.issuer];
        let text_bytes: usize = texts.iter().map(|text| text.len()).sum();
        let mut row = Vec::with_capacity(HEADER_BYTES + text_bytes);
        row.extend_from_slice(&self.sha256);
        row.extend_from_slice(&(self.not_before as u32).to_le_bytes());
        row.extend_from_slice(&(self.not_after as u32).to_le_bytes());
        for text in texts {
            row.extend_from_slice(&(text.len() as u16).to_le_bytes());
        }
        for text in texts {
            row.extend_from_slice(text.as_bytes());
        }
        row
    }
}
