//! What every file of ours starts with: magic and version, and how a wrong start is judged.

use std::path::Path;

use crate::bytes::{array_at, u32_at};
use crate::error::{Error, Result, corrupt};

/// Where the version stands; the first twelve bytes mean the same in every version of every format.
const VERSION_AT: usize = 8;

/// Which file this is, chosen by its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// The first eight bytes of the file; unique among all formats.
    pub magic: [u8; 8],
    /// The version of what is inside, from 1; raised when an older reader would misread it.
    pub version: u32,
}

/// Judges magic and version of `file` against `format`.
///
/// `intact(magic, version)` says whether the checksum holds if these two are taken instead of what the file
/// has. So a flipped bit in the magic of one of our files is told from a foreign file, and one in the version
/// from a future version.
pub(crate) fn check_start(
    path: &Path,
    file: &[u8],
    format: Format,
    intact: impl Fn([u8; 8], u32) -> bool,
) -> Result<()> {
    let cut = || corrupt(path, file.len() as u64, "the file ends inside its header");
    let Some(magic) = array_at::<8>(file, 0) else {
        return Err(if format.magic.starts_with(file) {
            cut()
        } else {
            wrong_magic(path, file, format)
        });
    };
    if magic != format.magic {
        let ours = u32_at(file, VERSION_AT).is_some_and(|version| intact(format.magic, version));
        return Err(if ours {
            corrupt(path, 0, "its magic is damaged, the rest is intact")
        } else {
            wrong_magic(path, file, format)
        });
    }
    let found = u32_at(file, VERSION_AT).ok_or_else(cut)?;
    let supported = format.version;
    if found == supported {
        return Ok(());
    }
    if intact(magic, supported) {
        return Err(corrupt(
            path,
            VERSION_AT as u64,
            "its version is damaged, the rest is intact",
        ));
    }
    let path = path.to_owned();
    if found > supported {
        // A future version may keep its checksum elsewhere, so this one is believed unchecked.
        Err(Error::FutureVersion {
            path,
            found,
            supported,
        })
    } else if intact(magic, found) {
        Err(Error::OldVersion {
            path,
            found,
            supported,
        })
    } else {
        Err(corrupt(
            &path,
            VERSION_AT as u64,
            format!("version {found} with a checksum that fails"),
        ))
    }
}

fn wrong_magic(path: &Path, file: &[u8], format: Format) -> Error {
    let mut found = [0; 8];
    for (to, from) in found.iter_mut().zip(file) {
        *to = *from;
    }
    Error::WrongMagic {
        path: path.to_owned(),
        found,
        expected: format.magic,
    }
}
