//! The extensions: subject alternative names, poison and embedded timestamps; the rest is passed
//! over, and every run of bytes that belongs to the issuance handed on.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tamis_hostname::{self as hostname, Identifier, Repairs};

use super::names::{EXACT, Kind, WILDCARD};
use super::reading::Reading;
use super::tbs::Tbs;
use super::{ReadOptions, salvage, text};
use crate::der::{self, Element, Walk};
use crate::deviation::{Deviation, Deviations};

pub(crate) const SAN: &[u8] = &[0x55, 0x1d, 17];
pub(crate) const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 35];
pub(crate) const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
/// 1.3.6.1.4.1.11129.2.4.3
pub(crate) const POISON: &[u8] = &[0x2b, 6, 1, 4, 1, 0xd6, 0x79, 2, 4, 3];
/// 1.3.6.1.4.1.11129.2.4.2
pub(crate) const SCT_LIST: &[u8] = &[0x2b, 6, 1, 4, 1, 0xd6, 0x79, 2, 4, 2];
/// 1.3.6.1.4.1.311.20.2.3: the user principal name in an otherName.
const PRINCIPAL_NAME: &[u8] = &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 20, 2, 3];

/// Signs that a length or a tag around the extensions is wrong.
const STRUCTURE: Deviations = Deviations::of(&[
    Deviation::NonMinimalLength,
    Deviation::OverrunLength,
    Deviation::TrailingBytes,
    Deviation::ExtensionUnreadable,
    Deviation::FieldsMissing,
    Deviation::UnexpectedField,
]);

// Numbers of the choices of GeneralName.
const OTHER_NAME: u8 = 0;
const EMAIL: u8 = 1;
const DNS: u8 = 2;
const URI: u8 = 6;
const IP: u8 = 7;

/// One extension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extension<'a> {
    pub(crate) oid: &'a [u8],
    /// The content of the OCTET STRING.
    pub(crate) value: &'a [u8],
    pub(crate) raw: &'a [u8],
}

impl<'a> Extension<'a> {
    /// Takes the parts by their places; wrong tags are noted and do no harm.
    #[inline]
    pub(crate) fn of(element: Element<'a>, deviations: &mut Deviations) -> Option<Self> {
        let mut parts = element.children();
        let oid = parts.next(deviations)?;
        let mut value = parts.next(deviations)?;
        let mut odd = false;
        if value.tag != der::OCTET_STRING && !parts.rest().is_empty() {
            odd = value.tag != der::BOOLEAN;
            value = parts.next(deviations)?;
        }
        odd |= oid.tag != der::OID || value.tag != der::OCTET_STRING;
        odd |= !element.is_sequence() || !parts.rest().is_empty();
        deviations.insert_if(odd, Deviation::ExtensionUnreadable);
        Some(Self {
            oid: oid.content,
            value: value.content,
            raw: element.raw,
        })
    }

    /// Whether it differs between a precertificate and its certificate.
    pub(crate) fn is_log_artefact(&self) -> bool {
        self.oid == POISON || self.oid == SCT_LIST
    }
}

/// The walk over the list within `[3]`, and what stands behind the list.
pub(crate) fn list<'a>(tbs: &Tbs<'a>, deviations: &mut Deviations) -> Option<(Walk<'a>, &'a [u8])> {
    let mut wrapped = tbs.extensions?.children();
    let list = wrapped.next(deviations);
    let whole = list.is_some_and(|list| list.is_sequence()) && wrapped.rest().is_empty();
    deviations.insert_if(!whole, Deviation::ExtensionUnreadable);
    Some((list?.children(), wrapped.rest()))
}

/// What the extensions say besides names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    pub(crate) poison: bool,
}

