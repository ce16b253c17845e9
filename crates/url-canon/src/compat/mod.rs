//! The keys of other tools, for moving their sets over: what they do, faults included.
//!
//! # Limits
//! None of the promises about our keys holds here: these keys merge what differs, miss what is the same,
//! and are not always stable when made again from themselves. `docs/scoreboard.md` says where.

mod crawler_commons;
mod python;
mod surt;
mod w3lib;

pub(crate) use python::unescape_repeatedly;

use crate::parse::Reject;
use crate::profile::Profile;

/// Writes the key that the tool of a profile makes of `input`.
pub(crate) fn key(profile: Profile, input: &[u8], out: &mut Vec<u8>) -> Result<(), Reject> {
    out.clear();
    match profile {
        Profile::W3lib => w3lib::canonicalize(input, out),
        Profile::Surt => surt::surt(input, out),
        _ => crawler_commons::normalize(input, out),
    }
}
