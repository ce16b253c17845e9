//! The task of one log: heads, then the tail, then the backfill, settled against what the log signed.
//!
//! # Invariants
//! A page is appended with the progress that includes it, in one batch, so a crash at any moment neither
//! loses nor repeats an entry. Entries are appended before they are proved; what does not prove is noted and
//! kept, and reading goes on.
//!
//! Reading order: this, then `plan` (what to read next), `ahead` (pages on their way), `heads` (which heads
//! are believed), `settle` (what is proved), `setbacks` (when it fails), `passed_over` (of archives).
//!
//! # Concurrency
//! Pages are fetched and decoded ahead, a few at once, and appended in order by this task alone.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tamis_ct_index::Batch;
use tamis_ct_index::batch::LogProgress;
use tamis_ct_log::merkle::{Hash, TILE_WIDTH, Tree};
use tokio::sync::watch;
use tokio::time::Instant;

use super::ahead::{AHEAD_MAX, OnItsWay};
use super::decode::Decoded;
use super::lie::{Lie, LieKind};
use super::pages::Pages;
use super::parameters::Parameters;
use super::pressure::Pressure;
use super::progress::{Head, Piece, Progress};
use super::progress_format;
use super::setbacks::RETRY_FIRST;
use super::source::{Protocol, Source, SourceError};
use super::status::Activity;
use super::world::{Fatal, World, now_ms, stopped};

/// Leaves that are read before they are proved against a head that is further away.
pub(super) const SETTLE_LEAVES: u64 = 16_384;
/// Hashes of unproved leaves that are kept to find a wrong one by; more are read again when needed.
const LEAVES_KEPT_MAX: usize = 65_536;
/// Between two looks at whether reading may go on.
const PAUSE: Duration = Duration::from_millis(200);
/// Between heads of a log that takes nothing more.
const ENDED_POLL: Duration = Duration::from_secs(3_600);

/// How far a log is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Go on with what comes.
    Tail,
    /// To this tree, which is its last.
    ToTheEnd(Tree),
    /// It takes nothing more: read what it shows.
    ToItsHead,
    /// Stop reading it.
    Stop,
}

/// Why a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was told to.
    Stopped,
    /// Everything up to the log's last tree is read.
    Finished,
}

/// Reads one log.
pub(crate) struct Reader {
    pub(super) world: Arc<World>,
    pub(super) source: Source,
    pub(super) number: u16,
    pub(super) order: watch::Receiver<Order>,
    stop: watch::Receiver<bool>,
    pub(super) progress: Progress,
    /// Hashes of unproved leaves, by the first of them.
    pub(super) leaves: BTreeMap<u64, Vec<Hash>>,
    pub(super) pages: Pages,
    parameters: watch::Receiver<Arc<Parameters>>,
    /// What is noted and not yet in the index.
    pub(super) is_dirty: bool,
    pub(super) poll_at: Instant,
    pub(super) retry_at: Instant,
    pub(super) failures: u32,
    /// Why it fails.
    pub(super) failing: Option<String>,
    /// Where reading fails, and how often it did in a row.
    pub(super) stuck: (u64, u32),
    /// Leaves that were left for later.
    pub(super) resting: HashMap<u64, Instant>,
    /// A tile that is not full yet: its first unread leaf, and when that was seen.
    pub(super) partial: Option<(u64, Instant)>,
    is_probed: bool,
    /// The index knows whether the log is static.
    is_marked: bool,
    /// It is not known yet which protocol the log speaks.
    is_unknown: bool,
    pub(super) doubts: super::heads::Doubts,
    /// A span that cannot be proved until more of it is read: its end.
    pub(super) unprovable: Option<u64>,
    /// Of an archive: why leaves were passed over, why some are not proved, and that its end was reached.
    pub(super) passed: Option<String>,
    pub(super) unproved_why: Option<String>,
    is_read_out: bool,
}

