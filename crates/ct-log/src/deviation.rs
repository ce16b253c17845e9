//! The closed list of ways in which a certificate or an entry may leave the rules and still be read.
//!
//! # Invariants
//! A deviation never hides a field that could be read; it says which field is poorer, or what was
//! overlooked on the way. Bit numbers are stable: they may be stored.

use std::fmt;

macro_rules! deviations {
    ($($(#[doc = $doc:literal])+ $variant:ident = $bit:literal, $name:literal;)+) => {
        /// One way in which what was read leaves the rules.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Deviation {
            $($(#[doc = $doc])+ $variant = $bit,)+
        }

        impl Deviation {
            /// Every deviation, by bit number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stable name, in kebab case: a metric label and a search term.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What it means, in one sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc,)+).trim_ascii(),)+
                }
            }
        }
    };
}

deviations! {
    /// The outer structure could not be walked; names come from a raw scan of the bytes.
    Unparsed = 0, "unparsed";
    /// An element has the indefinite length that only BER allows.
    IndefiniteLength = 1, "indefinite-length";
    /// A length is written in more bytes than it needs.
    NonMinimalLength = 2, "non-minimal-length";
    /// An element claims more bytes than its parent holds; it was cut there.
    OverrunLength = 3, "overrun-length";
    /// Bytes follow the end of the certificate, or of the log entry.
    TrailingBytes = 4, "trailing-bytes";
    /// The version is not 1, 2 or 3, or is no INTEGER.
    OddVersion = 5, "odd-version";
    /// A certificate of version 1 or 2 carries extensions.
    ExtensionsBeforeV3 = 6, "extensions-before-v3";
    /// The serial number is missing.
    SerialMissing = 7, "serial-missing";
    /// The serial number has another tag than INTEGER.
    SerialWrongTag = 8, "serial-wrong-tag";
    /// The serial number has no content bytes.
    SerialEmpty = 9, "serial-empty";
    /// The serial number is negative.
    SerialNegative = 10, "serial-negative";
    /// The serial number is longer than 20 bytes.
    SerialTooLong = 11, "serial-too-long";
    /// The serial number has leading bytes that say nothing.
    SerialNonMinimal = 12, "serial-non-minimal";
    /// The start of validity is missing or no date.
    NotBeforeUnreadable = 13, "not-before-unreadable";
    /// The end of validity is missing or no date.
    NotAfterUnreadable = 14, "not-after-unreadable";
    /// A date is written without seconds or `Z`, or with an offset or a fraction.
    OddTimeForm = 15, "odd-time-form";
    /// The validity ends before it starts.
    ValidityReversed = 16, "validity-reversed";
    /// The issuer is no list of attributes.
    IssuerUnreadable = 17, "issuer-unreadable";
    /// The subject is no list of attributes.
    SubjectUnreadable = 18, "subject-unreadable";
    /// An extension appears more than once; all of them were read.
    DuplicateExtension = 19, "duplicate-extension";
    /// An extension, or the list of them, is no valid structure.
    ExtensionUnreadable = 20, "extension-unreadable";
    /// The subject alternative name extension is no list of names.
    SanUnreadable = 21, "san-unreadable";
    /// A subject alternative name is empty.
    NameEmpty = 22, "name-empty";
    /// An iPAddress is neither 4 nor 16 bytes long; it is kept as text in hex.
    IpOddLength = 23, "ip-odd-length";
    /// A dNSName was repaired to give a host name; its raw text is kept too.
    NameRepaired = 24, "name-repaired";
    /// A dNSName is no host name; it is kept as what it reads as.
    NameNotHost = 25, "name-not-host";
    /// A text is not in the character set that it declares; it was read as Latin-1 or with marks.
    TextMisencoded = 26, "text-misencoded";
    /// There are more names than are kept.
    NamesTruncated = 27, "names-truncated";
    /// A text, serial number or issuer is longer than what is kept of it.
    TextCut = 28, "text-cut";
    /// The list of embedded timestamps (SCTs) is damaged.
    SctListUnreadable = 29, "sct-list-unreadable";
    /// A precertificate came without its issuer's certificate, so a signing certificate made for
    /// precertificates could not be looked through; its issuance may differ from the certificate's.
    PrecertWithoutIssuer = 30, "precert-without-issuer";
    /// The issuer was a Precertificate Signing Certificate; its own issuer was put in its place.
    PrecertSigningCertificate = 31, "precert-signing-certificate";
    /// A precertificate entry came without the submitted precertificate; it has no fingerprint.
    PrecertMissing = 32, "precert-missing";
    /// An entry of type x509 holds a certificate with the poison extension.
    PoisonInX509Entry = 33, "poison-in-x509-entry";
    /// The extensions of a log entry are damaged.
    LeafExtensionsUnreadable = 34, "leaf-extensions-unreadable";
    /// There are more common names than are kept.
    CommonNamesTruncated = 35, "common-names-truncated";
    /// The certificate ends before its structure does.
    FieldsMissing = 36, "fields-missing";
    /// The certificate holds a field that no version of certificates has.
    UnexpectedField = 37, "unexpected-field";
    /// The certificate or its TBSCertificate has another tag than SEQUENCE.
    OddTag = 39, "odd-tag";
    /// The list of names was not where it belongs and was found by its pattern.
    SanSalvaged = 38, "san-salvaged";
    /// A subject alternative name has the constructed form; the string within was read where it is
    /// one, else the content as it is.
    NameConstructed = 40, "name-constructed";
}

/// A set of deviations.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Deviations(u64);

impl Deviations {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// The set with these bits; bits without a meaning are kept, so that newer sets survive.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The set as bits, by [`Deviation`]'s discriminants.
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Adds one.
    pub fn insert(&mut self, deviation: Deviation) {
        self.0 |= 1 << deviation as u64;
    }

    /// Adds one where `condition` holds.
    pub(crate) fn insert_if(&mut self, condition: bool, deviation: Deviation) {
        self.0 |= u64::from(condition) << deviation as u64;
    }

    /// The set of these.
    #[must_use]
    pub const fn of(mut deviations: &[Deviation]) -> Self {
        let mut bits = 0;
        while let [first, rest @ ..] = deviations {
            bits |= 1 << *first as u64;
            deviations = rest;
        }
        Self(bits)
    }

    /// Whether both hold any of the same.
    #[must_use]
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the set holds it.
    #[must_use]
    pub fn contains(self, deviation: Deviation) -> bool {
        self.0 & (1 << deviation as u64) != 0
    }

    /// Whether nothing deviates.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members, by bit number.
    pub fn iter(self) -> impl Iterator<Item = Deviation> {
        Deviation::ALL
            .iter()
            .copied()
            .filter(move |&deviation| self.contains(deviation))
    }
}

impl std::ops::BitOr for Deviations {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Deviations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Deviation::as_str)).finish()
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
