//! Edges between crates are those that ARCHITECTURE.md allows.

use super::Finding;
use super::tree::Tree;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

const DOCUMENT: &str = "ARCHITECTURE.md";
const TABLE_START: &str = "<!-- edges: checked by cargo xtask tidy -->";
const TABLE_END: &str = "<!-- end of edges -->";

/// Crate name without `tamis-` to what it may use, and the table line.
type Allowed = BTreeMap<String, (usize, BTreeSet<String>)>;

#[derive(Debug, Default, Clone)]
struct Member {
    manifest: String,
    normal: BTreeSet<String>,
    dev: BTreeSet<String>,
}

pub(crate) fn cargo_metadata(root: &Path) -> Result<Value> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root)
        .output()
        .context("run cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    serde_json::from_slice(&output.stdout).context("read cargo metadata")
}

pub(crate) fn check(tree: &Tree, metadata: &Value) -> Vec<Finding> {
    let Some(document) = tree.file(DOCUMENT) else {
        return vec![Finding::new(
            DOCUMENT,
            1,
            "missing: it holds the table of allowed edges",
        )];
    };
    let Some(allowed) = read_table(&document.text) else {
        return vec![Finding::new(
            DOCUMENT,
            1,
            format!("no table between `{TABLE_START}` and `{TABLE_END}`"),
        )];
    };
    let members = members_of(metadata);
    let mut findings = Vec::new();
    for (name, member) in &members {
        let Some((_, may_use)) = allowed.get(name) else {
            findings.push(Finding::new(
                DOCUMENT,
                1,
                format!("crate `{name}` has no row in the table of edges: add it"),
            ));
            continue;
        };
        for used in member.normal.difference(may_use) {
            findings.push(Finding::new(&member.manifest, 1, format!("`{name}` uses `{used}`, which {DOCUMENT} does not allow: remove the edge, or add it there in a commit of its own with its reason")));
        }
        for used in member.dev.iter().filter(|used| reaches(&members, used, name)) {
            findings.push(Finding::new(
                &member.manifest,
                1,
                format!("tests of `{name}` use `{used}`, which is built on `{name}`: move those tests up"),
            ));
        }
    }
    for (name, (line, _)) in allowed.iter().filter(|(name, _)| !members.contains_key(*name)) {
        findings.push(Finding::new(
            DOCUMENT,
            *line,
            format!("`{name}` is no crate of the workspace: remove the row"),
        ));
    }
    findings
}

fn read_table(text: &str) -> Option<Allowed> {
    let mut rows = text
        .lines()
        .enumerate()
        .skip_while(|(_, line)| line.trim() != TABLE_START);
    rows.next()?;
    let mut allowed = Allowed::new();
    for (index, line) in rows {
        if line.trim() == TABLE_END {
            return Some(allowed);
        }
        let cells: Vec<_> = line.trim().trim_matches('|').split('|').collect();
        let [name, may_use, ..] = cells.as_slice() else {
            continue;
        };
        let quoted = |cell: &str| {
            cell.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect::<BTreeSet<_>>()
        };
        if let Some(name) = quoted(name).pop_first() {
            allowed.insert(name, (index + 1, quoted(may_use)));
        }
    }
    None
}

fn short_name(name: &str) -> String {
    name.strip_prefix("tamis-").unwrap_or(name).to_owned()
}

/// Workspace members and their edges to other members.
fn members_of(metadata: &Value) -> BTreeMap<String, Member> {
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let mut members = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let manifest = manifest
            .strip_prefix(root)
            .unwrap_or(manifest)
            .trim_start_matches('/')
            .to_owned();
        let mut member = Member {
            manifest,
            ..Member::default()
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // Only dependencies on a folder are members; registry crates carry a source.
            if dependency["source"].is_string() {
                continue;
            }
            let name = short_name(dependency["name"].as_str().unwrap_or_default());
            let edges = if dependency["kind"] == "dev" {
                &mut member.dev
            } else {
                &mut member.normal
            };
            edges.insert(name);
        }
        members.insert(short_name(package["name"].as_str().unwrap_or_default()), member);
    }
    members
}

/// Whether `from` is `to` or uses it outside tests, directly or through others.
fn reaches(members: &BTreeMap<String, Member>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(name) = open.pop() {
        if name == to {
            return true;
        }
        if let Some(member) = members.get(&name).filter(|_| seen.insert(name.clone())) {
            open.extend(member.normal.iter().cloned());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, edges: &[(&str, Option<&str>)]) -> Value {
        let edges: Vec<_> = edges
            .iter()
            .map(|(name, kind)| json!({"name": name, "kind": kind, "source": null}))
            .collect();
        json!({"name": name, "manifest_path": format!("/r/crates/{name}/Cargo.toml"), "dependencies": edges})
    }

    #[track_caller]
    fn check_findings(rows: &str, packages: Vec<Value>, expected: &[&str]) {
        let document = format!("{TABLE_START}\n| crate | may use |\n|---|---|\n{rows}{TABLE_END}\n");
        let metadata = json!({"workspace_root": "/r", "packages": packages});
        let found = check(&Tree::of(&[(DOCUMENT, &document)]), &metadata);
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found} should hold {expected}");
        }
    }

    #[test]
    fn edges_outside_the_table_are_found() {
        let rows = "| `a` | – |\n| `b` | `a` |\n";
        let a = || package("tamis-a", &[]);
        check_findings(rows, vec![a(), package("tamis-b", &[("tamis-a", None)])], &[]);
        check_findings(
            rows,
            vec![package("tamis-a", &[("tamis-b", None)]), package("tamis-b", &[])],
            &["crates/tamis-a/Cargo.toml:1: `a` uses `b`"],
        );
        check_findings(rows, vec![a()], &["ARCHITECTURE.md:5: `b` is no crate"]);
        check_findings(
            "| `a` | – |\n",
            vec![a(), package("tamis-b", &[])],
            &["crate `b` has no row"],
        );
    }

    #[test]
    fn tests_may_use_any_crate_that_is_not_built_on_theirs() {
        let rows = "| `a` | – |\n| `b` | `a` |\n| `t` | – |\n";
        let b = || package("tamis-b", &[("tamis-a", None)]);
        let t = || package("tamis-t", &[]);
        check_findings(
            rows,
            vec![package("tamis-a", &[("tamis-t", Some("dev"))]), b(), t()],
            &[],
        );
        check_findings(
            rows,
            vec![package("tamis-a", &[("tamis-b", Some("dev"))]), b(), t()],
            &["tests of `a` use `b`"],
        );
    }

    #[test]
    fn a_document_without_the_table_is_found() {
        let found = check(&Tree::of(&[(DOCUMENT, "# Architecture\n")]), &json!({}));
        assert_eq!(found.len(), 1);
        assert_eq!(check(&Tree::of(&[]), &json!({})).len(), 1);
    }
}
