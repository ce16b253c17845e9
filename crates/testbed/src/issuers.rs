//! Certificate authorities: a table of what they put into certificates, and chains made for them.
//!
//! Names and weights follow what public logs hold; keys and signatures are random bytes, so no
//! certificate made here verifies anywhere.

use crate::der::{
    BIT_STRING, Critical, Der, NULL, OBJECT_IDENTIFIER, PRINTABLE_STRING, SEQUENCE, SET, UTF8_STRING,
};
use crate::oid;
use crate::random::Random;
use sha2::{Digest as _, Sha256};

/// What one authority does alike in all its certificates.
pub(crate) struct Profile {
    country: &'static str,
    organisation: &'static str,
    common_name: &'static str,
    /// Share of all issuances, per about 1,000.
    weight: u64,
    pub(crate) validity_days: u64,
    pub(crate) serial_bytes: usize,
    pub(crate) signs_with: KeyKind,
    pub(crate) validates: Validation,
    /// Host that serves its CRLs and certificates.
    pub(crate) host: &'static str,
    pub(crate) sct_place: SctPlace,
}

/// Algorithm of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Rsa,
    Ec,
}

/// What the authority checked before it issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validation {
    Domain,
    Organisation,
}

/// Where poison and SCT list stand among the extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SctPlace {
    Last,
    BeforeNames,
}

use KeyKind::{Ec, Rsa};
use SctPlace::{BeforeNames, Last};
use Validation::{Domain, Organisation};

/// Columns: country, organisation, common names, weight of each, validity, serial, key, check, host, place.
type Row = (
    &'static str,
    &'static str,
    &'static [&'static str],
    u64,
    u64,
    usize,
    KeyKind,
    Validation,
    &'static str,
    SctPlace,
);

