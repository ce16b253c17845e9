//! Limits on the length of files and functions, with a list of exceptions that can only shrink.
//!
//! `xtask/ratchet.txt` holds lines `file PATH LINES` and `fn PATH NAME LINES`. An entry must name
//! the length the code has now: longer code fails, shorter code asks for a smaller entry, and an
//! entry under the limit asks to be removed. So no exception grows without a visible edit.

use super::Finding;
use super::tree::Tree;
use std::collections::BTreeMap;

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
const RATCHET: &str = "xtask/ratchet.txt";

/// Folders of tests, benches and examples, where length follows the number of cases.
const EXEMPT_FOLDERS: &[&str] = &["/tests/", "/benches/", "/examples/"];
/// Tables and golden files, which are data in the form of code.
const EXEMPT_FILES: &[&str] = &["crates/testbed/src/words.rs"];

fn is_exempt(path: &str) -> bool {
    EXEMPT_FOLDERS.iter().any(|folder| path.contains(folder))
        || path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
        || EXEMPT_FILES.contains(&path)
}

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut allowed = match tree.file(RATCHET) {
        Some(file) => read_ratchet(&file.text, &mut findings),
        None => BTreeMap::new(),
    };
    for (file, source) in tree.rust().filter(|(file, _)| !is_exempt(&file.path)) {
        let lines = file.text.lines().count();
        let key = format!("file {}", file.path);
        findings.extend(judge(
            &mut allowed,
            &key,
            &file.path,
            1,
            lines,
            FILE_LINES_MAX,
            "file",
        ));
        let mut longest: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for function in source.functions() {
            let entry = longest.entry(function.name).or_insert((function.line, 0));
            if function.lines > entry.1 {
                *entry = (function.line, function.lines);
            }
        }
        for (name, (line, lines)) in longest {
            let key = format!("fn {} {name}", file.path);
            let what = format!("function `{name}`");
            findings.extend(judge(
                &mut allowed,
                &key,
                &file.path,
                line,
                lines,
                FUNCTION_LINES_MAX,
                &what,
            ));
        }
    }
    for (key, (line, _)) in allowed {
        findings.push(Finding::new(
            RATCHET,
            line,
            format!("`{key}` is gone from the code: remove this line"),
        ));
    }
    findings
}

/// Key to (line in the ratchet file, allowed length).
fn read_ratchet(text: &str, findings: &mut Vec<Finding>) -> BTreeMap<String, (usize, usize)> {
    let mut allowed = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line
            .rsplit_once(' ')
            .and_then(|(key, length)| Some((key, length.parse().ok()?)))
        {
            Some((key, length)) => {
                allowed.insert(key.to_owned(), (index + 1, length));
            }
            None => findings.push(Finding::new(
                RATCHET,
                index + 1,
                "not `file PATH LINES` or `fn PATH NAME LINES`",
            )),
        }
    }
    allowed
}

fn judge(
    allowed: &mut BTreeMap<String, (usize, usize)>,
    key: &str,
    path: &str,
    line: usize,
    lines: usize,
    lines_max: usize,
    what: &str,
) -> Option<Finding> {
    match allowed.remove(key) {
        None if lines <= lines_max => None,
        None => Some(Finding::new(
            path,
            line,
            format!("{what} has {lines} lines, the limit is {lines_max}: split it by idea"),
        )),
        Some((_, length)) if lines > length => Some(Finding::new(
            path,
            line,
            format!(
                "{what} has {lines} lines and its exception allows {length}: split it, exceptions only shrink"
            ),
        )),
        Some((at, _)) if lines <= lines_max => Some(Finding::new(
            RATCHET,
            at,
            format!("`{key}` is within {lines_max} lines now: remove this line"),
        )),
        Some((at, length)) if lines < length => Some(Finding::new(
            RATCHET,
            at,
            format!("`{key}` has {lines} lines now: write {lines} here"),
        )),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, lines: usize) -> String {
        format!("fn {name}() {{\n{}}}\n", "    work();\n".repeat(lines - 2))
    }

    #[track_caller]
    fn check_findings(files: &[(&str, &str)], expected: &[&str]) {
        let found: Vec<_> = check(&Tree::of(files)).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found} should hold {expected}");
        }
    }

    #[test]
    fn long_functions_and_files_are_found() {
        check_findings(
            &[("a.rs", &function("long", 71))],
            &["a.rs:1: function `long` has 71 lines"],
        );
        check_findings(&[("a.rs", &function("short", 70))], &[]);
        check_findings(
            &[("a.rs", &"//! x\n".repeat(801))],
            &["a.rs:1: file has 801 lines"],
        );
        check_findings(&[("a/tests/it/main.rs", &"//! x\n".repeat(801))], &[]);
    }

    #[test]
    fn exceptions_hold_and_only_shrink() {
        let long = function("long", 80);
        check_findings(&[("a.rs", &long), (RATCHET, "# why\nfn a.rs long 80\n")], &[]);
        check_findings(
            &[("a.rs", &long), (RATCHET, "fn a.rs long 79\n")],
            &["exceptions only shrink"],
        );
        check_findings(
            &[("a.rs", &long), (RATCHET, "fn a.rs long 81\n")],
            &["write 80 here"],
        );
        check_findings(
            &[("a.rs", &function("long", 60)), (RATCHET, "fn a.rs long 80\n")],
            &["remove this line"],
        );
        check_findings(&[(RATCHET, "fn a.rs long 80\n")], &["gone from the code"]);
        check_findings(&[(RATCHET, "nonsense\n")], &["ratchet.txt:1: not `file"]);
    }
}
