//! Schemes that the URL Standard treats apart.

/// A special scheme, or any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
    /// `ws`
    Ws,
    /// `wss`
    Wss,
    /// `ftp`
    Ftp,
    /// `file`
    File,
    /// All others.
    #[default]
    Other,
}

impl Scheme {
    pub(super) fn of(lower_case: &[u8]) -> Self {
        match lower_case {
            b"http" => Self::Http,
            b"https" => Self::Https,
            b"ws" => Self::Ws,
            b"wss" => Self::Wss,
            b"ftp" => Self::Ftp,
            b"file" => Self::File,
            _ => Self::Other,
        }
    }

    /// Whether the standard calls it special.
    #[must_use]
    pub fn is_special(self) -> bool {
        self != Self::Other
    }

    /// Whether its servers speak HTTP, so that what holds for web servers holds here.
    #[must_use]
    pub fn is_web(self) -> bool {
        matches!(self, Self::Http | Self::Https | Self::Ws | Self::Wss)
    }

    pub(super) fn default_port(self) -> Option<u16> {
        match self {
            Self::Http | Self::Ws => Some(80),
            Self::Https | Self::Wss => Some(443),
            Self::Ftp => Some(21),
            Self::File | Self::Other => None,
        }
    }
}

/// The length of a scheme at the start of `input` that a `:` ends.
pub(super) fn scheme_length(input: &[u8]) -> Option<usize> {
    if !input.first()?.is_ascii_alphabetic() {
        return None;
    }
    let length = input
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || b"+-.".contains(byte)))?;
    (input.get(length) == Some(&b':')).then_some(length)
}
