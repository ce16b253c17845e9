//! Which logs to read, and how far.

use super::{LogDescription, State};
use crate::key::LogId;
use crate::merkle::Tree;

/// Host names that are reserved for examples (RFC 2606, RFC 6761): lists hold placeholder logs there, to
/// keep clients working that break on an operator without logs.
const EXAMPLE_HOSTS: [&str; 3] = ["example.com", "example.net", "example.org"];
const EXAMPLE_SUFFIXES: [&str; 3] = [".example", ".invalid", ".test"];

/// What to do with a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Follow {
    /// Read it, and go on reading what comes.
    Tail,
    /// Read it to this tree, which is its last one, and stop without complaint.
    ToTheEnd(Tree),
    /// Read it to the head that it shows: it takes nothing more, but the list does not name its last tree.
    ToItsHead,
    /// Do not ask it anything.
    No(NotFollowed),
}

/// Why a log is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NotFollowed {
    /// It asked to be listed, and was not accepted yet.
    #[error("it is pending: not accepted yet")]
    Pending,
    /// It was refused.
    #[error("it was rejected")]
    Rejected,
    /// It is retired, and the list does not name its last tree: it may be gone or wrong.
    #[error("it is retired, and the list does not name its last tree")]
    Retired,
    /// The list does not say what became of it.
    #[error("the list does not say whether it is usable")]
    UnknownState,
    /// The list calls it a test log.
    #[error("it is a test log")]
    Test,
    /// Its address is reserved for examples.
    #[error("its address is a placeholder")]
    Placeholder,
    /// It is on this machine, and the list comes from elsewhere.
    #[error("its address is on this machine, and the list is not")]
    Loopback,
    /// The caller excluded it.
    #[error("it is excluded by configuration")]
    Excluded,
}

/// What a caller decides about all logs.
#[derive(Clone, Copy, Debug, Default)]
pub struct FollowRules<'a> {
    /// Logs that are never asked: mimics, whose keys are public and which no list marks, belong here.
    pub excluded: &'a [LogId],
    /// Whether to read logs that are pending; they hold real certificates, and may go away.
    pub pending: bool,
    /// Whether to read logs on this machine: a list from elsewhere has no business there.
    pub loopback: bool,
}

impl LogDescription {
    /// Decides by its state, never by its description.
    #[must_use]
    pub fn follow(&self, rules: &FollowRules<'_>) -> Follow {
        if rules.excluded.contains(&self.id()) {
            return Follow::No(NotFollowed::Excluded);
        }
        if self.is_test {
            return Follow::No(NotFollowed::Test);
        }
        if [self.monitoring_url(), self.submission_url()]
            .into_iter()
            .any(is_placeholder)
        {
            return Follow::No(NotFollowed::Placeholder);
        }
        if !rules.loopback
            && [self.monitoring_url(), self.submission_url()]
                .into_iter()
                .any(is_loopback)
        {
            return Follow::No(NotFollowed::Loopback);
        }
        match self.state {
            State::Usable | State::Qualified => Follow::Tail,
            State::ReadOnly(Some(tree)) | State::Retired(Some(tree)) => Follow::ToTheEnd(tree),
            State::ReadOnly(None) => Follow::ToItsHead,
            State::Retired(None) => Follow::No(NotFollowed::Retired),
            State::Pending if rules.pending => Follow::Tail,
            State::Pending => Follow::No(NotFollowed::Pending),
            State::Rejected => Follow::No(NotFollowed::Rejected),
            State::Unknown => Follow::No(NotFollowed::UnknownState),
        }
    }
}

fn is_placeholder(url: &str) -> bool {
    let host = host(url).to_ascii_lowercase();
    let host = host.trim_end_matches('.');
    let is_below = |name: &str| host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    EXAMPLE_HOSTS.iter().any(|name| host == *name || is_below(name))
        || EXAMPLE_SUFFIXES.iter().any(|suffix| host.ends_with(suffix))
}

/// Whether an address is on this machine.
#[must_use]
pub fn is_loopback(url: &str) -> bool {
    let host = host(url).to_ascii_lowercase();
    let is_address = |ip: std::net::IpAddr| ip.is_loopback();
    host == "localhost" || host.parse().is_ok_and(is_address)
}

/// The host of an address, without brackets and port.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_known_by_their_host() {
        let check = |url: &str, expected: bool| assert_eq!(is_placeholder(url), expected, "{url}");
        check("https://ct.example.com/bogus/", true);
        check("https://EXAMPLE.org./", true);
        check("https://example.net:8443/a", true);
        check("https://log.test/", true);
        check("https://ct.notexample.com/", false);
        check("https://example.com.ct.letsencrypt.org/", false);
        check("https://ct.googleapis.com/example.com/", false);
        check("https://test.ct.io/", false);
    }

    #[test]
    fn this_machine_is_known_by_its_addresses() {
        let check = |url: &str, expected: bool| assert_eq!(is_loopback(url), expected, "{url}");
        check("http://127.0.0.1:6962/log/", true);
        check("http://127.8.9.10/", true);
        check("http://[::1]:80/", true);
        check("http://LOCALHOST:1/", true);
        check("http://localhost.example.net/", false);
        check("http://127.0.0.1.example.net/", false);
        check("http://127.0.0.1:80@example.net/", false);
        check("http://[2001:db8::1]/", false);
        check("http://128.0.0.1/", false);
    }
}
