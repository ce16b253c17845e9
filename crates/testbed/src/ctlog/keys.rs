//! The keys that simulated logs and their list sign with.
//!
//! They stand in this repository for everyone to read, so what they sign proves nothing to anybody who
//! does not ask for it: no log of the world has them.
//!
//! # Limits
//! [`LOGS_MAX`] keys on P-256, since the same seed must give the same keys and `ring` makes none from a
//! seed; three RSA keys.

use anyhow::{Context as _, Result, anyhow};
use base64_simd::STANDARD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use sha2::{Digest as _, Sha256};

use crate::der::{Der, NULL, OBJECT_IDENTIFIER, SEQUENCE};
use crate::oid;

/// One PKCS#8 key a line, base64.
const EC_KEYS: &str = include_str!("../../data/public-test-keys-p256.txt");
const RSA_KEYS: &str = include_str!("../../data/public-test-keys-rsa.txt");

/// Keys for logs in one world; the others of the file are for forgeries.
pub(super) const LOGS_MAX: usize = 40;
/// Keys that sign in place of a log's own.
const FORGED_FROM: usize = LOGS_MAX;

/// Which RSA key.
#[derive(Clone, Copy)]
pub(super) enum RsaUse {
    List = 0,
    /// Signs lists that must not verify.
    OtherList = 1,
    Log = 2,
}

/// A key and what others know it by.
pub(super) struct SigningKey {
    pair: Pair,
    spki: Vec<u8>,
    random: SystemRandom,
}

enum Pair {
    Ec(Box<EcdsaKeyPair>),
    Rsa(Box<RsaKeyPair>),
}

impl SigningKey {
    /// The key on P-256 of the log with this number; each seed deals them out in another order.
    pub(super) fn of_log(seed: u64, number: usize) -> Result<Self> {
        if number >= LOGS_MAX {
            return Err(anyhow!("a world has at most {LOGS_MAX} logs"));
        }
        let turn = (seed % LOGS_MAX as u64) as usize;
        Self::ec((number + turn) % LOGS_MAX)
    }

    /// A key on P-256 that belongs to no log.
    pub(super) fn forged(number: usize) -> Result<Self> {
        let count = EC_KEYS.lines().count() - FORGED_FROM;
        Self::ec(FORGED_FROM + number % count)
    }

    fn ec(line: usize) -> Result<Self> {
        let random = SystemRandom::new();
        let der = decode(EC_KEYS, line)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &der, &random)
            .map_err(|error| anyhow!("read test key {line}: {error}"))?;
        let point = pair.public_key().as_ref();
        let spki = spki(oid::EC, &oid_element(oid::P256), point);
        Ok(Self {
            pair: Pair::Ec(Box::new(pair)),
            spki,
            random,
        })
    }

    pub(super) fn rsa(which: RsaUse) -> Result<Self> {
        let der = decode(RSA_KEYS, which as usize)?;
        let pair = RsaKeyPair::from_pkcs8(&der).map_err(|error| anyhow!("read the RSA test key: {error}"))?;
        let spki = spki(oid::RSA, NULL, pair.public_key().as_ref());
        Ok(Self {
            pair: Pair::Rsa(Box::new(pair)),
            spki,
            random: SystemRandom::new(),
        })
    }

    /// `SubjectPublicKeyInfo`.
    pub(super) fn spki(&self) -> &[u8] {
        &self.spki
    }

    pub(super) fn id(&self) -> [u8; 32] {
        Sha256::digest(&self.spki).into()
    }

    pub(super) fn base64(&self) -> String {
        BASE64.encode_to_string(&self.spki)
    }

    pub(super) fn pem(&self) -> String {
        let text = self.base64();
        let mut pem = "-----BEGIN PUBLIC KEY-----\n".to_owned();
        for line in text.as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem.push_str("-----END PUBLIC KEY-----\n");
        pem
    }

    /// The bare signature, over SHA-256 of `message`.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        match &self.pair {
            Pair::Ec(pair) => {
                let signature = pair.sign(&self.random, message);
                Ok(signature
                    .map_err(|_| anyhow!("sign with a P-256 key"))?
                    .as_ref()
                    .to_vec())
            }
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &self.random, message, &mut signature)
                    .map_err(|_| anyhow!("sign with an RSA key"))?;
                Ok(signature)
            }
        }
    }

    /// The signature as `DigitallySigned` of TLS 1.2.
    pub(super) fn digitally_signed(&self, message: &[u8]) -> Result<Vec<u8>> {
        let signature = self.sign(message)?;
        let algorithm = match self.pair {
            Pair::Ec(_) => 3,
            Pair::Rsa(_) => 1,
        };
        let length = u16::try_from(signature.len()).context("a signature below 64 KiB")?;
        let mut out = vec![4, algorithm];
        out.extend(length.to_be_bytes());
        out.extend(signature);
        Ok(out)
    }
}

fn decode(file: &str, line: usize) -> Result<Vec<u8>> {
    let text = file
        .lines()
        .nth(line)
        .with_context(|| format!("there is no test key {line}"))?;
    BASE64
        .decode_to_vec(text)
        .map_err(|_| anyhow!("test key {line} is no base64"))
}

fn oid_element(id: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Der(&mut out).value(OBJECT_IDENTIFIER, id);
    out
}

fn spki(algorithm: &[u8], parameters: &[u8], key: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Der(&mut out).nest(SEQUENCE, |der| {
        der.nest(SEQUENCE, |der| {
            der.value(OBJECT_IDENTIFIER, algorithm);
            der.verbatim(parameters);
        });
        der.bits(|der| der.verbatim(key));
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_ct_log::key::PublicKey;

    #[test]
    fn keys_are_read_and_sign_what_verifies() {
        let keys = [
            SigningKey::of_log(7, 0),
            SigningKey::forged(0),
            SigningKey::rsa(RsaUse::List),
            SigningKey::rsa(RsaUse::Log),
        ];
        for key in keys {
            let key = key.expect("a key");
            let public = PublicKey::from_pem(key.pem().as_bytes()).expect("a public key");
            assert_eq!(public.id().0, key.id());
            let signature = key.sign(b"message").expect("a signature");
            public.verify(b"message", &signature).expect("it verifies");
            assert!(public.verify(b"massage", &signature).is_err());
        }
    }

    #[test]
    fn no_two_logs_and_no_forgery_share_a_key() {
        let logs = (0..LOGS_MAX).map(|number| SigningKey::of_log(3, number));
        let forged = (0..4).map(SigningKey::forged);
        let mut ids: Vec<_> = logs.chain(forged).map(|key| key.expect("a key").id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), LOGS_MAX + 4);
        let first = |seed| SigningKey::of_log(seed, 0).expect("a key").id();
        assert_eq!(first(5), first(5));
        assert_ne!(first(5), first(6));
    }
}
