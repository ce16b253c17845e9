//! One issuance: the pieces of its TBS, and the certificate and precertificate put together from
//! them.
//!
//! # Invariants
//! Precertificate, certificate and the TBS that a log hashes differ only in the extension at one
//! place: poison, SCT list, or none (RFC 6962, 3.1 and 3.2).

use crate::der::{
    Critical, Der, INTEGER, NULL, OBJECT_IDENTIFIER, OCTET_STRING, PRINTABLE_STRING, SEQUENCE, UTF8_STRING,
};
use crate::issuers::{Issuer, Issuers, KeyKind, SctPlace, Validation, attribute, ec_key, rsa_key};
use crate::oid;
use crate::random::Random;
use crate::site::{Organisation, Site};

/// Longest common name that X.520 allows.
const COMMON_NAME_BYTES_MAX: usize = 64;
/// What a TBS takes, so that buffers rarely grow.
const TBS_BYTES: usize = 1536;

/// What a certificate says, for comparison with what a reader found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuance {
    /// Order of issuance in the corpus, from 0.
    pub number: u64,
    /// DNS names in the order of the certificate.
    pub names: Vec<String>,
    /// An IPv4 address among the alternative names.
    pub ip: Option<[u8; 4]>,
    /// Content of the DER integer, so with a leading 0 where the next bit is set.
    pub serial: Vec<u8>,
    /// Index into [`Issuers::all`].
    pub issuer: usize,
    /// Seconds since 1970.
    pub not_before: u64,
    /// Seconds since 1970, inclusive.
    pub not_after: u64,
    /// O= of the subject.
    pub organisation: Option<String>,
    /// CN= of the subject.
    pub common_name: Option<String>,
}

/// Which of the two an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// What the authority submitted before it issued.
    Precertificate,
    /// What servers present.
    Certificate,
}

/// TBS bytes around the place where the three forms differ.
struct Pieces {
    /// Version to public key.
    head: Vec<u8>,
    extensions_before: Vec<u8>,
    extensions_after: Vec<u8>,
}

/// One certificate of an issuance, encoded.
pub(crate) struct Encoded {
    pub(crate) issuance: Issuance,
    /// The precertificate or certificate, DER.
    pub(crate) der: Vec<u8>,
    /// For a precertificate, the TBS without poison.
    pub(crate) precertificate_tbs: Vec<u8>,
}

/// What to issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order {
    pub(crate) number: u64,
    pub(crate) site: u64,
    /// 0 for the first certificate of a site, then one more each renewal.
    pub(crate) generation: u32,
    pub(crate) issued_at_ms: u64,
}

/// Without a kind, nothing is encoded.
pub(crate) fn encode(
    seed: u64,
    domains: u64,
    order: Order,
    kind: Option<Kind>,
    issuers: &Issuers,
) -> Encoded {
    let site = Site::new(seed, order.site, domains, issuers);
    let issuer = &issuers.all()[site.issuer];
    let mut random = Random::for_item(
        seed,
        4,
        order
            .site
            .wrapping_mul(1 << 20)
            .wrapping_add(u64::from(order.generation)),
    );
    let issuance = issuance(&site, issuer, order, &mut random);
    let Some(kind) = kind else {
        return Encoded {
            issuance,
            der: Vec::new(),
            precertificate_tbs: Vec::new(),
        };
    };
    let pieces = pieces(&issuance, &site, issuer, &mut random);
    let mut middle = Vec::with_capacity(300);
    match kind {
        Kind::Precertificate => poison(&mut Der(&mut middle)),
        Kind::Certificate => sct_list(&mut Der(&mut middle), order.issued_at_ms, &mut random),
    }
    let mut signed = Vec::with_capacity(TBS_BYTES);
    tbs(&mut Der(&mut signed), &pieces, &middle);
    let mut der = Vec::with_capacity(TBS_BYTES + 512);
    Der(&mut der).nest(SEQUENCE, |der| {
        der.verbatim(&signed);
        der.verbatim(&issuer.signature_algorithm);
        signature(der, issuer.profile.signs_with, &mut random);
    });
    let mut precertificate_tbs = Vec::new();
    if kind == Kind::Precertificate {
        precertificate_tbs.reserve(TBS_BYTES);
        tbs(&mut Der(&mut precertificate_tbs), &pieces, &[]);
    }
    Encoded {
        issuance,
        der,
        precertificate_tbs,
    }
}

