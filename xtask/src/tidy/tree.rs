//! The files that belong to the repository, read once.

use super::source::Source;
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::process::Command;

/// One file: its path from the root with forward slashes, its size, its text where it is UTF-8.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// Empty for binary files.
    pub(crate) text: String,
    /// Set for `.rs` files.
    pub(crate) source: Option<Source>,
}

impl File {
    pub(crate) fn new(path: impl Into<String>, content: &[u8]) -> Self {
        let path = path.into();
        let text = std::str::from_utf8(content).unwrap_or_default().to_owned();
        let source = path.ends_with(".rs").then(|| Source::new(&text));
        Self {
            path,
            bytes: content.len() as u64,
            text,
            source,
        }
    }

    /// Lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }
}

/// Every file under version control, or about to be.
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

impl Tree {
    /// Files that git tracks or would add (what `.gitignore` names is left out).
    pub(crate) fn of_repository(root: &Path) -> Result<Self> {
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("run git ls-files")?;
        if !output.status.success() {
            bail!(
                "git ls-files failed: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let mut files = Vec::new();
        for path in output
            .stdout
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty())
        {
            let path = std::str::from_utf8(path).context("a file name is not UTF-8")?;
            let full = root.join(path);
            // Deleted but still in the index, or a symbolic link to a folder.
            if full.is_file() {
                let content = std::fs::read(&full).with_context(|| format!("read {path}"))?;
                files.push(File::new(path, &content));
            }
        }
        Ok(Self { files })
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self {
            files: files
                .iter()
                .map(|(path, text)| File::new(*path, text.as_bytes()))
                .collect(),
        }
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The `.rs` files with their blanked text.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&File, &Source)> {
        self.files
            .iter()
            .filter_map(|file| Some((file, file.source.as_ref()?)))
    }
}
