//! `unsafe` stays in the files listed here, each with a SAFETY comment per use.

use super::Finding;
use super::source::has_word;
use super::tree::Tree;
use std::collections::BTreeSet;

/// Files that may say `unsafe`, with what they need it for.
const UNSAFE_FILES: &[(&str, &str)] = &[
    ("crates/bloom/src/prefetch.rs", "the prefetch instruction"),
    (
        "crates/capi/src/entry.rs",
        "names that C knows, and pointers that it gives",
    ),
    ("crates/capi/src/memory.rs", "pointers that C gives"),
    (
        "crates/durable/src/batched_reads.rs",
        "buffers that the kernel fills, behind a feature",
    ),
    (
        "crates/durable/src/map.rs",
        "memory maps of files that we published",
    ),
    (
        "crates/durable/src/shared_map.rs",
        "memory maps of files that change, as atomic words",
    ),
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    check_with(tree, UNSAFE_FILES)
}

fn check_with(tree: &Tree, listed: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let crates_with_unsafe: BTreeSet<_> = listed.iter().filter_map(|(path, _)| crate_of(path)).collect();
    for (file, source) in tree.rust() {
        let is_listed = listed.iter().any(|(path, _)| *path == file.path);
        for (line, code) in source.lines().filter(|(_, code)| has_word(code, "unsafe")) {
            if !is_listed {
                findings.push(Finding::new(&file.path, line, "`unsafe` outside the listed files: find a safe way, or list the file and its reason in xtask/src/tidy/unsafe_code.rs"));
            } else if code.contains("unsafe {") && !safety_comment_above(&file.text, line) {
                findings.push(Finding::new(&file.path, line, "`unsafe` without a `// SAFETY:` comment above it: name the fact and where it is established"));
            }
        }
        let is_root = file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs");
        let forbids = source.code.contains("#![forbid(unsafe_code)]");
        if is_root && !forbids && crate_of(&file.path).is_some_and(|name| !crates_with_unsafe.contains(name))
        {
            findings.push(Finding::new(
                &file.path,
                1,
                "no listed file of this crate needs `unsafe`: add `#![forbid(unsafe_code)]`",
            ));
        }
    }
    for (path, _) in listed.iter().filter(|(path, _)| tree.file(path).is_none()) {
        findings.push(Finding::new(
            "xtask/src/tidy/unsafe_code.rs",
            1,
            format!("{path} is listed and does not exist: remove it from the list"),
        ));
    }
    findings
}

/// `crates/NAME` or `xtask` of a path.
fn crate_of(path: &str) -> Option<&str> {
    path.split_once("/src/").map(|(name, _)| name)
}

fn safety_comment_above(text: &str, line: usize) -> bool {
    let above: Vec<&str> = text.lines().take(line).collect();
    above.iter().rev().take(12).any(|line| line.contains("SAFETY:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: (&str, &str) = ("crates/a/src/lib.rs", "//! A.\n#![forbid(unsafe_code)]\n");

    #[track_caller]
    fn check_lines(files: &[(&str, &str)], expected: &[(&str, usize)]) {
        let listed = &[("crates/d/src/map.rs", "maps")];
        let found = check_with(&Tree::of(files), listed);
        let found: Vec<_> = found.iter().map(|f| (f.path.as_str(), f.line)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn unsafe_is_found_outside_the_list_and_without_its_reason() {
        let map = (
            "crates/d/src/map.rs",
            "// SAFETY: the file is ours.\nlet x = unsafe { f() };\n",
        );
        check_lines(&[ROOT, map], &[]);
        check_lines(
            &[ROOT, map, ("crates/a/src/b.rs", "// unsafe\nunsafe { f() }\n")],
            &[("crates/a/src/b.rs", 2)],
        );
        check_lines(
            &[("crates/d/src/map.rs", "unsafe { f() }\n")],
            &[("crates/d/src/map.rs", 1)],
        );
        check_lines(
            &[map, ("crates/a/src/lib.rs", "//! A.\n")],
            &[("crates/a/src/lib.rs", 1)],
        );
        check_lines(&[map, ("crates/d/src/lib.rs", "//! D.\n")], &[]);
        check_lines(&[ROOT], &[("xtask/src/tidy/unsafe_code.rs", 1)]);
    }
}
