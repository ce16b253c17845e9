//! Input files: folders walked in order, stdin, and bytes in memory within a limit.

use std::collections::HashSet;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
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

/// All files of the given paths: folders in the order of their names, each once. What cannot be listed
/// is told beside them.
pub(crate) fn expand(paths: &[PathBuf]) -> (Vec<InputFile>, Vec<anyhow::Error>) {
    let mut walk = Walk::default();
    for path in paths {
        if path.as_os_str() == "-" {
            walk.files.push(InputFile {
                path: path.clone(),
                named: true,
                bytes: 0,
            });
        } else {
            walk.visit(path, 0);
        }
    }
    (walk.files, walk.errors)
}

/// The paths that somebody named, for a message.
pub(crate) fn listed(paths: &[PathBuf]) -> String {
    const TOLD_MAX: usize = 3;
    let told: Vec<String> = paths
        .iter()
        .take(TOLD_MAX)
        .map(|path| path.display().to_string())
        .collect();
    match paths.len() - told.len() {
        0 => told.join(", "),
        more => format!("{} and {more} more", told.join(", ")),
    }
}

/// What is read, for a message.
pub(crate) const KINDS: &str = "get-entries, get-roots and add-chain JSON, data tiles, PEM and DER, each also as gzip, in files and in folders of them";

#[derive(Default)]
struct Walk {
    files: Vec<InputFile>,
    errors: Vec<anyhow::Error>,
    /// Device and inode of each folder entered: a link that leads back is not followed again.
    entered: HashSet<(u64, u64)>,
}

impl Walk {
    fn visit(&mut self, path: &Path, depth: usize) {
        if let Err(error) = self.enter(path, depth) {
            self.errors.push(error);
        }
    }

    fn enter(&mut self, path: &Path, depth: usize) -> anyhow::Result<()> {
        let told = || format!("look at {}", path.display());
        let metadata = std::fs::metadata(path).with_context(told)?;
        if !metadata.is_dir() {
            // A pipe that the user names is read; one that lies in a folder would be waited for.
            if depth == 0 || metadata.is_file() {
                self.files.push(InputFile {
                    path: path.to_owned(),
                    named: depth == 0,
                    bytes: metadata.len(),
                });
            }
            return Ok(());
        }
        anyhow::ensure!(
            depth < DEPTH_MAX,
            "{} is nested deeper than {DEPTH_MAX} folders; name it by itself",
            path.display()
        );
        if !self.entered.insert((metadata.dev(), metadata.ino())) {
            return Ok(());
        }
        let mut inside = Vec::new();
        for entry in std::fs::read_dir(path).with_context(told)? {
            inside.push(entry.with_context(told)?.path());
        }
        inside.sort();
        inside.iter().for_each(|path| self.visit(path, depth + 1));
        Ok(())
    }
}
