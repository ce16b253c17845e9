//! Unfinished code and tests that are switched off without a word.

use super::Finding;
use super::tree::Tree;

/// What must not stay in code, and what to do instead.
const LEFTOVERS: &[(&str, &str)] = &[
    ("todo!", "finish it, or return an error that says what is missing"),
    (
        "unimplemented!",
        "finish it, or return an error that says what is missing",
    ),
    ("dbg!", "remove it, or make it a `tracing` event"),
    ("#[ignore]", "give the reason: `#[ignore = \"…\"]`"),
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        for (line, code) in source.lines() {
            for (word, mend) in LEFTOVERS.iter().filter(|(word, _)| code.contains(word)) {
                findings.push(Finding::new(
                    &file.path,
                    line,
                    format!("`{word}` left in: {mend}"),
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_found_in_code_and_not_in_text() {
        let text = "// todo!()\nlet a = \"dbg!\";\ntodo!();\n#[ignore]\nfn t() {}\n#[ignore = \"needs a network\"]\nfn u() { dbg!(1); }\n";
        let found: Vec<_> = check(&Tree::of(&[("a.rs", text)]))
            .into_iter()
            .map(|finding| finding.line)
            .collect();
        assert_eq!(found, [3, 4, 7]);
    }
}
