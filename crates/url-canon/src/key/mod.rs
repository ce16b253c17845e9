//! The canonical key: a parsed URL, written out under a set of rules.
//!
//! # Invariants
//! - The key is a URL. Parsed and written again under the same rules it stays what it is.
//! - One pass writes it; a rule that is off costs a test of a bit.
//! - No parameter is dropped or merged unless a class C rule says so; those of one name keep their order.

mod escape;
mod query;

use crate::parse::sets::{class, encode_class_into};
use crate::parse::{HostKind, Reject, Scheme, URL_BYTES_MAX, Url};
use crate::profile::Profile;
use crate::rule::{Rule, RuleBits};
use crate::sets::Site;
use escape::Place;
use query::Queries;
use tamis_hostname::PublicSuffixes;

/// Class C rules that look at what is before the query; the others find nothing in a plain URL.
const BEFORE_QUERY: RuleBits = RuleBits::NONE
    .with(Rule::SchemeFold)
    .with(Rule::Www)
    .with(Rule::PathParameters)
    .with(Rule::CaseFold)
    .with(Rule::TrailingSlash);

/// Writes keys, with buffers that are used again.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    queries: Queries,
}

impl Writer {
    /// Writes the key of `url` under `rules` into `out`; tells which of them changed something.
    pub(crate) fn write(
        &mut self,
        url: &Url,
        rules: RuleBits,
        site: &Site<'_>,
        out: &mut Vec<u8>,
    ) -> Result<RuleBits, Reject> {
        if url.has_opaque_path() {
            return Err(Reject::NotHierarchical);
        }
        let mut fired = RuleBits::NONE;
        out.clear();
        self.queries.clear();
        if url.is_plain() && rules.only(BEFORE_QUERY).is_empty() {
            out.extend_from_slice(url.bytes(0..url.path_range().end));
        } else {
            authority(url, rules, out, &mut fired);
            path(url, rules, site, out, &mut fired);
        }
        if let Some(range) = url.query_range() {
            let under = query::Under { rules, site };
            self.queries.write(url, range, under, out, &mut fired);
        }
        fragment(url, rules, site, out, &mut fired);
        if out.len() > URL_BYTES_MAX {
            return Err(Reject::TooLong { bytes: out.len() });
        }
        Ok(fired)
    }
}

/// A name of a parameter as it is spelled in a key.
pub(crate) fn spelled(name: &[u8]) -> Vec<u8> {
    let (mut encoded, mut spelled) = (Vec::new(), Vec::new());
    encode_class_into(name, class::IN_SPECIAL_QUERY, &mut encoded);
    let rules = Profile::Default.rules();
    escape::append(
        &encoded,
        Place::Query,
        rules,
        &mut spelled,
        &mut RuleBits::default(),
    );
    spelled
}

impl Writer {
    /// Whether a rule set would drop parameters of the key just written.
    pub(crate) fn droppable(&self) -> bool {
        self.queries.droppable()
    }

    /// Copies the key just written without those parameters.
    pub(crate) fn copy_without_dropped(&self, key: &[u8], out: &mut Vec<u8>) {
        self.queries.copy_without_dropped(key, out);
    }
}

fn authority(url: &Url, rules: RuleBits, out: &mut Vec<u8>, fired: &mut RuleBits) {
    let fold = match url.scheme_kind() {
        Scheme::Http => b"https:".as_slice(),
        Scheme::Ws => b"wss:",
        _ => b"",
    };
    // With a port the other scheme may be another server.
    if rules.has(Rule::SchemeFold) && !fold.is_empty() && url.port().is_none() {
        out.extend_from_slice(fold);
        fired.set(Rule::SchemeFold);
    } else {
        out.extend_from_slice(url.bytes(url.scheme_range()));
    }
    if url.host_kind() != HostKind::None {
        out.extend_from_slice(b"//");
        if url.has_userinfo() {
            if rules.has(Rule::Userinfo) {
                fired.set(Rule::Userinfo);
            } else {
                escape::append(url.bytes(url.userinfo_range()), Place::Other, rules, out, fired);
            }
        }
        let host = url.bytes(url.host_range());
        if url.host_kind() == HostKind::Domain {
            domain(host, rules, out, fired);
        } else {
            out.extend_from_slice(host);
        }
    }
    out.extend_from_slice(url.bytes(url.port_range()));
}

fn domain(host: &[u8], rules: RuleBits, out: &mut Vec<u8>, fired: &mut RuleBits) {
    let mut host = host;
    if rules.has(Rule::HostDot)
        && let [.., last, b'.'] = host
        && *last != b'.'
    {
        host = host.get(..host.len() - 1).unwrap_or(host);
        fired.set(Rule::HostDot);
    }
    if rules.has(Rule::Www)
        && let Some(rest) = host.strip_prefix(b"www.")
        && has_registrable(rest)
    {
        host = rest;
        fired.set(Rule::Www);
    }
    out.extend_from_slice(host);
}

fn has_registrable(host: &[u8]) -> bool {
    std::str::from_utf8(host)
        .ok()
        .and_then(|host| PublicSuffixes::shipped().registrable(host))
        .is_some()
}

fn path(url: &Url, rules: RuleBits, site: &Site<'_>, out: &mut Vec<u8>, fired: &mut RuleBits) {
    let path = url.bytes(url.path_range());
    let start = out.len();
    let (place, rules) = match url.scheme_kind() {
        // A decoded letter before a bare `|` would make a drive of it.
        Scheme::File if path.contains(&b'|') => (Place::Other, rules.without(Rule::Unreserved)),
        Scheme::File | Scheme::Other => (Place::Other, rules),
        _ => (Place::Path, rules),
    };
    if url.path_is_clean() {
        out.extend_from_slice(path);
    } else {
        escape::append(path, place, rules, out, fired);
    }
    if place != Place::Path {
        return;
    }
    if rules.has(Rule::PathParameters) && site.drop_path_parameters(out, start) {
        fired.set(Rule::PathParameters);
    }
    if rules.has(Rule::CaseFold) {
        fold_case(out, start, fired);
    }
    if rules.has(Rule::TrailingSlash) {
        while out.len() > start + 1 && out.last() == Some(&b'/') {
            out.pop();
            fired.set(Rule::TrailingSlash);
        }
    }
}

/// Lower-cases letters from `start` on, but not the digits of escapes.
fn fold_case(out: &mut [u8], start: usize, fired: &mut RuleBits) {
    let mut skip = 0;
    for byte in out.get_mut(start..).unwrap_or_default() {
        if skip > 0 {
            skip -= 1;
        } else if *byte == b'%' {
            skip = 2;
        } else if byte.is_ascii_uppercase() {
            byte.make_ascii_lowercase();
            fired.set(Rule::CaseFold);
        }
    }
}

fn fragment(url: &Url, rules: RuleBits, site: &Site<'_>, out: &mut Vec<u8>, fired: &mut RuleBits) {
    let Some(range) = url.fragment_range() else {
        return;
    };
    let fragment = url.bytes(range);
    if rules.has(Rule::Fragment) && !site.keeps_fragment(fragment) {
        fired.set(Rule::Fragment);
        return;
    }
    out.push(b'#');
    escape::append(fragment, Place::Other, rules, out, fired);
}
