//! A certificate record as the commands print it.

use serde_json::{Value, json};
use tamis_ct_index::Snapshot;
use tamis_ct_index::key::{KeySpace, display, space_of};
use tamis_ct_index::record::{CertRecord, CertificateKind, NAME_SELF, NAME_WILDCARD};
use tamis_ct_log::certificate::signed_hex;
use tamis_ct_log::{Deviation, Deviations};

use crate::cli::Format;
use crate::ct::parse::hex;
use crate::render::{Row, row};
use crate::when::rfc3339;

/// Everything about one certificate.
pub(crate) fn describe(format: Format, snapshot: &Snapshot, record: &CertRecord) -> Row {
    let of_space = |wanted: KeySpace| -> Vec<String> {
        let in_space = record.names.iter().filter(|(key, _)| space_of(key) == wanted);
        in_space.map(|(key, _)| display(key)).collect()
    };
    let mut names = Vec::new();
    for (key, bits) in record
        .names
        .iter()
        .filter(|(key, _)| space_of(key) == KeySpace::Host)
    {
        let host = display(key);
        if bits & NAME_WILDCARD != 0 {
            names.push(format!("*.{host}"));
        }
        if bits & NAME_SELF != 0 {
            names.push(host);
        }
    }
    row([
        ("id", json!(record.id().to_string())),
        ("issuance", json!(format!("{:016x}", record.issuance))),
        ("serial", json!(signed_hex(&record.serial))),
        ("fingerprints", fingerprints(record)),
        ("issuer", json!(snapshot.issuer(record.issuer).as_ref())),
        ("organization", optional(&record.organization)),
        ("common_names", json!(record.common_names)),
        ("not_before", time(record.not_before)),
        ("not_after", time(record.not_after)),
        ("first_seen", time(Some(record.first_seen))),
        ("positions", positions(snapshot, record)),
        ("names_total", json!(record.names_total)),
        ("names", names.iter().map(|name| spelled(format, name)).collect()),
        ("other_names", json!(of_space(KeySpace::Text))),
        ("ips", json!(of_space(KeySpace::Ip))),
        ("emails", json!(of_space(KeySpace::Email))),
        (
            "deviations",
            json!(
                Deviations::from_bits(record.deviations)
                    .iter()
                    .map(Deviation::as_str)
                    .collect::<Vec<_>>()
            ),
        ),
    ])
}

fn fingerprints(record: &CertRecord) -> Value {
    let told = record.fingerprints.iter().map(|print| {
        let kind = match print.kind {
            CertificateKind::Precertificate => "precertificate",
            CertificateKind::Certificate => "certificate",
        };
        json!({ "kind": kind, "sha256": hex(&print.sha256) })
    });
    Value::Array(told.collect())
}

fn positions(snapshot: &Snapshot, record: &CertRecord) -> Value {
    let told = record.positions.iter().map(|position| {
        let log = snapshot.logs().iter().find(|log| log.number == position.log);
        json!({
            "log": log.map(|log| log.name.as_str()),
            "index": position.index,
            "timestamp": time((position.timestamp_ms > 0).then_some((position.timestamp_ms / 1_000) as i64)),
            "id": position.id().to_string(),
        })
    });
    Value::Array(told.collect())
}

/// A time as RFC 3339, or null.
pub(crate) fn time(seconds: Option<i64>) -> Value {
    seconds.and_then(rfc3339).map_or(Value::Null, Value::String)
}

/// A text, or null when there is none.
pub(crate) fn optional(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { json!(text) }
}

/// A name as a table shows it: an internationalised one in both spellings.
pub(crate) fn spelled(format: Format, name: &str) -> Value {
    let host = name.strip_prefix("*.").unwrap_or(name);
    let unicode = tamis_hostname::to_unicode(host);
    if format != Format::Table || unicode == host {
        return json!(name);
    }
    json!(format!("{name} ({unicode})"))
}
