//! Object identifiers as the content bytes of their DER.

pub(crate) const COMMON_NAME: &[u8] = &[0x55, 4, 3];
pub(crate) const COUNTRY: &[u8] = &[0x55, 4, 6];
pub(crate) const LOCALITY: &[u8] = &[0x55, 4, 7];
pub(crate) const ORGANISATION: &[u8] = &[0x55, 4, 10];

pub(crate) const SUBJECT_KEY_ID: &[u8] = &[0x55, 0x1d, 14];
pub(crate) const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
pub(crate) const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 17];
pub(crate) const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
pub(crate) const CRL_POINTS: &[u8] = &[0x55, 0x1d, 31];
pub(crate) const POLICIES: &[u8] = &[0x55, 0x1d, 32];
pub(crate) const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 35];
pub(crate) const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
/// 1.3.6.1.5.5.7.1.1
pub(crate) const AUTHORITY_INFO: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 1, 1];
/// 1.3.6.1.5.5.7.48.1 and .2
pub(crate) const OCSP: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 48, 1];
pub(crate) const CA_ISSUERS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 48, 2];
/// 1.3.6.1.5.5.7.3.1 and .2
pub(crate) const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
pub(crate) const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
/// 2.23.140.1.2.1 and .2
pub(crate) const DOMAIN_VALIDATED: &[u8] = &[0x67, 0x81, 0x0c, 1, 2, 1];
pub(crate) const ORGANISATION_VALIDATED: &[u8] = &[0x67, 0x81, 0x0c, 1, 2, 2];
/// 1.3.6.1.4.1.11129.2.4.2 (RFC 6962, 3.3)
pub(crate) const SCT_LIST: &[u8] = &[0x2b, 6, 1, 4, 1, 0xd6, 0x79, 2, 4, 2];
/// 1.3.6.1.4.1.11129.2.4.3 (RFC 6962, 3.1)
pub(crate) const POISON: &[u8] = &[0x2b, 6, 1, 4, 1, 0xd6, 0x79, 2, 4, 3];

/// 1.2.840.113549.1.1.1 and .11
pub(crate) const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
pub(crate) const SHA256_WITH_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
/// 1.2.840.10045.2.1
pub(crate) const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
/// 1.2.840.10045.3.1.7
pub(crate) const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
/// 1.3.132.0.34
pub(crate) const P384: &[u8] = &[0x2b, 0x81, 4, 0, 0x22];
/// 1.2.840.10045.4.3.3
pub(crate) const ECDSA_WITH_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3];
