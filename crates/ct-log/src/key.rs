//! Public keys of logs and lists, and the signatures that they check.
//!
//! RFC 6962 section 2.1.4 allows ECDSA over P-256 and RSA of at least 2,048 bits, both with SHA-256.
//! The identity of a log is SHA-256 of its key (section 3.2).
//!
//! # Limits
//! [`KEY_BYTES_MAX`]; RSA moduli of 2,048 to 8,192 bits.

use std::fmt;

use memchr::memmem;
use ring::signature::{ECDSA_P256_SHA256_ASN1, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use sha2::{Digest as _, Sha256};

use crate::der::{self, Element, Walk};
use crate::deviation::Deviations;

/// Of a `SubjectPublicKeyInfo`: an RSA key of 8,192 bits has 1,062.
pub const KEY_BYTES_MAX: usize = 4_096;
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;

/// 1.2.840.10045.2.1
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
/// 1.2.840.10045.3.1.7
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
/// 1.2.840.113549.1.1.1
const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];

/// The identity of a log: SHA-256 of its public key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogId(pub [u8; 32]);

impl LogId {
    /// Reads padded base64 of exactly 32 bytes, as the log list has it.
    #[must_use]
    pub fn from_base64(text: &str) -> Option<Self> {
        crate::base64::decode(text, 32)?.try_into().ok().map(Self)
    }
}

/// Padded base64, as the log list has it.
impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base64_simd::STANDARD.encode_to_string(self.0))
    }
}

impl fmt::Debug for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a key signs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// ECDSA over P-256 with SHA-256.
    EcdsaP256,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rsa,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EcdsaP256 => "ECDSA P-256",
            Self::Rsa => "RSA",
        })
    }
}

/// A public key that was read and is of a kind that logs may have.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    algorithm: Algorithm,
    id: LogId,
    /// The point, or the `RSAPublicKey`.
    key: Vec<u8>,
}

/// Why bytes are no key of a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is no block with a public key.
    #[error("there is no -----BEGIN PUBLIC KEY----- block; give the public key, not a certificate")]
    NotPem,
    /// The text between the lines, or the field, is no base64.
    #[error("the key is not base64")]
    NotBase64,
    /// The bytes are no `SubjectPublicKeyInfo`.
    #[error("the key is no SubjectPublicKeyInfo in DER")]
    NotSpki,
    /// It is a key of another kind.
    #[error("the key is neither ECDSA over P-256 nor RSA, the two kinds that logs may have")]
    Unsupported,
    /// It is an RSA key of a size that is not accepted.
    #[error("the RSA key has {bits} bits; from 2048 to 8192 are accepted")]
    RsaBits {
        /// Of its modulus.
        bits: usize,
    },
}

/// Why a signature does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The bytes are no `DigitallySigned`.
    #[error("the signature is no DigitallySigned structure: {0}")]
    Malformed(&'static str),
    /// It was made with another hash than SHA-256.
    #[error("the signature is over hash algorithm {0}; logs use SHA-256 (4)")]
    HashAlgorithm(u8),
    /// It was made with another kind of key.
    #[error(
        "the signature is of algorithm {signature}, the key is {key}; this may be the key of another log"
    )]
    Algorithm {
        /// The number that TLS gives it: 1 RSA, 3 ECDSA.
        signature: u8,
        /// What the key signs with.
        key: Algorithm,
    },
    /// The key did not sign this.
    #[error(
        "the signature does not verify with key {key_id}; what it signs was changed, or another key signed it"
    )]
    Invalid {
        /// SHA-256 of the key: the log's id, if it is a log's.
        key_id: LogId,
    },
}

