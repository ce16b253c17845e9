//! A log as an archive: zip files as the public archives of logs are
//! (<https://github.com/geomys/ct-archive>).
//!
//! # Format
//! `ct_NAME/NNN.zip` holds the subtree of 2^24 entries with that number: its full tiles of hashes of
//! levels 0 to 2 and its data tiles, and besides these, in every file, `README.txt`, `checkpoint`,
//! `log.v3.json`, all issuers, all tiles of level 3 and above, and the partial tiles of the right edge.
//! Hashes and texts are stored, entries and issuers deflated. Leaves of RFC 6962 logs have no extension.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tamis_ct_log::merkle::TileId;
use tamis_ct_log::paths;
use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, DateTime};

use super::list;
use super::log::{SimulatedLog, State};
use super::wire;

/// Of one zip file.
const SUBTREE_ENTRIES: u64 = 1 << 24;
const LEVEL_MAX: u8 = 5;
/// The level of which a zip file has one tile.
const SUBTREE_LEVEL: u8 = 2;

const README: &str = "A Certificate Transparency log that never was, made by tamis-testbed.

It is stored as static-ct-api has it (https://c2sp.org/static-ct-api), in the layout of the archives at
https://github.com/geomys/ct-archive: file NNN.zip holds the entries from NNN times 2^24 on.
";

/// Writes one log below `folder` and gives the files.
pub(super) fn write(log: &SimulatedLog, folder: &Path) -> Result<Vec<PathBuf>> {
    let folder = folder.join(format!("ct_{}", log.options.name));
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    // Before the state is read, whose lock comes after theirs.
    let metadata = list::log_entry(log);
    let issuers = log.pool().chains.issuers();
    let head = log.head()?;
    let state = log.read();
    let size = head.tree.size;
    let mut files = Vec::new();
    for number in 0..size.div_ceil(SUBTREE_ENTRIES).max(1) {
        let path = folder.join(format!("{number:03}.zip"));
        let context = || format!("write {}", path.display());
        let file = File::create(&path).with_context(context)?;
        let mut archive = Archive(ZipWriter::new(BufWriter::new(file)));
        archive.stored("README.txt", README.as_bytes())?;
        let mut checkpoint = Vec::new();
        let cosignatures = log.options.cosignatures;
        head.push_checkpoint(&log.origin(), &log.key.id(), cosignatures, &mut checkpoint);
        archive.stored(paths::CHECKPOINT, &checkpoint)?;
        archive.stored(paths::LOG_METADATA, metadata.to_string().as_bytes())?;
        for (fingerprint, der) in &issuers {
            archive.deflated(&paths::issuer(fingerprint), der)?;
        }
        archive.tiles(log, &state, size, number)?;
        let mut file = archive.0.finish().with_context(context)?;
        file.flush().with_context(context)?;
        files.push(path);
    }
    Ok(files)
}

struct Archive<W: Write + Seek>(ZipWriter<W>);

impl<W: Write + Seek> Archive<W> {
    fn tiles(&mut self, log: &SimulatedLog, state: &State, size: u64, number: u64) -> Result<()> {
        let all = |level: u8| (0..).map_while(move |index| TileId::in_tree(level, index, size));
        let is_below = |id: &TileId| {
            let width = 1 << (8 * (SUBTREE_LEVEL - id.level()));
            (number * width..(number + 1) * width).contains(&id.index())
        };
        for level in (0..=LEVEL_MAX).rev() {
            for id in all(level).filter(|id| level > SUBTREE_LEVEL || id.is_partial()) {
                self.hashes(state, &id)?;
            }
        }
        for level in (0..=SUBTREE_LEVEL).rev() {
            for id in all(level).filter(|id| !id.is_partial() && is_below(id)) {
                self.hashes(state, &id)?;
            }
        }
        for id in all(0).filter(is_below) {
            let first = id.index() * 256;
            let mut tile = Vec::new();
            for index in first..first + u64::from(id.width()) {
                let stored = state
                    .entries
                    .get(index as usize)
                    .context("an entry below the size")?;
                wire::push_tile_leaf(&log.held(stored, index), &mut tile);
            }
            self.deflated(&paths::data_tile(&id), &tile)?;
        }
        Ok(())
    }

    fn hashes(&mut self, state: &State, id: &TileId) -> Result<()> {
        let hashes = state.tree.tile(id.level(), id.index(), id.width());
        let hashes: Vec<u8> = hashes
            .context("a tile of the tree")?
            .iter()
            .flat_map(|hash| hash.0)
            .collect();
        self.stored(&paths::tile(id), &hashes)
    }

    fn stored(&mut self, name: &str, content: &[u8]) -> Result<()> {
        self.put(name, content, CompressionMethod::Stored)
    }

    fn deflated(&mut self, name: &str, content: &[u8]) -> Result<()> {
        self.put(name, content, CompressionMethod::Deflated)
    }

    fn put(&mut self, name: &str, content: &[u8], method: CompressionMethod) -> Result<()> {
        // Without a time, the same log makes the same bytes.
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .last_modified_time(DateTime::default());
        self.0
            .start_file(name, options)
            .and_then(|()| Ok(self.0.write_all(content)?))
            .with_context(|| format!("archive {name}"))
    }
}
