//! Copies the folder of an index while its owner goes on writing.
//!
//! Segments never change, so the copy holds hard links to them, or copies where it lies on another file
//! system. What grows is copied: of the issuers what the manifest counts, of the write-ahead log every
//! whole frame. Restoring is using the copy as the folder of an index.
//!
//! # Invariants
//! The copy holds everything that was acknowledged before it began. It gets its name when all of it is
//! durable; until then it is called `NAME.partial` and has no manifest, so nobody takes it for an index.
//!
//! # Concurrency
//! Nothing is locked in the folder that is copied. Files that the owner removes meanwhile are told by
//! its next manifest, whose new files are then added: each round has less to do than the one before.
//! Two copies to one place exclude each other by the lock of the partial folder.
//!
//! # Limits
//! One write-ahead log file at a time is held in memory, and `ROUNDS_MAX` rounds are tried.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use tamis_durable::frames::{DamageKind, FrameReader};
use tamis_durable::{FolderLock, NewFile};

use crate::manifest::{LogEntry, Manifest, NAMES, SegmentEntry};
use crate::recover::{WAL_FORMAT, wal_dir, wal_numbers, wal_path};
use crate::{Error, Result, dictionary, folder};

/// Rounds to catch up with the owner; the second one rarely finds anything to do.
const ROUNDS_MAX: u32 = 100;
/// Bytes copied at once.
const COPY_BYTES: usize = 1 << 20;
/// Name of the lock file, which is not part of a copy.
const LOCK: &str = "LOCK";

/// What a copy consists of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backup {
    /// Files of the copy.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that are hard links: their bytes take no room of their own.
    pub linked: u64,
    /// Rounds it took, more than one where the owner replaced files meanwhile.
    pub rounds: u32,
}

/// Copies the index in `dir` to `to`, which must not exist or be an empty folder. `progress` is told
/// each file before it is linked or copied.
///
/// # Errors
/// [`Error::BadQuery`] where `to` cannot be a copy of `dir`; [`Error::NoIndex`]; [`Error::Corrupt`] where
/// a file that the manifest names is missing. Nothing is left of a copy that failed.
pub fn backup(dir: &Path, to: &Path, mut progress: impl FnMut(&Path)) -> Result<Backup> {
    if Manifest::read(dir)?.0.is_none() {
        return Err(Error::NoIndex { path: dir.to_owned() });
    }
    refuse_place(dir, to)?;
    let mut partial = Partial::create(to)?;
    let mut round = 0;
    let manifest = loop {
        round += 1;
        match partial.catch_up(dir, &mut progress) {
            Ok(manifest) => break manifest,
            Err(Round::Again(_)) if round < ROUNDS_MAX => {}
            Err(Round::Again(error) | Round::Failed(error)) => return Err(error),
        }
    };
    partial.finish(manifest, to)?;
    let Partial { files, .. } = &partial;
    Ok(Backup {
        files: files.len() as u64 + NAMES.len() as u64,
        bytes: files.values().map(|copied| copied.bytes).sum(),
        linked: files.values().filter(|copied| copied.linked).count() as u64,
        rounds: round,
    })
}

/// Refuses a place that is not free or lies in the folder itself.
fn refuse_place(dir: &Path, to: &Path) -> Result<()> {
    let refused = |why: String| Err(Error::BadQuery(why));
    let shown = to.display();
    match std::fs::read_dir(to).map(|mut files| files.next().is_some()) {
        Ok(true) => {
            return refused(format!(
                "{shown} is not empty; name a folder that does not exist yet for the copy"
            ));
        }
        Ok(false) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return refused(format!(
                "{shown} is a file, or lies below one; name a folder that does not exist yet for the copy"
            ));
        }
        Err(error) => return Err(Error::io("look at", to)(error)),
    }
    let inside = real(dir)?;
    if real(to)?.starts_with(&inside) {
        return refused(format!(
            "{shown} lies in the index itself ({}); name a folder elsewhere for the copy",
            inside.display()
        ));
    }
    Ok(())
}

/// The path without links and dots, also of what does not exist yet.
fn real(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path).map_err(Error::io("resolve", path))?;
    let mut missing = Vec::new();
    let mut existing = path.as_path();
    loop {
        match existing.canonicalize() {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Ok(real);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // `..` behind what does not exist means nothing that could be compared.
                let (Some(name), Some(above)) = (existing.file_name(), existing.parent()) else {
                    return Err(Error::io("resolve", &path)(error));
                };
                missing.push(name.to_owned());
                existing = above;
            }
            Err(error) => return Err(Error::io("resolve", &path)(error)),
        }
    }
}

/// Why a round ended without a whole copy.
enum Round {
    /// The owner went on: its next manifest says with what.
    Again(Error),
    Failed(Error),
}

