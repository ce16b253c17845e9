//! No file names a path of the machine it was written on.
//!
//! Besides home folders, the folder this clone lies in and its parent are refused, so the check
//! knows each machine without naming one. Test data is quoted as found and is not read.

use super::Finding;
use super::tree::Tree;
use std::path::Path;

/// Parents that documents may name, wherever the clone is.
const PUBLIC_FOLDERS: &[&str] = &[
    "/",
    "/home",
    "/opt",
    "/srv",
    "/tmp",
    "/usr",
    "/usr/local",
    "/usr/src",
    "/var",
];

/// Prefixes that give away this machine: the clone and the folder above it.
pub(crate) fn prefixes_of(root: &Path) -> Vec<String> {
    root.ancestors()
        .take(2)
        .filter_map(Path::to_str)
        .filter(|folder| !PUBLIC_FOLDERS.contains(folder))
        .map(|folder| format!("{folder}/"))
        .collect()
}

pub(crate) fn check(tree: &Tree, prefixes: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree
        .files
        .iter()
        .filter(|file| !file.path.contains("testdata/") && !is_self(&file.path))
    {
        for (number, line) in file.lines() {
            let homes = ["/root/", "/home/", "/Users/"].into_iter();
            let found = homes
                .chain(prefixes.iter().map(String::as_str))
                .find(|prefix| names_path(line, prefix));
            if let Some(prefix) = found {
                findings.push(Finding::new(&file.path, number, format!("path of one machine (`{prefix}…`): write it relative to the repository, or as $HOME or a placeholder")));
            }
        }
    }
    findings
}

/// This file has to write the prefixes down.
fn is_self(path: &str) -> bool {
    path == "xtask/src/tidy/machine_paths.rs"
}

/// Whether `prefix` starts a path in `line`, and not a part of a longer one or of a URL.
fn names_path(line: &str, prefix: &str) -> bool {
    line.match_indices(prefix).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| {
            !(before.is_alphanumeric() || matches!(before, '_' | '-' | '.' | '/' | '}' | '$'))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_and_the_clone_are_found() {
        let prefixes = prefixes_of(Path::new("/build/place/tamis"));
        assert_eq!(prefixes, ["/build/place/tamis/", "/build/place/"]);
        assert!(prefixes_of(Path::new("/tmp/tamis")) == ["/tmp/tamis/"]);
        let tree = Tree::of(&[
            ("a.md", "ok\nsee /home/someone/x\n"),
            ("b.sh", "cd '/build/place/other'\n"),
            (
                "c.md",
                "https://x.example/home/y and src/home/z and $HOME/build/place/\n",
            ),
            ("testdata/d.log", "GET /root/ HTTP/1.1\n"),
        ]);
        let found: Vec<_> = check(&tree, &prefixes)
            .into_iter()
            .map(|finding| (finding.path, finding.line))
            .collect();
        assert_eq!(found, [("a.md".to_owned(), 2), ("b.sh".to_owned(), 1)]);
    }
}