/// Reads all extensions; `keep` gets every run of bytes outside of poison and timestamps, the fields
/// before the extensions first.
pub(crate) fn read<'a>(
    tbs: &Tbs<'a>,
    options: &ReadOptions,
    reading: &mut Reading,
    mut keep: impl FnMut(&'a [u8]),
) -> Found {
    let mut found = Found::default();
    let mut deviations = Deviations::NONE;
    keep(tbs.before_issuer);
    keep(tbs.issuer.map_or(&[][..], |issuer| issuer.raw));
    keep(tbs.after_issuer);
    let mut seen = Seen::default();
    if let Some((mut walk, behind)) = list(tbs, &mut deviations) {
        let mut run = walk.rest();
        loop {
            let at = walk.rest();
            let Some(element) = walk.next(&mut deviations) else {
                break;
            };
            let Some(extension) = Extension::of(element, &mut deviations) else {
                deviations.insert(Deviation::ExtensionUnreadable);
                continue;
            };
            deviations.insert_if(seen.again(extension.oid), Deviation::DuplicateExtension);
            if extension.oid == SAN {
                subject_alternative_names(extension.value, options, reading);
            } else if extension.is_log_artefact() {
                keep(run.get(..run.len() - at.len()).unwrap_or_default());
                run = walk.rest();
                if extension.oid == POISON {
                    found.poison = true;
                } else {
                    timestamps(extension.value, reading, &mut deviations);
                }
            }
        }
        deviations.insert_if(!walk.rest().is_empty(), Deviation::ExtensionUnreadable);
        keep(run);
        keep(behind);
    }
    keep(tbs.tail);
    reading.deviations = reading.deviations | deviations;
    if reading.deviations.intersects(STRUCTURE) {
        salvage::alternative_names(tbs.whole, options, reading);
    }
    found
}

/// Which extension types have been there, as far as they are among the first ones.
#[derive(Default)]
struct Seen<'a> {
    /// Those of 2.5.29, by last byte.
    standard: [u64; 4],
    others: [&'a [u8]; 16],
    count: usize,
}

impl<'a> Seen<'a> {
    fn again(&mut self, oid: &'a [u8]) -> bool {
        if let &[0x55, 0x1d, last] = oid {
            let bit = 1u64 << (last & 63);
            let Some(word) = self.standard.get_mut(usize::from(last >> 6)) else {
                return false;
            };
            let again = *word & bit != 0;
            *word |= bit;
            return again;
        }
        if self.others.iter().take(self.count).any(|&other| other == oid) {
            return true;
        }
        if let Some(free) = self.others.get_mut(self.count) {
            *free = oid;
            self.count += 1;
        }
        false
    }
}

/// Reads the content of a subject alternative name extension.
pub(crate) fn subject_alternative_names(value: &[u8], options: &ReadOptions, reading: &mut Reading) {
    let mut deviations = Deviations::NONE;
    let mut outer = Walk::new(value);
    let Some(names) = outer.next(&mut deviations) else {
        reading.deviations.insert(Deviation::SanUnreadable);
        return;
    };
    let whole = names.is_sequence() && outer.rest().is_empty();
    deviations.insert_if(!whole, Deviation::SanUnreadable);
    let mut names = names.children();
    loop {
        let mut own = Deviations::NONE;
        let Some(name) = names.next(&mut own) else { break };
        if own.contains(Deviation::OverrunLength) {
            // The start of a name is no name: `www.exam` is not what was certified.
            reading.add(Kind::Other, 0, &text::utf8_or_latin1(name.content), options);
        } else {
            general_name(name, options, reading, &mut own);
        }
        deviations = deviations | own;
    }
    deviations.insert_if(!names.rest().is_empty(), Deviation::SanUnreadable);
    reading.deviations = reading.deviations | deviations;
}

fn general_name(
    name: Element<'_>,
    options: &ReadOptions,
    reading: &mut Reading,
    deviations: &mut Deviations,
) {
    let content = string_of(name, deviations);
    let content: &[u8] = &content;
    deviations.insert_if(content.is_empty(), Deviation::NameEmpty);
    // Every choice is of the context class; a name of another class still is what its number says.
    deviations.insert_if(name.tag & 0xc0 != 0x80, Deviation::SanUnreadable);
    match name.tag & 0x1f {
        DNS | EMAIL | URI | IP if content.is_empty() => reading.skipped_names += 1,
        DNS => dns_name(content, options, reading, deviations),
        EMAIL => match hostname::read(content) {
            Identifier::Email(email) => reading.add(Kind::Email, 0, &email, options),
            _ => reading.add(Kind::Other, 0, &text::utf8_or_latin1(content), options),
        },
        URI => reading.add(Kind::Other, 0, &text::utf8_or_latin1(content), options),
        IP => match ip(content) {
            Some(ip) => reading.add_ip(ip, options),
            None => {
                deviations.insert(Deviation::IpOddLength);
                let shown = content.iter().take(super::TEXT_BYTES_MAX);
                let hex: String = shown.map(|byte| format!("{byte:02x}")).collect();
                reading.add(Kind::Other, 0, &hex, options);
            }
        },
        OTHER_NAME => match principal_name(content, deviations) {
            Some(value) => {
                let text = text::decode(value.tag, value.content, deviations);
                reading.add(Kind::Other, 0, &text, options);
            }
            None => reading.skipped_names += 1,
        },
        _ => reading.skipped_names += 1,
    }
}

