//! `tamis ct show`: one certificate by SHA-256, serial number, record id or issuance.

use tamis_ct_index::record::{CertRecord, Issuance};
use tamis_ct_index::{Result, Snapshot};
use tamis_ct_log::certificate::{canonical_serial, parse_serial};

use crate::Outcome;
use crate::cli::{Format, ShowArgs};
use crate::ct::{certificate, open_snapshot, report_faults};
use crate::render::{Rows, blank_line, document};

pub(crate) fn run(args: &ShowArgs) -> anyhow::Result<Outcome> {
    let what = args.what.trim();
    anyhow::ensure!(
        !what.is_empty(),
        "\"\" names nothing; write a SHA-256, a serial number or an id"
    );
    let snapshot = open_snapshot(&args.data.data)?;
    let records = find(&snapshot, what)?;
    print(args.format.format, &snapshot, &records)?;
    if records.is_empty() {
        report_faults(&snapshot, &[])?;
        talk!(
            "{what} is no SHA-256, serial number or id of a certificate in {}; `tamis ct search NAME --format json` shows them",
            args.data.data.display()
        );
        return Ok(Outcome::Nothing);
    }
    Ok(Outcome::Success)
}

/// Documents one below the other for people; a list for programs, however many there are.
fn print(format: Format, snapshot: &Snapshot, records: &[CertRecord]) -> anyhow::Result<()> {
    let described = records
        .iter()
        .map(|record| certificate::describe(format, snapshot, record));
    if format == Format::Table {
        for (number, facts) in described.enumerate() {
            if number > 0 {
                blank_line()?;
            }
            document(format, &facts)?;
        }
        return Ok(());
    }
    let mut rows = Rows::new(
        format,
        &["id", "serial", "issuer", "not_before", "not_after", "names"],
    );
    for row in described {
        rows.push(&row)?;
    }
    rows.finish()
}

/// Everything that a text can mean: short digits are an id and a serial number, and neither hides the
/// other.
fn find(snapshot: &Snapshot, what: &str) -> Result<Vec<CertRecord>> {
    if let Some(sha256) = sha256_of(what) {
        return snapshot.by_sha256(&sha256);
    }
    let mut found = Vec::new();
    if let Ok(id) = what.parse::<u64>() {
        found = snapshot.by_id(id)?;
    }
    if let Some(serial) = parse_serial(what) {
        let others = snapshot.by_serial(canonical_serial(&serial))?;
        found.extend(
            others
                .into_iter()
                .filter(|other| !found.iter().any(|known| known.same_issuance(other)))
                .collect::<Vec<_>>(),
        );
    }
    if found.is_empty()
        && what.len() == 16
        && let Ok(issuance) = u64::from_str_radix(what, 16)
    {
        found = snapshot.by_issuance(Issuance(issuance))?;
    }
    Ok(found)
}

/// 64 hex digits, colons and spaces between them allowed.
fn sha256_of(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|letter| !matches!(letter, ':' | ' '))
        .map(|letter| letter.to_digit(16))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .filter_map(|pair| {
            pair.iter()
                .try_fold(0, |sum, digit| u8::try_from(sum as u32 * 16 + digit).ok())
        })
        .collect();
    (digits.len() == 64).then(|| bytes.try_into().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::sha256_of;

    #[test]
    fn fingerprints_are_read_with_and_without_colons() {
        let plain = "00ff".repeat(16);
        let colons = plain
            .as_bytes()
            .chunks(2)
            .map(|pair| String::from_utf8_lossy(pair).to_uppercase())
            .collect::<Vec<_>>()
            .join(":");
        assert_eq!(sha256_of(&plain), Some([0, 255].repeat(16).try_into().unwrap()));
        assert_eq!(sha256_of(&colons), sha256_of(&plain));
        assert_eq!(sha256_of("00ff"), None);
        assert_eq!(sha256_of(&"zz".repeat(32)), None);
    }
}
