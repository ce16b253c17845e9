//! Which logs to read: the signed list and what a person named, as both change.
//!
//! # Invariants
//! A list takes the place of the last good one only if its signature holds and it loses few logs; otherwise
//! the last good one stays, also over a restart. Logs that a person named are never taken away by a list.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tamis_ct_log::key::{LogId, PublicKey};
use tamis_ct_log::log_list::{
    Api, Follow, FollowRules, LIST_AGE_MS_MAX, LIST_BYTES_MAX, LogDescription, LogList, accept, is_loopback,
};

use super::archive::{is_archive, is_near};
use super::http::{Connection, Http};
use super::parameters::Parameters;
use super::reader::Order;
use super::source::{LogIdentity, Protocol};
use super::status::ListStatus;
use super::world::now_ms;

const SIGNATURE_BYTES_MAX: u64 = 64 << 10;

/// Where a list of logs comes from.
#[derive(Debug, Clone)]
pub struct ListOptions {
    /// A URL, or the path of a file. The signature lies beside it with the ending `.sig`.
    pub source: String,
    /// Whose signature it must have; `None` takes an unsigned list.
    pub key: Option<PublicKey>,
    /// How often it is looked at. One on this machine is looked at with every poll.
    pub refresh: Duration,
    /// Logs that are never asked.
    pub excluded: Vec<LogId>,
    /// Whether to read logs that are pending.
    pub pending: bool,
}

/// A log that a person named.
#[derive(Debug, Clone)]
pub struct SingleLog {
    /// The prefix below which it is read, or `archive+file://` and the path of an archive of it.
    pub url: String,
    /// Its key.
    pub key: PublicKey,
}

/// A log to read.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) log: LogIdentity,
    /// `None` where it has to be found out.
    pub(crate) protocol: Option<Protocol>,
    pub(crate) order: Order,
}

/// A list as it was fetched. Kept in one file for the next start, so that no crash parts it from its signature.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FetchedList {
    list: String,
    signature: Vec<u8>,
}

/// Where the last good list is kept.
const KEPT: &str = "last_list.json";

/// Keeps the list.
pub(crate) struct Roster {
    options: Option<ListOptions>,
    singles: Vec<SingleLog>,
    http: Http,
    dir: PathBuf,
    list: Option<LogList>,
    pub(crate) status: Option<ListStatus>,
}

impl Roster {
    pub(crate) fn new(
        options: Option<ListOptions>,
        singles: Vec<SingleLog>,
        http: Http,
        dir: PathBuf,
    ) -> Self {
        Self {
            options,
            singles,
            http,
            dir,
            list: None,
            status: None,
        }
    }

    /// How long until the list is looked at again.
    pub(crate) fn refresh(&self, poll_interval: Duration) -> Option<Duration> {
        let options = self.options.as_ref()?;
        let is_near = !is_url(&options.source) || is_loopback(&options.source);
        Some(if is_near {
            options.refresh.min(poll_interval)
        } else {
            options.refresh
        })
    }

    /// Takes the last good list that was kept, if it still holds.
    pub(crate) fn load_kept(&mut self) {
        let Some(options) = &self.options else {
            return;
        };
        let Ok(kept) = std::fs::read(self.dir.join(KEPT)) else {
            return;
        };
        let kept = serde_json::from_slice(&kept).map_err(|error| error.to_string());
        let list = kept.and_then(|kept: FetchedList| kept.read(options.key.as_ref()));
        match list {
            Ok(list) => {
                self.status = Some(ListStatus {
                    source: options.source.clone(),
                    version: list.version.clone(),
                    timestamp_ms: list.timestamp_ms,
                    checked_ms: 0,
                    is_signed: options.key.is_some(),
                    error: Some("not fetched yet; the last good list is used".to_owned()),
                    not_followed: not_followed(&list, &rules(options)),
                });
                self.list = Some(list);
            }
            Err(error) => tracing::warn!(%error, "the log list that was kept is not used"),
        }
    }

