//! A log as an archive: its tiles in zip files, from which it is read as over HTTP.
//!
//! # Format
//! That of the public archives (<https://github.com/geomys/ct-archive>): `NNN.zip` holds the subtree of 2^24
//! leaves with that number, which is its tiles of hashes of levels 0 to 2 and its data tiles; what belongs to
//! no subtree or to the right edge (checkpoint, issuers, higher levels, partial tiles) is in every file.
//! `archive+file:///path` names the folder with these files, or one of them.
//!
//! # Concurrency
//! Files are read at places, never through a shared position, on threads that may block. Opening is under a
//! lock: whoever needs the same file waits for it.
//!
//! # Limits
//! [`OPEN_MAX`] directories are kept, 6 MB each for a full subtree; those of [`super::zip_index`].

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tamis_ct_log::log_list::is_loopback;

use super::http::Answer;
use super::zip_index::{Unpacked, ZipError, ZipIndex};

/// What the address of an archive starts with.
const SCHEME: &str = "archive+file://";
/// Of one file of an archive, as a power of two.
const SUBTREE_BITS: u32 = 24;
/// The level of which a file has one tile.
const SUBTREE_LEVEL: u32 = 2;
/// Leaves of one file.
pub(crate) const SUBTREE_LEAVES: u64 = 1 << SUBTREE_BITS;
/// Files whose directories are kept: the tail's, the backfill's, and one more.
const OPEN_MAX: usize = 3;
/// Files that are asked for what is in every one of them.
const SHARED_TRIES: usize = 3;
/// Files that a folder may have: as many leaves as 65,536 of them have, no log will.
const FILES_MAX: usize = 1 << 16;

/// Why an archive does not give what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    #[error("{path} holds no archive of a log: name a folder with 000.zip and so on, or one such file")]
    NoFiles { path: String },
    #[error("{path} has no file {number:03}.zip")]
    NoFile { path: String, number: u64 },
    #[error("{file} {problem}")]
    Zip { file: String, problem: ZipError },
    #[error("{name} in {file} {problem}")]
    Entry {
        file: String,
        name: String,
        problem: ZipError,
    },
    #[error("reading ended unexpectedly: {0}")]
    Task(String),
}

impl ArchiveError {
    /// Whether the archive is whole as far as this goes, and has no such thing.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(
            self,
            Self::Entry {
                problem: ZipError::NoEntry,
                ..
            }
        )
    }

    /// Whether all of a subtree is out of reach.
    pub(crate) fn is_of_subtree(&self) -> bool {
        matches!(self, Self::NoFile { .. } | Self::Zip { .. })
    }
}

/// Whether an address is one of an archive: `archive+file://` and the path of a folder or a file.
#[must_use]
pub fn is_archive(url: &str) -> bool {
    url.starts_with(SCHEME)
}

/// Whether a log is on this machine: no operator has to know who asks.
pub(crate) fn is_near(url: &str) -> bool {
    is_archive(url) || is_loopback(url)
}

/// Reads one archive.
#[derive(Debug)]
pub(crate) struct Archive {
    path: PathBuf,
    opened: Mutex<Opened>,
}

#[derive(Debug, Default)]
struct Opened {
    /// Files by number, in their order; `None` until they were looked for.
    files: Option<Vec<Numbered>>,
    /// The last ones used, the newest at the end.
    zips: Vec<(PathBuf, Arc<Zip>)>,
}

#[derive(Debug, Clone)]
struct Numbered {
    /// `None` where one file stands for everything.
    number: Option<u64>,
    path: PathBuf,
}

#[derive(Debug)]
struct Zip {
    file: Arc<File>,
    index: ZipIndex,
}

impl Archive {
    /// The archive at an address; it is opened when it is asked.
    pub(crate) fn at(url: &str) -> Option<Self> {
        let path = url.strip_prefix(SCHEME)?;
        Some(Self {
            path: PathBuf::from(path),
            opened: Mutex::default(),
        })
    }

    /// What is stored under a path below the log's prefix.
    pub(crate) async fn get(self: &Arc<Self>, path: &str, limit: u64) -> Result<Answer, ArchiveError> {
        let (archive, path, asked) = (Arc::clone(self), path.to_owned(), Instant::now());
        let read = tokio::task::spawn_blocking(move || archive.read(&path, limit)).await;
        let unpacked = read.map_err(|error| ArchiveError::Task(error.to_string()))??;
        Ok(Answer {
            status: 200,
            retry_after: None::<Duration>,
            body: unpacked.bytes,
            is_cut: false,
            wire_bytes: unpacked.packed,
            took: asked.elapsed(),
            room: None,
        })
    }

