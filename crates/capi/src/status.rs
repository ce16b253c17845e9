//! What a call came to: codes, and their text.

use std::ffi::CStr;

use tamis_url_canon::{HostError, Reject};

/// What a call came to. Below 16: how it was called. From 16: why a URL has no key.
///
/// Numbers are never used again. Later versions may know more of them.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TamisStatus {
    /// It worked.
    Ok = 0,
    /// A pointer is NULL that must not be.
    Null = 1,
    /// A fault of Tamis. The handle, if there was one, answers nothing else from now on: free it.
    Panic = 2,
    /// A length that no memory has.
    Length = 3,
    /// The buffer has too little room; the length that is needed was written. What is in the buffer is as before.
    BufferTooSmall = 4,
    /// Another thread is in a call with this handle.
    Busy = 5,
    /// No profile has this name.
    UnknownProfile = 6,
    /// A rule set is faulty, or two are of one name.
    RuleSet = 7,

    /// A reason that this version of the header has no number for.
    RejectOther = 16,
    /// The URL is too long.
    RejectTooLong = 17,
    /// The URL has no scheme.
    RejectNoScheme = 18,
    /// The scheme of the URL names nothing with a host or path, as that of `mailto:`.
    RejectNotHierarchical = 19,
    /// The port is no number up to 65535.
    RejectPort = 20,
    /// The host is empty.
    RejectHostEmpty = 21,
    /// The host holds a character that no host may hold.
    RejectHostForbidden = 22,
    /// The host is no UTF-8.
    RejectHostNotUtf8 = 23,
    /// UTS 46 refuses the host.
    RejectHostIdna = 24,
    /// The host ends in a number and is no IPv4 address.
    RejectHostIpv4 = 25,
    /// The host is in brackets and no IPv6 address.
    RejectHostIpv6 = 26,
}

impl TamisStatus {
    /// All of them.
    const ALL: [Self; 19] = [
        Self::Ok,
        Self::Null,
        Self::Panic,
        Self::Length,
        Self::BufferTooSmall,
        Self::Busy,
        Self::UnknownProfile,
        Self::RuleSet,
        Self::RejectOther,
        Self::RejectTooLong,
        Self::RejectNoScheme,
        Self::RejectNotHierarchical,
        Self::RejectPort,
        Self::RejectHostEmpty,
        Self::RejectHostForbidden,
        Self::RejectHostNotUtf8,
        Self::RejectHostIdna,
        Self::RejectHostIpv4,
        Self::RejectHostIpv6,
    ];

    /// A sentence for people.
    pub(crate) const fn text(self) -> &'static CStr {
        match self {
            Self::Ok => c"it worked",
            Self::Null => c"a pointer is NULL that must not be",
            Self::Panic => c"a fault of Tamis; free the handle, and please report it",
            Self::Length => c"a length is larger than any memory",
            Self::BufferTooSmall => c"the buffer is too small; the length that is needed was written",
            Self::Busy => c"another thread is in a call with this handle; give each thread its own",
            Self::UnknownProfile => {
                c"no such profile; there are strict, default, classic, w3lib, surt and crawler-commons"
            }
            Self::RuleSet => c"a rule set is faulty; the message says where",
            Self::RejectOther => c"the URL has no key",
            Self::RejectTooLong => c"the URL is too long",
            Self::RejectNoScheme => c"the URL has no scheme; write it out (https://...)",
            Self::RejectNotHierarchical => {
                c"the scheme names nothing with a host or path; for host:port write http://host:port"
            }
            Self::RejectPort => c"invalid port: it is no number up to 65535",
            Self::RejectHostEmpty => c"invalid host: it is empty",
            Self::RejectHostForbidden => c"invalid host: it holds a character that no host may hold",
            Self::RejectHostNotUtf8 => c"invalid host: it is no UTF-8",
            Self::RejectHostIdna => c"invalid host: UTS 46 refuses the name",
            Self::RejectHostIpv4 => c"invalid host: it ends in a number and is no IPv4 address",
            Self::RejectHostIpv6 => c"invalid host: it is no IPv6 address",
        }
    }

    /// The status of a number.
    pub(crate) fn of(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|&status| status as i32 == code)
    }
}

impl From<Reject> for TamisStatus {
    fn from(reject: Reject) -> Self {
        match reject {
            Reject::TooLong { .. } => Self::RejectTooLong,
            Reject::NoScheme => Self::RejectNoScheme,
            Reject::NotHierarchical => Self::RejectNotHierarchical,
            Reject::Port => Self::RejectPort,
            Reject::Host(HostError::Empty) => Self::RejectHostEmpty,
            Reject::Host(HostError::Forbidden) => Self::RejectHostForbidden,
            Reject::Host(HostError::NotUtf8) => Self::RejectHostNotUtf8,
            Reject::Host(HostError::Idna) => Self::RejectHostIdna,
            Reject::Host(HostError::Ipv4) => Self::RejectHostIpv4,
            Reject::Host(HostError::Ipv6) => Self::RejectHostIpv6,
            // A base is never given here.
            _ => Self::RejectOther,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_code_has_a_text_of_its_own() {
        let mut texts = HashSet::new();
        for status in TamisStatus::ALL {
            assert_eq!(TamisStatus::of(status as i32), Some(status));
            assert!(texts.insert(status.text()), "{status:?}");
        }
        assert_eq!(TamisStatus::of(15), None);
        assert_eq!(TamisStatus::of(-1), None);
    }
}