const ROWS: &[Row] = &[
    (
        "US",
        "Let's Encrypt",
        &["E5", "E6", "E7", "E8", "E9"],
        56,
        90,
        18,
        Ec,
        Domain,
        "c.lencr.org",
        Last,
    ),
    (
        "US",
        "Let's Encrypt",
        &["R10", "R11", "R12", "R13", "R14"],
        52,
        90,
        18,
        Rsa,
        Domain,
        "c.lencr.org",
        Last,
    ),
    (
        "US",
        "Google Trust Services",
        &["WR1", "WR3", "WR4"],
        22,
        90,
        16,
        Rsa,
        Domain,
        "c.pki.goog",
        Last,
    ),
    (
        "US",
        "Google Trust Services",
        &["WE1", "WE2", "WE3"],
        32,
        90,
        16,
        Ec,
        Domain,
        "c.pki.goog",
        Last,
    ),
    (
        "GB",
        "Sectigo Limited",
        &[
            "Sectigo Public Server Authentication CA DV R36",
            "Sectigo RSA Domain Validation Secure Server CA",
        ],
        14,
        199,
        16,
        Rsa,
        Domain,
        "crl.sectigo.com",
        BeforeNames,
    ),
    (
        "GB",
        "Sectigo Limited",
        &["Sectigo Public Server Authentication CA DV E36"],
        6,
        199,
        16,
        Ec,
        Domain,
        "crl.sectigo.com",
        BeforeNames,
    ),
    (
        "GB",
        "Sectigo Limited",
        &["Sectigo Public Server Authentication CA OV R36"],
        5,
        199,
        16,
        Rsa,
        Organisation,
        "crl.sectigo.com",
        BeforeNames,
    ),
    (
        "US",
        "DigiCert Inc",
        &[
            "DigiCert Global G2 TLS RSA SHA256 2020 CA1",
            "Encryption Everywhere DV TLS CA - G2",
            "RapidSSL TLS RSA CA G1",
            "GeoTrust TLS RSA CA G1",
        ],
        9,
        199,
        16,
        Rsa,
        Organisation,
        "crl3.digicert.com",
        Last,
    ),
    (
        "US",
        "DigiCert Inc",
        &[
            "DigiCert Global G3 TLS ECC SHA384 2020 CA1",
            "Thawte TLS RSA CA G1",
        ],
        4,
        199,
        16,
        Ec,
        Organisation,
        "crl3.digicert.com",
        Last,
    ),
    (
        "US",
        "Amazon",
        &[
            "Amazon RSA 2048 M01",
            "Amazon RSA 2048 M02",
            "Amazon RSA 2048 M03",
            "Amazon RSA 2048 M04",
        ],
        14,
        199,
        16,
        Rsa,
        Domain,
        "crl.r2m01.amazontrust.com",
        Last,
    ),
    (
        "US",
        "Amazon",
        &["Amazon ECDSA 256 M01", "Amazon ECDSA 256 M02"],
        2,
        199,
        16,
        Ec,
        Domain,
        "crl.e2m01.amazontrust.com",
        Last,
    ),
    (
        "AT",
        "ZeroSSL",
        &["ZeroSSL RSA Domain Secure Site CA"],
        7,
        90,
        16,
        Rsa,
        Domain,
        "zerossl.crl.sectigo.com",
        BeforeNames,
    ),
    (
        "AT",
        "ZeroSSL",
        &["ZeroSSL ECC Domain Secure Site CA"],
        11,
        90,
        16,
        Ec,
        Domain,
        "zerossl.crl.sectigo.com",
        BeforeNames,
    ),
    (
        "US",
        "GoDaddy.com, Inc.",
        &["Go Daddy Secure Certificate Authority - G2"],
        16,
        199,
        17,
        Rsa,
        Domain,
        "crl.godaddy.com",
        Last,
    ),
    (
        "US",
        "Starfield Technologies, Inc.",
        &["Starfield Secure Certificate Authority - G2"],
        4,
        199,
        17,
        Rsa,
        Domain,
        "crl.starfieldtech.com",
        Last,
    ),
    (
        "BE",
        "GlobalSign nv-sa",
        &[
            "GlobalSign GCC R6 AlphaSSL CA 2025",
            "GlobalSign RSA OV SSL CA 2018",
            "GlobalSign Atlas R3 DV TLS CA 2026 Q2",
        ],
        5,
        199,
        19,
        Rsa,
        Organisation,
        "crl.globalsign.com",
        Last,
    ),
    (
        "US",
        "Microsoft Corporation",
        &[
            "Microsoft Azure RSA TLS Issuing CA 03",
            "Microsoft Azure RSA TLS Issuing CA 04",
            "Microsoft Azure RSA TLS Issuing CA 07",
        ],
        9,
        180,
        19,
        Rsa,
        Organisation,
        "www.microsoft.com",
        BeforeNames,
    ),
    (
        "US",
        "Microsoft Corporation",
        &["Microsoft Azure ECC TLS Issuing CA 03"],
        3,
        180,
        19,
        Ec,
        Organisation,
        "www.microsoft.com",
        BeforeNames,
    ),
    (
        "US",
        "Cloudflare, Inc.",
        &[
            "Cloudflare TLS Issuing ECC CA 1",
            "Cloudflare TLS Issuing RSA CA 1",
        ],
        5,
        90,
        16,
        Ec,
        Domain,
        "crl.ssl.com",
        Last,
    ),
    (
        "US",
        "SSL Corporation",
        &["SSL.com TLS Transit ECC CA R2", "SSL.com RSA SSL subCA"],
        4,
        90,
        16,
        Ec,
        Domain,
        "crls.ssl.com",
        Last,
    ),
    (
        "PL",
        "Asseco Data Systems S.A.",
        &["Certum Domain Validation CA SHA2", "Certum OV TLS G2 R39 CA"],
        3,
        199,
        16,
        Rsa,
        Organisation,
        "certum.crl.certum.pl",
        Last,
    ),
    (
        "IT",
        "Actalis S.p.A.",
        &["Actalis Organization Validated Server CA G3"],
        4,
        199,
        16,
        Rsa,
        Organisation,
        "crl03.actalis.it",
        Last,
    ),
    (
        "CN",
        "TrustAsia Technologies, Inc.",
        &["TrustAsia RSA DV TLS CA G2", "TrustAsia ECC DV TLS CA G2"],
        4,
        199,
        16,
        Rsa,
        Domain,
        "crl.trust-provider.cn",
        Last,
    ),
    (
        "CN",
        "WoTrus CA Limited",
        &["WoTrus RSA DV SSL CA 2"],
        2,
        199,
        16,
        Rsa,
        Domain,
        "crl.wotrus.com",
        Last,
    ),
    (
        "NO",
        "Buypass AS-983163327",
        &["Buypass Class 2 CA 5"],
        3,
        180,
        16,
        Rsa,
        Domain,
        "crl.buypass.no",
        Last,
    ),
    (
        "GR",
        "Hellenic Academic and Research Institutions CA",
        &["GEANT TLS RSA 1", "GEANT TLS ECC 1"],
        3,
        199,
        16,
        Rsa,
        Organisation,
        "crl.harica.gr",
        Last,
    ),
    (
        "CH",
        "SwissSign AG",
        &["SwissSign RSA TLS DV ICA 2022 - 1"],
        2,
        199,
        20,
        Rsa,
        Domain,
        "crl.swisssign.ch",
        Last,
    ),
    (
        "DE",
        "D-Trust GmbH",
        &["D-TRUST SSL Class 3 CA 1 2009"],
        1,
        199,
        16,
        Rsa,
        Organisation,
        "crl.d-trust.net",
        Last,
    ),
    (
        "US",
        "Entrust, Inc.",
        &["Entrust Certification Authority - L1K"],
        2,
        199,
        16,
        Rsa,
        Organisation,
        "crl.entrust.net",
        BeforeNames,
    ),
    (
        "JP",
        "SECOM Trust Systems CO.,LTD.",
        &["SECOM Passport for Web SR 3.0 CA"],
        1,
        199,
        17,
        Rsa,
        Organisation,
        "repo1.secomtrust.net",
        Last,
    ),
    (
        "JP",
        "Cybertrust Japan Co., Ltd.",
        &["Cybertrust Japan SureServer CA G4"],
        1,
        199,
        20,
        Rsa,
        Organisation,
        "crl.cybertrust.ne.jp",
        Last,
    ),
];

