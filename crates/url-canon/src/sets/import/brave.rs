//! Brave's list: URL patterns with `*`, and exact names.

use serde::Deserialize;

use super::Imported;
use crate::sets::document::{Exception, SetError};

#[derive(Deserialize)]
struct Group {
    include: Vec<String>,
    #[serde(default)]
    exclude: Vec<String>,
    params: Vec<String>,
}

pub(super) fn import(text: &[u8], imported: &mut Imported) -> Result<(), SetError> {
    let groups: Vec<Group> = serde_json::from_slice(text)?;
    for group in groups {
        for pattern in &group.exclude {
            match parts(pattern) {
                Some((host, rest)) => imported.exception(Exception {
                    hosts: vec![host],
                    rest,
                    names: group.params.clone(),
                }),
                None => imported.leave_out(pattern, "a pattern of a form that is not known"),
            }
        }
        for pattern in &group.include {
            match parts(pattern) {
                Some((host, rest)) => imported.site(vec![host], rest, group.params.clone()),
                None => imported.leave_out(pattern, "a pattern of a form that is not known"),
            }
        }
    }
    Ok(())
}

/// `*://*.example.com/path*` as a host and an expression for what follows it.
fn parts(pattern: &str) -> Option<(String, Option<String>)> {
    let (_, rest) = pattern.split_once("://")?;
    let (host, path) = rest.split_at(rest.find('/')?);
    let host = match host.strip_prefix("*.") {
        Some(host) => host.to_owned(),
        None if host == "*" => "*".to_owned(),
        None => format!("={host}"),
    };
    if host.trim_start_matches(['=', '*']).contains('*') {
        return None;
    }
    let rest = (path != "/*").then(|| glob(path));
    Some((host, rest))
}

/// An expression for a path with `*`.
fn glob(path: &str) -> String {
    let parts: Vec<String> = path.split('*').map(regex::escape).collect();
    format!("{}$", parts.join(".*"))
}