/// The content of a name that is a string. One in constructed form holds the string as an element
/// (written as if the tag were explicit) or, as BER allows, in pieces.
fn string_of<'a>(name: Element<'a>, deviations: &mut Deviations) -> Cow<'a, [u8]> {
    let is_string = matches!(name.tag & 0x1f, EMAIL | DNS | URI | IP);
    if !is_string || name.tag & der::CONSTRUCTED == 0 {
        return Cow::Borrowed(name.content);
    }
    deviations.insert(Deviation::NameConstructed);
    let mut joined = Vec::new();
    let mut within = Deviations::NONE;
    let mut pieces = name.children();
    while let Some(piece) = pieces.next(&mut within) {
        if !text::is_string(piece.tag) {
            return Cow::Borrowed(name.content);
        }
        joined.extend_from_slice(piece.content);
    }
    if within.contains(Deviation::OverrunLength) || !pieces.rest().is_empty() {
        return Cow::Borrowed(name.content);
    }
    *deviations = *deviations | within;
    Cow::Owned(joined)
}

fn dns_name(content: &[u8], options: &ReadOptions, reading: &mut Reading, deviations: &mut Deviations) {
    let identifier = hostname::read(content);
    let Identifier::Host(host) = identifier else {
        deviations.insert(Deviation::NameNotHost);
        reading.add_identifier(&identifier, options);
        return;
    };
    reading.add(Kind::Host, host_bits(host.wildcard()), host.host(), options);
    if host
        .repairs()
        .intersects((Repairs::PERSISTENT | Repairs::TRAILING_DOT).complement())
    {
        deviations.insert(Deviation::NameRepaired);
        reading.add(Kind::Other, 0, &text::utf8_or_latin1(content), options);
    }
}

pub(crate) fn host_bits(wildcard: bool) -> u8 {
    if wildcard { WILDCARD } else { EXACT }
}

fn ip(content: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(content) {
        return Some(IpAddr::V4(Ipv4Addr::from(octets)));
    }
    <[u8; 16]>::try_from(content)
        .ok()
        .map(|octets| IpAddr::V6(Ipv6Addr::from(octets)))
}

/// The text in `{ OID, [0] { string } }`.
fn principal_name<'a>(content: &'a [u8], deviations: &mut Deviations) -> Option<Element<'a>> {
    let mut parts = Walk::new(content);
    let kind = parts.next_if(der::OID, deviations)?;
    if kind.content != PRINCIPAL_NAME {
        return None;
    }
    parts.next_if(0xa0, deviations)?.children().next(deviations)
}

/// Takes the earliest of the embedded timestamps.
fn timestamps(value: &[u8], reading: &mut Reading, deviations: &mut Deviations) {
    let list = Walk::new(value).next_if(der::OCTET_STRING, deviations);
    let clean = list.and_then(|list| {
        let (length, mut rest) = list.content.split_first_chunk::<2>()?;
        let mut clean = usize::from(u16::from_be_bytes(*length)) == rest.len();
        while let Some((length, after)) = rest.split_first_chunk::<2>() {
            let (sct, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            rest = after;
            // version, log, timestamp, then what is not read here
            let (_, sct) = sct.split_at_checked(1 + 32)?;
            let (timestamp, _) = sct.split_first_chunk::<8>()?;
            let timestamp = u64::from_be_bytes(*timestamp);
            reading.sct_timestamp_ms = Some(
                reading
                    .sct_timestamp_ms
                    .map_or(timestamp, |other| other.min(timestamp)),
            );
        }
        clean &= rest.is_empty();
        clean.then_some(())
    });
    deviations.insert_if(clean.is_none(), Deviation::SctListUnreadable);
}
