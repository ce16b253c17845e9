//! Each format document is bound to the code that reads and writes the format.
//!
//! A document `docs/formats/NAME.md` holds, once per magic, the line
//! ``Magic: `XXXXXXXX`, version N`` followed by ``Code: crates/…``. The code named must hold
//! `b"XXXXXXXX"` and `VERSION: u32 = N`, and each `MAGIC: [u8; 8] = *b"…"` in a crate must stand
//! in a document, unless it stands in tests.

use super::Finding;
use super::tree::Tree;
use std::collections::BTreeSet;

const FOLDER: &str = "docs/formats/";

struct Bond<'a> {
    line: usize,
    magic: &'a str,
    version: &'a str,
    code: Option<&'a str>,
}

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut documented = BTreeSet::new();
    let is_format =
        |path: &str| path.starts_with(FOLDER) && path.ends_with(".md") && !path.ends_with("/README.md");
    for file in tree.files.iter().filter(|file| is_format(&file.path)) {
        let bonds = bonds_of(&file.text);
        if bonds.is_empty() {
            findings.push(Finding::new(
                &file.path,
                1,
                "no line ``Magic: `XXXXXXXX`, version N``: bind the document to its code",
            ));
        }
        for bond in bonds {
            documented.insert(bond.magic.to_owned());
            findings.extend(check_bond(tree, &file.path, &bond));
        }
    }
    for (file, source) in tree.rust().filter(|(file, _)| is_shipped(&file.path)) {
        for (line, magic) in magics_of(&file.text, &source.code) {
            if !documented.contains(magic) {
                findings.push(Finding::new(
                    &file.path,
                    line,
                    format!("magic `{magic}` has no document: describe the format in {FOLDER}"),
                ));
            }
        }
    }
    findings
}

fn is_shipped(path: &str) -> bool {
    path.starts_with("crates/") && !path.contains("/tests/") && !path.ends_with("/tests.rs")
}

fn check_bond(tree: &Tree, document: &str, bond: &Bond<'_>) -> Option<Finding> {
    let Bond {
        line,
        magic,
        version,
        code,
    } = bond;
    let Some(path) = code else {
        return Some(Finding::new(
            document,
            *line,
            "no `Code: crates/…` after this magic: name the file that encodes and decodes",
        ));
    };
    let Some(code) = tree.file(path) else {
        return Some(Finding::new(
            document,
            *line,
            format!("{path} does not exist: name the file that encodes and decodes"),
        ));
    };
    if !code.text.contains(&format!("b\"{magic}\"")) {
        return Some(Finding::new(
            document,
            *line,
            format!("{path} holds no b\"{magic}\": make document and code agree"),
        ));
    }
    let declares =
        |line: &str| line.contains("VERSION: u32 =") && line.trim_end().ends_with(&format!("= {version};"));
    if !code.text.lines().any(declares) {
        return Some(Finding::new(
            document,
            *line,
            format!("{path} holds no `VERSION: u32 = {version}`: make document and code agree"),
        ));
    }
    None
}

fn bonds_of(text: &str) -> Vec<Bond<'_>> {
    let mut bonds: Vec<Bond<'_>> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let plain = line.trim_start_matches(['-', '*', ' ']);
        if let Some((magic, rest)) = plain
            .strip_prefix("Magic: `")
            .and_then(|rest| rest.split_once('`'))
        {
            let version = rest.trim_start_matches(", version ").trim_end_matches('.').trim();
            bonds.push(Bond {
                line: index + 1,
                magic,
                version,
                code: None,
            });
        } else if let (Some(code), Some(bond)) = (plain.strip_prefix("Code: "), bonds.last_mut()) {
            bond.code.get_or_insert(code.trim_matches(['`', '.', ' ']));
        }
    }
    bonds
}

/// Line and text of each magic constant; the literal is read from the text at the place where the
/// blanked code declares one, so comments do not count.
fn magics_of<'a>(text: &'a str, code: &str) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    for (at, pattern) in code.match_indices("MAGIC: [u8; 8] = *") {
        let literal = text[at + pattern.len()..].strip_prefix("b\"");
        if let Some((magic, _)) = literal.and_then(|rest| rest.split_once('"')) {
            found.push((1 + text[..at].matches('\n').count(), magic));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# Frame\n\nMagic: `TAMISWAL`, version 1\nCode: `crates/d/src/format.rs`\n";
    const CODE: &str = "//! F.\nconst MAGIC: [u8; 8] = *b\"TAMISWAL\";\nconst VERSION: u32 = 1;\n";

    #[track_caller]
    fn check_findings(document: Option<&str>, code: &str, expected: &[&str]) {
        let mut files = vec![("crates/d/src/format.rs", code)];
        files.extend(document.map(|document| ("docs/formats/frame.md", document)));
        let found: Vec<_> = check(&Tree::of(&files)).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found} should hold {expected}");
        }
    }

    #[test]
    fn documents_and_code_that_disagree_are_found() {
        check_findings(Some(DOCUMENT), CODE, &[]);
        check_findings(None, CODE, &["format.rs:2: magic `TAMISWAL` has no document"]);
        check_findings(Some("# Frame\n"), "//! F.\n", &["frame.md:1: no line"]);
        check_findings(Some("Magic: `TAMISWAL`, version 1\n"), CODE, &["no `Code:"]);
        check_findings(
            Some(&DOCUMENT.replace("format.rs", "other.rs")),
            CODE,
            &["does not exist"],
        );
        check_findings(
            Some(&DOCUMENT.replace("version 1", "version 2")),
            CODE,
            &["no `VERSION: u32 = 2`"],
        );
        check_findings(
            Some(DOCUMENT),
            "//! F.\nconst VERSION: u32 = 1;\n",
            &["holds no b\"TAMISWAL\""],
        );
    }

    #[test]
    fn a_magic_of_a_test_needs_no_document() {
        assert_eq!(check(&Tree::of(&[("crates/d/tests/it/main.rs", CODE)])), []);
    }

    #[test]
    fn a_magic_in_a_comment_needs_no_document() {
        check_findings(None, "//! F.\n// MAGIC: [u8; 8] = *b\"TAMISOLD\"\n", &[]);
    }
}
