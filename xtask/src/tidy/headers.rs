//! Every `.rs` file opens by saying what it owns.

use super::Finding;
use super::tree::Tree;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, _) in tree.rust() {
        let first = file
            .text
            .lines()
            .find(|line| !line.trim().is_empty() && !line.starts_with("#!"));
        let sentence = first
            .and_then(|line| line.strip_prefix("//!"))
            .map(str::trim)
            .unwrap_or_default();
        if sentence.is_empty() {
            findings.push(Finding::new(
                &file.path,
                1,
                "no `//!` at the top: open with one sentence on what this file owns",
            ));
        } else if sentence.starts_with("(being written)") {
            findings.push(Finding::new(
                &file.path,
                1,
                "placeholder header: say what this file owns",
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_header_is_found() {
        let tree = Tree::of(&[
            ("a.rs", "//! Owns a.\n"),
            ("b.rs", "use std::fmt;\n"),
            ("c.rs", "#![no_main]\n//! Owns c.\n"),
            ("d.rs", "//!\n"),
            ("e.rs", "//! (being written)\n"),
            ("f.txt", "no header needed"),
        ]);
        let found: Vec<_> = check(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["b.rs", "d.rs", "e.rs"]);
    }
}