    /// What fetches the list, beside everything else; `None` where there is none.
    pub(crate) fn fetching(
        &self,
    ) -> Option<impl Future<Output = Result<FetchedList, String>> + Send + 'static> {
        let options = self.options.clone()?;
        let http = self.http.clone();
        Some(async move {
            let list = bytes(&http, &options.source, LIST_BYTES_MAX as u64).await?;
            let signature = match &options.key {
                Some(_) => signature(&http, &options.source).await?,
                None => Vec::new(),
            };
            let list = String::from_utf8(list).map_err(|_| "the log list is no text in UTF-8".to_owned())?;
            Ok(FetchedList { list, signature })
        })
    }

    /// Takes a list that was fetched if it is good; otherwise says why not.
    pub(crate) fn take(&mut self, fetched: Result<FetchedList, String>) -> Result<(), String> {
        let taken = fetched.and_then(|fetched| self.judge(&fetched));
        if let (Err(error), Some(status)) = (&taken, &mut self.status) {
            status.error = Some(error.clone());
        }
        taken
    }

    fn judge(&mut self, fetched: &FetchedList) -> Result<(), String> {
        let Some(options) = &self.options else {
            return Ok(());
        };
        let list = fetched.read(options.key.as_ref())?;
        let rules = rules(options);
        accept(self.list.as_ref(), &list, &rules).map_err(|refused| refused.to_string())?;
        for log in &list.skipped {
            tracing::debug!(operator = %log.operator, description = %log.description, problem = %log.problem, "a log of the list cannot be read");
        }
        let age = list.age_ms(now_ms());
        let error = (age > LIST_AGE_MS_MAX).then(|| {
            format!(
                "the log list is {} days old; newer logs are missing: see whether it is fetched from the right place",
                age / 86_400_000
            )
        });
        let is_new = self.list.as_ref() != Some(&list);
        if let Some(error) = error.as_ref().filter(|_| is_new) {
            tracing::warn!("{error}");
        }
        if is_new {
            self.keep(fetched);
        }
        self.status = Some(ListStatus {
            source: options.source.clone(),
            version: list.version.clone(),
            timestamp_ms: list.timestamp_ms,
            checked_ms: now_ms(),
            is_signed: options.key.is_some(),
            error,
            not_followed: not_followed(&list, &rules),
        });
        self.list = Some(list);
        Ok(())
    }

    fn keep(&self, fetched: &FetchedList) {
        let kept = std::fs::create_dir_all(&self.dir)
            .map_err(|error| error.to_string())
            .and_then(|()| serde_json::to_vec(fetched).map_err(|error| error.to_string()))
            .and_then(|bytes| publish(&self.dir.join(KEPT), &bytes));
        if let Err(error) = kept {
            tracing::warn!(%error, "the log list could not be kept for the next start");
        }
    }

    /// Whether anything is known to read.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_none() && self.singles.is_empty()
    }

    /// The logs to read now.
    pub(crate) fn members(&self, parameters: &Parameters) -> BTreeMap<[u8; 32], Member> {
        let mut members = BTreeMap::new();
        if let (Some(list), Some(options)) = (&self.list, &self.options) {
            let rules = rules(options);
            for log in &list.logs {
                let order = match log.follow(&rules) {
                    Follow::Tail => Order::Tail,
                    Follow::ToTheEnd(tree) => Order::ToTheEnd(tree),
                    Follow::ToItsHead => Order::ToItsHead,
                    _ => continue,
                };
                members.insert(log.id().0, member(log, order));
            }
        }
        for single in &self.singles {
            let id = single.key.id().0;
            let listed = self.list.as_ref().and_then(|list| list.log(&single.key.id()));
            let known = members.remove(&id);
            let is_archive = is_archive(&single.url);
            // A list may say that it ends, and never that it is not read.
            let order = match known.as_ref().map(|known| known.order) {
                None | Some(Order::Tail) if is_archive => Order::ToItsHead,
                order => order.unwrap_or(Order::Tail),
            };
            let protocol = if is_archive {
                Some(Protocol::Static)
            } else {
                known.and_then(|known| known.protocol)
            };
            members.insert(
                id,
                Member {
                    log: LogIdentity {
                        description: listed.map_or_else(|| short(&single.url), |log| log.description.clone()),
                        operator: listed.map_or_else(|| host(&single.url), |log| log.operator.clone()),
                        url: single.url.clone(),
                        submission_url: listed.and_then(submission_url),
                        key: single.key.clone(),
                    },
                    protocol,
                    order,
                },
            );
        }
        members.retain(|_, member| parameters.of_log(&member.log.url).follow != Some(false));
        members
    }
}

