//! How every log stands, for people, programs and other processes.
//!
//! # Format
//! `follow/status.json` in the folder of the index: a [`Status`], replaced whole every second. It is a copy
//! for readers and nothing is recovered from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tamis_ct_log::key::LogId;

use super::archive::is_archive;
use super::asked::{AnswerKind, Asked, Question};
use super::lie::Lie;
use super::pages::Pages;
use super::pressure::Pressure;
use super::progress::Progress;
use super::reader::Order;
use super::source::Source;
use super::world::now_ms;

/// Of the status file, as a limit for reading it.
const STATUS_BYTES_MAX: u64 = 64 << 20;
/// Weight of the newest second in rates.
const RATE_WEIGHT: f64 = 0.1;

/// What following does now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// When it was written, milliseconds since 1970.
    pub written_ms: u64,
    /// Process that wrote it.
    pub pid: u32,
    /// Why reading pauses.
    pub paused: Option<Pressure>,
    /// What became of the log list.
    pub list: Option<ListStatus>,
    /// Issuances that only static logs have, as far as logs were read.
    pub static_only: u64,
    /// By description.
    pub logs: Vec<LogStatus>,
}

/// The log list that is followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListStatus {
    /// Where it comes from.
    pub source: String,
    /// As the list has it.
    pub version: String,
    /// When it was made, milliseconds since 1970.
    pub timestamp_ms: u64,
    /// When it was last fetched and found good.
    pub checked_ms: u64,
    /// Whether its signature was checked.
    pub is_signed: bool,
    /// Why the newest one was not taken.
    pub error: Option<String>,
    /// Logs that are listed and not followed, and why.
    pub not_followed: Vec<(String, String)>,
}

/// What the task of a log does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Activity {
    /// It was not asked yet.
    Starting,
    /// Its newest entries are read.
    Reading,
    /// Older entries are read.
    Backfilling,
    /// Everything it shows is read.
    CaughtUp,
    /// It failed and is asked again soon.
    Waiting,
    /// Reading pauses.
    Paused(Pressure),
    /// It takes nothing more, and everything is read.
    Finished,
    /// It is not read any more.
    Stopped,
}

impl Activity {
    /// As it is written in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Reading => "reading",
            Self::Backfilling => "backfilling",
            Self::CaughtUp => "caught_up",
            Self::Waiting => "waiting",
            Self::Paused(_) => "paused",
            Self::Finished => "finished",
            Self::Stopped => "stopped",
        }
    }
}

/// How one log stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogStatus {
    /// For people.
    pub description: String,
    /// Who runs it.
    pub operator: String,
    /// The prefix below which it is read.
    pub url: String,
    /// SHA-256 of its key, base64.
    pub log_id: String,
    /// `rfc6962`, `static-ct-api` or `rfc6962+tiles`.
    pub api: String,
    /// `tail`, `to_the_end` or `stop`.
    pub order: String,
    /// Leaves of the largest head that holds.
    pub tree_size: u64,
    /// Root of that head, base64.
    pub root: Option<String>,
    /// When the log signed it, milliseconds since 1970.
    pub head_ms: Option<u64>,
    /// All leaves before this one are read and proved.
    pub verified: u64,
    /// Leaves that are read.
    pub read: u64,
    /// Leaves of the tree that are not read.
    pub backlog: u64,
    /// Leaves that are read and not proved yet.
    pub unproved: u64,
    /// Leaves read, `[start, end)` each.
    pub ranges: Vec<[u64; 2]>,
    /// Leaves not read, likewise.
    pub holes: Vec<[u64; 2]>,
    /// Leaves that are no entries.
    pub unreadable: u64,
    /// Entries a second, read now.
    pub rate: f64,
    /// Entries a second by which the log grows.
    pub growth: f64,
    /// Seconds until nothing is behind; none when nothing is, or when it does not converge.
    pub eta_s: Option<u64>,
    /// It grows faster than it lets itself be read.
    pub not_converging: bool,
    /// Seconds since everything it showed was read; 0 while it is.
    pub lag_s: u64,
    /// What is done now, see [`Activity::as_str`].
    pub status: String,
    /// Why it fails.
    pub error: Option<String>,
    /// Failures in a row.
    pub failures: u32,
    /// Requests at once that its operator allows now, milliseconds between two, and entries of a page.
    pub concurrency: u32,
    /// See `concurrency`.
    pub spacing_ms: u64,
    /// See `concurrency`.
    pub page: u64,
    /// Questions since the start of this process.
    pub requests: u64,
    /// Bytes of answers since then.
    pub bytes: u64,
    /// Roots that it accepts; none where it does not tell.
    pub roots: Option<u64>,
    /// What it was caught in.
    pub lies: Vec<Lie>,
    /// How often, also where the detail is no longer kept.
    pub lies_total: u64,
}

impl Status {
    /// The file in the folder of an index.
    #[must_use]
    pub fn path(data: &Path) -> PathBuf {
        data.join("follow").join("status.json")
    }

