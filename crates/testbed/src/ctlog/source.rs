//! Real entries from files: get-entries JSON, data tiles with their issuers, PEM; each also compressed.
//!
//! What is read is kept as it was submitted. Leaves are written anew by the logs that take them, since a
//! static log's leaf says where it is.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use tamis_ct_log::certificate::{self, ReadOptions, Reading};
use tamis_ct_log::input::{Chain as InputChain, Kind, RawEntry, Scratch};
use tamis_ct_log::leaf::LeafBody;
use tamis_ct_log::{Input, Name};

use super::submission::{Chains, Submission, Submitted};

/// Certificates that no log dates were logged then: 2026-06-01.
const TIMESTAMP_MS: u64 = 1_780_272_000_000;

/// What files gave.
#[derive(Default)]
pub(super) struct Source {
    pub(super) submissions: Vec<Submission>,
    pub(super) chains: Chains,
    /// Entries that no log could hold as they are: unreadable, or precertificates without what the log
    /// signed.
    pub(super) skipped: u64,
}

impl Source {
    /// Reads files, and all files below folders that hold entries.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut files = Vec::new();
        for path in paths {
            collect(path, &mut files).with_context(|| format!("look into {}", path.display()))?;
        }
        let mut source = Self::default();
        // Issuers first: chains in tiles are but fingerprints.
        for file in files.iter().filter(|file| is_issuer(file)) {
            let der = std::fs::read(file).with_context(|| format!("read {}", file.display()))?;
            source.chains.add_issuer(&der);
        }
        for file in files.iter().filter(|file| !is_issuer(file)) {
            let bytes = std::fs::read(file).with_context(|| format!("read {}", file.display()))?;
            match Input::open(&bytes) {
                Ok(input) if matches!(input.kind(), Kind::Roots | Kind::Chain) => {}
                Ok(input) => source.take(&input),
                // A folder holds other things too; what was named by itself should be what it is.
                Err(error) if paths.contains(file) => bail!("{}: {error}", file.display()),
                Err(_) => {}
            }
        }
        Ok(source)
    }

    fn take(&mut self, input: &Input<'_>) {
        let (mut scratch, mut chain_scratch) = (Scratch::new(), Scratch::new());
        let mut reading = Reading::new();
        for entry in input.entries() {
            let taken = entry
                .ok()
                .and_then(|raw| self.submission(&raw, &mut scratch, &mut chain_scratch, &mut reading));
            match taken {
                Some(submission) => self.submissions.push(submission),
                None => self.skipped += 1,
            }
        }
    }

    fn submission(
        &mut self,
        raw: &RawEntry<'_>,
        scratch: &mut Scratch,
        chain_scratch: &mut Scratch,
        reading: &mut Reading,
    ) -> Option<Submission> {
        let entry = raw.decode(scratch).ok()?;
        let certificate = entry.submitted?;
        let read = certificate::read(certificate, None, &ReadOptions::default(), reading);
        let submitted = match entry.leaf.map(|leaf| leaf.body) {
            Some(LeafBody::X509(_)) => Submitted::Certificate(certificate),
            Some(LeafBody::Precert { issuer_key_hash, tbs }) => Submitted::Precertificate {
                der: certificate,
                issuer_key_hash,
                tbs,
            },
            None if read.is_ok() && !reading.precert => Submitted::Certificate(certificate),
            None => return None,
        };
        let chain = match raw.decode_chain(chain_scratch) {
            Ok(InputChain::Certificates(list)) => self.chains.of_certificates(list),
            Ok(InputChain::Fingerprints(bytes)) => {
                self.chains.of_fingerprints(bytes.as_chunks::<32>().0.to_vec())
            }
            _ => self.chains.of_fingerprints(Vec::new()),
        };
        let names = if read.is_ok() { names(reading) } else { Vec::new() };
        let timestamp_ms = entry.leaf.map_or(TIMESTAMP_MS, |leaf| leaf.timestamp_ms);
        Some(Submission::new(
            &submitted,
            chain,
            names.into_iter(),
            timestamp_ms,
        ))
    }
}

/// The names that `ct-log` reads: there is no other truth about real certificates here.
fn names(reading: &Reading) -> Vec<String> {
    let mut names = Vec::new();
    for name in reading.names() {
        match name {
            Name::Host {
                host,
                exact,
                wildcard,
            } => {
                names.extend(exact.then(|| host.to_owned()));
                names.extend(wildcard.then(|| format!("*.{host}")));
            }
            Name::Ip(ip) => names.push(ip.to_string()),
            // A line feed would part it in two.
            Name::Email(text) | Name::Other(text) => names.push(text.replace('\n', " ")),
        }
    }
    names
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let listed: std::io::Result<Vec<_>> = std::fs::read_dir(path)?.collect();
    let mut listed: Vec<_> = listed?.into_iter().map(|entry| entry.path()).collect();
    listed.sort();
    listed.iter().try_for_each(|path| collect(path, files))
}

/// `issuer/` and 64 digits.
fn is_issuer(file: &Path) -> bool {
    let is_in = file
        .parent()
        .and_then(Path::file_name)
        .is_some_and(|name| name == "issuer");
    let name = file
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    is_in && name.len() == 64 && name.bytes().all(|digit| digit.is_ascii_hexdigit())
}
