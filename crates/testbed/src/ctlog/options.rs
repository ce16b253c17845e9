//! What a world is made of.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::faults::FaultRule;

/// A world of logs.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorldOptions {
    /// Keys, certificates and chances follow from it.
    pub seed: u64,
    /// The logs, in the order of the list.
    pub logs: Vec<LogOptions>,
    /// Where to listen; loopback unless told.
    pub address: IpAddr,
    /// 0 for any free one.
    pub port: u16,
    /// What the list and the logs call the address, where something stands before it; otherwise what was
    /// listened on.
    pub base_url: Option<String>,
    /// Files and folders with real entries, which all logs take first: get-entries JSON, data tiles with
    /// their `issuer` folder, PEM.
    pub entries: Vec<PathBuf>,
    /// Where the list, its signatures and its key are written, at the start and at each change.
    pub folder: Option<PathBuf>,
    /// What the clock always says, in milliseconds since 1970; the system's clock if not given.
    pub clock_ms: Option<u64>,
}

impl Default for WorldOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            logs: Vec::new(),
            address: IpAddr::from([127, 0, 0, 1]),
            port: 0,
            base_url: None,
            entries: Vec::new(),
            folder: None,
            clock_ms: None,
        }
    }
}

/// How a log is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogKind {
    /// RFC 6962: get-sth, get-entries and proofs.
    #[default]
    Rfc6962,
    /// static-ct-api: checkpoint and tiles, with a prefix for submission and another for monitoring.
    Static,
    /// RFC 6962 that serves data tiles and issuers too, but no checkpoint and no tiles of hashes.
    Hybrid,
}

/// What the list says about a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ListedState {
    /// It asked to be listed.
    Pending,
    /// It was accepted.
    Qualified,
    /// It is in use.
    #[default]
    Usable,
    /// It takes no more; the list has its last tree.
    Readonly,
    /// It is of no use any more; the list has its last tree.
    Retired,
    /// The same, and the list does not have its last tree.
    RetiredWithoutTree,
    /// It was refused.
    Rejected,
    /// It is not in the list.
    Unlisted,
}

/// One log.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogOptions {
    /// Its part of the address.
    pub name: String,
    /// How it is read.
    #[serde(default)]
    pub kind: LogKind,
    /// Who runs it.
    #[serde(default = "default_operator")]
    pub operator: String,
    /// Entries that it starts with.
    #[serde(default)]
    pub entries: u64,
    /// Entries that come in a second.
    #[serde(default)]
    pub rate: f64,
    /// It signs with RSA instead of ECDSA.
    #[serde(default)]
    pub rsa: bool,
    /// What the list says about it. A log that is read-only or retired does not grow.
    #[serde(default)]
    pub state: ListedState,
    /// Most entries that get-entries gives.
    #[serde(default = "default_page")]
    pub page: u64,
    /// A page ends where a multiple of `page` does.
    #[serde(default)]
    pub page_aligned: bool,
    /// Of the generated certificates, how many in a thousand it takes.
    #[serde(default = "default_share")]
    pub share_per_mille: u64,
    /// It compresses what may be compressed; names tiles always are.
    #[serde(default)]
    pub gzip: bool,
    /// Signature lines by others in its checkpoints.
    #[serde(default)]
    pub cosignatures: u32,
    /// Start and end of `temporal_interval`, in milliseconds since 1970.
    #[serde(default = "default_interval")]
    pub interval_ms: (u64, u64),
    /// What it does wrong from the start.
    #[serde(default)]
    pub faults: Vec<FaultRule>,
}

fn default_operator() -> String {
    "Simulated".to_owned()
}

fn default_page() -> u64 {
    256
}

fn default_share() -> u64 {
    600
}

/// 2026 to 2099.
fn default_interval() -> (u64, u64) {
    (1_767_225_600_000, 4_102_444_800_000)
}

impl LogOptions {
    /// An empty log that does not grow.
    #[must_use]
    pub fn new(name: &str, kind: LogKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            operator: default_operator(),
            entries: 0,
            rate: 0.0,
            rsa: false,
            state: ListedState::default(),
            page: default_page(),
            page_aligned: false,
            share_per_mille: default_share(),
            gzip: false,
            cosignatures: 0,
            interval_ms: default_interval(),
            faults: Vec::new(),
        }
    }

    /// Reads a log as the command line has it: `name,field=value…` with the fields of this structure, such
    /// as `beta,kind=static,entries=5000,rate=2.5`.
    ///
    /// # Errors
    /// A field is unknown, or its value is none for it.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parts = text.split(',');
        let mut fields = Map::new();
        fields.insert("name".to_owned(), parts.next().unwrap_or_default().into());
        for part in parts {
            let (field, value) = part
                .split_once('=')
                .with_context(|| format!("{part:?} in the log {text:?} is not field=value"))?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
            fields.insert(field.to_owned(), value);
        }
        serde_json::from_value(Value::Object(fields)).with_context(|| format!("read the log {text:?}"))
    }

    /// Who runs it.
    #[must_use]
    pub fn operator(mut self, operator: &str) -> Self {
        self.operator = operator.to_owned();
        self
    }

    /// Entries that it starts with.
    #[must_use]
    pub fn entries(mut self, entries: u64) -> Self {
        self.entries = entries;
        self
    }

    /// Entries that come in a second.
    #[must_use]
    pub fn rate(mut self, per_s: f64) -> Self {
        self.rate = per_s;
        self
    }

    /// Most entries that get-entries gives, and whether pages end at multiples of it.
    #[must_use]
    pub fn page(mut self, entries: u64, aligned: bool) -> Self {
        self.page = entries;
        self.page_aligned = aligned;
        self
    }

    /// Signs with RSA.
    #[must_use]
    pub fn rsa(mut self) -> Self {
        self.rsa = true;
        self
    }

    /// What the list says about it.
    #[must_use]
    pub fn state(mut self, state: ListedState) -> Self {
        self.state = state;
        self
    }

    /// Does this wrong from the start.
    #[must_use]
    pub fn fault(mut self, fault: impl Into<FaultRule>) -> Self {
        self.faults.push(fault.into());
        self
    }
}
