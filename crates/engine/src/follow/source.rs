//! One log as a source: heads, pages of entries and proofs, in whichever protocol it speaks.
//!
//! # Invariants
//! Whatever comes out as a head, a frontier or a consistency was verified with the log's key or led to the
//! root of such a head. Entries are what the log served and nothing more.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tamis_ct_log::answers::{self, AnswerError, Body};
use tamis_ct_log::head::{Checkpoint, CheckpointError, HeadError, SignedTreeHead, VerifiedHead};
use tamis_ct_log::key::{LogId, PublicKey};
use tamis_ct_log::merkle::{
    self, CompactRange, Hash, HashTile, ProofError, RangeError, TILE_WIDTH, TileError, TileId, Tree,
};
use tamis_ct_log::paths;
use tokio::sync::OwnedSemaphorePermit;

use super::archive::{Archive, ArchiveError};
use super::asked::{Asked, Question};
use super::http::{Answer, Connection, Http, HttpError};
use super::pace::{Gate, Verdict};

/// Of a head, a proof or a tile of hashes, inflated.
const SMALL_BYTES_MAX: u64 = 1 << 20;
/// Of a page or a data tile, inflated: certificates may have 16 MiB, and 256 of them were never seen.
const PAGE_BYTES_MAX: u64 = 500_000_000;
/// Of an issuer's certificate.
const ISSUER_BYTES_MAX: u64 = 1 << 20;

/// How a log is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// RFC 6962 throughout.
    Rfc6962,
    /// static-ct-api.
    Static,
    /// Heads and proofs by RFC 6962, entries from data tiles.
    Hybrid,
}

impl Protocol {
    /// As it is written in JSON.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Rfc6962 => "rfc6962",
            Self::Static => "static-ct-api",
            Self::Hybrid => "rfc6962+tiles",
        }
    }
}

/// Who a log is.
#[derive(Debug, Clone)]
pub(crate) struct LogIdentity {
    pub(crate) description: String,
    pub(crate) operator: String,
    /// The prefix below which it is read.
    pub(crate) url: String,
    /// The prefix below which it takes entries, where that is known and another one.
    pub(crate) submission_url: Option<String>,
    pub(crate) key: PublicKey,
}

impl LogIdentity {
    pub(crate) fn id(&self) -> LogId {
        self.key.id()
    }
}

/// How questions reach a log.
#[derive(Debug, Clone)]
pub(crate) enum Transport {
    Http(Http),
    Archive(Arc<Archive>),
}

impl Transport {
    /// The one for this address.
    pub(crate) fn to(url: &str, http: &Http) -> Self {
        match Archive::at(url) {
            Some(archive) => Self::Archive(Arc::new(archive)),
            None => Self::Http(http.clone()),
        }
    }
}

/// Asks one log.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) log: Arc<LogIdentity>,
    pub(crate) protocol: Protocol,
    pub(crate) transport: Transport,
    pub(crate) gate: Arc<Gate>,
    pub(crate) asked: Arc<Asked>,
    /// Whether connections are closed after each question.
    pub(crate) closes: Arc<AtomicBool>,
}

/// Entries as a log served them.
#[derive(Debug)]
pub(crate) struct Page {
    /// Index of the first entry in the body.
    pub(crate) first: u64,
    pub(crate) is_tile: bool,
    pub(crate) body: Vec<u8>,
    /// The body broke off.
    pub(crate) is_cut: bool,
    /// Given back when a large body is decoded.
    pub(crate) _room: Option<OwnedSemaphorePermit>,
}

