//! The URL Standard's parser (<https://url.spec.whatwg.org/#url-parsing>), over bytes, into buffers that are
//! used again.
//!
//! # Invariants
//! - [`Url::href`] is ASCII, and parsing it gives the same URL.
//! - Bytes that are no UTF-8 become escapes of themselves in path, query and fragment, where a browser
//!   would write U+FFFD for each: `\xe8` and `\xe9` stay two URLs.
//!
//! # Limits
//! [`URL_BYTES_MAX`], for what is given and for what comes out. No setters, no `blob:` origins.

mod host;
mod path;
mod read;
mod scheme;
pub(crate) mod sets;

use std::ops::Range;

pub(crate) use host::ipv6_text;
pub use host::{HostError, HostKind};
pub use read::Parser;
pub use scheme::Scheme;

/// A longer URL is refused, never cut.
pub const URL_BYTES_MAX: usize = 64 << 10;

/// Why there is no URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reject {
    /// Longer than [`URL_BYTES_MAX`], as given or written out.
    #[error("the URL has {bytes} bytes, more than {URL_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// No scheme, and no base to take it from.
    #[error("it has no scheme; write it out (https://…), or give a base")]
    NoScheme,
    /// A relative URL against a base such as `mailto:` that cannot have paths.
    #[error("it is relative and its base has no hierarchy")]
    BaseNotHierarchical,
    /// The host cannot be one.
    #[error("invalid host: {0}")]
    Host(#[from] HostError),
    /// The port is no number up to 65535.
    #[error("invalid port: it is no number up to 65535")]
    Port,
    /// A scheme such as `mailto:` or `localhost:` whose URLs have no path of segments: there is nothing to
    /// compare by. Only canonical keys refuse it; [`Parser::parse`] reads it.
    #[error("the scheme names nothing with a host or path; for host:port write http://host:port")]
    NotHierarchical,
}

impl Reject {
    /// One word for programs.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "length",
            Self::NoScheme | Self::NotHierarchical => "scheme",
            Self::BaseNotHierarchical => "base",
            Self::Host(_) => "host",
            Self::Port => "port",
        }
    }
}

/// A URL in its serialised form, with the places of its parts.
///
/// ```text
/// https://user:pass@example.com:1234/foo/bar?baz#quux
///       |    |      |          ^^^^^|       |   |
///       |    |      |          |   path     |   fragment
///       |    |      host_start host_end     query
///       |    username_end
///       scheme_end
/// ```
#[derive(Debug, Clone, Default)]
pub struct Url {
    href: Vec<u8>,
    scheme: Scheme,
    /// The place of the `:`.
    scheme_end: usize,
    username_end: usize,
    host_start: usize,
    host_end: usize,
    host_kind: HostKind,
    port: Option<u16>,
    path_start: usize,
    /// The place of the `?`.
    query: Option<usize>,
    /// The place of the `#`.
    fragment: Option<usize>,
    opaque_path: bool,
    /// Where the last three labels of a domain start, from the last on, if the parser came by them.
    label_starts: Option<[usize; 3]>,
    /// Classes of bytes that the path may hold, see [`sets::class`]; a hint for who writes it anew.
    path_info: u8,
    /// The same of the query.
    query_info: u8,
}

impl PartialEq for Url {
    /// The parts, too, and not the hints.
    fn eq(&self, other: &Self) -> bool {
        let places = |url: &Self| {
            let ends = (url.scheme_end, url.username_end, url.host_start, url.host_end);
            let rest = (url.path_start, url.query, url.fragment, url.port);
            (ends, rest, url.scheme, url.host_kind, url.opaque_path)
        };
        self.href == other.href && places(self) == places(other)
    }
}

impl Eq for Url {}

impl Url {
    /// Parses an absolute URL. [`Parser`] does it without allocating each time.
    ///
    /// # Errors
    /// [`Reject`] says why it is none.
    pub fn parse(input: &[u8]) -> Result<Self, Reject> {
        let mut url = Self::default();
        Parser::default().parse(input, None, &mut url)?;
        Ok(url)
    }

