//! The fields of one certificate, and how each is taken from its element.

use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::Range;

use tamis_hostname::Identifier;

use super::names::{Inserted, Kind, Name, NameSet};
use super::tbs::Tbs;
use super::{
    COMMON_NAMES_MAX, ISSUER_BYTES_MAX, ReadOptions, SERIAL_BYTES_MAX, TEXT_BYTES_MAX, distinguished_name,
    extensions, serial, text, time,
};
use crate::der::{self, Element};
use crate::deviation::{Deviation, Deviations};

/// Everything that is read out of one certificate; filled again and again without allocation.
#[derive(Clone, Debug)]
pub struct Reading {
    /// SHA-256 of the submitted certificate or precertificate. `None` where a log entry came without
    /// its precertificate, or nothing was to be hashed.
    pub fingerprint: Option<[u8; 32]>,
    /// The identity that a precertificate and its certificate share.
    pub issuance: [u8; 16],
    /// Whether it is a precertificate, by the type of the log entry or by the poison.
    pub precert: bool,
    /// When the log took it, in milliseconds since 1970.
    pub timestamp_ms: Option<u64>,
    /// Where in the log it is.
    pub log_index: Option<u64>,
    /// SHA-256 of the issuer's public key, where the log entry says it.
    pub issuer_key_hash: Option<[u8; 32]>,
    /// The earliest embedded timestamp, in milliseconds since 1970.
    pub sct_timestamp_ms: Option<u64>,
    /// Start of validity, in seconds since 1970.
    pub not_before: Option<i64>,
    /// Last second of validity, in seconds since 1970.
    pub not_after: Option<i64>,
    /// How it leaves the rules.
    pub deviations: Deviations,
    /// Alternative names of kinds that are not read: directory names, unknown otherNames, registered
    /// identifiers, and empty ones.
    pub skipped_names: u32,
    bytes: Vec<u8>,
    serial: Range<usize>,
    issuer: Range<usize>,
    texts: String,
    subject_organisation: Option<Range<usize>>,
    common_names: Vec<Range<usize>>,
    names: NameSet,
}

impl Default for Reading {
    fn default() -> Self {
        Self::new()
    }
}

