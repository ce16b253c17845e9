//! One simulated log: its tree, what it holds, how it grows, and the heads that it signs.
//!
//! # Concurrency
//! `cursor` is held by whoever lets the log grow, so growths come one after the other; they make and hash
//! entries before they write `state`, which requests read. The pool is never taken while `state` is held.
//!
//! # Invariants
//! The head names the tree that is in memory. In debug builds each step recomputes the root, from all
//! leaves up to [`RECOMPUTED_MAX`], and verifies the head with `ct-log`.

use std::sync::{Arc, Mutex, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use tamis_ct_log::head::SignedTreeHead;
use tamis_ct_log::key::PublicKey;
use tamis_ct_log::merkle::{CompactRange, Hash, Tree, leaf_hash};

use super::faults::{Fault, Faults};
use super::head::SignedHead;
use super::keys::{RsaUse, SigningKey};
use super::lock;
use super::options::{ListedState, LogKind, LogOptions};
use super::pool::{Cursor, Pool};
use super::report::{Counter, RequestKind};
use super::submission::Submission;
use super::tree::FullTree;
use super::wire::{self, Held};

/// Leaves up to which each step is checked from the first one; beyond, it is continued.
const RECOMPUTED_MAX: u64 = 16_384;
/// Entries that are hashed before they are published together.
const STEP_ENTRIES: u64 = 4_096;

/// What the clock says.
#[derive(Clone, Copy)]
pub(super) struct Clock(pub(super) Option<u64>);

impl Clock {
    pub(super) fn now_ms(self) -> u64 {
        let since = || SystemTime::now().duration_since(UNIX_EPOCH);
        self.0
            .unwrap_or_else(|| since().map_or(0, |since| since.as_millis() as u64))
    }
}

pub(super) struct SimulatedLog {
    pub(super) options: LogOptions,
    pub(super) key: SigningKey,
    public_key: PublicKey,
    forged_key: SigningKey,
    /// `http://host:port`
    base: String,
    clock: Clock,
    pool: Arc<Mutex<Pool>>,
    pub(super) faults: Faults,
    pub(super) counter: Counter,
    pub(super) listed: Mutex<ListedState>,
    pub(super) rate: Mutex<f64>,
    cursor: Mutex<Cursor>,
    state: RwLock<State>,
}

pub(super) struct State {
    pub(super) tree: FullTree,
    pub(super) entries: Vec<Stored>,
    head: SignedHead,
    /// Sizes of trees of which a head was signed, ascending: partial tiles exist for these.
    published: Vec<u64>,
    /// The same root by other code.
    check: CompactRange,
    pub(super) fork: Option<Fork>,
}

pub(super) struct Stored {
    pub(super) submission: Arc<Submission>,
    pub(super) timestamp_ms: u64,
}

/// A second tree that the log signs too.
pub(super) struct Fork {
    /// Of the true tree, when it was made.
    size: u64,
    pub(super) tree: FullTree,
}

/// What makes a log, besides its options.
pub(super) struct Surroundings {
    pub(super) seed: u64,
    pub(super) number: usize,
    pub(super) base: String,
    pub(super) clock: Clock,
    pub(super) pool: Arc<Mutex<Pool>>,
}

/// When new entries say that they were logged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stamp {
    /// When they were where they come from.
    Original,
    Now,
}

impl SimulatedLog {
    pub(super) fn new(options: LogOptions, around: Surroundings) -> Result<Self> {
        let key = if options.rsa {
            SigningKey::rsa(RsaUse::Log)?
        } else {
            SigningKey::of_log(around.seed, around.number)?
        };
        let empty = Tree {
            size: 0,
            root: Hash::EMPTY_ROOT,
        };
        let number = around.number as u64;
        let log = Self {
            public_key: PublicKey::from_spki(key.spki()).context("read back a log's key")?,
            forged_key: SigningKey::forged(around.number)?,
            faults: Faults::new(around.seed, number, options.faults.clone()),
            counter: Counter::default(),
            listed: Mutex::new(options.state),
            rate: Mutex::new(options.rate),
            cursor: Mutex::new(Cursor {
                log: number,
                at: 0,
                share_per_mille: options.share_per_mille.clamp(1, 1_000),
            }),
            state: RwLock::new(State {
                tree: FullTree::default(),
                entries: Vec::new(),
                head: SignedHead::sign(empty, around.clock.now_ms(), &key)?,
                published: vec![0],
                check: CompactRange::empty(0)?,
                fork: None,
            }),
            base: around.base,
            clock: around.clock,
            pool: around.pool,
            options,
            key,
        };
        log.extend(log.options.entries, Stamp::Original)?;
        Ok(log)
    }

