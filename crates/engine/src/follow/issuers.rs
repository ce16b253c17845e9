//! Certificates of issuers, which static logs serve apart: fetched once for all logs, kept as files.
//!
//! # Limits
//! [`ISSUERS_MAX`] files; the world has about a thousand. [`TRIES_MAX`] attempts each.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};
use tamis_ct_log::answers::{Body, BodyKind};

use super::lie::{Lie, LieKind};
use super::source::{Blame, Source};
use super::world::{World, hex, now_ms};

/// Of files kept.
const ISSUERS_MAX: usize = 20_000;
/// Of them, from which on roots that logs accept are not added: no log can take the place of issuers.
const WITH_ROOTS_MAX: usize = 10_000;
/// Of a root.
const ROOT_BYTES_MAX: usize = 64 << 10;
/// Of one certificate, in this process.
const TRIES_MAX: u8 = 3;

/// The issuers that are here or on their way.
#[derive(Debug, Default)]
pub(crate) struct Issuers {
    dir: PathBuf,
    known: Mutex<HashMap<[u8; 32], Fetching>>,
    lies: Mutex<Vec<(String, Lie)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fetching {
    Here,
    OnItsWay(u8),
    Failed(u8),
}

impl Issuers {
    /// The issuers kept in a folder.
    pub(crate) fn open(dir: PathBuf) -> Self {
        let mut known = HashMap::new();
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let hash = name
                .to_str()
                .and_then(|name| name.strip_suffix(".der"))
                .and_then(unhex);
            if let Some(hash) = hash {
                known.insert(hash, Fetching::Here);
            }
        }
        Self {
            dir,
            known: Mutex::new(known),
            lies: Mutex::default(),
        }
    }

    /// How many are here.
    pub(crate) fn count(&self) -> u64 {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().filter(|state| **state == Fetching::Here).count() as u64
    }

    /// Whether some are on their way.
    pub(crate) fn is_fetching(&self) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().any(|state| matches!(state, Fetching::OnItsWay(_)))
    }

    /// Those of `issuers` that nobody fetches yet; they count as being fetched from here on.
    pub(crate) fn claim(&self, issuers: Vec<[u8; 32]>) -> Vec<[u8; 32]> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut claimed = Vec::new();
        for issuer in issuers {
            let tries = match known.get(&issuer) {
                None if known.len() < ISSUERS_MAX => 1,
                Some(Fetching::Failed(tries)) if *tries < TRIES_MAX => tries + 1,
                _ => continue,
            };
            known.insert(issuer, Fetching::OnItsWay(tries));
            claimed.push(issuer);
        }
        claimed
    }

    /// Fetches one, compares its hash and keeps it.
    pub(crate) async fn fetch(&self, world: &Arc<World>, source: &Source, fingerprint: [u8; 32]) {
        let is_here = match source.issuer(&fingerprint).await {
            Ok(bytes) if <[u8; 32]>::from(Sha256::digest(&bytes)) == fingerprint => {
                self.keep(fingerprint, &bytes)
            }
            // What a server says instead of an answer is no lie of the log.
            Ok(bytes) if !matches!(Body::of(&bytes).kind, BodyKind::Text | BodyKind::Binary) => false,
            Ok(bytes) => {
                self.note(source, fingerprint, &bytes, world);
                false
            }
            Err(error) => {
                if error.blame() != Blame::Retry {
                    tracing::debug!(log = %source.log.description, error = %error.told(), "no issuer");
                }
                false
            }
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let tries = match known.get(&fingerprint) {
            // It came with a list of roots meanwhile.
            Some(Fetching::Here) => return,
            Some(Fetching::OnItsWay(tries)) => *tries,
            _ => TRIES_MAX,
        };
        let state = if is_here {
            Fetching::Here
        } else {
            Fetching::Failed(tries)
        };
        known.insert(fingerprint, state);
    }

    /// Keeps a root that a log accepts, if it is none that is here. It blocks.
    pub(crate) fn keep_root(&self, fingerprint: [u8; 32], der: &[u8]) {
        // A certificate is a SEQUENCE; what else a log calls a root is counted and not kept.
        if der.first() != Some(&0x30) || der.len() > ROOT_BYTES_MAX {
            return;
        }
        let is_wanted = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.len() < WITH_ROOTS_MAX && !matches!(known.get(&fingerprint), Some(Fetching::Here))
        };
        if is_wanted && self.keep(fingerprint, der) {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(fingerprint, Fetching::Here);
        }
    }

    fn keep(&self, fingerprint: [u8; 32], bytes: &[u8]) -> bool {
        let path = self.dir.join(format!("{}.der", hex(&fingerprint)));
        let kept = std::fs::create_dir_all(&self.dir).is_ok() && tamis_durable::publish(&path, bytes).is_ok();
        if !kept {
            tracing::warn!(path = %path.display(), "the certificate of an issuer could not be kept");
        }
        kept
    }

    /// Wrong bytes are told as a lie of the log they came from; nothing is kept of them.
    fn note(&self, source: &Source, fingerprint: [u8; 32], bytes: &[u8], world: &World) {
        let detail = format!(
            "issuer {} came with {} bytes whose hash is {}",
            hex(&fingerprint),
            bytes.len(),
            hex(&Sha256::digest(bytes))
        );
        tracing::warn!("{}: {}: {detail}", source.log.description, LieKind::Issuer);
        world.counts.lie();
        let lie = Lie {
            kind: LieKind::Issuer,
            leaves: [0, 0],
            at_ms: now_ms(),
            healed: false,
            detail,
        };
        let mut lies = self.lies.lock().unwrap_or_else(PoisonError::into_inner);
        lies.push((source.log.url.clone(), lie));
    }

    /// Lies about issuers of the log at `url` that its task has not noted yet.
    pub(crate) fn take_lies(&self, url: &str) -> Vec<Lie> {
        let mut lies = self.lies.lock().unwrap_or_else(PoisonError::into_inner);
        let (taken, rest) = std::mem::take(&mut *lies)
            .into_iter()
            .partition(|(of, _)| of == url);
        *lies = rest;
        let taken: Vec<(String, Lie)> = taken;
        taken.into_iter().map(|(_, lie)| lie).collect()
    }
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}
