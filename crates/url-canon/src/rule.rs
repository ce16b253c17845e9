//! The rules by name and class, and which of them changed a URL.

/// How safe a rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Safe by RFC 3986 section 6.2.2 or 6.2.3 or the URL Standard: same URL, other spelling.
    A,
    /// Safe to compare by on nearly all servers, not guaranteed; in the key only.
    B,
    /// Heuristic: needs evidence, a site or an exact name.
    C,
}

impl Class {
    /// One letter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
        }
    }
}

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $rule:ident $class:ident $name:literal,)+) => {
        /// A rule that can change a URL, in the order in which rules are applied.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Rule { $($(#[doc = $doc])+ $rule,)+ }

        impl Rule {
            /// All rules, in the order in which they are applied.
            pub const ALL: &'static [Self] = &[$(Self::$rule),+];

            /// Its name in output and rule sets.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$rule => $name),+ }
            }

            /// How safe it is.
            #[must_use]
            pub fn class(self) -> Class {
                match self { $(Self::$rule => Class::$class),+ }
            }

            /// What it does, in a line.
            #[must_use]
            pub fn what(self) -> &'static str {
                match self { $(Self::$rule => concat!($($doc),+).trim_ascii()),+ }
            }
        }
    };
}

rules! {
    /// Control characters and spaces at the ends go
    Trim A "trim",
    /// Tabs and line ends inside go
    LineBreaks A "line-breaks",
    /// Bytes that are no UTF-8 are kept as escapes
    RawBytes A "raw-bytes",
    /// A scheme in lower case
    SchemeCase A "scheme-case",
    /// Two slashes before the authority, however many there were
    AuthoritySlashes A "authority-slashes",
    /// `\` is `/` in special schemes
    Backslash A "backslash",
    /// Escapes in a domain are decoded
    HostEscapes A "host-escapes",
    /// A host in lower case
    HostCase A "host-case",
    /// A domain in its ASCII form (UTS 46, non-transitional)
    Idn A "idn",
    /// IPv4 in dotted decimal, IPv6 compressed
    IpAddress A "ip-address",
    /// The scheme's default port goes, so do a `:` without port and leading zeros
    DefaultPort A "default-port",
    /// An empty path is `/`
    EmptyPath A "empty-path",
    /// `.` and `..` are resolved
    DotSegments A "dot-segments",
    /// Spaces, quotes, controls and what is not ASCII are escaped
    PercentEncode A "percent-encode",
    /// Hexadecimal digits of escapes in upper case
    EscapeCase A "escape-case",
    /// Escapes of `A-Z a-z 0-9 - . _ ~` are decoded, once
    Unreserved A "unreserved",
    /// User and password leave the key
    Userinfo B "userinfo",
    /// A single dot behind a domain goes
    HostDot B "host-dot",
    /// A fragment goes
    Fragment B "fragment",
    /// A `%` that starts no escape is `%25`
    StrayPercent B "stray-percent",
    /// `[ ] | ^ '` and other characters that browsers leave bare meet their escapes
    BareCharacters B "bare-characters",
    /// In a query `%20` is `+`
    Plus B "plus",
    /// Empty parameters (`&&`) go
    EmptyParameters B "empty-parameters",
    /// A `?` with nothing behind it goes
    EmptyQuery B "empty-query",
    /// Parameters are sorted by name; those of one name keep their order
    SortParameters B "sort-parameters",
    /// A wrapper is replaced by the URL it leads to
    Unwrap C "unwrap",
    /// Parameters that a rule set names go
    DropParameters C "drop-parameters",
    /// Parameters whose value is empty (`a=`) go
    BlankValues C "blank-values",
    /// `;name=value` in the path, of a name and a shape that a rule set gives, goes
    PathParameters C "path-parameters",
    /// Upper and lower case are one in path and query of a site that a rule set names
    CaseFold C "case-fold",
    /// A trailing slash goes
    TrailingSlash C "trailing-slash",
    /// `www.` goes where a registrable domain remains
    Www C "www",
    /// `http` is `https`
    SchemeFold C "scheme-fold",
}

/// A set of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleBits(u64);

impl RuleBits {
    /// No rule.
    pub const NONE: Self = Self(0);

    /// Adds a rule.
    #[inline]
    pub const fn set(&mut self, rule: Rule) {
        self.0 |= 1 << rule as u8;
    }

    /// The same set without a rule.
    #[must_use]
    pub const fn without(self, rule: Rule) -> Self {
        Self(self.0 & !(1 << rule as u8))
    }

    /// The same set and a rule.
    #[must_use]
    pub const fn with(self, rule: Rule) -> Self {
        Self(self.0 | 1 << rule as u8)
    }

    /// Whether it has a rule.
    #[inline]
    #[must_use]
    pub const fn has(self, rule: Rule) -> bool {
        self.0 & 1 << rule as u8 != 0
    }

    /// Rules of either set.
    #[inline]
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Rules of this set that another has not.
    #[inline]
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Rules of both sets.
    #[inline]
    #[must_use]
    pub const fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether there is no rule.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its rules in the order in which they are applied.
    pub fn iter(self) -> impl Iterator<Item = Rule> {
        Rule::ALL.iter().copied().filter(move |&rule| self.has(rule))
    }

    /// The set as a number, stable within a version of the profiles.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl FromIterator<Rule> for RuleBits {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        rules.into_iter().fold(Self::NONE, Self::with)
    }
}
