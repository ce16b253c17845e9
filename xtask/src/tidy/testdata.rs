//! Test data is small, and says where it comes from and under which licence.

use super::Finding;
use super::tree::Tree;
use std::collections::BTreeMap;

const FILE_BYTES_MAX: u64 = 1 << 20;
/// Larger files that earn their place, with the reason.
const LARGE_FILES: &[(&str, &str)] = &[];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut folders: BTreeMap<&str, &str> = BTreeMap::new();
    for file in tree
        .files
        .iter()
        .filter(|file| !file.path.ends_with("/README.md"))
    {
        let Some(folder) = data_folder(&file.path) else {
            continue;
        };
        folders.entry(folder).or_insert(&file.path);
        if file.bytes > FILE_BYTES_MAX && !LARGE_FILES.iter().any(|(path, _)| *path == file.path) {
            findings.push(Finding::new(&file.path, 1, format!("{} bytes of test data, the limit is {FILE_BYTES_MAX}: cut it, or list it with its reason in xtask/src/tidy/testdata.rs", file.bytes)));
        }
    }
    for folder in folders.into_keys() {
        let path = format!("{folder}/README.md");
        match tree.file(&path).map(|readme| readme.text.to_lowercase()) {
            None => findings.push(Finding::new(
                path,
                1,
                "missing: name origin and licence of this folder's files",
            )),
            Some(text) if !(text.contains("licence") || text.contains("license")) => {
                findings.push(Finding::new(
                    path,
                    1,
                    "names no licence: say under which one these files are",
                ));
            }
            Some(text)
                if !["origin", "source", "made by", "generated"]
                    .iter()
                    .any(|word| text.contains(word)) =>
            {
                findings.push(Finding::new(
                    path,
                    1,
                    "names no origin: say where these files come from",
                ));
            }
            Some(_) => {}
        }
    }
    findings
}

/// The folder whose README answers for `path`: the first below `testdata`, or `testdata` itself.
fn data_folder(path: &str) -> Option<&str> {
    let start = if path.starts_with("testdata/") {
        0
    } else {
        path.find("/testdata/")? + 1
    };
    let inside = start + "testdata/".len();
    let end = path[inside..]
        .find('/')
        .map_or(inside - 1, |slash| inside + slash);
    Some(&path[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::File;

    #[track_caller]
    fn check_paths(files: &[(&str, &str)], expected: &[&str]) {
        let found: Vec<_> = check(&Tree::of(files))
            .into_iter()
            .map(|finding| finding.path)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn folders_answer_for_their_files() {
        assert_eq!(data_folder("testdata/ct/a/b.json"), Some("testdata/ct"));
        assert_eq!(data_folder("testdata/a.json"), Some("testdata"));
        assert_eq!(data_folder("crates/a/testdata/b/c"), Some("crates/a/testdata/b"));
        assert_eq!(data_folder("crates/a/src/testdata.rs"), None);
    }

    #[test]
    fn folders_without_origin_and_licence_are_found() {
        let data = ("testdata/ct/a.json", "{}");
        check_paths(
            &[data, ("testdata/ct/README.md", "Origin: x. Licence: MIT.")],
            &[],
        );
        check_paths(&[data], &["testdata/ct/README.md"]);
        check_paths(
            &[data, ("testdata/ct/README.md", "Origin: x.")],
            &["testdata/ct/README.md"],
        );
        check_paths(
            &[data, ("testdata/ct/README.md", "Licence: MIT.")],
            &["testdata/ct/README.md"],
        );
    }

    #[test]
    fn large_files_are_found() {
        let readme = File::new("testdata/ct/README.md", b"Origin: x. Licence: MIT.");
        let large = File::new("testdata/ct/large.bin", &vec![0xff; (1 << 20) + 1]);
        let found = check(&Tree {
            files: vec![readme, large],
        });
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "testdata/ct/large.bin");
    }
}