fn issuance(site: &Site, issuer: &Issuer, order: Order, random: &mut Random) -> Issuance {
    // Authorities date certificates back by an hour for clocks that are late.
    let not_before = order.issued_at_ms / 1000 - 3600 + random.below(60);
    let common_name = site.names.iter().find(|name| name.len() <= COMMON_NAME_BYTES_MAX);
    Issuance {
        number: order.number,
        names: site.names.clone(),
        ip: site.ip,
        serial: serial(issuer.profile.serial_bytes, random),
        issuer: site.issuer,
        not_before,
        not_after: not_before + issuer.profile.validity_days * 86_400 - 1,
        organisation: site
            .organisation
            .as_ref()
            .map(|organisation| organisation.name.clone()),
        common_name: common_name.filter(|_| site.has_common_name).cloned(),
    }
}

/// A positive DER integer of `count` random bytes, with the 0 in front that the top bit asks for.
fn serial(count: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes: [u8; 20] = random.bytes();
    // RFC 5280 allows 20 octets, the pad included.
    bytes[0] = if count == 20 {
        bytes[0] & 0x7f | 1
    } else {
        bytes[0] | 1
    };
    let mut serial = Vec::with_capacity(21);
    if bytes[0] & 0x80 != 0 {
        serial.push(0);
    }
    serial.extend_from_slice(&bytes[..count]);
    serial
}

fn pieces(issuance: &Issuance, site: &Site, issuer: &Issuer, random: &mut Random) -> Pieces {
    let mut head = Vec::with_capacity(768);
    let der = &mut Der(&mut head);
    der.verbatim(&[0xa0, 3, INTEGER, 1, 2]);
    der.value(INTEGER, &issuance.serial);
    der.verbatim(&issuer.signature_algorithm);
    der.verbatim(&issuer.name);
    der.nest(SEQUENCE, |der| {
        der.utc_time(issuance.not_before);
        der.utc_time(issuance.not_after);
    });
    subject(der, site.organisation.as_ref(), issuance.common_name.as_deref());
    match site.key {
        KeyKind::Rsa => rsa_key(der, &mut random.bytes::<256>()),
        KeyKind::Ec => ec_key(der, oid::P256, &random.bytes::<64>()),
    }
    let mut before = Vec::with_capacity(768);
    let mut after = Vec::with_capacity(256);
    usage_extensions(&mut Der(&mut before), site.key, random);
    identity_extensions(&mut Der(&mut before), issuer, random);
    let names = match issuer.profile.sct_place {
        SctPlace::Last => &mut before,
        SctPlace::BeforeNames => &mut after,
    };
    name_extensions(&mut Der(names), issuance, issuer, random);
    Pieces {
        head,
        extensions_before: before,
        extensions_after: after,
    }
}

fn subject(der: &mut Der<'_>, organisation: Option<&Organisation>, common_name: Option<&str>) {
    der.nest(SEQUENCE, |der| {
        if let Some(organisation) = organisation {
            attribute(der, oid::COUNTRY, PRINTABLE_STRING, organisation.country);
            attribute(der, oid::LOCALITY, UTF8_STRING, organisation.city);
            attribute(der, oid::ORGANISATION, UTF8_STRING, &organisation.name);
        }
        if let Some(common_name) = common_name {
            attribute(der, oid::COMMON_NAME, UTF8_STRING, common_name);
        }
    });
}

fn usage_extensions(der: &mut Der<'_>, key: KeyKind, random: &mut Random) {
    der.extension(oid::KEY_USAGE, Critical::Yes, |der| match key {
        KeyKind::Rsa => der.verbatim(&[3, 2, 5, 0xa0]),
        KeyKind::Ec => der.verbatim(&[3, 2, 7, 0x80]),
    });
    let for_clients = random.chance(400);
    der.extension(oid::EXTENDED_KEY_USAGE, Critical::No, |der| {
        der.nest(SEQUENCE, |der| {
            der.value(OBJECT_IDENTIFIER, oid::SERVER_AUTH);
            if for_clients {
                der.value(OBJECT_IDENTIFIER, oid::CLIENT_AUTH);
            }
        });
    });
    der.extension(oid::BASIC_CONSTRAINTS, Critical::Yes, |der| {
        der.value(SEQUENCE, &[])
    });
}

fn identity_extensions(der: &mut Der<'_>, issuer: &Issuer, random: &mut Random) {
    der.extension(oid::SUBJECT_KEY_ID, Critical::No, |der| {
        der.value(OCTET_STRING, &random.bytes::<20>())
    });
    der.extension(oid::AUTHORITY_KEY_ID, Critical::No, |der| {
        der.nest(SEQUENCE, |der| der.value(0x80, &issuer.key_id));
    });
    // Authorities of short-lived certificates have switched OCSP off.
    let has_ocsp = issuer.profile.validity_days > 90;
    der.extension(oid::AUTHORITY_INFO, Critical::No, |der| {
        der.nest(SEQUENCE, |der| {
            if has_ocsp {
                access(der, oid::OCSP, &[b"http://ocsp.", issuer.profile.host.as_bytes()]);
            }
            access(
                der,
                oid::CA_ISSUERS,
                &[b"http://", issuer.profile.host.as_bytes(), b"/ca.crt"],
            );
        });
    });
}