impl Reader {
    pub(crate) fn new(
        world: Arc<World>,
        source: Source,
        number: u16,
        order: watch::Receiver<Order>,
        progress: Progress,
    ) -> Self {
        let mut parameters = world.parameters.clone();
        parameters.mark_changed();
        let now = Instant::now();
        let is_probed = source.protocol != Protocol::Rfc6962;
        Self {
            stop: world.stop.clone(),
            world,
            source,
            number,
            order,
            progress,
            leaves: BTreeMap::new(),
            pages: Pages::new(None),
            parameters,
            is_dirty: false,
            poll_at: now,
            retry_at: now,
            failures: 0,
            failing: None,
            stuck: (0, 0),
            resting: HashMap::new(),
            partial: None,
            is_probed,
            is_marked: false,
            is_unknown: false,
            doubts: super::heads::Doubts::default(),
            unprovable: None,
            passed: None,
            unproved_why: None,
            is_read_out: false,
        }
    }

    /// Finds out first which protocol the log speaks.
    pub(crate) fn find_out_protocol(&mut self) {
        self.is_unknown = true;
    }

    /// Reads until told to stop, or to the end of a log that has one.
    pub(crate) async fn run(mut self) -> Result<Ended, Fatal> {
        loop {
            let order = *self.order.borrow_and_update();
            if *self.stop.borrow() || order == Order::Stop {
                self.save().await?;
                if order == Order::Stop {
                    self.show(Activity::Stopped, None);
                }
                return Ok(Ended::Stopped);
            }
            if Instant::now() < self.retry_at {
                self.sleep_until(self.retry_at).await;
                continue;
            }
            self.apply_parameters();
            if let Some(pressure) = self.world.pressure() {
                self.pause(pressure).await?;
                continue;
            }
            let mut stop = self.stop.clone();
            let stepped = tokio::select! {
                stepped = self.step(order) => stepped?,
                // A page on its way into the index takes its progress with it; nothing is noted behind it.
                () = stopped(&mut stop) => return Ok(Ended::Stopped),
            };
            if let Err(error) = stepped {
                if self.source.is_archive() {
                    return self.give_up(&error).await;
                }
                self.fail(&error);
            }
            if self.is_finished(order) {
                self.save().await?;
                self.world.wait_for_issuers(&self.source).await;
                self.show(Activity::Finished, self.missing());
                return Ok(Ended::Finished);
            }
        }
    }

    /// Asks for nothing new for a while; what waits to be proved is the one thing that helps against itself.
    async fn pause(&mut self, pressure: Pressure) -> Result<(), Fatal> {
        if pressure == Pressure::Verification
            && let Err(error) = self.settle_all().await?
        {
            self.fail(&error);
        }
        self.save().await?;
        let why = self.failing.clone();
        self.show(Activity::Paused(pressure), why);
        self.sleep(PAUSE).await;
        Ok(())
    }

    /// Takes over what a person set, whenever that changes.
    fn apply_parameters(&mut self) {
        if !self.parameters.has_changed().unwrap_or(false) {
            return;
        }
        let set = self.parameters.borrow_and_update().of_log(&self.source.log.url);
        self.pages = Pages::new(set.page);
        let closes = set.keep_alive == Some(false);
        self.source.closes.store(closes, Ordering::Relaxed);
    }

    /// One turn: a head if it is time, then a piece of the log, or a rest.
    async fn step(&mut self, order: Order) -> Result<Result<(), SourceError>, Fatal> {
        if let Order::ToTheEnd(tree) = order {
            self.adopt_final(tree);
        } else if Instant::now() >= self.poll_at {
            // One that failed is asked again as soon as failures allow.
            if let Err(error) = self.look(order).await {
                return Ok(Err(error));
            }
            self.poll_at = Instant::now() + self.poll_interval(order);
        }
        for lie in self.world.issuers.take_lies(&self.source.log.url) {
            self.progress.note(lie);
            self.is_dirty = true;
        }
        self.start_at_the_tail();
        if let Some(piece) = self.next() {
            return self.read(piece).await;
        }
        let settled = self.settle_all().await?;
        if let Err(error) = self.excuse(settled) {
            return Ok(Err(error));
        }
        self.is_read_out = self.source.is_archive();
        self.save().await?;
        self.succeeded();
        self.show(Activity::CaughtUp, None);
        let until = self
            .next_partial()
            .map_or(self.poll_at, |at| at.min(self.poll_at));
        if !self.is_finished(order) {
            self.sleep_until(until).await;
        }
        Ok(Ok(()))
    }

