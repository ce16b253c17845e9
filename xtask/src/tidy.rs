//! The checks that keep documents, limits and code in agreement.
//!
//! Each check is a function from the tree's files to findings, without I/O of its own, so that
//! its tests can hand it a small tree and show that it fails.
//!
//! # Limits
//! Rust is read as text with comments and literals blanked ([`source`]); macros that build `fn`
//! or `unsafe` out of pieces are not seen.

mod dependencies;
mod edges;
mod formats;
mod fuzz_targets;
mod headers;
mod leftovers;
mod machine_paths;
mod module_names;
mod ratchet;
mod source;
mod testdata;
mod tree;
mod unsafe_code;

use anyhow::Result;
use std::fmt;
use std::path::Path;
use tree::Tree;

/// One thing to mend.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    text: String,
}

impl Finding {
    fn new(path: impl Into<String>, line: usize, text: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// Runs every check over the repository this program was built from.
pub(crate) fn run() -> Result<Vec<Finding>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let tree = Tree::of_repository(&root)?;
    let metadata = edges::cargo_metadata(&root)?;
    let mut findings = Vec::new();
    findings.extend(edges::check(&tree, &metadata));
    findings.extend(headers::check(&tree));
    findings.extend(ratchet::check(&tree));
    findings.extend(unsafe_code::check(&tree));
    findings.extend(module_names::check(&tree));
    findings.extend(formats::check(&tree));
    findings.extend(fuzz_targets::check(&tree));
    findings.extend(leftovers::check(&tree));
    findings.extend(dependencies::check(&tree));
    findings.extend(testdata::check(&tree));
    findings.extend(machine_paths::check(&tree, &machine_paths::prefixes_of(&root)));
    findings.sort();
    Ok(findings)
}