    /// Everything below this prefix is the log's.
    fn prefix(&self) -> String {
        format!("{}/{}/", self.base, self.options.name)
    }

    pub(super) fn submission_url(&self) -> String {
        match self.options.kind {
            LogKind::Static => format!("{}log/", self.prefix()),
            LogKind::Rfc6962 | LogKind::Hybrid => self.prefix(),
        }
    }

    pub(super) fn monitoring_url(&self) -> String {
        match self.options.kind {
            LogKind::Static => format!("{}mon/", self.prefix()),
            LogKind::Rfc6962 | LogKind::Hybrid => self.prefix(),
        }
    }

    /// What its checkpoints call it.
    pub(super) fn origin(&self) -> String {
        let url = self.submission_url();
        let origin = url.split_once("://").map_or(&*url, |(_, rest)| rest);
        origin.trim_end_matches('/').to_owned()
    }

    pub(super) fn read(&self) -> std::sync::RwLockReadGuard<'_, State> {
        // A panic elsewhere leaves a state that is whole: it is changed only once all is computed.
        self.state
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, State> {
        self.state
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn pool(&self) -> std::sync::MutexGuard<'_, Pool> {
        lock(&self.pool)
    }

    /// Takes `count` more entries, stamped with the time of now.
    pub(super) fn grow(&self, count: u64) -> Result<()> {
        self.extend(count, Stamp::Now)
    }

    /// Whether the list lets it take more.
    pub(super) fn is_open(&self) -> bool {
        use ListedState::{Readonly, Rejected, Retired, RetiredWithoutTree};
        !matches!(
            *lock(&self.listed),
            Readonly | Retired | RetiredWithoutTree | Rejected
        )
    }

    /// Waits for growth to pause, so that the list has the last tree of a log that is closed.
    pub(super) fn set_listed(&self, state: ListedState) {
        let _pause = lock(&self.cursor);
        *lock(&self.listed) = state;
    }

    /// Growth by rate asks whether it should: an idle log shows that it is.
    pub(super) fn is_idle(&self) -> bool {
        let idle = |fault: &Fault| matches!(fault, Fault::Idle).then_some(());
        self.faults.show(RequestKind::Other, idle).is_some()
    }

    fn extend(&self, count: u64, stamp: Stamp) -> Result<()> {
        let mut cursor = lock(&self.cursor);
        let mut left = if stamp == Stamp::Original || self.is_open() {
            count
        } else {
            0
        };
        while left > 0 {
            let step = left.min(STEP_ENTRIES);
            let submissions = {
                let mut pool = self.pool();
                (0..step).map(|_| pool.next(&mut cursor)).collect()
            };
            self.publish(submissions, stamp)?;
            left -= step;
        }
        Ok(())
    }

    /// One growth, one head.
    fn publish(&self, submissions: Vec<Arc<Submission>>, stamp: Stamp) -> Result<()> {
        let now_ms = self.clock.now_ms();
        let (first, mut last_ms) = {
            let state = self.read();
            let last_ms = state.entries.last().map_or(0, |stored| stored.timestamp_ms);
            (state.size(), last_ms)
        };
        let mut leaf = Vec::new();
        let mut grown = Vec::with_capacity(submissions.len());
        for (submission, index) in submissions.into_iter().zip(first..) {
            let timestamp_ms = match stamp {
                Stamp::Original => submission.timestamp_ms,
                Stamp::Now => now_ms.max(last_ms),
            };
            last_ms = timestamp_ms;
            let stored = Stored {
                submission,
                timestamp_ms,
            };
            leaf.clear();
            wire::push_leaf(&self.held(&stored, index), &mut leaf);
            grown.push((leaf_hash(&leaf), stored));
        }
        let mut state = self.write();
        for (hash, stored) in grown {
            state.tree.push(hash);
            state.check.push(hash)?;
            state.entries.push(stored);
        }
        let tree = state.tree.at(state.size());
        state.head = SignedHead::sign(tree, now_ms, &self.key)?;
        state.published.push(tree.size);
        if cfg!(debug_assertions) {
            self.check(&state)?;
        }
        Ok(())
    }

    /// Verifies the log's own head against its leaves.
    fn check(&self, state: &State) -> Result<()> {
        let mut json = Vec::new();
        state.head.push_json(&mut json);
        let head = SignedTreeHead::from_json(&json)?.verify(&self.public_key)?;
        let root = if head.size() <= RECOMPUTED_MAX {
            state.tree.recomputed_root()
        } else {
            state.check.root()
        };
        ensure!(
            head.size() == state.entries.len() as u64 && Some(head.tree().root) == root,
            "log {} signed another tree than it holds",
            self.options.name
        );
        Ok(())
    }