    /// Asks for the newest head, and at first for how the log is read.
    async fn look(&mut self, order: Order) -> Result<(), SourceError> {
        if self.is_unknown {
            let protocol = self.source.detect().await?;
            self.source.protocol = protocol;
            self.is_probed = protocol != Protocol::Rfc6962;
            self.is_unknown = false;
        }
        if !self.is_marked {
            let (index, number) = (Arc::clone(&self.world.index), self.number);
            let is_static = self.source.protocol == Protocol::Static;
            let marked = tokio::task::spawn_blocking(move || index.count_apart(number, is_static)).await;
            self.is_marked = matches!(marked, Ok(Ok(())));
        }
        self.poll().await?;
        self.world.want_roots(&self.source);
        if order == Order::Tail {
            self.probe().await?;
        }
        Ok(())
    }

    fn poll_interval(&self, order: Order) -> Duration {
        match order {
            Order::ToItsHead if self.progress.head.is_some() => ENDED_POLL.max(self.world.poll_interval),
            _ => self.world.poll_interval,
        }
    }

    fn is_finished(&self, order: Order) -> bool {
        if self.source.is_archive() {
            return self.is_read_out;
        }
        let Order::ToTheEnd(tree) = order else {
            return false;
        };
        self.progress.tree_size() >= tree.size
            && self.progress.backlog() == 0
            && (self.progress.unproved() == 0 || self.unprovable.is_some())
    }

    /// Finds out once whether an RFC 6962 log serves tiles too, which cost it less.
    async fn probe(&mut self) -> Result<(), SourceError> {
        let size = self.progress.tree_size();
        if self.is_probed || size < u64::from(TILE_WIDTH) {
            return Ok(());
        }
        self.is_probed = true;
        if self.source.serves_tiles(size).await? {
            self.source.protocol = Protocol::Hybrid;
        }
        Ok(())
    }

    /// Reads a piece, or as much of it as is settled at once, and settles it.
    async fn read(&mut self, piece: Piece) -> Result<Result<(), SourceError>, Fatal> {
        let size = self.progress.tree_size();
        let line = (piece.start / SETTLE_LEAVES + 1) * SETTLE_LEAVES;
        // The last lines before a head are settled by the head itself.
        let end = if piece.end - piece.start > 2 * SETTLE_LEAVES {
            line.min(piece.end)
        } else {
            piece.end
        };
        let activity = if piece.is_tail {
            Activity::Reading
        } else {
            Activity::Backfilling
        };
        let (mut at, mut asked) = (piece.start, piece.start);
        let mut ahead: VecDeque<OnItsWay> = VecDeque::new();
        while at < end {
            let width = (self.source.gate.pace().concurrency() as usize).min(AHEAD_MAX);
            // The first page is asked for whatever else is due, or a slow log would never be read.
            while ahead.len() < width && asked < end && (asked == piece.start || !self.is_interrupted()) {
                let page_end = self.page_end(asked, end);
                ahead.push_back(self.fetch(asked, page_end, size, true));
                asked = page_end;
            }
            let Some(mut first) = ahead.pop_front() else {
                return Ok(Ok(()));
            };
            let fetched = tokio::select! {
                fetched = &mut first.task => fetched,
                () = stopped(&mut self.stop) => return Ok(Ok(())),
            };
            let fetched = match fetched {
                Ok(Ok(fetched)) => fetched,
                Ok(Err(error)) if self.pass_over(&error, first.start, first.end) => return Ok(Ok(())),
                Ok(Err(error)) => {
                    self.page_failed(&error, first.start, first.end).await;
                    return Ok(Err(error));
                }
                Err(error) => return Err(Fatal::task(&error)),
            };
            if self.source.protocol == Protocol::Rfc6962 && !fetched.decoded.is_cut {
                let served = fetched.decoded.end() - fetched.decoded.start;
                self.pages.served(first.start, first.end, served);
            }
            let decoded_end = fetched.decoded.end();
            let blocked = fetched.decoded.blocked.clone();
            self.append(fetched.decoded).await?;
            at = decoded_end;
            if let Some(why) = blocked {
                let error = SourceError::Unhashable { why };
                self.page_failed(&error, at, at + 1).await;
                return Ok(Err(error));
            }
            self.stuck = (at, 0);
            self.succeeded();
            self.show(activity, None);
            if at < first.end {
                ahead.push_front(self.fetch(at, first.end, size, false));
            }
        }
        let settled = self.settle(end).await?;
        Ok(self.excuse(settled))
    }

