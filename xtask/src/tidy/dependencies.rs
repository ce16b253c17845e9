//! Each dependency of the workspace says why it was chosen.

use super::Finding;
use super::tree::Tree;

const MANIFEST: &str = "Cargo.toml";

/// A comment line directly above, or a comment at the end of the line. Our own crates need none.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(manifest) = tree.file(MANIFEST) else {
        return vec![Finding::new(MANIFEST, 1, "no workspace manifest")];
    };
    let (mut inside, mut above) = (false, "");
    for (number, line) in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
        } else if inside && is_dependency(line) {
            let name = line.split([' ', '=', '.']).next().unwrap_or_default();
            let is_ours = line.contains("path = \"");
            if !is_ours && !above.starts_with('#') && !line.contains(" # ") {
                findings.push(Finding::new(
                    MANIFEST,
                    number,
                    format!("`{name}` has no reason: say why in a comment above or behind it"),
                ));
            }
        }
        above = line;
    }
    for file in tree
        .files
        .iter()
        .filter(|file| file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml"))
    {
        findings.extend(check_member(&file.path, &file.text));
    }
    findings
}

/// Members take versions from the workspace, so that each is chosen once.
fn check_member(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            inside = line.trim_end_matches(']').ends_with("dependencies");
        } else if inside && is_dependency(line) && !line.contains("workspace = true") {
            findings.push(Finding::new(path, index + 1, "dependency outside [workspace.dependencies]: declare it there and write `.workspace = true` here"));
        }
    }
    findings
}

fn is_dependency(line: &str) -> bool {
    line.starts_with(|first: char| first.is_ascii_alphanumeric()) && line.contains('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        let manifest = "[workspace.dependencies]\nours = { path = \"crates/ours\" }\n# Because.\na = \"1\"\nb = \"1\"\nc = \"1\" # because\n\nd = { version = \"1\" }\n[profile.dev]\ne = 1\n";
        let found: Vec<_> = check(&Tree::of(&[(MANIFEST, manifest)]))
            .into_iter()
            .map(|finding| finding.line)
            .collect();
        assert_eq!(found, [5, 8]);
    }

    #[test]
    fn a_member_with_its_own_version_is_found() {
        let member = "[package]\nname = \"a\"\n[dependencies]\nb.workspace = true\nc = \"1\"\n";
        let found = check(&Tree::of(&[(MANIFEST, ""), ("crates/a/Cargo.toml", member)]));
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].path.as_str(), found[0].line),
            ("crates/a/Cargo.toml", 5)
        );
    }
}
