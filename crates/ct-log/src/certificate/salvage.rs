//! The last resort: names out of bytes whose structure is broken, by looking for the two patterns
//! that introduce them.

use memchr::memmem;

use super::extensions::{SAN, subject_alternative_names};
use super::reading::Reading;
use super::{COMMON_NAMES_MAX, ReadOptions, distinguished_name, subject, text};
use crate::der::{self, Walk};
use crate::deviation::{Deviation, Deviations};

/// Of each pattern; a real certificate has one list of names and two common names.
const MATCHES_MAX: usize = 8;

/// Fills `reading` with what is found and says whether that was anything.
pub(crate) fn read(bytes: &[u8], options: &ReadOptions, reading: &mut Reading) -> bool {
    reading.clear();
    for value in values(bytes, SAN) {
        subject_alternative_names(value, options, reading);
    }
    // The last common name is the subject's; those before it may be the issuer's.
    if let Some((tag, content)) = common_names(bytes).last() {
        let mut deviations = Deviations::NONE;
        let common_name = text::decode(tag, content, &mut deviations);
        reading.deviations = reading.deviations | deviations;
        reading.add_common_name(&common_name);
    }
    debug_assert!(reading.common_names().len() <= COMMON_NAMES_MAX);
    subject::add_names(&subject::Subject::default(), options, reading);
    reading.finish_names();
    reading.has_names() || reading.common_names().len() > 0
}

/// Reads the list of names out of a TBSCertificate whose structure is damaged around it.
pub(crate) fn alternative_names(tbs: &[u8], options: &ReadOptions, reading: &mut Reading) {
    let before = reading.names_total();
    for value in values(tbs, SAN) {
        subject_alternative_names(value, options, reading);
    }
    reading
        .deviations
        .insert_if(reading.names_total() > before, Deviation::SanSalvaged);
}

/// What follows each occurrence of an object identifier.
fn after<'a>(bytes: &'a [u8], oid: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    memmem::find_iter(bytes, oid)
        .take(MATCHES_MAX)
        .filter_map(move |at| {
            let header = bytes.get(at.checked_sub(2)?..at)?;
            let is_oid = header == [der::OID, u8::try_from(oid.len()).ok()?];
            bytes.get(at + oid.len()..).filter(|_| is_oid)
        })
}

fn values<'a>(bytes: &'a [u8], oid: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    after(bytes, oid).filter_map(|rest| {
        let mut deviations = Deviations::NONE;
        let mut parts = Walk::new(rest);
        parts.next_if(der::BOOLEAN, &mut deviations);
        parts
            .next_if(der::OCTET_STRING, &mut deviations)
            .map(|value| value.content)
    })
}

fn common_names(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    const STRINGS: [u8; 6] = [0x0c, 0x13, 0x14, 0x16, 0x1c, 0x1e];
    after(bytes, distinguished_name::COMMON_NAME).filter_map(|rest| {
        let mut deviations = Deviations::NONE;
        let value = Walk::new(rest).next(&mut deviations)?;
        let whole = !deviations.contains(Deviation::OverrunLength);
        (whole && STRINGS.contains(&value.tag) && !value.content.is_empty())
            .then_some((value.tag, value.content))
    })
}