    fn read(&self, path: &str, limit: u64) -> Result<Unpacked, ArchiveError> {
        let mut last = None;
        for file in self.candidates(path)? {
            let read = self.open(&file).and_then(|zip| {
                let unpacked = zip.index.unpack(At::start(&zip.file), path, limit);
                unpacked.map_err(|problem| ArchiveError::Entry {
                    file: file.display().to_string(),
                    name: path.to_owned(),
                    problem,
                })
            });
            match read {
                Ok(unpacked) => return Ok(unpacked),
                // What is wrong with the right file says more than what another one does not have.
                Err(error) => last = last.or(Some(error)),
            }
        }
        Err(last.unwrap_or_else(|| self.no_files()))
    }

    /// Files in which something may be, the likeliest first.
    fn candidates(&self, path: &str) -> Result<Vec<PathBuf>, ArchiveError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let files = match &mut opened.files {
            Some(files) => files,
            unknown => unknown.insert(list(&self.path)),
        };
        if files.is_empty() {
            // It may be put there later.
            opened.files = None;
            return Err(self.no_files());
        }
        let subtree = subtree(path);
        let own = subtree.map(|(number, _)| {
            let found = files
                .iter()
                .find(|file| file.number.is_none_or(|own| own == number));
            found.map(|file| file.path.clone()).ok_or(number)
        });
        let shared = files.iter().map(|file| file.path.clone());
        match (own, subtree) {
            (Some(Ok(own)), Some((_, Width::Full))) => Ok(vec![own]),
            (Some(Err(number)), Some((_, Width::Full))) => Err(ArchiveError::NoFile {
                path: self.path.display().to_string(),
                number,
            }),
            (Some(Ok(own)), _) => {
                let others = shared.filter(|path| *path != own);
                Ok([own.clone()]
                    .into_iter()
                    .chain(others)
                    .take(SHARED_TRIES)
                    .collect())
            }
            _ => Ok(shared.take(SHARED_TRIES).collect()),
        }
    }

    fn open(&self, path: &Path) -> Result<Arc<Zip>, ArchiveError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let zips = &mut opened.zips;
        let zip = match zips.iter().position(|(known, _)| known == path) {
            Some(place) => zips.remove(place).1,
            None => Arc::new(Zip::open(path).map_err(|problem| ArchiveError::Zip {
                file: path.display().to_string(),
                problem,
            })?),
        };
        if zips.len() >= OPEN_MAX {
            zips.remove(0);
        }
        zips.push((path.to_owned(), Arc::clone(&zip)));
        Ok(zip)
    }

    fn no_files(&self) -> ArchiveError {
        ArchiveError::NoFiles {
            path: self.path.display().to_string(),
        }
    }
}

impl Zip {
    fn open(path: &Path) -> Result<Self, ZipError> {
        let file = Arc::new(File::open(path)?);
        let index = ZipIndex::read(At::start(&file))?;
        Ok(Self { file, index })
    }
}

/// The files of an archive. Others in the folder are passed over.
fn list(path: &Path) -> Vec<Numbered> {
    if path.is_file() {
        let path = path.to_owned();
        return vec![Numbered {
            number: number(&path),
            path,
        }];
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut files: Vec<Numbered> = entries
        .filter_map(|entry| {
            let path = entry.path();
            number(&path).map(|number| Numbered {
                number: Some(number),
                path,
            })
        })
        .take(FILES_MAX)
        .collect();
    files.sort_by(|a, b| (a.number, &a.path).cmp(&(b.number, &b.path)));
    files
}

/// The number in `NNN.zip`.
fn number(path: &Path) -> Option<u64> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".zip")?;
    let is_number = (3..=6).contains(&stem.len()) && stem.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| stem.parse().ok()).flatten()
}

/// Whether a tile has all its leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    Full,
    Partial,
}

/// The number of the subtree that a tile belongs to; `None` for what is in every file.
fn subtree(path: &str) -> Option<(u64, Width)> {
    let rest = path.strip_prefix("tile/")?;
    let (level, place) = rest.split_once('/')?;
    let level = match level {
        "data" | "names" => 0,
        level => level
            .parse::<u32>()
            .ok()
            .filter(|level| *level <= SUBTREE_LEVEL)?,
    };
    let (place, width) = match place.split_once(".p/") {
        Some((place, _)) => (place, Width::Partial),
        None => (place, Width::Full),
    };
    let mut index: u64 = 0;
    for group in place.split('/') {
        let group: u64 = group.trim_start_matches('x').parse().ok()?;
        index = index.checked_mul(1_000)?.checked_add(group)?;
    }
    // A tile of level 0 has 2^8 leaves, and each level above has 2^8 times as many.
    Some((index >> (SUBTREE_BITS - 8 * (level + 1)), width))
}