    /// What was written last in the folder of an index; `None` where nothing was.
    #[must_use]
    pub fn read(data: &Path) -> Option<Self> {
        let path = Self::path(data);
        let length = std::fs::metadata(&path).ok()?.len();
        if length > STATUS_BYTES_MAX {
            return None;
        }
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }
}

impl LogStatus {
    /// A log that was not asked yet.
    pub(crate) fn unknown(description: &str, url: &str, log_id: String) -> Self {
        Self {
            description: description.to_owned(),
            operator: String::new(),
            url: url.to_owned(),
            log_id,
            api: String::new(),
            order: String::new(),
            tree_size: 0,
            root: None,
            head_ms: None,
            verified: 0,
            read: 0,
            backlog: 0,
            unproved: 0,
            ranges: Vec::new(),
            holes: Vec::new(),
            unreadable: 0,
            rate: 0.0,
            growth: 0.0,
            eta_s: None,
            not_converging: false,
            lag_s: 0,
            status: Activity::Starting.as_str().to_owned(),
            error: None,
            failures: 0,
            concurrency: 0,
            spacing_ms: 0,
            page: 0,
            requests: 0,
            bytes: 0,
            roots: None,
            lies: Vec::new(),
            lies_total: 0,
        }
    }

    /// Takes over what is kept of a log.
    pub(crate) fn take(&mut self, progress: &Progress) {
        let head = progress.head.as_ref();
        self.tree_size = progress.tree_size();
        self.root = head.map(|head| head.tree.root.to_string());
        self.head_ms = head.map(|head| head.timestamp_ms).filter(|ms| *ms > 0);
        self.verified = progress.verified();
        self.read = progress.read();
        self.backlog = progress.backlog();
        self.unproved = progress.unproved();
        let spans = progress.spans.iter().filter(|span| span.end() > span.begin);
        self.ranges = spans.map(|span| [span.begin, span.end()]).collect();
        self.holes = progress.holes();
        self.unreadable = progress.unreadable;
        self.lies.clone_from(&progress.lies);
        self.lies_total = progress.lies_total;
    }
}

/// Where tasks show how they stand.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board(Arc<Mutex<Shown>>);

#[derive(Debug, Default)]
struct Shown {
    logs: BTreeMap<String, ShownLog>,
    list: Option<ListStatus>,
}

#[derive(Debug)]
struct ShownLog {
    status: LogStatus,
    asked: Arc<Asked>,
    is_caught_up_once: bool,
    /// When everything was read last.
    current: Instant,
    /// Read and size when rates were computed last.
    measured: Option<(Instant, u64, u64)>,
    failing_since: Option<Instant>,
}