fn member(log: &LogDescription, order: Order) -> Member {
    let protocol = match log.api {
        Api::Static { .. } => Protocol::Static,
        _ => Protocol::Rfc6962,
    };
    Member {
        log: LogIdentity {
            description: log.description.clone(),
            operator: log.operator.clone(),
            url: log.monitoring_url().to_owned(),
            submission_url: submission_url(log),
            key: log.key.clone(),
        },
        protocol: Some(protocol),
        order,
    }
}

/// Where a static log takes entries; not elsewhere if it is read on this machine, where nobody has to say who
/// asks.
fn submission_url(log: &LogDescription) -> Option<String> {
    let (read, submitted) = (log.monitoring_url(), log.submission_url());
    let is_allowed = !is_near(read) || is_near(submitted);
    (submitted != read && is_allowed).then(|| submitted.to_owned())
}

fn rules(options: &ListOptions) -> FollowRules<'_> {
    FollowRules {
        excluded: &options.excluded,
        pending: options.pending,
        loopback: !is_url(&options.source) || is_loopback(&options.source),
    }
}

fn not_followed(list: &LogList, rules: &FollowRules<'_>) -> Vec<(String, String)> {
    let passed = list.logs.iter().filter_map(|log| match log.follow(rules) {
        Follow::No(why) => Some((log.description.clone(), why.to_string())),
        _ => None,
    });
    let skipped = list
        .skipped
        .iter()
        .map(|log| (log.description.clone(), log.problem.clone()));
    passed.chain(skipped).collect()
}

impl FetchedList {
    fn read(&self, key: Option<&PublicKey>) -> Result<LogList, String> {
        let read = match key {
            Some(key) => LogList::read_signed(self.list.as_bytes(), &self.signature, key),
            None => LogList::read(self.list.as_bytes()),
        };
        read.map_err(|error| {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            format!("{error}{}", source.unwrap_or_default())
        })
    }
}

/// The signature beside a list: `list.sig`, or `list.json.sig`.
async fn signature(http: &Http, source: &str) -> Result<Vec<u8>, String> {
    let replaced = source.strip_suffix(".json").map(|stem| format!("{stem}.sig"));
    let appended = format!("{source}.sig");
    let mut last = String::new();
    for place in replaced.into_iter().chain([appended]) {
        match bytes(http, &place, SIGNATURE_BYTES_MAX).await {
            Ok(signature) => return Ok(signature),
            Err(error) => last = error,
        }
    }
    Err(format!(
        "the log list has no signature beside it ({last}); --allow-unsigned-list takes it without"
    ))
}

async fn bytes(http: &Http, source: &str, limit: u64) -> Result<Vec<u8>, String> {
    if !is_url(source) {
        let length = std::fs::metadata(source).map(|metadata| metadata.len());
        if length.is_ok_and(|length| length > limit) {
            return Err(format!("{source} has more than {limit} bytes"));
        }
        return std::fs::read(source).map_err(|error| format!("read {source}: {error}"));
    }
    let answer = http.get(source, Connection::Close, limit).await;
    let answer = answer.map_err(|error| format!("fetch {source}: {}", error.told()))?;
    if answer.status != 200 || answer.is_cut {
        return Err(format!("fetch {source}: status {}", answer.status));
    }
    Ok(answer.body)
}

fn publish(path: &Path, bytes: &[u8]) -> Result<(), String> {
    tamis_durable::publish(path, bytes).map_err(|error| error.to_string())
}

/// Whether a source is asked over HTTP.
pub(crate) fn is_url(source: &str) -> bool {
    source.starts_with("https://") || source.starts_with("http://")
}

/// An address without its scheme.
fn short(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.trim_end_matches('/').to_owned()
}

fn host(url: &str) -> String {
    if is_archive(url) {
        return "archive".to_owned();
    }
    short(url).split('/').next().unwrap_or_default().to_owned()
}