/// Why a log gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error("status {status}, {body}")]
    Status { status: u16, body: Body },
    #[error("the answer broke off after {bytes} bytes")]
    Cut { bytes: usize },
    #[error(transparent)]
    Head(#[from] HeadError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error(transparent)]
    Tile(#[from] TileError),
    #[error(transparent)]
    Proof(#[from] ProofError),
    #[error(transparent)]
    Range(#[from] RangeError),
    #[error("the log has no such leaf")]
    NoSuchLeaf,
    #[error("a leaf is no entry and has no hash: {why}")]
    Unhashable { why: String },
    #[error("the answer holds no entry: {body}")]
    NoEntries { body: Body },
}

/// What follows from an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blame {
    /// Ask again later.
    Retry,
    /// It is not there.
    Absent,
    /// What came contradicts what the log signed, or is not signed.
    Contradiction,
}

impl SourceError {
    pub(crate) fn blame(&self) -> Blame {
        match self {
            // What a log or its gateway says to a question that it will never answer.
            Self::Status {
                status: 400 | 403 | 404 | 410 | 413 | 414 | 422,
                ..
            }
            | Self::NoSuchLeaf => Blame::Absent,
            Self::Archive(error) if error.is_absent() => Blame::Absent,
            Self::Head(
                HeadError::Signature(_)
                | HeadError::Checkpoint(CheckpointError::NotSigned { .. } | CheckpointError::Signature),
            ) => Blame::Contradiction,
            Self::Tile(TileError::Root { .. } | TileError::Parent { .. }) => Blame::Contradiction,
            Self::Proof(ProofError::Root { .. } | ProofError::Length { .. }) => Blame::Contradiction,
            _ => Blame::Retry,
        }
    }

    /// One line for people.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Http(error) => error.told(),
            error => {
                let mut told = error.to_string();
                if let Some(source) = std::error::Error::source(error) {
                    told = format!("{told}: {source}");
                }
                told
            }
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Source {
    async fn get(&self, question: Question, path: &str, limit: u64) -> Result<Answer, SourceError> {
        self.get_below(&self.log.url, question, path, limit).await
    }

    async fn get_below(
        &self,
        prefix: &str,
        question: Question,
        path: &str,
        limit: u64,
    ) -> Result<Answer, SourceError> {
        let leave = self.gate.leave().await;
        let http = match &self.transport {
            Transport::Http(http) => http,
            Transport::Archive(archive) => {
                let answer = archive.get(path, limit).await?;
                leave.ended(Verdict::Answered(answer.took));
                let answer = Ok(answer);
                self.asked.note(question, &answer);
                return Ok(answer?);
            }
        };
        let connection = if self.closes.load(Ordering::Relaxed) {
            Connection::Close
        } else {
            Connection::Keep
        };
        let url = paths::join(prefix, path);
        let answer = http.get(&url, connection, limit).await;
        let verdict = match &answer {
            Ok(answer) if matches!(answer.status, 429 | 503) => Verdict::Refused(answer.retry_after),
            // How long a list of roots takes says nothing about entries.
            Ok(answer) if answer.status == 200 && question != Question::Roots => {
                Verdict::Answered(answer.took)
            }
            _ => Verdict::Failed,
        };
        leave.ended(verdict);
        self.asked.note(question, &answer);
        let answer = answer?;
        if answer.status != 200 {
            return Err(SourceError::Status {
                status: answer.status,
                body: Body::of(&answer.body),
            });
        }
        Ok(answer)
    }

    /// Whether this is all that there will ever be of the log.
    pub(crate) fn is_archive(&self) -> bool {
        matches!(self.transport, Transport::Archive(_))
    }

    /// As [`Self::get`], for what is of no use in part.
    async fn get_whole(&self, question: Question, path: &str, limit: u64) -> Result<Vec<u8>, SourceError> {
        let answer = self.get(question, path, limit).await?;
        if answer.is_cut {
            return Err(SourceError::Cut {
                bytes: answer.body.len(),
            });
        }
        Ok(answer.body)
    }

    /// Which protocol the log speaks, by asking for a checkpoint: only static logs have one.
    pub(crate) async fn detect(&self) -> Result<Protocol, SourceError> {
        match self
            .get_whole(Question::Head, paths::CHECKPOINT, SMALL_BYTES_MAX)
            .await
        {
            Ok(body) if Checkpoint::parse(&body).is_ok() => Ok(Protocol::Static),
            Ok(_) => Ok(Protocol::Rfc6962),
            Err(error) if error.blame() == Blame::Absent => Ok(Protocol::Rfc6962),
            Err(error) => Err(error),
        }
    }

    /// The newest head and the bytes that it came in.
    pub(crate) async fn head(&self) -> Result<(VerifiedHead, Vec<u8>), SourceError> {
        let path = match self.protocol {
            Protocol::Static => paths::CHECKPOINT,
            Protocol::Rfc6962 | Protocol::Hybrid => paths::SIGNED_TREE_HEAD,
        };
        let body = self.get_whole(Question::Head, path, SMALL_BYTES_MAX).await?;
        let head = match self.protocol {
            Protocol::Static => Checkpoint::parse(&body)
                .map_err(HeadError::from)?
                .verify(&self.log.key)?,
            Protocol::Rfc6962 | Protocol::Hybrid => {
                SignedTreeHead::from_json(&body)?.verify(&self.log.key)?
            }
        };
        Ok((head, body))
    }

    /// Behind the last leaf of the page that starts at `start`, of a tree that ends at `end`, where the log's
    /// pages are fixed.
    pub(crate) fn fixed_page_end(&self, start: u64, end: u64) -> Option<u64> {
        let width = u64::from(TILE_WIDTH);
        match self.protocol {
            Protocol::Rfc6962 => None,
            Protocol::Static | Protocol::Hybrid => Some((start / width + 1).saturating_mul(width).min(end)),
        }
    }

    /// Entries from `start` to `end` at most, of a tree with `size` leaves.
    pub(crate) async fn page(&self, start: u64, end: u64, size: u64) -> Result<Page, SourceError> {
        match self.protocol {
            Protocol::Rfc6962 => {
                let path = paths::entries(start, end.saturating_sub(1));
                let answer = self.get(Question::Entries, &path, PAGE_BYTES_MAX).await?;
                Ok(Page {
                    first: start,
                    is_tile: false,
                    body: answer.body,
                    is_cut: answer.is_cut,
                    _room: answer.room,
                })
            }
            Protocol::Static | Protocol::Hybrid => {
                let width = u64::from(TILE_WIDTH);
                let id = TileId::in_tree(0, start / width, size).ok_or(SourceError::NoSuchLeaf)?;
                let answer = self.tile(&id, Question::DataTile, paths::data_tile).await?;
                Ok(Page {
                    first: id.index() * width,
                    is_tile: true,
                    body: answer.body,
                    is_cut: answer.is_cut,
                    _room: answer.room,
                })
            }
        }
    }

    /// A tile; where the partial one is gone, the full one that took its place.
    async fn tile(
        &self,
        id: &TileId,
        question: Question,
        path: impl Fn(&TileId) -> String,
    ) -> Result<Answer, SourceError> {
        let limit = match question {
            Question::DataTile => PAGE_BYTES_MAX,
            _ => SMALL_BYTES_MAX,
        };
        let answer = self.get(question, &path(id), limit).await;
        match answer {
            Err(error) if id.is_partial() && error.blame() == Blame::Absent => {
                self.get(question, &path(&id.full()), limit).await
            }
            answer => answer,
        }
    }

    async fn hash_tile(&self, id: TileId) -> Result<HashTile, SourceError> {
        let answer = self.tile(&id, Question::HashTile, paths::tile).await?;
        if answer.is_cut {
            return Err(SourceError::Cut {
                bytes: answer.body.len(),
            });
        }
        Ok(HashTile::parse(id, &answer.body)?)
    }

    /// The leaves [0, `at`) of `tree`, proved. An RFC 6962 log has to be asked by the hash of a leaf: of the
    /// one before `at`, or of the one at it.
    pub(crate) async fn frontier(
        &self,
        at: u64,
        tree: &Tree,
        leaves: Neighbours,
    ) -> Result<CompactRange, SourceError> {
        if at == 0 {
            return Ok(CompactRange::empty(0)?);
        }
        if self.protocol == Protocol::Static {
            let ids = merkle::tiles_for_range(at, tree.size)?;
            let mut tiles = Vec::with_capacity(ids.len());
            for id in ids {
                tiles.push(self.hash_tile(id).await?);
            }
            return Ok(merkle::range_from_tiles(at, tree, &tiles)?);
        }
        let mut last = SourceError::NoSuchLeaf;
        if let Some(leaf) = leaves.before {
            match self.left_of(at - 1, &leaf, tree).await {
                Ok(mut range) => {
                    range.push(leaf)?;
                    return Ok(range);
                }
                Err(error) => last = error,
            }
        }
        if let Some(leaf) = leaves.after.filter(|_| at < tree.size) {
            return self.left_of(at, &leaf, tree).await;
        }
        Err(last)
    }

    /// The leaves [0, `index`) by the proof of the leaf with this index and hash.
    async fn left_of(&self, index: u64, leaf: &Hash, tree: &Tree) -> Result<CompactRange, SourceError> {
        if tree.size == 1 {
            // A tree of one leaf needs no proof, and some logs have none.
            return Ok(merkle::range_left_of(index, leaf, &[], tree)?);
        }
        let path = paths::proof_by_hash(leaf, tree.size);
        let body = self.get_whole(Question::Proof, &path, SMALL_BYTES_MAX).await?;
        let (found, path) = answers::proof_by_hash(&body)?;
        if found != index {
            // The same certificate in two places has two timestamps, so two leaves of one hash are rare; the
            // log names the first. It proves nothing about this place.
            return Err(SourceError::NoSuchLeaf);
        }
        Ok(merkle::range_left_of(index, leaf, &path, tree)?)
    }

    /// Checks that `old` is the start of `new`.
    pub(crate) async fn consistency(&self, old: &Tree, new: &Tree) -> Result<(), SourceError> {
        if old.size == 0 || old.size == new.size {
            return Ok(merkle::verify_consistency(old, new, &[])?);
        }
        if self.protocol == Protocol::Static {
            let range = self.frontier(old.size, new, Neighbours::default()).await?;
            let computed = range.root().unwrap_or(Hash::EMPTY_ROOT);
            if computed != old.root {
                return Err(SourceError::Proof(ProofError::Root {
                    size: old.size,
                    expected: old.root,
                    computed,
                }));
            }
            return Ok(());
        }
        let path = paths::consistency(old.size, new.size);
        let body = self
            .get_whole(Question::Consistency, &path, SMALL_BYTES_MAX)
            .await?;
        Ok(merkle::verify_consistency(
            old,
            new,
            &answers::consistency(&body)?,
        )?)
    }

    /// The certificate of an issuer, whose hash the caller compares.
    pub(crate) async fn issuer(&self, fingerprint: &[u8; 32]) -> Result<Vec<u8>, SourceError> {
        let path = paths::issuer(fingerprint);
        self.get_whole(Question::Issuer, &path, ISSUER_BYTES_MAX).await
    }

    /// The prefix below which the log tells its roots, if it is known.
    pub(crate) fn roots_prefix(&self) -> Option<&str> {
        match (&self.log.submission_url, self.protocol) {
            _ if self.is_archive() => None,
            (Some(prefix), _) => Some(prefix),
            // A static log is read below another prefix.
            (None, Protocol::Static) => None,
            (None, Protocol::Rfc6962 | Protocol::Hybrid) => Some(&self.log.url),
        }
    }

    /// What the log says when asked for the roots that it accepts.
    pub(crate) async fn roots(&self, prefix: &str) -> Result<Vec<u8>, SourceError> {
        let limit = answers::ROOTS_BYTES_MAX as u64;
        let asked = self.get_below(prefix, Question::Roots, paths::ROOTS, limit);
        let answer = asked.await?;
        if answer.is_cut {
            return Err(SourceError::Cut {
                bytes: answer.body.len(),
            });
        }
        Ok(answer.body)
    }

    /// Whether an RFC 6962 log also serves its entries as tiles, asked for one that must be there.
    pub(crate) async fn serves_tiles(&self, size: u64) -> Result<bool, SourceError> {
        let Some(id) = TileId::in_tree(0, 0, size).filter(|id| !id.is_partial()) else {
            return Ok(false);
        };
        let path = paths::data_tile(&id);
        match self.get(Question::DataTile, &path, PAGE_BYTES_MAX).await {
            Ok(answer) => Ok(!answer.is_cut
                && matches!(
                    tamis_ct_log::Input::open(&answer.body).map(|input| input.kind()),
                    Ok(tamis_ct_log::input::Kind::DataTile)
                )),
            Err(error) if error.blame() == Blame::Absent => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Hashes of the leaves on both sides of a place in the tree, as far as they are known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Neighbours {
    pub(crate) before: Option<Hash>,
    pub(crate) after: Option<Hash>,
}