impl PublicKey {
    /// Reads a `SubjectPublicKeyInfo`.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_spki(der: &[u8]) -> Result<Self, KeyError> {
        let (algorithm, parameters, key) = parts(der).ok_or(KeyError::NotSpki)?;
        let algorithm = match algorithm {
            EC_PUBLIC_KEY if parameters == P256 && key.len() == 65 && key.first() == Some(&4) => {
                Algorithm::EcdsaP256
            }
            RSA_ENCRYPTION => {
                let bits = modulus_bits(key).ok_or(KeyError::NotSpki)?;
                if !RSA_BITS.contains(&bits) {
                    return Err(KeyError::RsaBits { bits });
                }
                Algorithm::Rsa
            }
            _ => return Err(KeyError::Unsupported),
        };
        Ok(Self {
            algorithm,
            id: LogId(Sha256::digest(der).into()),
            key: key.to_vec(),
        })
    }

    /// Reads base64 of a `SubjectPublicKeyInfo`, as the log list has it.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        let der = crate::base64::decode(text, KEY_BYTES_MAX).ok_or(KeyError::NotBase64)?;
        Self::from_spki(&der)
    }

    /// Reads the first `PUBLIC KEY` block of a text.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        const BEGIN: &[u8] = b"-----BEGIN PUBLIC KEY-----";
        let start = memmem::find(text, BEGIN).ok_or(KeyError::NotPem)? + BEGIN.len();
        let body = text.get(start..).unwrap_or_default();
        let end = memmem::find(body, b"-----END PUBLIC KEY-----").ok_or(KeyError::NotPem)?;
        let body = body.get(..end).unwrap_or_default();
        let body: Vec<u8> = body
            .iter()
            .copied()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        let body = std::str::from_utf8(&body).map_err(|_| KeyError::NotBase64)?;
        Self::from_base64(body)
    }

    /// SHA-256 of the key: of a log's, the log's id.
    #[must_use]
    pub fn id(&self) -> LogId {
        self.id
    }

    /// What it signs with.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Checks a bare signature over `message`: ECDSA in DER, or RSA as long as the modulus.
    ///
    /// # Errors
    /// [`SignatureError::Invalid`].
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), SignatureError> {
        let verified = match self.algorithm {
            Algorithm::EcdsaP256 => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.key).verify(message, signature)
            }
            Algorithm::Rsa => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &self.key).verify(message, signature)
            }
        };
        verified.map_err(|_| SignatureError::Invalid { key_id: self.id() })
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} key {}", self.algorithm, self.id())
    }
}

/// A signature as TLS writes it: hash algorithm, signature algorithm, and the bytes with their length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigitallySigned {
    algorithm: u8,
    signature: Vec<u8>,
}

impl DigitallySigned {
    /// Reads `bytes`, all of which must belong to it.
    ///
    /// # Errors
    /// It is malformed, or made with another hash than SHA-256.
    pub fn parse(bytes: &[u8]) -> Result<Self, SignatureError> {
        let Some((&[hash, algorithm, high, low], signature)) = bytes.split_first_chunk() else {
            return Err(SignatureError::Malformed("it ends early"));
        };
        if usize::from(u16::from_be_bytes([high, low])) != signature.len() {
            return Err(SignatureError::Malformed("its length is another than it says"));
        }
        if hash != 4 {
            return Err(SignatureError::HashAlgorithm(hash));
        }
        Ok(Self {
            algorithm,
            signature: signature.to_vec(),
        })
    }

    /// Checks that `key` signed `message`.
    ///
    /// # Errors
    /// [`SignatureError`].
    pub fn verify(&self, message: &[u8], key: &PublicKey) -> Result<(), SignatureError> {
        let expected = match key.algorithm {
            Algorithm::EcdsaP256 => 3,
            Algorithm::Rsa => 1,
        };
        if self.algorithm != expected {
            return Err(SignatureError::Algorithm {
                signature: self.algorithm,
                key: key.algorithm,
            });
        }
        key.verify(message, &self.signature)
    }
}

/// The object identifiers of algorithm and parameters, and the content of the bit string.
fn parts(der: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    if der.len() > KEY_BYTES_MAX {
        return None;
    }
    let mut strict = Deviations::NONE;
    let mut outer = Walk::new(only(Walk::new(der), der::SEQUENCE)?.content);
    let mut algorithm = outer.next_if(der::SEQUENCE, &mut strict)?.children();
    let bits = only(outer, der::BIT_STRING)?;
    let id = algorithm.next_if(der::OID, &mut strict)?;
    let parameters = algorithm.next(&mut strict);
    let (0, key) = bits.content.split_first()? else {
        return None;
    };
    let is_strict = strict.is_empty() && algorithm.rest().is_empty();
    is_strict.then_some((
        id.content,
        parameters.map_or(&[][..], |element| element.content),
        key,
    ))
}

fn modulus_bits(key: &[u8]) -> Option<usize> {
    let mut strict = Deviations::NONE;
    let mut numbers = only(Walk::new(key), der::SEQUENCE)?.children();
    let modulus = numbers.next_if(der::INTEGER, &mut strict)?;
    only(numbers, der::INTEGER)?;
    let first = modulus.content.iter().position(|byte| *byte != 0)?;
    let digits = modulus.content.get(first..)?;
    let unused = digits.first()?.leading_zeros() as usize;
    strict.is_empty().then_some(digits.len() * 8 - unused)
}

