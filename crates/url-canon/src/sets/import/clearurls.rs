//! ClearURLs' providers: an expression over the URL, and expressions over names, exceptions and targets.
//!
//! An expression over the URL becomes hosts and an expression for what follows them; names become exact
//! names wherever the expression has no more than [`EXACT_MAX`] of them.

use std::collections::BTreeMap;

use regex_syntax::hir::literal::{ExtractKind, Extractor};
use serde::Deserialize;

use super::Imported;
use crate::sets::document::{Exception, SetError, Wrapper, anchored};
use crate::sets::hosts::HostPattern;

/// Names that one expression may stand for to be spelled out.
const EXACT_MAX: usize = 64;

#[derive(Deserialize)]
struct List {
    providers: BTreeMap<String, Provider>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Provider {
    url_pattern: String,
    #[serde(default)]
    complete_provider: bool,
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    raw_rules: Vec<String>,
    #[serde(default)]
    referral_marketing: Vec<String>,
    #[serde(default)]
    exceptions: Vec<String>,
    #[serde(default)]
    redirections: Vec<String>,
}

pub(super) fn import(text: &[u8], imported: &mut Imported) -> Result<(), SetError> {
    let list: List = serde_json::from_slice(text)?;
    for (name, provider) in list.providers {
        imported.provider(&name, provider);
    }
    Ok(())
}

impl Imported {
    fn provider(&mut self, name: &str, provider: Provider) {
        if provider.complete_provider {
            self.leave_out(name, "blocks a whole host, which is no matter of keys");
            return;
        }
        for rule in provider.raw_rules {
            self.leave_out(rule, "cuts text out of the URL");
        }
        for rule in provider.referral_marketing {
            self.leave_out(rule, "names who referred, which on many sites is the page");
        }
        for exception in provider.exceptions {
            match places(&exception) {
                Some((hosts, rest)) => self.exception(Exception {
                    hosts,
                    rest,
                    names: Vec::new(),
                }),
                None => self.leave_out(exception, "an exception whose hosts cannot be told"),
            }
        }
        let Some((hosts, rest)) = places(&provider.url_pattern) else {
            self.leave_out(provider.url_pattern, "a pattern whose hosts cannot be told");
            return;
        };
        for redirection in provider.redirections {
            self.wrapper(redirection, &hosts);
        }
        let names = provider.rules.iter().flat_map(|rule| names(rule)).collect();
        self.site(hosts, rest, names);
    }

