//! The list of logs: version 3 of Google's format, signed with RSA, and what may happen to it.
//!
//! A change is a [`ListChange`]; the list is made anew and signed after each, so that a reader may fetch
//! it at any time and find list and signature of one making.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::keys::{RsaUse, SigningKey};
use super::lock;
use super::log::SimulatedLog;
use super::options::{ListedState, LogOptions};
use crate::der::civil_from_days;

/// What may happen to a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ListChange {
    /// `log_list_timestamp` is this from now on.
    Timestamp {
        /// Milliseconds since 1970; the clock decides again if not given.
        ms: Option<u64>,
    },
    /// A log starts, and is listed.
    AddLog(Box<LogOptions>),
    /// A log gets another state. Read-only and retired ones stop growing.
    State {
        /// Its name.
        log: String,
        /// The state.
        state: ListedState,
    },
    /// Only the first so many logs are listed.
    LoseMost {
        /// How many stay.
        keep: usize,
    },
    /// All logs are listed again.
    LoseNone,
    /// A log on example.com that nobody can reach.
    Placeholder(bool),
    /// An operator without logs.
    EmptyOperator(bool),
    /// Fields that no reader knows.
    UnknownFields(bool),
    /// Logs of which no reader should want anything: their keys are public.
    Mimics {
        /// How many.
        count: u32,
        /// Nothing else is listed.
        only: bool,
    },
    /// How the list is signed.
    Signature(ListSignature),
}

/// How the list is signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListSignature {
    /// By the key that is handed out.
    #[default]
    Good,
    /// By another key.
    OtherKey,
    /// A bit of it is wrong.
    Broken,
    /// It is not found.
    Missing,
}

/// A list as it is served.
#[derive(Clone)]
pub(super) struct MadeList {
    pub(super) json: Vec<u8>,
    /// `None` where it is not found.
    pub(super) signature: Option<Vec<u8>>,
}

/// What shapes the list.
pub(super) struct ListState {
    key: SigningKey,
    other_key: SigningKey,
    timestamp_ms: Option<u64>,
    version: u64,
    keep: Option<usize>,
    placeholder: bool,
    empty_operator: bool,
    unknown_fields: bool,
    mimics: u32,
    only_mimics: bool,
    signature: ListSignature,
}

impl ListState {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            key: SigningKey::rsa(RsaUse::List)?,
            other_key: SigningKey::rsa(RsaUse::OtherList)?,
            timestamp_ms: None,
            version: 0,
            keep: None,
            placeholder: false,
            empty_operator: false,
            unknown_fields: false,
            mimics: 0,
            only_mimics: false,
            signature: ListSignature::Good,
        })
    }

    pub(super) fn key_pem(&self) -> String {
        self.key.pem()
    }

    /// Notes a change that concerns the list alone; the world does the rest.
    pub(super) fn apply(&mut self, change: &ListChange) {
        match change {
            ListChange::Timestamp { ms } => self.timestamp_ms = *ms,
            ListChange::LoseMost { keep } => self.keep = Some(*keep),
            ListChange::LoseNone => self.keep = None,
            ListChange::Placeholder(on) => self.placeholder = *on,
            ListChange::EmptyOperator(on) => self.empty_operator = *on,
            ListChange::UnknownFields(on) => self.unknown_fields = *on,
            ListChange::Mimics { count, only } => (self.mimics, self.only_mimics) = (*count, *only),
            ListChange::Signature(signature) => self.signature = *signature,
            ListChange::AddLog(_) | ListChange::State { .. } => {}
        }
    }

    /// Makes and signs the list of these logs.
    pub(super) fn make<'a>(
        &mut self,
        logs: impl Iterator<Item = &'a SimulatedLog>,
        now_ms: u64,
    ) -> Result<MadeList> {
        self.version += 1;
        let mut operators: Vec<(String, Vec<Value>, Vec<Value>)> = Vec::new();
        let keep = if self.only_mimics {
            0
        } else {
            self.keep.unwrap_or(usize::MAX)
        };
        let listed = logs.filter(|log| *lock(&log.listed) != ListedState::Unlisted);
        for log in listed.take(keep) {
            let is_tiled = log.is_tiled();
            add(
                &mut operators,
                &log.options.operator,
                self.with_unknown(log_entry(log)),
                is_tiled,
            );
        }
        if self.placeholder {
            add(&mut operators, "Placeholder", placeholder()?, false);
        }
        for number in 0..self.mimics as usize {
            add(&mut operators, "Mimic", mimic(number)?, false);
        }
        if self.empty_operator {
            operators.push(("Without logs".to_owned(), Vec::new(), Vec::new()));
        }
        let operators: Vec<Value> = operators
            .into_iter()
            .map(|(name, logs, tiled)| {
                let email = format!("ct@{}.example", name.to_lowercase().replace(' ', "-"));
                json!({ "name": name, "email": [email], "logs": logs, "tiled_logs": tiled })
            })
            .collect();
        let mut list = json!({
            "version": format!("1.{}", self.version),
            "log_list_timestamp": timestamp(self.timestamp_ms.unwrap_or(now_ms)),
            "operators": operators,
        });
        if self.unknown_fields {
            list["is_all_logs"] = json!(false);
            list["what_comes_next"] = json!({ "nobody": ["knows", 1, null] });
        }
        let json = serde_json::to_vec_pretty(&list).context("write the log list")?;
        let signature = self.sign(&json)?;
        Ok(MadeList { json, signature })
    }

    fn sign(&self, json: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(match self.signature {
            ListSignature::Good => Some(self.key.sign(json)?),
            ListSignature::OtherKey => Some(self.other_key.sign(json)?),
            ListSignature::Broken => {
                let mut signature = self.key.sign(json)?;
                signature[0] ^= 1;
                Some(signature)
            }
            ListSignature::Missing => None,
        })
    }

    fn with_unknown(&self, mut log: Value) -> Value {
        if self.unknown_fields {
            log["previous_operators"] = json!([{ "name": "Somebody", "end_time": "2024-01-01T00:00:00Z" }]);
            log["dns"] = json!("log.ct.example.com");
            log["a_field_of_tomorrow"] = json!({ "with": "structure" });
        }
        log
    }
}