fn profiles() -> Vec<Profile> {
    let profile = |row: &Row, common_name: &'static str| Profile {
        country: row.0,
        organisation: row.1,
        common_name,
        weight: row.3,
        validity_days: row.4,
        serial_bytes: row.5,
        signs_with: row.6,
        validates: row.7,
        host: row.8,
        sct_place: row.9,
    };
    ROWS.iter()
        .flat_map(|row| row.2.iter().map(move |name| profile(row, name)))
        .collect()
}

/// One authority with its made-up key and chain.
pub struct Issuer {
    pub(crate) profile: Profile,
    /// Distinguished name, DER.
    pub(crate) name: Vec<u8>,
    /// Signature algorithm of what it signs, DER.
    pub(crate) signature_algorithm: Vec<u8>,
    pub(crate) key_id: [u8; 20],
    pub(crate) key_hash: [u8; 32],
    chain: Vec<Vec<u8>>,
    chain_fingerprints: Vec<[u8; 32]>,
}

impl Issuer {
    /// `O, CN` as people write it.
    #[must_use]
    pub fn display_name(&self) -> String {
        format!("{}, {}", self.profile.organisation, self.profile.common_name)
    }

    /// Intermediate and root, DER, together about 3 KB.
    #[must_use]
    pub fn chain(&self) -> &[Vec<u8>] {
        &self.chain
    }

    /// SHA-256 of each certificate of [`Self::chain`].
    #[must_use]
    pub fn chain_fingerprints(&self) -> &[[u8; 32]] {
        &self.chain_fingerprints
    }
}

/// The authorities of one corpus.
pub struct Issuers(Vec<Issuer>);

impl Issuers {
    pub(crate) fn new(seed: u64) -> Self {
        let issuers = profiles().into_iter().enumerate();
        Self(
            issuers
                .map(|(index, profile)| issuer(profile, Random::for_item(seed, 1, index as u64)))
                .collect(),
        )
    }

    pub(crate) fn pick(&self, random: &mut Random) -> usize {
        random.pick_weighted(&self.0, |issuer| issuer.profile.weight)
    }

    /// All of them; entries name theirs by index.
    #[must_use]
    pub fn all(&self) -> &[Issuer] {
        &self.0
    }
}

fn issuer(profile: Profile, mut random: Random) -> Issuer {
    let name = distinguished_name(profile.country, profile.organisation, profile.common_name);
    let root_name = distinguished_name(
        profile.country,
        profile.organisation,
        &format!("{} Root", profile.organisation),
    );
    let mut key = Vec::new();
    authority_key(&mut Der(&mut key), profile.signs_with, &mut random);
    let mut root_key = Vec::new();
    authority_key(&mut Der(&mut root_key), KeyKind::Rsa, &mut random);
    let intermediate = authority_certificate(&name, &root_name, &key, &mut random);
    let root = authority_certificate(&root_name, &root_name, &root_key, &mut random);
    let mut signature_algorithm = Vec::new();
    algorithm(&mut Der(&mut signature_algorithm), profile.signs_with);
    let chain = vec![intermediate, root];
    Issuer {
        name,
        signature_algorithm,
        key_id: random.bytes(),
        key_hash: Sha256::digest(&key).into(),
        chain_fingerprints: chain
            .iter()
            .map(|certificate| Sha256::digest(certificate).into())
            .collect(),
        chain,
        profile,
    }
}

