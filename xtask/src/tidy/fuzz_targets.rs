//! Every fuzz target is built and run: the files and the manifest's list agree.

use super::Finding;
use super::tree::Tree;

const MANIFEST: &str = "fuzz/Cargo.toml";
const FOLDER: &str = "fuzz/fuzz_targets/";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let text = tree.file(MANIFEST).map_or("", |manifest| &manifest.text);
    let mut findings = Vec::new();
    for (file, _) in tree.rust() {
        let Some(name) = file
            .path
            .strip_prefix(FOLDER)
            .and_then(|name| name.strip_suffix(".rs"))
        else {
            continue;
        };
        if !text
            .lines()
            .any(|line| line == format!("path = \"fuzz_targets/{name}.rs\""))
        {
            findings.push(Finding::new(
                &file.path,
                1,
                format!("no target runs this: add a [[bin]] with this path to {MANIFEST}"),
            ));
        }
    }
    for (index, line) in text.lines().enumerate() {
        let path = line
            .strip_prefix("path = \"")
            .and_then(|rest| rest.strip_suffix('"'));
        if let Some(path) = path.filter(|path| tree.file(&format!("fuzz/{path}")).is_none()) {
            findings.push(Finding::new(
                MANIFEST,
                index + 1,
                format!("fuzz/{path} does not exist: remove this [[bin]]"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_and_list_that_disagree_are_found() {
        let manifest = "[[bin]]\nname = \"a\"\npath = \"fuzz_targets/a.rs\"\n";
        let target = ("fuzz/fuzz_targets/a.rs", "//! A.\n");
        assert_eq!(check(&Tree::of(&[(MANIFEST, manifest), target])), []);
        let unlisted = check(&Tree::of(&[
            (MANIFEST, manifest),
            target,
            ("fuzz/fuzz_targets/b.rs", "//! B.\n"),
        ]));
        assert_eq!(unlisted.len(), 1);
        assert_eq!(unlisted[0].path, "fuzz/fuzz_targets/b.rs");
        let missing = check(&Tree::of(&[(MANIFEST, manifest)]));
        assert_eq!((missing.len(), missing[0].line), (1, 3));
    }
}
