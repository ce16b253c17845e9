//! Lists of others made into rule sets. What cannot be taken over is told, with its reason; nothing is
//! bent until it fits.

mod adguard;
mod brave;
mod clearurls;

use std::collections::BTreeMap;

use super::document::{Exception, RuleSet, SetError, SiteRules, never_global};

/// A list larger than this is something else.
const LIST_BYTES_MAX: usize = 64 << 20;

/// Whose list it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListKind {
    /// ClearURLs' `data.json` or `data.min.json`.
    ClearUrls,
    /// Brave's `clean-urls.json`.
    Brave,
    /// Lists of AdGuard and uBlock Origin: their `removeparam` rules.
    AdGuard,
}

/// A rule set, and what was left out of it.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The set.
    pub set: RuleSet,
    /// Rules taken over.
    pub taken: u64,
    /// Each rule that was not, and why.
    pub left_out: Vec<(String, &'static str)>,
}

/// Makes a rule set of a list.
///
/// # Errors
/// [`SetError`] if the text is no such list.
pub fn import(kind: ListKind, text: &[u8], name: &str, version: &str) -> Result<Imported, SetError> {
    if text.len() > LIST_BYTES_MAX {
        return Err(SetError::TooLong { bytes: text.len() });
    }
    let mut imported = Imported {
        set: RuleSet::new(name, version),
        taken: 0,
        left_out: Vec::new(),
    };
    match kind {
        ListKind::ClearUrls => clearurls::import(text, &mut imported)?,
        ListKind::Brave => brave::import(text, &mut imported)?,
        ListKind::AdGuard => adguard::import(&String::from_utf8_lossy(text), &mut imported),
    }
    imported.tidy();
    imported.set.check()?;
    Ok(imported)
}

impl Imported {
    fn leave_out(&mut self, rule: impl Into<String>, why: &'static str) {
        self.left_out.push((rule.into(), why));
    }

    /// Takes a name that is dropped everywhere, unless it must not be.
    fn global(&mut self, name: String) {
        match never_global(&name) {
            Ok(()) => {
                self.set.names.push(name);
                self.taken += 1;
            }
            Err(SetError::NeverGlobal { .. }) => {
                self.leave_out(name, "decides on many sites what the page is, and names none");
            }
            Err(_) => self.leave_out(name, "no expression that can be used"),
        }
    }

    /// Takes names that are dropped on hosts.
    fn site(&mut self, hosts: Vec<String>, rest: Option<String>, names: Vec<String>) {
        if hosts.iter().any(|host| host == "*") && rest.is_none() {
            names.into_iter().for_each(|name| self.global(name));
        } else if !names.is_empty() && !hosts.is_empty() {
            let site = SiteRules {
                hosts,
                rest,
                names,
                ..SiteRules::default()
            };
            let probe = RuleSet {
                sites: vec![site],
                ..RuleSet::new("probe", "1")
            };
            let names = probe
                .sites
                .iter()
                .map(|site| site.names.len() as u64)
                .sum::<u64>();
            match probe.check() {
                Ok(()) => {
                    self.taken += names;
                    self.set.sites.extend(probe.sites);
                }
                Err(_) => {
                    let told = probe
                        .sites
                        .iter()
                        .map(|site| format!("{:?} {:?}", site.hosts, site.names));
                    let told = told.collect::<String>();
                    self.leave_out(told, "hosts or expressions that cannot be used");
                }
            }
        }
    }

    fn exception(&mut self, exception: Exception) {
        self.taken += 1;
        self.set.exceptions.push(exception);
    }

    /// Sorted and without repeats, so that the same list gives the same set.
    fn tidy(&mut self) {
        self.set.names.sort();
        self.set.names.dedup();
        let mut sites: BTreeMap<(Vec<String>, Option<String>), Vec<String>> = BTreeMap::new();
        for site in self.set.sites.drain(..) {
            sites
                .entry((site.hosts, site.rest))
                .or_default()
                .extend(site.names);
        }
        self.set.sites = sites
            .into_iter()
            .map(|((hosts, rest), mut names)| {
                names.sort();
                names.dedup();
                SiteRules {
                    hosts,
                    rest,
                    names,
                    ..SiteRules::default()
                }
            })
            .collect();
    }
}
