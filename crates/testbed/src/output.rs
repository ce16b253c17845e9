//! Files of a corpus: pages of get-entries, data tiles with their issuers, or PEM.

use crate::Format;
use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tamis_testbed::framing::{TILE_ENTRIES, data_tile, data_tile_path, get_entries_body, push_pem};
use tamis_testbed::{Entry, Issuers};

/// Collects entries of each log into pages and writes full ones.
pub(crate) struct Output {
    format: Format,
    page_entries: usize,
    gzip: bool,
    logs: Vec<Log>,
}

struct Log {
    folder: PathBuf,
    page: Vec<Entry>,
}

impl Output {
    pub(crate) fn create(format: Format, folder: &Path, logs: u16, page: u32, gzip: bool) -> Result<Self> {
        let folders = (0..logs).map(|log| {
            if logs == 1 {
                folder.to_owned()
            } else {
                folder.join(format!("log-{log}"))
            }
        });
        let logs = folders
            .map(|folder| Log {
                folder,
                page: Vec::new(),
            })
            .collect::<Vec<_>>();
        if format != Format::None {
            for log in &logs {
                std::fs::create_dir_all(&log.folder)
                    .with_context(|| format!("create {}", log.folder.display()))?;
            }
        }
        let page_entries = if format == Format::Tiles {
            TILE_ENTRIES
        } else {
            page as usize
        };
        Ok(Self {
            format,
            page_entries,
            gzip,
            logs,
        })
    }

    pub(crate) fn write(&mut self, entry: Entry, issuers: &Issuers) -> Result<()> {
        if self.format == Format::None {
            return Ok(());
        }
        let log = usize::from(entry.log);
        self.logs[log].page.push(entry);
        if self.logs[log].page.len() == self.page_entries {
            self.write_page(log, issuers)?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self, issuers: &Issuers) -> Result<()> {
        for log in 0..self.logs.len() {
            self.write_page(log, issuers)?;
            if self.format == Format::Tiles {
                write_issuers(&self.logs[log].folder, issuers)?;
            }
        }
        Ok(())
    }

    fn write_page(&mut self, log: usize, issuers: &Issuers) -> Result<()> {
        let Log { folder, page } = &mut self.logs[log];
        let Some(first) = page.first().map(|entry| entry.index) else {
            return Ok(());
        };
        let gz = if self.gzip { ".gz" } else { "" };
        let (path, content) = match self.format {
            // Served under the bare path with an encoding header, so the name never says `.gz`.
            Format::Tiles => (
                data_tile_path(first / TILE_ENTRIES as u64, page.len()),
                data_tile(page, issuers),
            ),
            Format::GetEntries => (
                format!("get-entries-{first:012}.json{gz}"),
                get_entries_body(page, issuers),
            ),
            Format::Pem => {
                let mut pem = Vec::new();
                page.iter().for_each(|entry| push_pem(entry, &mut pem));
                (format!("certificates-{first:012}.pem{gz}"), pem)
            }
            Format::None => return Ok(()),
        };
        let content = if self.gzip { compress(&content)? } else { content };
        page.clear();
        write_file(&folder.join(path), &content)
    }
}

/// Each issuer certificate under its fingerprint, as static logs serve them.
fn write_issuers(folder: &Path, issuers: &Issuers) -> Result<()> {
    for issuer in issuers.all() {
        for (certificate, fingerprint) in issuer.chain().iter().zip(issuer.chain_fingerprints()) {
            let name: String = fingerprint.iter().map(|byte| format!("{byte:02x}")).collect();
            write_file(&folder.join("issuer").join(name), certificate)?;
        }
    }
    Ok(())
}

fn compress(content: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(content.len() / 2), Compression::fast());
    encoder
        .write_all(content)
        .and_then(|()| encoder.finish())
        .context("compress a page")
}

fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    std::fs::write(path, content).with_context(|| format!("write {}", path.display()))
}
