//! The four things a name field can turn out to be, and the notes kept about what had to be mended.
//!
//! # Invariants
//! A [`HostName`] is only made by [`crate::read`], so its host is always canonical.

use std::borrow::Cow;
use std::net::IpAddr;

use bitflags::bitflags;

/// The longest host that is still taken for one, in bytes. DNS ends at 253; what certificates carry
/// does not, and such a name must stay findable below its parent.
pub const HOST_BYTES_MAX: usize = 1_024;

/// The longest [`Identifier::Other`] or [`Identifier::Email`], in bytes. Longer text is cut and ends in `…`.
pub const TEXT_BYTES_MAX: usize = 480;

/// What one dNSName, common name or search term turned out to be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identifier<'a> {
    /// A host name, perhaps mended: see [`HostName::repairs`].
    Host(HostName<'a>),
    /// An address: a dotted quad of four decimal octets, or IPv6 with or without brackets.
    Ip(IpAddr),
    /// An e-mail address: the local part as it was, the domain as lower-case A-labels.
    Email(Cow<'a, str>),
    /// Anything else, as text: UTF-8, or Latin-1 where it is no UTF-8; white space at the ends removed;
    /// control characters escaped as `\xNN`, other invisible and bidirectional ones as `\u{N}`; a
    /// backslash stays as it is, so that text reads as itself again; cut at [`TEXT_BYTES_MAX`] bytes with a final `…`. May be empty.
    Other(Cow<'a, str>),
}

impl Identifier<'_> {
    /// The same identifier without a borrow from what was read.
    #[must_use]
    pub fn into_owned(self) -> Identifier<'static> {
        match self {
            Self::Host(host) => Identifier::Host(host.into_owned()),
            Self::Ip(address) => Identifier::Ip(address),
            Self::Email(text) => Identifier::Email(Cow::Owned(text.into_owned())),
            Self::Other(text) => Identifier::Other(Cow::Owned(text.into_owned())),
        }
    }
}

/// A canonical host name: lower-case A-labels without a trailing dot and without `*.`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostName<'a> {
    host: Cow<'a, str>,
    wildcard: bool,
    repairs: Repairs,
}

impl<'a> HostName<'a> {
    pub(crate) fn new(host: Cow<'a, str>, wildcard: bool, repairs: Repairs) -> Self {
        Self {
            host,
            wildcard,
            repairs,
        }
    }

    /// The host itself, `www.example.com`.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether the name was `*.host`: every name one label below, and not the host itself.
    #[must_use]
    pub fn wildcard(&self) -> bool {
        self.wildcard
    }

    /// What was mended to get here, and what stays odd about the name.
    #[must_use]
    pub fn repairs(&self) -> Repairs {
        self.repairs
    }

    /// The name as people write it: `*.host` for a wildcard, else the host.
    #[must_use]
    pub fn display(&self) -> Cow<'_, str> {
        if self.wildcard {
            Cow::Owned(format!("*.{}", self.host))
        } else {
            Cow::Borrowed(&self.host)
        }
    }

    /// The host, borrowed from what was read where nothing had to be rewritten.
    #[must_use]
    pub fn into_host(self) -> Cow<'a, str> {
        self.host
    }

    /// The same name without a borrow from what was read.
    #[must_use]
    pub fn into_owned(self) -> HostName<'static> {
        HostName::new(Cow::Owned(self.host.into_owned()), self.wildcard, self.repairs)
    }
}

bitflags! {
    /// What [`crate::read`] mended in a name, and what stays odd in it. Folding `A-Z` is no repair.
    ///
    /// The values are fixed: they may be stored.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Repairs: u16 {
        /// Dots behind the last label were removed: `example.com.`.
        const TRAILING_DOT = 1 << 0;
        /// Dots before the first label were removed: `.example.com`.
        const LEADING_DOT = 1 << 1;
        /// NUL bytes at the ends were removed. One inside makes the name text.
        const NUL = 1 << 2;
        /// White space at the ends was removed. One inside makes the name text.
        const WHITESPACE = 1 << 3;
        /// A scheme was removed: `https://example.com`.
        const SCHEME = 1 << 4;
        /// A path, query or fragment was removed: `example.com/index.html`.
        const PATH = 1 << 5;
        /// A port was removed: `example.com:8443`.
        const PORT = 1 << 6;
        /// A user name was removed: `ftp://anonymous@example.com`.
        const USERINFO = 1 << 7;
        /// The name was written in Unicode and became A-labels by UTS 46.
        const ULABEL = 1 << 8;
        /// The bytes were no UTF-8 and were taken for Latin-1.
        const LATIN1 = 1 << 9;
        /// A label starts with `xn--` and is no A-label that UTS 46 accepts. It is kept as it is.
        const PUNYCODE_INVALID = 1 << 10;
        /// A label holds `_`, as service names do.
        const UNDERSCORE = 1 << 11;
        /// A label is longer than the 63 bytes DNS allows.
        const LONG_LABEL = 1 << 12;
        /// The name is longer than the 253 bytes DNS allows.
        const LONG_NAME = 1 << 13;

        /// The flags that describe the canonical host itself: reading it again raises them again.
        const PERSISTENT = Self::PUNYCODE_INVALID.bits()
            | Self::UNDERSCORE.bits()
            | Self::LONG_LABEL.bits()
            | Self::LONG_NAME.bits();
    }
}