fn distinguished_name(country: &str, organisation: &str, common_name: &str) -> Vec<u8> {
    let mut name = Vec::new();
    Der(&mut name).nest(SEQUENCE, |der| {
        attribute(der, oid::COUNTRY, PRINTABLE_STRING, country);
        attribute(der, oid::ORGANISATION, UTF8_STRING, organisation);
        attribute(der, oid::COMMON_NAME, UTF8_STRING, common_name);
    });
    name
}

/// One relative distinguished name with one attribute.
pub(crate) fn attribute(der: &mut Der<'_>, id: &[u8], string: u8, value: &str) {
    der.nest(SET, |der| {
        der.nest(SEQUENCE, |der| {
            der.value(OBJECT_IDENTIFIER, id);
            der.value(string, value.as_bytes());
        });
    });
}

fn algorithm(der: &mut Der<'_>, kind: KeyKind) {
    der.nest(SEQUENCE, |der| match kind {
        KeyKind::Rsa => {
            der.value(OBJECT_IDENTIFIER, oid::SHA256_WITH_RSA);
            der.verbatim(NULL);
        }
        KeyKind::Ec => der.value(OBJECT_IDENTIFIER, oid::ECDSA_WITH_SHA384),
    });
}

/// Subject public key of the size authorities use: RSA 4,096 or P-384.
fn authority_key(der: &mut Der<'_>, kind: KeyKind, random: &mut Random) {
    match kind {
        KeyKind::Rsa => rsa_key(der, &mut random.bytes::<512>()),
        KeyKind::Ec => ec_key(der, oid::P384, &random.bytes::<96>()),
    }
}

/// SubjectPublicKeyInfo of an RSA key with this modulus, made odd and full-length.
pub(crate) fn rsa_key(der: &mut Der<'_>, modulus: &mut [u8]) {
    if let [first, .., last] = modulus {
        *first |= 0x80;
        *last |= 1;
    }
    der.nest(SEQUENCE, |der| {
        der.nest(SEQUENCE, |der| {
            der.value(OBJECT_IDENTIFIER, oid::RSA);
            der.verbatim(NULL);
        });
        der.bits(|der| {
            der.nest(SEQUENCE, |der| {
                der.positive(modulus);
                der.positive(&[1, 0, 1]);
            });
        });
    });
}

/// SubjectPublicKeyInfo of an EC key with these coordinates, which lie on no curve.
pub(crate) fn ec_key(der: &mut Der<'_>, curve: &[u8], coordinates: &[u8]) {
    der.nest(SEQUENCE, |der| {
        der.nest(SEQUENCE, |der| {
            der.value(OBJECT_IDENTIFIER, oid::EC);
            der.value(OBJECT_IDENTIFIER, curve);
        });
        der.bits(|der| {
            der.verbatim(&[4]);
            der.verbatim(coordinates);
        });
    });
}

/// A CA certificate signed by an RSA 4,096 root, 2020 to 2035.
fn authority_certificate(subject: &[u8], issuer: &[u8], key: &[u8], random: &mut Random) -> Vec<u8> {
    let mut certificate = Vec::new();
    Der(&mut certificate).nest(SEQUENCE, |der| {
        der.nest(SEQUENCE, |der| {
            der.verbatim(&[0xa0, 3, 2, 1, 2]);
            let mut serial: [u8; 16] = random.bytes();
            serial[0] |= 1;
            der.positive(&serial);
            algorithm(der, KeyKind::Rsa);
            der.verbatim(issuer);
            der.nest(SEQUENCE, |der| {
                der.utc_time(1_577_836_800);
                der.utc_time(2_051_222_400);
            });
            der.verbatim(subject);
            der.verbatim(key);
            der.nest(0xa3, |der| {
                der.nest(SEQUENCE, |der| {
                    der.extension(oid::KEY_USAGE, Critical::Yes, |der| {
                        der.value(BIT_STRING, &[1, 0x06])
                    });
                    der.extension(oid::BASIC_CONSTRAINTS, Critical::Yes, |der| {
                        der.nest(SEQUENCE, |der| der.verbatim(crate::der::TRUE));
                    });
                });
            });
        });
        algorithm(der, KeyKind::Rsa);
        der.bits(|der| der.verbatim(&random.bytes::<512>()));
    });
    certificate
}
