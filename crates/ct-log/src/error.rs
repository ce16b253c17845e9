//! What can go wrong, and whose fault it is.

use crate::certificate::NotCertificate;

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Blame {
    /// The caller gave something that this crate does not read.
    Input,
    /// The bytes are damaged or cut off.
    Corrupt,
    /// A named limit stopped it.
    Limit,
}

/// Why an input as a whole cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are of no known form.
    #[error("input is not recognised: it starts with {seen}; {hint}")]
    NotRecognised {
        /// The first bytes, escaped.
        seen: String,
        /// What would be recognised, or what this may be.
        hint: &'static str,
    },
    /// The compressed body holds more than it may.
    #[error("compressed input inflates to more than {limit} bytes; inflate it first, or raise the limit")]
    InflatedTooLarge {
        /// The limit that was given.
        limit: u64,
    },
    /// Not one byte could be inflated.
    #[error("compressed input cannot be inflated")]
    Gzip {
        /// What the inflater said.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// Whose fault it is.
    #[must_use]
    pub fn blame(&self) -> Blame {
        match self {
            Self::NotRecognised { .. } => Blame::Input,
            Self::InflatedTooLarge { .. } => Blame::Limit,
            Self::Gzip { .. } => Blame::Corrupt,
        }
    }
}

/// Why one entry cannot be read; those before and behind it can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {ordinal} at byte {offset}: {reason}")]
pub struct EntryError {
    /// Which entry of the input, counted from 0.
    pub ordinal: u64,
    /// Where in the input, inflated if it was compressed.
    pub offset: u64,
    /// What is wrong.
    #[source]
    pub reason: Reason,
}

/// What is wrong with one entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes end inside a field.
    #[error("the bytes end inside {field}")]
    CutOff {
        /// The field, as its RFC calls it.
        field: &'static str,
    },
    /// The leaf has another version than v1.
    #[error("leaf version {0} is unknown")]
    LeafVersion(u8),
    /// The leaf has another type than timestamped_entry.
    #[error("leaf type {0} is unknown")]
    LeafType(u8),
    /// The entry is neither x509_entry nor precert_entry.
    #[error("entry type {0} is unknown")]
    EntryType(u16),
    /// A text is not base64.
    #[error("{field} is not base64")]
    NotBase64 {
        /// The field, as the RFC calls it.
        field: &'static str,
    },
    /// An object has `extra_data` and the like but no `leaf_input`, or a chain is empty.
    #[error("{field} is missing")]
    Missing {
        /// The field, as the RFC calls it.
        field: &'static str,
    },
    /// What is there cannot stand there.
    #[error("this is not {expected}")]
    Unexpected {
        /// What was expected.
        expected: &'static str,
    },
    /// A static log's leaf says that it is another entry than the one that was asked for.
    #[error("the leaf says that it is entry {found} of its log, but it stands at {expected}")]
    OtherIndex {
        /// Where it stands.
        expected: u64,
        /// Where it says it is.
        found: u64,
    },
    /// The JSON is nested deeper than any log writes it.
    #[error("the JSON is nested deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The compressed body is damaged or cut off here.
    #[error("the compressed body is damaged or ends early")]
    Gzip,
    /// It holds no certificate.
    #[error(transparent)]
    NotCertificate(#[from] NotCertificate),
}

impl Reason {
    /// Whose fault it is.
    #[must_use]
    pub fn blame(&self) -> Blame {
        match self {
            Self::NotCertificate(_) | Self::Unexpected { .. } | Self::Missing { .. } => Blame::Input,
            Self::TooDeep { .. } => Blame::Limit,
            _ => Blame::Corrupt,
        }
    }

    pub(crate) fn at(self, ordinal: u64, offset: usize) -> EntryError {
        EntryError {
            ordinal,
            offset: offset as u64,
            reason: self,
        }
    }
}
