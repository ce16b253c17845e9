//! Vectors of others: the Public Suffix List's own, IDN conformance data, and real names.
#![allow(clippy::unwrap_used, clippy::panic, reason = "how a test fails")]

mod idn;
mod real_names;
mod suffixes;

use tamis_hostname::{Identifier, read};

/// The canonical host of `name`, if it is one.
fn host(name: &str) -> Option<String> {
    match read(name.as_bytes()) {
        Identifier::Host(host) => Some(host.into_host().into_owned()),
        _ => None,
    }
}