impl Reading {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self {
            fingerprint: None,
            issuance: [0; 16],
            precert: false,
            timestamp_ms: None,
            log_index: None,
            issuer_key_hash: None,
            sct_timestamp_ms: None,
            not_before: None,
            not_after: None,
            deviations: Deviations::NONE,
            skipped_names: 0,
            bytes: Vec::new(),
            serial: 0..0,
            issuer: 0..0,
            texts: String::new(),
            subject_organisation: None,
            common_names: Vec::new(),
            names: NameSet::new(),
        }
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.fingerprint = None;
        self.issuance = [0; 16];
        self.precert = false;
        self.timestamp_ms = None;
        self.log_index = None;
        self.issuer_key_hash = None;
        self.sct_timestamp_ms = None;
        self.not_before = None;
        self.not_after = None;
        self.deviations = Deviations::NONE;
        self.skipped_names = 0;
        self.bytes.clear();
        self.serial = 0..0;
        self.issuer = 0..0;
        self.texts.clear();
        self.subject_organisation = None;
        self.common_names.clear();
        self.names.clear();
    }

    /// The content bytes of the serial number, as found.
    #[must_use]
    pub fn serial(&self) -> &[u8] {
        self.bytes.get(self.serial.clone()).unwrap_or_default()
    }

    /// The serial number as a signed number in hex; see [`super::signed_hex`].
    #[must_use]
    pub fn serial_hex(&self) -> String {
        serial::signed_hex(self.serial())
    }

    /// The DER of the issuer's name, outer SEQUENCE included.
    #[must_use]
    pub fn issuer(&self) -> &[u8] {
        self.bytes.get(self.issuer.clone()).unwrap_or_default()
    }

    /// The issuer's name for people; see [`super::display_name`]. Decoded at each call: issuers are
    /// few, so keep the result per [`Reading::issuer`].
    #[must_use]
    pub fn issuer_display(&self) -> String {
        distinguished_name::display(self.issuer())
    }

    /// The first organisation of the issuer. Decoded at each call.
    #[must_use]
    pub fn issuer_organisation(&self) -> Option<Cow<'_, str>> {
        distinguished_name::organisation(self.issuer())
    }

    /// The first organisation of the subject.
    #[must_use]
    pub fn subject_organisation(&self) -> Option<&str> {
        self.subject_organisation
            .clone()
            .and_then(|range| self.texts.get(range))
    }

    /// The common names of the subject, in order.
    pub fn common_names(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.common_names
            .iter()
            .map(|range| self.texts.get(range.clone()).unwrap_or_default())
    }

    /// The identifiers, each once: those of the extension in its order, then those of the subject.
    pub fn names(&self) -> impl ExactSizeIterator<Item = Name<'_>> + Clone {
        self.names.iter()
    }

    /// How many identifiers there were. Where [`Deviation::NamesTruncated`] is set, those that are
    /// not kept are counted as often as they occur.
    #[must_use]
    pub fn names_total(&self) -> u32 {
        self.names.total()
    }

    pub(crate) fn has_host(&self, host: &str, bits: u8) -> bool {
        self.names.has_host(host, bits)
    }

    pub(crate) fn add(&mut self, kind: Kind, bits: u8, text: &str, options: &ReadOptions) {
        if kind == Kind::Other {
            return self.add_other(text, options);
        }
        match self.names.insert(kind, bits, text, options.names_max) {
            Inserted::Kept | Inserted::Dropped => {}
            Inserted::Cut => self.deviations.insert(Deviation::TextCut),
        }
    }

    /// Adds a text with what is hidden in it escaped, as [`tamis_hostname::read`] does: one spelling for
    /// one text wherever in a certificate it stood, which a search finds again.
    fn add_other(&mut self, text: &str, options: &ReadOptions) {
        let (start, cut) = text::cut(text, TEXT_BYTES_MAX);
        let escaped = tamis_hostname::escape(start);
        let inserted = self.names.insert(Kind::Other, 0, &escaped, options.names_max);
        self.deviations
            .insert_if(cut || matches!(inserted, Inserted::Cut), Deviation::TextCut);
    }

    pub(crate) fn add_ip(&mut self, ip: IpAddr, options: &ReadOptions) {
        self.names.insert_ip(ip, options.names_max);
    }

    pub(crate) fn add_identifier(&mut self, identifier: &Identifier<'_>, options: &ReadOptions) {
        match identifier {
            Identifier::Host(host) => {
                self.add(
                    Kind::Host,
                    extensions::host_bits(host.wildcard()),
                    host.host(),
                    options,
                );
            }
            Identifier::Ip(ip) => self.add_ip(*ip, options),
            Identifier::Email(email) => self.add(Kind::Email, 0, email, options),
            Identifier::Other(text) if text.is_empty() => {
                self.deviations.insert(Deviation::NameEmpty);
                self.skipped_names += 1;
            }
            Identifier::Other(text) => self.add(Kind::Other, 0, text, options),
        }
    }

    pub(crate) fn has_names(&self) -> bool {
        self.names.len() > 0
    }

    pub(crate) fn finish_names(&mut self) {
        let truncated = self.names.total() as usize > self.names.len();
        self.deviations.insert_if(truncated, Deviation::NamesTruncated);
    }

    pub(crate) fn add_common_name(&mut self, text: &str) {
        if self.common_names.len() >= COMMON_NAMES_MAX {
            self.deviations.insert(Deviation::CommonNamesTruncated);
            return;
        }
        let range = self.push_text(text);
        self.common_names.push(range);
    }

    pub(crate) fn set_subject_organisation(&mut self, text: &str) {
        self.subject_organisation = Some(self.push_text(text));
    }

    /// Lends one common name to `visit` together with the rest of the reading.
    pub(crate) fn with_common_name(&mut self, at: usize, visit: impl FnOnce(&mut Self, &str)) {
        let Some(range) = self.common_names.get(at).cloned() else {
            return;
        };
        let texts = std::mem::take(&mut self.texts);
        visit(self, texts.get(range).unwrap_or_default());
        self.texts = texts;
    }

    pub(crate) fn set_version(&mut self, tbs: &Tbs<'_>) {
        let version = tbs.version.map(|version| match version.content {
            [der::INTEGER, 1, version] => *version,
            _ => u8::MAX,
        });
        self.deviations
            .insert_if(version.is_some_and(|version| version > 2), Deviation::OddVersion);
        let before_v3 = version.unwrap_or(0) < 2 && tbs.extensions.is_some();
        self.deviations
            .insert_if(before_v3, Deviation::ExtensionsBeforeV3);
    }

    pub(crate) fn set_serial(&mut self, element: Option<Element<'_>>) {
        let Some(element) = element else {
            self.deviations.insert(Deviation::SerialMissing);
            return;
        };
        let deviations = &mut self.deviations;
        let content = element.content;
        deviations.insert_if(element.tag != der::INTEGER, Deviation::SerialWrongTag);
        deviations.insert_if(content.is_empty(), Deviation::SerialEmpty);
        deviations.insert_if(
            content.first().is_some_and(|&first| first >= 0x80),
            Deviation::SerialNegative,
        );
        deviations.insert_if(content.len() > 20, Deviation::SerialTooLong);
        let minimal = serial::canonical(content).len() == content.len();
        deviations.insert_if(!minimal, Deviation::SerialNonMinimal);
        self.serial = self.push_bytes(content, SERIAL_BYTES_MAX);
    }

    pub(crate) fn set_issuer(&mut self, element: Option<Element<'_>>) {
        let is_name = element.is_some_and(|element| element.is_sequence());
        self.deviations.insert_if(!is_name, Deviation::IssuerUnreadable);
        let Some(element) = element else { return };
        self.issuer = self.push_bytes(element.raw, ISSUER_BYTES_MAX);
    }

    pub(crate) fn set_validity(&mut self, element: Option<Element<'_>>) {
        let mut deviations = Deviations::NONE;
        let mut dates = element.map(|element| element.children());
        let mut date = |unreadable| {
            let element = dates.as_mut().and_then(|dates| dates.next(&mut deviations));
            // A date whose tag has the wrong class or form is still plain to see.
            let moment = element.and_then(|element| match element.tag & 0x1f {
                der::UTC_TIME => time::utc(element.content),
                der::GENERALIZED_TIME => time::generalized(element.content),
                _ => None,
            });
            let odd_tag = element.is_some_and(|element| element.tag & !0x1f != 0);
            deviations.insert_if(moment.is_none(), unreadable);
            deviations.insert_if(
                moment.is_some_and(|moment| moment.odd_form || odd_tag),
                Deviation::OddTimeForm,
            );
            moment.map(|moment| moment.unix_seconds)
        };
        self.not_before = date(Deviation::NotBeforeUnreadable);
        self.not_after = date(Deviation::NotAfterUnreadable);
        let reversed = self
            .not_before
            .zip(self.not_after)
            .is_some_and(|(start, end)| end < start);
        deviations.insert_if(reversed, Deviation::ValidityReversed);
        self.deviations = self.deviations | deviations;
    }

    fn push_text(&mut self, text: &str) -> Range<usize> {
        let (text, cut) = text::cut(text, TEXT_BYTES_MAX);
        self.deviations.insert_if(cut, Deviation::TextCut);
        let start = self.texts.len();
        self.texts.push_str(text);
        start..self.texts.len()
    }

    fn push_bytes(&mut self, bytes: &[u8], bytes_max: usize) -> Range<usize> {
        let start = self.bytes.len();
        self.deviations
            .insert_if(bytes.len() > bytes_max, Deviation::TextCut);
        self.bytes
            .extend_from_slice(bytes.get(..bytes_max).unwrap_or(bytes));
        start..self.bytes.len()
    }
}