fn add(operators: &mut Vec<(String, Vec<Value>, Vec<Value>)>, name: &str, log: Value, is_tiled: bool) {
    let position = operators.iter().position(|(known, ..)| known == name);
    let position = position.unwrap_or_else(|| {
        operators.push((name.to_owned(), Vec::new(), Vec::new()));
        operators.len() - 1
    });
    let (_, logs, tiled) = &mut operators[position];
    if is_tiled { tiled.push(log) } else { logs.push(log) }
}

/// A log as the list has it; also its `log.v3.json`.
pub(super) fn log_entry(log: &SimulatedLog) -> Value {
    let options = &log.options;
    let mut entry = json!({
        "description": format!("{} '{}' log", options.operator, options.name),
        "log_id": base64_simd::STANDARD.encode_to_string(log.key.id()),
        "key": log.key.base64(),
    });
    if log.is_tiled() {
        entry["submission_url"] = json!(log.submission_url());
        entry["monitoring_url"] = json!(log.monitoring_url());
    } else {
        entry["url"] = json!(log.submission_url());
    }
    entry["mmd"] = json!(log.mmd_s());
    entry["state"] = state(log);
    let (start, end) = options.interval_ms;
    entry["temporal_interval"] =
        json!({ "start_inclusive": timestamp(start), "end_exclusive": timestamp(end) });
    entry
}

fn state(log: &SimulatedLog) -> Value {
    let since = timestamp(log.options.interval_ms.0);
    let since = json!({ "timestamp": since });
    let with_tree = || {
        let state = log.read();
        let mut value = since.clone();
        value["final_tree_head"] = json!({
            "sha256_root_hash": state.root().to_string(),
            "tree_size": state.size(),
        });
        value
    };
    match *lock(&log.listed) {
        ListedState::Pending => json!({ "pending": since }),
        ListedState::Qualified => json!({ "qualified": since }),
        ListedState::Usable | ListedState::Unlisted => json!({ "usable": since }),
        ListedState::Readonly => json!({ "readonly": with_tree() }),
        ListedState::Retired => json!({ "retired": with_tree() }),
        ListedState::RetiredWithoutTree => json!({ "retired": since }),
        ListedState::Rejected => json!({ "rejected": since }),
    }
}

/// The log that lists have for readers that break without one.
fn placeholder() -> Result<Value> {
    let key = SigningKey::forged(7)?;
    Ok(json!({
        "description": "Bogus placeholder log to unbreak misbehaving CT libraries",
        "log_id": base64_simd::STANDARD.encode_to_string(key.id()),
        "key": key.base64(),
        "url": "https://ct.example.com/bogus/",
        "mmd": 86_400,
        "state": { "retired": { "timestamp": "2025-06-21T07:00:00Z" } },
        "temporal_interval": { "start_inclusive": "2020-01-01T08:00:00Z", "end_exclusive": "2020-01-02T08:00:00Z" },
    }))
}

fn mimic(number: usize) -> Result<Value> {
    let key = SigningKey::forged(number)?;
    Ok(json!({
        "description": format!("Mimic {number}"),
        "log_id": base64_simd::STANDARD.encode_to_string(key.id()),
        "key": key.base64(),
        "url": format!("https://mimic{number}.ct.googleapis.com.invalid/logs/"),
        "mmd": 86_400,
        "state": { "usable": { "timestamp": "2026-06-01T00:00:00Z" } },
        "temporal_interval": { "start_inclusive": "2026-01-01T00:00:00Z", "end_exclusive": "2100-01-01T00:00:00Z" },
    }))
}

/// `2026-05-29T13:42:48Z`
fn timestamp(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (year, month, day) = civil_from_days(seconds / 86_400);
    let second = seconds % 86_400;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Writes the list beside its signature and key. The signature comes first: a reader that looks in
/// between finds a list and a signature that do not belong together, and asks again, as with real ones.
pub(super) fn write(folder: &Path, list: &MadeList, key_pem: &str) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let put = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, content).with_context(|| format!("write {}", path.display()))
    };
    put("log_list_key.pem", key_pem.as_bytes())?;
    for name in ["log_list.sig", "log_list.json.sig"] {
        match &list.signature {
            Some(signature) => put(name, signature)?,
            None => match std::fs::remove_file(folder.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("remove {name}"));
                }
                _ => {}
            },
        }
    }
    put("log_list.json", &list.json)
}