    /// Something else is due: pages on their way are taken, no more are asked for.
    fn is_interrupted(&self) -> bool {
        *self.stop.borrow()
            || self.order.has_changed().unwrap_or(true)
            || Instant::now() >= self.poll_at
            || self.world.pressure().is_some()
    }

    /// Appends a page with the progress that includes it.
    pub(super) async fn append(&mut self, mut decoded: Decoded) -> Result<(), Fatal> {
        if decoded.hashes.is_empty() {
            return Ok(());
        }
        let mut progress = self.progress.clone();
        let span = progress.span_at(decoded.start)?;
        let key = span.proved_to();
        let fresh = span.unproved() == 0;
        span.push(&decoded.hashes)?;
        if let Some((index, detail)) = decoded.misplaced.take() {
            progress.note(lie(LieKind::LeafIndex, [index, index + 1], detail));
        }
        if decoded.unreadable > 0 {
            progress.unreadable += decoded.unreadable;
            tracing::warn!(
                log = %self.source.log.description,
                count = decoded.unreadable,
                why = decoded.unreadable_why.as_deref().unwrap_or_default(),
                "leaves that are no entries"
            );
        }
        let count = decoded.hashes.len() as u64;
        let mut batch = std::mem::take(&mut decoded.batch);
        batch.progress(self.encoded(&progress));
        let outcome = self.world.append(batch).await?;
        self.progress = progress;
        self.is_dirty = false;
        self.keep_leaves(key, fresh, decoded.hashes);
        self.world.counts.read(self.source.protocol, count, &outcome);
        self.world.want_issuers(&self.source, decoded.issuers);
        Ok(())
    }

    fn keep_leaves(&mut self, key: u64, fresh: bool, hashes: Vec<Hash>) {
        if fresh {
            self.leaves.insert(key, hashes);
        } else if let Some(kept) = self.leaves.get_mut(&key) {
            kept.extend(hashes);
            if kept.len() > LEAVES_KEPT_MAX {
                self.leaves.remove(&key);
            }
        }
    }

    fn encoded(&self, progress: &Progress) -> LogProgress {
        LogProgress {
            log: self.number,
            bytes: Arc::from(progress_format::encode(progress)),
        }
    }

    /// Puts what was noted since the last page into the index.
    pub(super) async fn save(&mut self) -> Result<(), Fatal> {
        if !std::mem::take(&mut self.is_dirty) {
            return Ok(());
        }
        let mut batch = Batch::new();
        batch.progress(self.encoded(&self.progress));
        self.world.append(batch).await?;
        Ok(())
    }

    /// Notes a lie and says so, once.
    pub(super) fn note(&mut self, lie: Lie) {
        let before = self.progress.lies_total;
        tracing::debug!(log = %self.source.log.description, kind = lie.kind.as_str(), "noted");
        let told = format!("{}: {}: {}", self.source.log.description, lie.kind, lie.detail);
        self.progress.note(lie);
        self.is_dirty = true;
        if self.progress.lies_total > before {
            tracing::warn!("{told}");
            self.world.counts.lie();
        }
    }

    /// Shows how it stands.
    pub(super) fn show(&self, activity: Activity, error: Option<String>) {
        self.world.board.show(
            &self.source,
            &self.progress,
            &self.pages,
            *self.order.borrow(),
            activity,
            (error, self.failures),
        );
    }

    async fn sleep(&mut self, wait: Duration) {
        self.sleep_until(Instant::now() + wait).await;
    }

    async fn sleep_until(&mut self, until: Instant) {
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            () = stopped(&mut self.stop) => {}
            changed = self.order.changed() => {
                if changed.is_err() {
                    tokio::time::sleep(RETRY_FIRST).await;
                }
            }
        }
    }

    /// The last tree of the log, as the signed list has it.
    fn adopt_final(&mut self, tree: Tree) {
        if self.progress.tree_size() < tree.size || self.progress.head.is_none() {
            self.progress.head = Some(Head {
                tree,
                timestamp_ms: 0,
                bytes: Vec::new(),
            });
            self.is_dirty = true;
        }
    }
}

pub(super) fn lie(kind: LieKind, leaves: [u64; 2], detail: String) -> Lie {
    Lie {
        kind,
        leaves,
        at_ms: now_ms(),
        healed: false,
        detail,
    }
}
