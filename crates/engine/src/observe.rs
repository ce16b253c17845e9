//! From what `ct-log` reads to what `ct-index` takes: the one place that knows both.

use hashbrown::HashTable;
use tamis_ct_index::key::Identifier;
use tamis_ct_index::record::{
    CertificateKind, Fingerprint, Issuance, NAME_SELF, NAME_WILDCARD, NameBits, Position,
};
use tamis_ct_index::{Batch, Observation};
use tamis_ct_log::{Name, Reading};
use xxhash_rust::xxh3::xxh3_64;

/// Turns readings into observations; keeps what is the same for many certificates.
#[derive(Default)]
pub struct Observer {
    /// Issuers as DER and text, by XXH3 of the DER: a few hundred serve nearly all certificates.
    issuers: HashTable<(Vec<u8>, String)>,
}

/// Issuers that are remembered before the map starts anew.
const ISSUERS_MAX: usize = 4_096;

impl Observer {
    /// Adds a reading to a batch. `log` is where it comes from, if known; `now` is the last resort for
    /// when it was first seen.
    pub fn push(&mut self, reading: &Reading, log: Option<(u16, u64)>, now: i64, batch: &mut Batch) {
        let issuer = self.issuer(reading);
        let kind = if reading.precert {
            CertificateKind::Precertificate
        } else {
            CertificateKind::Certificate
        };
        let position = log.map(|(log, index)| Position {
            log,
            index,
            timestamp_ms: reading.timestamp_ms.unwrap_or(0),
        });
        let serial = tamis_ct_log::certificate::canonical_serial(reading.serial());
        let observation = Observation {
            issuance: Issuance(issuance_key(&reading.issuance)),
            serial,
            fingerprint: reading.fingerprint.map(|sha256| Fingerprint { kind, sha256 }),
            position,
            first_seen: first_seen(reading, now),
            not_before: reading.not_before,
            not_after: reading.not_after,
            issuer,
            organization: reading.subject_organisation().unwrap_or(""),
            names_total: u64::from(reading.names_total()),
            deviations: reading.deviations.bits(),
        };
        let names = reading.names().map(identifier);
        batch.push(&observation, reading.common_names(), names);
    }

    /// The issuer as text, decoded once.
    fn issuer(&mut self, reading: &Reading) -> &str {
        if self.issuers.len() >= ISSUERS_MAX {
            self.issuers.clear();
        }
        let der = reading.issuer();
        let known = self.issuers.entry(
            xxh3_64(der),
            |(known, _)| known == der,
            |(known, _)| xxh3_64(known),
        );
        let known = known.or_insert_with(|| (der.to_vec(), reading.issuer_display()));
        &known.into_mut().1
    }
}

/// The issuance hash that keys the index: the head of the identity.
pub fn issuance_key(identity: &[u8; 16]) -> u64 {
    identity
        .first_chunk::<8>()
        .map_or(0, |head| u64::from_be_bytes(*head))
}

/// When the world first saw a certificate: the log says it; without a log its embedded timestamps do,
/// then the start of its validity.
fn first_seen(reading: &Reading, now: i64) -> i64 {
    let logged = reading
        .timestamp_ms
        .or(reading.sct_timestamp_ms)
        .map(|ms| (ms / 1_000) as i64);
    // A validity that starts in the future was seen today at the latest.
    logged
        .or(reading.not_before.map(|start| start.min(now)))
        .unwrap_or(now)
}

fn identifier(name: Name<'_>) -> (Identifier<'_>, NameBits) {
    match name {
        Name::Host {
            host,
            exact,
            wildcard,
        } => {
            let bits = if exact { NAME_SELF } else { 0 } | if wildcard { NAME_WILDCARD } else { 0 };
            (Identifier::Host(host), bits)
        }
        Name::Ip(ip) => (Identifier::Ip(ip), NAME_SELF),
        Name::Email(email) => (Identifier::Email(email), NAME_SELF),
        Name::Other(text) => (Identifier::Text(text), NAME_SELF),
    }
}