impl Board {
    fn lock(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn show(
        &self,
        source: &Source,
        progress: &Progress,
        pages: &Pages,
        order: Order,
        activity: Activity,
        (error, failures): (Option<String>, u32),
    ) {
        let pace = source.gate.pace();
        let mut shown = self.lock();
        let key = source.log.id().to_string();
        let log = shown.logs.entry(key).or_insert_with(|| ShownLog::new(source));
        let status = &mut log.status;
        source.protocol.as_str().clone_into(&mut status.api);
        order.as_str().clone_into(&mut status.order);
        activity.as_str().clone_into(&mut status.status);
        status.tree_size = progress.tree_size();
        status.root = progress.head.as_ref().map(|head| head.tree.root.to_string());
        status.head_ms = progress
            .head
            .as_ref()
            .map(|head| head.timestamp_ms)
            .filter(|ms| *ms > 0);
        status.verified = progress.verified();
        status.read = progress.read();
        status.backlog = progress.backlog();
        status.unproved = progress.unproved();
        let spans = progress.spans.iter().filter(|span| span.end() > span.begin);
        status.ranges = spans.map(|span| [span.begin, span.end()]).collect();
        status.holes = progress.holes();
        status.unreadable = progress.unreadable;
        status.lies.clone_from(&progress.lies);
        status.lies_total = progress.lies_total;
        status.failures = failures;
        status.concurrency = pace.concurrency();
        status.spacing_ms = u64::try_from(pace.spacing().as_millis()).unwrap_or(u64::MAX);
        status.page = source.fixed_page_end(0, u64::MAX).unwrap_or(pages.size());
        if matches!(activity, Activity::CaughtUp | Activity::Finished) {
            log.is_caught_up_once |= progress.head.is_some();
            log.current = Instant::now();
        }
        if error.is_some() || failures > 0 {
            log.failing_since.get_or_insert_with(Instant::now);
        } else {
            log.failing_since = None;
        }
        if error.is_some() || failures == 0 {
            status.error = error;
        }
    }

    /// A log that is about to be asked.
    pub(crate) fn expect(&self, source: &Source) {
        let key = source.log.id().to_string();
        let mut shown = self.lock();
        let log = shown.logs.entry(key).or_insert_with(|| ShownLog::new(source));
        Activity::Starting.as_str().clone_into(&mut log.status.status);
        log.is_caught_up_once = false;
    }

    /// How many roots a log accepts.
    pub(crate) fn show_roots(&self, log: &LogId, count: usize) {
        if let Some(log) = self.lock().logs.get_mut(&log.to_string()) {
            log.status.roots = Some(count as u64);
        }
    }

    pub(crate) fn show_list(&self, list: ListStatus) {
        self.lock().list = Some(list);
    }

    pub(crate) fn list(&self) -> Option<ListStatus> {
        self.lock().list.clone()
    }

    /// Leaves that wait to be proved, over all logs. Those of a damaged archive may wait until its end, and no
    /// pause brings that about.
    pub(crate) fn unproved(&self) -> u64 {
        let shown = self.lock();
        let logs = shown.logs.values().map(|log| &log.status);
        logs.filter(|log| !is_archive(&log.url))
            .map(|log| log.unproved)
            .sum()
    }

    /// Whether each log was read up to a head that it showed, or fails for `patience` already; and those that
    /// do.
    pub(crate) fn caught_up(&self, patience: std::time::Duration) -> Option<Vec<(String, String)>> {
        let shown = self.lock();
        let mut failing = Vec::new();
        for log in shown.logs.values() {
            if let Some(why) = log.status.error.as_ref().filter(|_| log.has_ended()) {
                failing.push((log.status.description.clone(), why.clone()));
                continue;
            }
            if log.is_caught_up_once && log.status.backlog > 0 {
                let why = format!("{} of its leaves do not come", log.status.backlog);
                failing.push((log.status.description.clone(), why));
            }
            if log.is_caught_up_once || log.status.status == Activity::Stopped.as_str() {
                continue;
            }
            let since = log.failing_since?;
            if since.elapsed() < patience {
                return None;
            }
            let why = log.status.error.clone().unwrap_or_default();
            failing.push((log.status.description.clone(), why));
        }
        Some(failing)
    }

    /// Computes rates; to be called every second.
    pub(crate) fn measure(&self) {
        for log in self.lock().logs.values_mut() {
            log.measure();
        }
    }

    /// Everything as it stands.
    pub(crate) fn status(&self, paused: Option<Pressure>, static_only: u64) -> Status {
        let shown = self.lock();
        let mut logs: Vec<LogStatus> = shown.logs.values().map(ShownLog::told).collect();
        if let Some(pressure) = paused {
            // A log that was reading waits where its last page does not get in.
            let reads = [Activity::Reading, Activity::Backfilling].map(Activity::as_str);
            for log in logs.iter_mut().filter(|log| reads.contains(&log.status.as_str())) {
                Activity::Paused(pressure).as_str().clone_into(&mut log.status);
            }
        }
        logs.sort_by(|a, b| a.description.cmp(&b.description));
        Status {
            written_ms: now_ms(),
            pid: std::process::id(),
            paused,
            list: shown.list.clone(),
            static_only,
            logs,
        }
    }

    /// What each log was asked.
    pub(crate) fn asked(&self) -> Vec<(LogStatus, Arc<Asked>)> {
        let shown = self.lock();
        let logs = shown.logs.values();
        logs.map(|log| (log.told(), Arc::clone(&log.asked))).collect()
    }
}

impl ShownLog {
    fn new(source: &Source) -> Self {
        let log = &source.log;
        let mut status = LogStatus::unknown(&log.description, &log.url, log.id().to_string());
        status.operator.clone_from(&log.operator);
        source.protocol.as_str().clone_into(&mut status.api);
        Self {
            status,
            asked: Arc::clone(&source.asked),
            is_caught_up_once: false,
            current: Instant::now(),
            measured: None,
            failing_since: None,
        }
    }

    fn has_ended(&self) -> bool {
        self.status.status == Activity::Finished.as_str()
    }

    fn measure(&mut self) {
        let now = Instant::now();
        let (read, size) = (self.status.read, self.status.tree_size);
        if let Some((then, read_then, size_then)) = self.measured {
            let seconds = now.duration_since(then).as_secs_f64().max(0.001);
            let blend = |old: f64, delta: u64| old + RATE_WEIGHT * (delta as f64 / seconds - old);
            self.status.rate = blend(self.status.rate, read.saturating_sub(read_then));
            // The first head of all is no growth.
            if size_then > 0 {
                self.status.growth = blend(self.status.growth, size.saturating_sub(size_then));
            }
        }
        self.measured = Some((now, read, size));
        let status = &mut self.status;
        let gain = status.rate - status.growth;
        let is_behind = status.backlog > 0;
        status.not_converging = is_behind && gain <= 0.0 && status.growth > 0.0;
        status.eta_s = (is_behind && gain > 0.0).then(|| (status.backlog as f64 / gain) as u64);
    }

    fn told(&self) -> LogStatus {
        let mut status = self.status.clone();
        status.requests = Question::ALL
            .iter()
            .flat_map(|question| {
                AnswerKind::ALL
                    .iter()
                    .map(|kind| self.asked.count(*question, *kind))
            })
            .sum();
        status.bytes = self.asked.bytes();
        status.lag_s = if status.backlog > 0 {
            self.current.elapsed().as_secs()
        } else {
            0
        };
        status
    }
}

impl Order {
    /// As it is written in JSON.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Tail => "tail",
            Self::ToTheEnd(_) | Self::ToItsHead => "to_the_end",
            Self::Stop => "stop",
        }
    }
}