    fn wrapper(&mut self, redirection: String, provider: &[String]) {
        let place = match redirection.starts_with(".*") {
            true => Some((provider.to_vec(), Some(redirection.clone()))),
            false => places(&redirection),
        };
        match place {
            Some((hosts, Some(target)))
                if hosts.iter().all(|host| host != "*")
                    && anchored(&target).is_ok_and(|regex| regex.captures_len() > 1) =>
            {
                self.taken += 1;
                self.set.wrappers.push(Wrapper { hosts, target });
            }
            _ => self.leave_out(redirection, "a wrapper whose hosts or target cannot be told"),
        }
    }
}

/// Names of a rule: spelled out if they are few.
fn names(rule: &str) -> Vec<String> {
    // The question mark of an earlier parser, escaped.
    let rule = rule.strip_prefix("(?:%3F)?").unwrap_or(rule);
    let expression = || vec![format!("/{rule}/")];
    let Ok(hir) = regex_syntax::parse(rule) else {
        return expression();
    };
    let mut extractor = Extractor::new();
    extractor
        .kind(ExtractKind::Prefix)
        .limit_class(40)
        .limit_total(EXACT_MAX)
        .limit_repeat(4)
        .limit_literal_len(64);
    let found = extractor.extract(&hir);
    let literals = found.literals().unwrap_or_default();
    let exact = !literals.is_empty() && literals.len() <= EXACT_MAX && found.is_exact();
    let spelled: Option<Vec<String>> = literals
        .iter()
        .map(|literal| String::from_utf8(literal.as_bytes().to_vec()).ok())
        .map(|name| name.filter(|name| !name.is_empty() && !name.contains(['*', '/'])))
        .collect();
    match spelled {
        Some(spelled) if exact => spelled,
        _ => expression(),
    }
}

/// Hosts and an expression for what follows them, out of an expression over the whole URL.
fn places(pattern: &str) -> Option<(Vec<String>, Option<String>)> {
    if pattern == ".*" {
        return Some((vec!["*".to_owned()], None));
    }
    let pattern = pattern.strip_prefix('^').unwrap_or(pattern);
    let pattern = ["https?", "wss?", "http"]
        .iter()
        .find_map(|scheme| pattern.strip_prefix(scheme))?;
    let pattern = pattern.strip_prefix(':')?;
    let pattern = pattern
        .strip_prefix(r"\/\/")
        .or_else(|| pattern.strip_prefix("//"))?;
    let (below, pattern) = [
        r"(?:[a-z0-9-]+\.)*?",
        r"([a-z0-9-.]*\.)",
        r"([a-z0-9-\.])*",
        ".*?",
    ]
    .iter()
    .find_map(|any| pattern.strip_prefix(any))
    .map_or((false, pattern), |rest| (true, rest));
    let (host, rest) = split_host(pattern);
    let hosts = spelled_hosts(host)?;
    let hosts: Vec<String> = hosts
        .into_iter()
        // An entity or a name that may have labels before it.
        .map(|host| {
            if below || host.ends_with(".*") {
                host
            } else {
                format!("={host}")
            }
        })
        .collect();
    if hosts.iter().any(|host| HostPattern::parse(host).is_err()) {
        return None;
    }
    Some((hosts, (!rest.is_empty()).then(|| rest.to_owned())))
}

/// The part of an expression before what can no longer be a host: a slash, a question mark, anything at all
/// (`.*`, `[^…]`), or a group that begins with a slash.
fn split_host(pattern: &str) -> (&str, &str) {
    const ENDS: &[&str] = &["/", r"\/", r"\?", ".*", "[^", r"(?:\/", "(?:/"];
    let (mut depth, mut at) = (0, 0);
    while let Some(rest) = pattern.get(at..).filter(|rest| !rest.is_empty()) {
        if depth == 0 && ENDS.iter().any(|end| rest.starts_with(end)) {
            return pattern.split_at(at);
        }
        match rest.as_bytes() {
            [b'(', ..] => depth += 1,
            [b')', ..] => depth -= 1,
            _ => {}
        }
        let step = if rest.starts_with('\\') { 2 } else { 1 };
        at += step;
    }
    (pattern, "")
}

/// The hosts that an expression stands for, if they can be counted.
fn spelled_hosts(pattern: &str) -> Option<Vec<String>> {
    const ANY_SUFFIX: &str = r"(?:\.[a-z]{2,}){1,}";
    // Groups of hosts with an entity among them are cut by hand.
    if let Some(group) = pattern
        .strip_prefix("(?:")
        .and_then(|rest| rest.strip_suffix(')'))
        && pattern.contains(ANY_SUFFIX)
        && group.contains('|')
    {
        let parts = group.split('|').map(spelled_hosts).collect::<Option<Vec<_>>>()?;
        return Some(parts.into_iter().flatten().collect());
    }
    if let Some(entity) = pattern.strip_suffix(ANY_SUFFIX) {
        let names = literal_hosts(entity)?;
        return Some(names.into_iter().map(|name| format!("{name}.*")).collect());
    }
    literal_hosts(pattern)
}

fn literal_hosts(pattern: &str) -> Option<Vec<String>> {
    // A bare dot is meant as one: `twitter.com`.
    let mut meant = String::with_capacity(pattern.len());
    let mut before = ' ';
    for c in pattern.chars() {
        if c == '.' && before != '\\' {
            meant.push('\\');
        }
        meant.push(c);
        before = c;
    }
    let hir = regex_syntax::parse(&meant).ok()?;
    let mut extractor = Extractor::new();
    extractor
        .kind(ExtractKind::Prefix)
        .limit_class(40)
        .limit_total(EXACT_MAX)
        .limit_literal_len(128);
    let found = extractor.extract(&hir);
    let literals = found.literals()?;
    if literals.is_empty() || !found.is_exact() {
        return None;
    }
    literals
        .iter()
        .map(|literal| String::from_utf8(literal.as_bytes().to_vec()).ok())
        .map(|host| host.filter(|host| host.contains('.') || !host.is_empty()))
        .collect()
}