/// The element of a walk that has this tag and nothing behind it.
fn only<'a>(mut walk: Walk<'a>, tag: u8) -> Option<Element<'a>> {
    let mut strict = Deviations::NONE;
    let element = walk.next_if(tag, &mut strict)?;
    (walk.rest().is_empty() && strict.is_empty()).then_some(element)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Google's log Argon2020.
    const ARGON: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE6Tx2p1yKY4015NyIYvdrk36es0uAc1zA4PQ+TGRY+3ZjUTIYY9Wyu+3q/147JG4vNVKLtDWarZwVqGkg6lAYzA==";

    fn spki(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
        let tlv = |tag: u8, content: &[u8]| {
            let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
            let header = match content.len() {
                0..0x80 => vec![tag, low],
                0x80..0x100 => vec![tag, 0x81, low],
                _ => vec![tag, 0x82, high, low],
            };
            [&header[..], content].concat()
        };
        let bits = [&[0], key].concat();
        tlv(0x30, &[tlv(0x30, algorithm), tlv(3, &bits)].concat())
    }

    #[test]
    fn a_log_is_its_key() {
        let key = PublicKey::from_base64(ARGON).unwrap();
        assert_eq!(key.algorithm(), Algorithm::EcdsaP256);
        assert_eq!(
            key.id().to_string(),
            "sh4FzIuizYogTodm+Su5iiUgZ2va+nDnsklTLe+LkF4="
        );
        assert_eq!(LogId::from_base64(&key.id().to_string()), Some(key.id()));
        let pem = format!(
            "note\n-----BEGIN PUBLIC KEY-----\n{}\n{}\n-----END PUBLIC KEY-----\n",
            &ARGON[..64],
            &ARGON[64..]
        );
        assert_eq!(PublicKey::from_pem(pem.as_bytes()), Ok(key));
    }

    #[test]
    fn what_is_no_key_says_so() {
        let check = |bytes: &[u8], expected: KeyError| assert_eq!(PublicKey::from_spki(bytes), Err(expected));
        let der = crate::base64::decode(ARGON, 1_000).unwrap();
        check(b"", KeyError::NotSpki);
        for at in 0..der.len() {
            check(&der[..at], KeyError::NotSpki);
        }
        check(&[&der[..], &[0]].concat(), KeyError::NotSpki);
        let mut compressed = der.clone();
        compressed[26] = 2;
        check(&compressed, KeyError::Unsupported);
        // The same key with a length in more bytes than it needs, and with something behind the curve.
        let loose = [&[0x30, 0x81, 0x59][..], &der[2..]].concat();
        check(&loose, KeyError::NotSpki);
        let more = [&[6, 7][..], EC_PUBLIC_KEY, &[6, 8], P256, &[5, 0]].concat();
        check(&spki(&more, &der[26..]), KeyError::NotSpki);
        let same = [&[6, 7][..], EC_PUBLIC_KEY, &[6, 8], P256].concat();
        assert_eq!(
            PublicKey::from_spki(&spki(&same, &der[26..])),
            PublicKey::from_spki(&der)
        );
        // Ed25519, and RSA of 1,024 bits.
        check(&spki(&[6, 3, 0x2b, 0x65, 0x70], &[9; 32]), KeyError::Unsupported);
        let modulus = [
            &[0x30, 0x81, 0x89, 2, 0x81, 0x81, 0][..],
            &[0xff; 128],
            &[2, 3, 1, 0, 1],
        ]
        .concat();
        let rsa = [&[6, 9][..], RSA_ENCRYPTION, &[5, 0]].concat();
        check(&spki(&rsa, &modulus), KeyError::RsaBits { bits: 1_024 });
        check(&spki(&rsa, b"no number"), KeyError::NotSpki);
        check(&[0x30; 5_000], KeyError::NotSpki);
        let pem = |text: &str| PublicKey::from_pem(text.as_bytes());
        assert_eq!(pem("-----BEGIN CERTIFICATE-----"), Err(KeyError::NotPem));
        assert_eq!(pem("-----BEGIN PUBLIC KEY-----\nMFkw"), Err(KeyError::NotPem));
        assert_eq!(
            pem("-----BEGIN PUBLIC KEY-----\n*\n-----END PUBLIC KEY-----"),
            Err(KeyError::NotBase64)
        );
    }

    #[test]
    fn malformed_signatures_say_what_is_wrong() {
        let key = PublicKey::from_base64(ARGON).unwrap();
        let parse = |bytes: &[u8]| DigitallySigned::parse(bytes);
        assert!(matches!(parse(&[4, 3, 0]), Err(SignatureError::Malformed(_))));
        assert!(matches!(
            parse(&[4, 3, 0, 2, 9]),
            Err(SignatureError::Malformed(_))
        ));
        assert!(matches!(
            parse(&[4, 3, 0, 0, 9]),
            Err(SignatureError::Malformed(_))
        ));
        assert_eq!(parse(&[2, 3, 0, 0]), Err(SignatureError::HashAlgorithm(2)));
        let rsa = parse(&[4, 1, 0, 1, 9]).unwrap();
        let error = rsa.verify(b"", &key).unwrap_err();
        assert_eq!(
            error,
            SignatureError::Algorithm {
                signature: 1,
                key: Algorithm::EcdsaP256
            }
        );
        let none = parse(&[4, 3, 0, 0]).unwrap();
        assert_eq!(
            none.verify(b"", &key),
            Err(SignatureError::Invalid { key_id: key.id() })
        );
    }
}