/// One AccessDescription; the URL comes in parts.
fn access(der: &mut Der<'_>, method: &[u8], url: &[&[u8]]) {
    der.nest(SEQUENCE, |der| {
        der.value(OBJECT_IDENTIFIER, method);
        der.nest(0x86, |der| url.iter().for_each(|part| der.verbatim(part)));
    });
}

fn name_extensions(der: &mut Der<'_>, issuance: &Issuance, issuer: &Issuer, random: &mut Random) {
    der.extension(oid::SUBJECT_ALT_NAME, Critical::No, |der| {
        der.nest(SEQUENCE, |der| {
            for name in &issuance.names {
                der.value(0x82, name.as_bytes());
            }
            if let Some(ip) = &issuance.ip {
                der.value(0x87, ip);
            }
        });
    });
    der.extension(oid::POLICIES, Critical::No, |der| {
        der.nest(SEQUENCE, |der| {
            der.nest(SEQUENCE, |der| {
                let policy = match issuer.profile.validates {
                    Validation::Domain => oid::DOMAIN_VALIDATED,
                    Validation::Organisation => oid::ORGANISATION_VALIDATED,
                };
                der.value(OBJECT_IDENTIFIER, policy);
            });
        });
    });
    let mut shard = String::with_capacity(8);
    random.push_hex(&mut shard, 4);
    der.extension(oid::CRL_POINTS, Critical::No, |der| {
        der.nest(SEQUENCE, |der| {
            der.nest(SEQUENCE, |der| {
                der.nest(0xa0, |der| {
                    der.nest(0xa0, |der| {
                        let url: [&[u8]; 5] = [
                            b"http://",
                            issuer.profile.host.as_bytes(),
                            b"/",
                            shard.as_bytes(),
                            b".crl",
                        ];
                        der.nest(0x86, |der| url.iter().for_each(|part| der.verbatim(part)));
                    });
                });
            });
        });
    });
}

fn tbs(der: &mut Der<'_>, pieces: &Pieces, middle: &[u8]) {
    der.nest(SEQUENCE, |der| {
        der.verbatim(&pieces.head);
        der.nest(0xa3, |der| {
            der.nest(SEQUENCE, |der| {
                der.verbatim(&pieces.extensions_before);
                der.verbatim(middle);
                der.verbatim(&pieces.extensions_after);
            });
        });
    });
}

fn poison(der: &mut Der<'_>) {
    der.extension(oid::POISON, Critical::Yes, |der| der.verbatim(NULL));
}

/// Two SCTs in the framing of RFC 6962, 3.3, with random log ids and signatures.
fn sct_list(der: &mut Der<'_>, issued_at_ms: u64, random: &mut Random) {
    const SIGNATURE_BYTES: usize = 72;
    const SCT_BYTES: usize = 1 + 32 + 8 + 2 + 2 + 2 + SIGNATURE_BYTES;
    let mut list = Vec::with_capacity(2 + 2 * (2 + SCT_BYTES));
    list.extend_from_slice(&(2 * (2 + SCT_BYTES) as u16).to_be_bytes());
    for _ in 0..2 {
        list.extend_from_slice(&(SCT_BYTES as u16).to_be_bytes());
        list.push(0);
        list.extend_from_slice(&random.bytes::<32>());
        list.extend_from_slice(&(issued_at_ms + random.below(500)).to_be_bytes());
        list.extend_from_slice(&[0, 0, 4, 3]);
        list.extend_from_slice(&(SIGNATURE_BYTES as u16).to_be_bytes());
        list.extend_from_slice(&random.bytes::<SIGNATURE_BYTES>());
    }
    der.extension(oid::SCT_LIST, Critical::No, |der| der.value(OCTET_STRING, &list));
}

/// Random bytes in the shape of a signature.
fn signature(der: &mut Der<'_>, kind: KeyKind, random: &mut Random) {
    der.bits(|der| match kind {
        KeyKind::Rsa => der.verbatim(&random.bytes::<256>()),
        KeyKind::Ec => der.nest(SEQUENCE, |der| {
            for _ in 0..2 {
                let mut part: [u8; 48] = random.bytes();
                part[0] |= 1;
                der.positive(&part);
            }
        }),
    });
}