impl From<Error> for Round {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A file of the copy.
struct Copied {
    bytes: u64,
    linked: bool,
}

/// A copy that is not whole yet; dropped as such, it is removed.
struct Partial {
    dir: PathBuf,
    lock: Option<FolderLock>,
    /// By path below the folder.
    files: BTreeMap<PathBuf, Copied>,
    done: bool,
}

impl Partial {
    fn create(to: &Path) -> Result<Self> {
        let mut name = to.file_name().map(OsStr::to_owned).ok_or_else(|| {
            let shown = to.display();
            Error::BadQuery(format!(
                "{shown} has no name of its own; name a folder for the copy"
            ))
        })?;
        name.push(".partial");
        let dir = to.with_file_name(name);
        let existed = dir.exists();
        std::fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        let foreign = if existed { foreign_file(&dir)? } else { None };
        if let Some(foreign) = foreign {
            return Err(Error::BadQuery(format!(
                "{} is in the way and holds {}, which is of no copy of an index; remove it, or name another place",
                dir.display(),
                foreign.display()
            )));
        }
        let lock = FolderLock::acquire(&dir).inspect_err(|error| {
            let locked = matches!(error, tamis_durable::Error::Locked { .. });
            if !existed && !locked {
                let _ = std::fs::remove_dir_all(&dir);
            }
        })?;
        let partial = Self {
            dir,
            lock: Some(lock),
            files: BTreeMap::new(),
            done: false,
        };
        // What a killed copy left.
        partial.clear()?;
        Ok(partial)
    }

    /// Removes all but the lock.
    fn clear(&self) -> Result<()> {
        for entry in std::fs::read_dir(&self.dir).map_err(Error::io("list", &self.dir))? {
            let entry = entry.map_err(Error::io("list", &self.dir))?;
            let path = entry.path();
            let removed = if entry.file_name() == LOCK {
                Ok(())
            } else if path.is_dir() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            removed.map_err(Error::io("remove", &path))?;
        }
        Ok(())
    }

    /// Brings the copy to what the folder is now; answers the manifest that belongs to it.
    fn catch_up(
        &mut self,
        dir: &Path,
        progress: &mut impl FnMut(&Path),
    ) -> std::result::Result<Manifest, Round> {
        let manifest = Manifest::read(dir)?.0;
        let mut manifest = manifest.ok_or_else(|| Error::NoIndex { path: dir.to_owned() })?;
        self.drop_segments_but(&manifest.segments)?;
        for entry in &manifest.segments {
            let path = entry.path(Path::new(""));
            if !self.files.contains_key(&path) {
                progress(&dir.join(&path));
                let linked = self.link(dir, &path);
                linked.map_err(|error| told(dir, &manifest, error))?;
            }
            // Meta that was rebuilt; a part of the speed, not of the data.
            let meta = path.with_extension("meta");
            if !self.files.contains_key(&meta) && dir.join(&meta).exists() {
                let linked = self.link(dir, &meta);
                linked.or_else(|error| if error.is_gone() { Ok(()) } else { Err(error) })?;
            }
        }
        if manifest.issuers > 0 {
            let issuers = dictionary::path(dir);
            progress(&issuers);
            self.copy(
                &issuers,
                &dictionary::path(Path::new("")),
                Some(manifest.issuers_bytes),
            )?;
        }
        self.wals(dir, &manifest, progress)
            .map_err(|error| told(dir, &manifest, error))?;
        // Frames may come from a log that was registered a moment ago.
        let now = Manifest::read(dir)?.0.map(|now| now.logs).unwrap_or_default();
        for log in now {
            if manifest.logs.iter().all(|known| known.number != log.number) {
                manifest.logs.push(LogEntry::new(log.number, log.name));
            }
        }
        Ok(manifest)
    }

    /// Removes segments that an earlier round took and that are replaced by now.
    fn drop_segments_but(&mut self, live: &[SegmentEntry]) -> Result<()> {
        let live: Vec<PathBuf> = live.iter().map(|entry| entry.path(Path::new(""))).collect();
        let gone: Vec<PathBuf> = self
            .files
            .keys()
            .filter(|path| !live.contains(&path.with_extension("tamis")))
            .cloned()
            .collect();
        for path in gone {
            self.files.remove(&path);
            let copy = self.dir.join(&path);
            std::fs::remove_file(&copy).map_err(Error::io("remove", &copy))?;
        }
        Ok(())
    }

    /// Copies the write-ahead log. The owner removes its files in order, so that the first one being
    /// there when they are listed means that all are.
    fn wals(&mut self, dir: &Path, manifest: &Manifest, progress: &mut impl FnMut(&Path)) -> Result<()> {
        let to = wal_dir(&self.dir);
        std::fs::create_dir_all(&to).map_err(Error::io("create", &to))?;
        let mut numbers = wal_numbers(dir)?;
        numbers.retain(|&number| number >= manifest.first_wal);
        // A folder is born with a manifest and gets its first log file after it.
        if manifest.generation > 1 && numbers.first() != Some(&manifest.first_wal) {
            let path = wal_path(dir, manifest.first_wal);
            return Err(Error::io("read", &path)(ErrorKind::NotFound.into()));
        }
        for number in numbers {
            let path = wal_path(dir, number);
            progress(&path);
            let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
            let whole = bytes.get(..whole_frames(&path, &bytes)?).unwrap_or(&bytes);
            let copy = wal_path(Path::new(""), number);
            self.write(&copy, |file| Ok(file.write_all(whole)?))?;
        }
        tamis_durable::sync_dir(&to)?;
        Ok(())
    }