    /// Recomputes the root from all leaves and verifies the head.
    pub(super) fn verify(&self) -> Result<()> {
        let state = self.read();
        self.check(&state)?;
        ensure!(
            state.tree.recomputed_root() == Some(state.head.tree.root),
            "log {} signed another root than its leaves have",
            self.options.name
        );
        Ok(())
    }

    /// An entry as this log holds it.
    pub(super) fn held<'a>(&self, stored: &'a Stored, index: u64) -> Held<'a> {
        Held {
            submission: &stored.submission,
            timestamp_ms: stored.timestamp_ms,
            leaf_index: (self.options.kind == LogKind::Static).then_some(index),
            flipped: false,
        }
    }

    /// The head, signed anew when it has become old: a log shows that it is alive.
    pub(super) fn head(&self) -> Result<SignedHead> {
        let now_ms = self.clock.now_ms();
        {
            let state = self.read();
            let age_ms = now_ms.saturating_sub(state.head.timestamp_ms);
            if age_ms < self.head_age_ms_max() || !self.is_open() {
                return Ok(state.head.clone());
            }
        }
        let mut state = self.write();
        state.head = SignedHead::sign(state.head.tree, now_ms, &self.key)?;
        Ok(state.head.clone())
    }

    /// In seconds: the maximum merge delay.
    pub(super) fn mmd_s(&self) -> u64 {
        match self.options.kind {
            LogKind::Static => 60,
            LogKind::Rfc6962 | LogKind::Hybrid => 86_400,
        }
    }

    fn head_age_ms_max(&self) -> u64 {
        // Sixty heads in a maximum merge delay.
        self.mmd_s() * 1_000 / 60
    }

    /// The head of an earlier tree, as a replica that lags has it.
    pub(super) fn earlier_head(&self, leaves: u64) -> Result<SignedHead> {
        let mut state = self.write();
        let size = state.tree.size().saturating_sub(leaves);
        if let Err(place) = state.published.binary_search(&size) {
            state.published.insert(place, size);
        }
        let timestamp_ms = state.head.timestamp_ms.saturating_sub(1_000);
        SignedHead::sign(state.tree.at(size), timestamp_ms, &self.key)
    }

    /// The true head under a key that is not the log's.
    pub(super) fn forged_head(&self) -> Result<SignedHead> {
        let state = self.read();
        SignedHead::sign(state.head.tree, state.head.timestamp_ms, &self.forged_key)
    }

    /// A head of another tree: the last leaf is another one, and `extra` more follow.
    pub(super) fn fork_head(&self, extra: u64) -> Result<SignedHead> {
        let mut state = self.write();
        let size = state.tree.size();
        let is_current = |fork: &Fork| fork.size == size && fork.tree.size() == (size + extra).max(1);
        if !state.fork.as_ref().is_some_and(is_current) {
            let mut tree = FullTree::default();
            for index in 0..size.saturating_sub(1) {
                tree.push(state.tree.leaf(index).context("a leaf below the size")?);
            }
            while tree.size() < (size + extra).max(1) {
                tree.push(leaf_hash(format!("leaf {} of the fork", tree.size()).as_bytes()));
            }
            state.fork = Some(Fork { size, tree });
        }
        let tree = state
            .fork
            .as_ref()
            .context("the fork was made")?
            .tree
            .at((size + extra).max(1));
        SignedHead::sign(tree, state.head.timestamp_ms, &self.key)
    }
}

impl State {
    pub(super) fn size(&self) -> u64 {
        self.tree.size()
    }

    pub(super) fn root(&self) -> Hash {
        self.head.tree.root
    }

    /// Whether a head was signed whose tree has a partial tile of this width there.
    pub(super) fn has_partial(&self, level: u8, index: u64, width: u16) -> bool {
        let shift = u32::from(level) * 8;
        let hashes = index.saturating_mul(256).saturating_add(width.into());
        let first = self.published.partition_point(|size| size >> shift < hashes);
        self.published
            .get(first)
            .is_some_and(|size| size >> shift == hashes)
    }

    /// The tree that proofs to a tree of this size are from.
    pub(super) fn tree_of_size(&self, size: u64) -> Option<&FullTree> {
        if size <= self.tree.size() {
            return Some(&self.tree);
        }
        self.fork
            .as_ref()
            .map(|fork| &fork.tree)
            .filter(|tree| size <= tree.size())
    }
}