    /// Parses a URL relative to this one.
    ///
    /// # Errors
    /// [`Reject`] says why it is none.
    pub fn join(&self, input: &[u8]) -> Result<Self, Reject> {
        let mut url = Self::default();
        Parser::default().parse(input, Some(self), &mut url)?;
        Ok(url)
    }

    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.href.get(range).unwrap_or_default()
    }

    fn text(&self, range: Range<usize>) -> &str {
        // The parser writes ASCII only.
        std::str::from_utf8(self.bytes(range)).unwrap_or_default()
    }

    /// The whole URL.
    #[must_use]
    pub fn href(&self) -> &str {
        self.text(0..self.href.len())
    }

    /// The whole URL as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.href
    }

    /// The scheme without its `:`.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.text(0..self.scheme_end)
    }

    /// Which of the schemes that matter here it is.
    #[must_use]
    pub fn scheme_kind(&self) -> Scheme {
        self.scheme
    }

    /// Empty if there is none.
    #[must_use]
    pub fn username(&self) -> &str {
        if self.host_kind == HostKind::None {
            return "";
        }
        self.text(self.scheme_end + 3..self.username_end)
    }

    /// Empty if there is none.
    #[must_use]
    pub fn password(&self) -> &str {
        if self.username_end + 1 < self.host_start {
            self.text(self.username_end + 1..self.host_start - 1)
        } else {
            ""
        }
    }

    /// Whether a user or password stands in it.
    #[must_use]
    pub fn has_userinfo(&self) -> bool {
        self.username_end < self.host_start
    }

    /// The host as it is serialised, IPv6 in brackets; none without an authority.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        (self.host_kind != HostKind::None).then(|| self.text(self.host_range()))
    }

    /// What the host is.
    #[must_use]
    pub fn host_kind(&self) -> HostKind {
        self.host_kind
    }

    /// None where it is the scheme's default.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &str {
        self.text(self.path_range())
    }

    /// Whether the path is text without segments, as that of `mailto:`.
    #[must_use]
    pub fn has_opaque_path(&self) -> bool {
        self.opaque_path
    }

    /// What follows the `?`; an empty query is not the same as none.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.query_range().map(|range| self.text(range))
    }

    /// What follows the `#`.
    #[must_use]
    pub fn fragment(&self) -> Option<&str> {
        self.fragment_range().map(|range| self.text(range))
    }

    pub(crate) fn host_range(&self) -> Range<usize> {
        self.host_start..self.host_end
    }

    /// `scheme:`, and `//` and userinfo if there are any: all before the host.
    pub(crate) fn scheme_range(&self) -> Range<usize> {
        0..self.scheme_end + 1
    }

    pub(crate) fn userinfo_range(&self) -> Range<usize> {
        if self.has_userinfo() {
            self.scheme_end + 3..self.host_start
        } else {
            self.host_start..self.host_start
        }
    }

    /// From the end of the host to the path: the port, or the `/.` that keeps a path apart from a host.
    pub(crate) fn port_range(&self) -> Range<usize> {
        self.host_end..self.path_start
    }

    pub(crate) fn path_range(&self) -> Range<usize> {
        self.path_start..self.path_end()
    }

    pub(crate) fn label_starts(&self) -> Option<[usize; 3]> {
        self.label_starts
    }

    /// Whether nothing before the query has to be spelled anew: no userinfo, no dot behind the host, a clean
    /// path.
    pub(crate) fn is_plain(&self) -> bool {
        let dotted = self.href.get(self.host_end.wrapping_sub(1)) == Some(&b'.');
        self.path_is_clean() && !self.has_userinfo() && !dotted
    }

    /// Whether escapes or bare characters in path and query may have to be spelled anew.
    pub(crate) fn path_is_clean(&self) -> bool {
        self.path_info & path::UNKNOWN == 0
    }

    /// The same of the query.
    pub(crate) fn query_is_clean(&self) -> bool {
        self.query_info & path::UNKNOWN == 0
    }

    fn path_end(&self) -> usize {
        self.query.or(self.fragment).unwrap_or(self.href.len())
    }

    pub(crate) fn query_range(&self) -> Option<Range<usize>> {
        Some(self.query? + 1..self.fragment.unwrap_or(self.href.len()))
    }

    pub(crate) fn fragment_range(&self) -> Option<Range<usize>> {
        Some(self.fragment? + 1..self.href.len())
    }

    fn clear(&mut self) {
        let mut href = std::mem::take(&mut self.href);
        href.clear();
        *self = Self {
            href,
            ..Self::default()
        };
    }
}