    /// Links a file that never changes, or copies it where links do not reach.
    fn link(&mut self, dir: &Path, path: &Path) -> Result<()> {
        let (from, to) = (dir.join(path), self.dir.join(path));
        if let Some(above) = to.parent() {
            std::fs::create_dir_all(above).map_err(Error::io("create", above))?;
        }
        match std::fs::hard_link(&from, &to) {
            Ok(()) => {
                let bytes = std::fs::metadata(&to).map_err(Error::io("look at", &to))?.len();
                self.files.insert(path.to_owned(), Copied { bytes, linked: true });
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::io("link", &from)(error)),
            // Another device, a file system without links, too many of them, a file of somebody else.
            Err(_) => self.copy(&from, path, None),
        }
    }

    /// Copies a file, or as many bytes of its start as count.
    fn copy(&mut self, from: &Path, path: &Path, bytes: Option<u64>) -> Result<()> {
        let file = std::fs::File::open(from).map_err(Error::io("open", from))?;
        let mut file = file.take(bytes.unwrap_or(u64::MAX));
        self.write(path, |copy| {
            let mut buffer = vec![0; COPY_BYTES];
            loop {
                let count = file.read(&mut buffer).map_err(Error::io("read", from))?;
                if count == 0 {
                    return Ok(());
                }
                copy.write_all(buffer.get(..count).unwrap_or(&[]))?;
            }
        })
    }

    /// Writes a file of the copy anew, durably.
    fn write(&mut self, path: &Path, content: impl FnOnce(&mut NewFile) -> Result<()>) -> Result<()> {
        let to = self.dir.join(path);
        if self.files.remove(path).is_some() {
            std::fs::remove_file(&to).map_err(Error::io("remove", &to))?;
        }
        let mut file = NewFile::create(&to)?;
        content(&mut file)?;
        let bytes = file.finish()?;
        self.files
            .insert(path.to_owned(), Copied { bytes, linked: false });
        Ok(())
    }

    /// Makes the copy durable, an index, and gives it its name.
    fn finish(&mut self, mut manifest: Manifest, to: &Path) -> Result<()> {
        let months = self.files.keys().filter_map(|path| path.parent());
        for month in months.collect::<std::collections::BTreeSet<_>>() {
            tamis_durable::sync_dir(&self.dir.join(month))?;
        }
        if manifest.generation == 1 {
            // A folder that was just born: from the second on, its log file must be there.
            manifest.generation = 0;
        }
        manifest.publish(&self.dir)?;
        let lock = self.dir.join(LOCK);
        std::fs::remove_file(&lock).map_err(Error::io("remove", &lock))?;
        self.lock = None;
        tamis_durable::publish_dir(&self.dir, to)?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.done {
            // Best effort: the error that matters is already on its way to the caller.
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// Something in the folder that no copy of an index has.
fn foreign_file(dir: &Path) -> Result<Option<PathBuf>> {
    let issuers = dictionary::path(Path::new(""));
    for entry in std::fs::read_dir(dir).map_err(Error::io("list", dir))? {
        let name = entry.map_err(Error::io("list", dir))?.file_name();
        let known = name == LOCK
            || name == "wal"
            || name == issuers.as_os_str()
            || NAMES.iter().any(|manifest| name == *manifest)
            || name.to_str().is_some_and(|name| name.starts_with(".tamis-"))
            || folder::is_month(&name);
        if !known {
            return Ok(Some(PathBuf::from(name)));
        }
    }
    Ok(None)
}

/// A missing file is a race with the owner where a newer manifest does without it, else damage.
fn told(dir: &Path, manifest: &Manifest, error: Error) -> Round {
    if !error.is_gone() {
        return Round::Failed(error);
    }
    let now = Manifest::read(dir).ok().and_then(|(now, _)| now);
    if now.is_some_and(|now| now.generation != manifest.generation) {
        return Round::Again(error);
    }
    match error {
        Error::Io { path, .. } => Round::Failed(Error::corrupt(
            &path,
            0,
            "the manifest names it, but it is missing",
        )),
        error => Round::Failed(error),
    }
}

/// Bytes up to the end of the last whole frame; of a file that is damaged all of it, as it is found.
fn whole_frames(path: &Path, bytes: &[u8]) -> Result<usize> {
    let mut frames = match FrameReader::new(path, bytes, WAL_FORMAT) {
        Ok(frames) => frames,
        Err(error @ tamis_durable::Error::FutureVersion { .. }) => return Err(error.into()),
        Err(_) => return Ok(bytes.len()),
    };
    let torn = frames
        .by_ref()
        .any(|frame| frame.is_err_and(|damage| damage.kind == DamageKind::Torn));
    Ok(if torn {
        frames.append_offset() as usize
    } else {
        bytes.len()
    })
}