/// A file with a position of its own.
struct At {
    file: Arc<File>,
    position: u64,
}

impl At {
    fn start(file: &Arc<File>) -> Self {
        Self {
            file: Arc::clone(file),
            position: 0,
        }
    }
}

impl Read for At {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(bytes, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for At {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        self.position = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_belong_to_subtrees() {
        let check = |path: &str, expected| assert_eq!(subtree(path), expected, "{path}");
        check("tile/data/000", Some((0, Width::Full)));
        check("tile/data/x065/535", Some((0, Width::Full)));
        check("tile/data/x065/536", Some((1, Width::Full)));
        check("tile/0/x131/072.p/7", Some((2, Width::Partial)));
        check("tile/1/255", Some((0, Width::Full)));
        check("tile/1/256", Some((1, Width::Full)));
        check("tile/2/003", Some((3, Width::Full)));
        check("tile/2/000.p/1", Some((0, Width::Partial)));
        check("tile/3/000", None);
        check("checkpoint", None);
        check("issuer/00", None);
        check("tile/data/x", None);
    }

    #[test]
    fn files_of_an_archive_have_numbers() {
        let check = |name: &str, expected| assert_eq!(number(Path::new(name)), expected, "{name}");
        check("/a/000.zip", Some(0));
        check("1234.zip", Some(1_234));
        for other in ["0.zip", "a00.zip", "000.zip.part", "+00.zip", "9999999.zip"] {
            check(other, None);
        }
    }

    /// A zip file with these entries, whose bytes are their names and the file's.
    fn write(path: &Path, entries: &[&str]) {
        use std::io::Write as _;
        let mut writer = zip::ZipWriter::new(File::create(path).unwrap());
        for entry in entries {
            writer
                .start_file(*entry, zip::write::SimpleFileOptions::default())
                .unwrap();
            let file = path.file_name().unwrap().to_str().unwrap();
            write!(writer, "{entry} of {file}").unwrap();
        }
        writer.finish().unwrap();
    }

    #[test]
    fn many_files_are_one_archive() {
        let dir = tempfile::tempdir().unwrap();
        let shared = ["checkpoint", "tile/3/000.p/1", "tile/0/x262/144.p/7"];
        for number in [0, 1, 2, 4] {
            let tile = format!(
                "tile/data/x{:03}/{:03}",
                number * 65_536 / 1_000,
                number * 65_536 % 1_000
            );
            let tile = if number == 0 { "tile/data/000" } else { &tile };
            let mut entries = vec![tile];
            entries.extend(&shared[usize::from(number == 0)..]);
            write(&dir.path().join(format!("{number:03}.zip")), &entries);
        }
        std::fs::write(dir.path().join("notes.txt"), "no part of it").unwrap();
        let archive = Archive::at(&format!("{SCHEME}{}", dir.path().display())).unwrap();
        let get = |path: &str| {
            let read = archive.read(path, 1_000);
            read.map(|read| String::from_utf8(read.bytes).unwrap())
        };
        for _ in 0..2 {
            assert_eq!(get("tile/data/000").unwrap(), "tile/data/000 of 000.zip");
            assert_eq!(
                get("tile/data/x065/536").unwrap(),
                "tile/data/x065/536 of 001.zip"
            );
            assert_eq!(
                get("tile/data/x131/072").unwrap(),
                "tile/data/x131/072 of 002.zip"
            );
            assert_eq!(
                get("tile/data/x262/144").unwrap(),
                "tile/data/x262/144 of 004.zip"
            );
            // In every file, and where one is damaged, in another.
            assert_eq!(get("checkpoint").unwrap(), "checkpoint of 001.zip");
            assert_eq!(
                get("tile/0/x262/144.p/7").unwrap(),
                "tile/0/x262/144.p/7 of 004.zip"
            );
        }
        let missing = get("tile/data/x196/608").unwrap_err();
        assert!(
            missing.is_of_subtree() && missing.to_string().contains("003.zip"),
            "{missing}"
        );
        let absent = get("tile/data/001").unwrap_err();
        assert!(absent.is_absent() && !absent.is_of_subtree(), "{absent}");
        assert!(get("../../etc/passwd").unwrap_err().is_absent());
        assert!(archive.opened.lock().unwrap().zips.len() <= OPEN_MAX);
    }
}
