//! Names that say nothing about what a module or crate owns are refused.

use super::Finding;
use super::source::has_word;
use super::tree::Tree;

const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "common", "helpers", "misc", "types", "manager", "core",
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        let path = file.path.strip_suffix(".rs").unwrap_or(&file.path);
        if let Some(name) = path.split('/').find(|part| EMPTY_NAMES.contains(part)) {
            findings.push(refusal(&file.path, 1, name));
        }
        for (line, code) in source.lines() {
            // `mod x;` is found through the file it names.
            if let Some(name) = EMPTY_NAMES
                .iter()
                .find(|name| has_word(code, &format!("mod {name} {{")))
            {
                findings.push(refusal(&file.path, line, name));
            }
        }
    }
    findings
}

fn refusal(path: &str, line: usize, name: &str) -> Finding {
    Finding::new(
        path,
        line,
        format!("`{name}` names nothing: call the module after the thing it owns"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_are_found_as_file_folder_and_inline_module() {
        let tree = Tree::of(&[
            ("crates/a/src/utils.rs", ""),
            ("crates/common/src/lib.rs", ""),
            ("crates/b/src/lib.rs", "//! B.\npub mod helpers {\n}\n"),
            ("crates/b/src/corpus.rs", "mod type_names {\n}\n"),
        ]);
        let found: Vec<_> = check(&tree)
            .into_iter()
            .map(|finding| (finding.path, finding.line))
            .collect();
        let expected = [
            ("crates/a/src/utils.rs", 1),
            ("crates/common/src/lib.rs", 1),
            ("crates/b/src/lib.rs", 2),
        ];
        assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
    }
}
