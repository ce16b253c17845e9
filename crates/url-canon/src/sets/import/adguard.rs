//! `removeparam` rules in the syntax of AdGuard and uBlock Origin.
//! <https://adguard.com/kb/general/ad-filtering/create-own-filters/#removeparam-modifier>.

use super::Imported;
use crate::sets::document::Exception;

pub(super) fn import(text: &str, imported: &mut Imported) {
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('!') || line.starts_with('[') || !line.contains("removeparam")
        {
            continue;
        }
        if let Err(why) = rule(line, imported) {
            imported.leave_out(line, why);
        }
    }
}

fn rule(line: &str, imported: &mut Imported) -> Result<(), &'static str> {
    let (exception, body) = match line.strip_prefix("@@") {
        Some(body) => (true, body),
        None => (false, line),
    };
    let at = modifiers_start(body).ok_or("no modifiers")?;
    let (pattern, modifiers) = (
        body.get(..at).unwrap_or_default(),
        body.get(at + 1..).unwrap_or_default(),
    );
    let Modifiers {
        names,
        hosts,
        not_hosts,
    } = Modifiers::read(modifiers)?;
    let (pattern_host, rest) = url_pattern(pattern)?;
    let hosts = match (pattern_host, hosts.is_empty()) {
        (Some(host), true) => vec![host],
        // `domain` is the page that asks; for a document that is the URL itself.
        (None, false) => hosts,
        (None, true) => vec!["*".to_owned()],
        (Some(_), false) => return Err("a pattern and a page that asks"),
    };
    if exception {
        imported.exception(Exception { hosts, rest, names });
        return Ok(());
    }
    if !not_hosts.is_empty() {
        imported.exception(Exception {
            hosts: not_hosts,
            rest: None,
            names: names.clone(),
        });
    }
    imported.site(hosts, rest, names);
    Ok(())
}

/// Kinds of requests. A key is that of a page, so a rule for others alone is none of ours.
const KINDS: &[&str] = &[
    "xmlhttprequest",
    "xhr",
    "subdocument",
    "frame",
    "image",
    "script",
    "media",
    "ping",
    "other",
    "popup",
    "stylesheet",
    "css",
    "font",
    "websocket",
    "object",
];

#[derive(Default)]
struct Modifiers {
    names: Vec<String>,
    hosts: Vec<String>,
    not_hosts: Vec<String>,
}

impl Modifiers {
    fn read(text: &str) -> Result<Self, &'static str> {
        let mut read = Self::default();
        let (mut pages, mut others) = (false, false);
        for modifier in split_modifiers(text) {
            match modifier.split_once('=') {
                Some(("removeparam" | "queryprune", name)) => read.names = name_pattern(name)?,
                Some(("domain" | "from" | "to", list)) => read.domains(list),
                None if matches!(modifier, "document" | "doc" | "all") => pages = true,
                None if KINDS.contains(&modifier) => others = true,
                None if modifier == "important" => {}
                None if modifier == "removeparam" => return Err("would drop every parameter"),
                _ => return Err("a modifier that is not known here"),
            }
        }
        if others && !pages {
            return Err("for requests other than pages");
        }
        if read.names.is_empty() {
            return Err("no name");
        }
        Ok(read)
    }

    fn domains(&mut self, list: &str) {
        for domain in list.split('|') {
            match domain.strip_prefix('~') {
                Some(domain) => self.not_hosts.push(domain.to_owned()),
                None => self.hosts.push(domain.to_owned()),
            }
        }
    }
}

/// The `$` before the modifiers; expressions hold others.
fn modifiers_start(body: &str) -> Option<usize> {
    let at = body.find("$removeparam").or_else(|| body.find("$queryprune"));
    at.or_else(|| {
        let modifier = body.find("removeparam")?;
        body.get(..modifier)?.rfind('$')
    })
}

/// Cut at commas outside of an expression.
fn split_modifiers(modifiers: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut inside, mut before) = (0, false, ' ');
    for (at, c) in modifiers.char_indices() {
        match c {
            '/' if before == '=' && !inside => inside = true,
            '/' if inside && before != '\\' => inside = false,
            ',' if !inside && before != '\\' => {
                parts.push(modifiers.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    parts.push(modifiers.get(start..).unwrap_or_default());
    parts
}

fn name_pattern(name: &str) -> Result<Vec<String>, &'static str> {
    if name.starts_with('~') {
        return Err("drops all but one parameter");
    }
    let Some(inner) = name.strip_prefix('/') else {
        return Ok(vec![name.to_owned()]);
    };
    let (inner, any_case) = match (inner.strip_suffix("/i"), inner.strip_suffix('/')) {
        (Some(inner), _) => (inner, true),
        (None, Some(inner)) => (inner, false),
        (None, None) => return Err("an expression without an end"),
    };
    // Theirs are searched for in `name=value`, ours match whole names.
    if inner.contains('=') {
        return Err("an expression over values");
    }
    let inner = inner.replace("\\,", ",");
    let start = inner
        .strip_prefix('^')
        .map_or_else(|| format!(".*(?:{inner}"), |inner| format!("(?:{inner}"));
    let whole = match start.strip_suffix('$') {
        Some(start) => format!("{start})"),
        None => format!("{start}).*"),
    };
    let case = if any_case { "(?i)" } else { "" };
    Ok(vec![format!("/{case}{whole}/")])
}

/// The host of `||example.com/path^`, and an expression for what follows it.
fn url_pattern(pattern: &str) -> Result<(Option<String>, Option<String>), &'static str> {
    if pattern.is_empty() || pattern == "*" {
        return Ok((None, None));
    }
    let Some(rest) = pattern.strip_prefix("||") else {
        return Err("a pattern that names no host");
    };
    let end = rest.find(['/', '^', '*', '?', '|']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let (host, path) = match (host.strip_suffix('.'), path.strip_prefix('*')) {
        (Some(entity), Some(path)) => (format!("{entity}.*"), path),
        (None, None) => (host.to_owned(), path),
        _ => return Err("a pattern with `*` in its host"),
    };
    let path = path.strip_prefix('^').unwrap_or(path);
    let rest = (!path.is_empty() && path != "*").then(|| {
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        let path = path.trim_end_matches('|');
        let escaped = regex::escape(path);
        escaped
            .replace(r"\*", ".*")
            .replace(r"\^", r"(?:[^A-Za-z0-9_.%-]|$)")
    });
    Ok((Some(host), rest))
}
