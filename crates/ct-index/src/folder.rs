//! The files of a folder: which belong to the index, which a crash left behind.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::manifest::{self, Manifest};
use crate::recover::{ReplayedWal, wal_numbers, wal_path};
use crate::{Error, Result};

/// Segment files in the folders of months, with their ids.
fn segment_files(dir: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(dir).map_err(Error::io("list", dir))?;
    for month in entries.filter_map(std::result::Result::ok) {
        if !is_month(&month.file_name()) {
            continue;
        }
        let files = std::fs::read_dir(month.path()).map_err(Error::io("list", &month.path()))?;
        for file in files.filter_map(std::result::Result::ok) {
            found.extend(manifest::id_of(&file.file_name()).map(|id| (file.path(), id)));
        }
    }
    Ok(found)
}

/// A folder with data but without a manifest lost it: starting anew would throw the data away.
pub(crate) fn refuse_orphans(dir: &Path) -> Result<()> {
    let logs = wal_numbers(dir)?.len();
    let segments = segment_files(dir)?.len();
    if logs + segments == 0 {
        return Ok(());
    }
    let reason = format!(
        "it is missing, but {segments} segments and {logs} log files are here; put it back from a backup"
    );
    Err(Error::corrupt(&dir.join(manifest::NAMES[0]), 0, reason))
}

/// Removes what the manifest does not name (any more): a crash left it of a flush.
pub(crate) fn remove_strangers(dir: &Path, manifest: &Manifest) -> Result<()> {
    for (path, id) in segment_files(dir)? {
        if manifest.segments.iter().all(|known| known.id != id) {
            tracing::debug!(file = %path.display(), "removing an unfinished segment");
            std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    for number in wal_numbers(dir)? {
        if number < manifest.first_wal {
            let path = wal_path(dir, number);
            std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}

/// Cuts the torn tails that a crash left, so that they are told once and not at each opening.
pub(crate) fn cut_torn_tails(dir: &Path, wals: &[ReplayedWal]) -> Result<()> {
    for wal in wals.iter().filter(|wal| !wal.damaged && wal.append_offset > 0) {
        let path = wal_path(dir, wal.number);
        let length = std::fs::metadata(&path)
            .map_err(Error::io("read the size of", &path))?
            .len();
        if length > wal.append_offset {
            tamis_durable::frames::truncate(&path, wal.append_offset)?;
        }
    }
    Ok(())
}

/// True for the name of a month's folder.
pub(crate) fn is_month(name: &OsStr) -> bool {
    let digits = |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = name.to_str().and_then(|name| name.split_once('-'));
    parts.is_some_and(|(year, month)| digits(year, 4) && digits(month, 2))
}
