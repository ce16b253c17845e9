//! Input files: folders walked in order, stdin, and bytes in memory within a limit.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A file larger than this is refused before it is read; split it.
pub(crate) const FILE_BYTES_MAX: u64 = 4 << 30;
/// Folders nested deeper than this are not entered.
const DEPTH_MAX: usize = 64;

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputFile {
    pub(crate) path: PathBuf,
    /// Named by the user, not found in a folder: what is wrong with it is the user's to know.
    pub(crate) named: bool,
    pub(crate) bytes: u64,
}

impl InputFile {
    pub(crate) fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// How the file is called in results.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    pub(crate) fn read(&self) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if self.is_stdin() {
            std::io::stdin()
                .lock()
                .take(FILE_BYTES_MAX + 1)
                .read_to_end(&mut bytes)
                .context("read stdin")?;
        } else {
            let file =
                std::fs::File::open(&self.path).with_context(|| format!("open {}", self.path.display()))?;
            bytes.reserve_exact(self.bytes.min(FILE_BYTES_MAX) as usize);
            file.take(FILE_BYTES_MAX + 1)
                .read_to_end(&mut bytes)
                .with_context(|| format!("read {}", self.path.display()))?;
        }
        anyhow::ensure!(
            bytes.len() as u64 <= FILE_BYTES_MAX,
            "{} is larger than {} GiB; split it, entries may be spread over files",
            self.name(),
            FILE_BYTES_MAX >> 30
        );
        Ok(bytes)
    }
}

/// All files of the given paths: folders in the order of their names. What cannot be listed is told
/// beside them.
pub(crate) fn expand(paths: &[PathBuf]) -> (Vec<InputFile>, Vec<anyhow::Error>) {
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    for path in paths {
        if path.as_os_str() == "-" {
            files.push(InputFile {
                path: path.clone(),
                named: true,
                bytes: 0,
            });
        } else if let Err(error) = walk(path, true, 0, &mut files, &mut errors) {
            errors.push(error);
        }
    }
    (files, errors)
}

fn walk(
    path: &Path,
    named: bool,
    depth: usize,
    files: &mut Vec<InputFile>,
    errors: &mut Vec<anyhow::Error>,
) -> anyhow::Result<()> {
    let told = || format!("look at {}", path.display());
    let metadata = std::fs::metadata(path).with_context(told)?;
    if !metadata.is_dir() {
        files.push(InputFile {
            path: path.to_owned(),
            named,
            bytes: metadata.len(),
        });
        return Ok(());
    }
    anyhow::ensure!(
        depth < DEPTH_MAX,
        "{} is nested deeper than {DEPTH_MAX} folders",
        path.display()
    );
    let entries = std::fs::read_dir(path).with_context(told)?;
    let mut inside: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    inside.sort();
    for path in inside {
        // A link that leads round in a circle ends at the depth limit.
        if let Err(error) = walk(&path, false, depth + 1, files, errors) {
            errors.push(error);
        }
    }
    Ok(())
}
