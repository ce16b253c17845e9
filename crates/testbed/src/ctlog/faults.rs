//! What a log does wrong, and how often it showed it.
//!
//! A [`FaultRule`] is a [`Fault`] with where and when it shows. Rules are asked at each request; what
//! applies, and only that, is counted, so that a test can tell that its reader met the fault.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lock;
use super::report::RequestKind;
use crate::random::Random;

/// One thing that a log does wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Fault {
    /// 429 to some requests.
    TooManyRequests {
        /// From 0 to 1.
        probability: f64,
        /// What `Retry-After` says; without, there is none.
        #[serde(default)]
        retry_after_s: Option<u64>,
    },
    /// 429 to what comes above a rate.
    RateLimit {
        /// Requests in a second; a second's worth may come at once.
        per_s: f64,
        /// What `Retry-After` says; without, there is none.
        #[serde(default)]
        retry_after_s: Option<u64>,
    },
    /// A status and a short text.
    ServerError {
        /// Such as 500, 502, 503.
        status: u16,
    },
    /// A web page where data should be.
    HtmlPage {
        /// 200, or the status of an error.
        status: u16,
    },
    /// The body comes slowly.
    SlowBody {
        /// How slowly.
        bytes_per_s: u64,
    },
    /// `Content-Length` says more than comes before the connection is closed.
    CutBody {
        /// What comes, in a thousand of the body.
        per_mille: u16,
    },
    /// get-entries gives at most this many, whatever the log was made to give.
    PageCap {
        /// At most.
        entries: u64,
        /// A page ends where a multiple of `entries` does, as Trillian's do.
        #[serde(default)]
        aligned: bool,
    },
    /// A range with more entries than this is refused, not cut.
    RefuseLongRange {
        /// At most.
        entries: u64,
        /// 400 or 403.
        status: u16,
    },
    /// A body with more bytes than this is refused.
    RefuseLargeBody {
        /// At most.
        bytes: u64,
        /// 403 or 500.
        status: u16,
    },
    /// Heads are of an earlier tree: a replica that lags behind.
    Lagging {
        /// By so many leaves.
        leaves: u64,
    },
    /// Heads lead: the entries behind the last so many are not served yet.
    EntriesBehind {
        /// So many leaves.
        leaves: u64,
    },
    /// Heads are signed by another key.
    WrongKey,
    /// Heads are of a tree whose last leaf is another one, and that has more leaves still; it is validly
    /// signed.
    Fork {
        /// Leaves that the other tree has more: 0 for the same size and another root.
        extra: u64,
    },
    /// A bit of an entry is served wrong; the tree has it right.
    BitFlip {
        /// Of the entry.
        index: u64,
    },
    /// A byte of a tile of hashes is served wrong.
    BadHashTile {
        /// 0 for leaf hashes.
        level: u8,
        /// Of the tile.
        index: u64,
    },
    /// The first two entries of a data tile have changed places.
    ReorderedDataTile {
        /// Of the tile.
        index: u64,
    },
    /// The entries of a data tile say that they are elsewhere.
    WrongLeafIndex {
        /// Of the tile.
        index: u64,
    },
    /// The bytes of an issuer are not those that its name is the hash of.
    WrongIssuer,
    /// Issuers are not found.
    MissingIssuer,
    /// Partial tiles are gone once the full one exists.
    PartialsDeleted,
    /// Partial tiles are not found at all.
    PartialsMissing,
    /// The log does not grow by its rate.
    Idle,
    /// The body is compressed and inflates without end.
    GzipBomb {
        /// Once inflated.
        inflated_bytes: u64,
    },
    /// The body is compressed though nobody asked.
    GzipUnasked,
    /// `Content-Length` is this, and so many bytes are sent to who reads on.
    HugeBody {
        /// Of the body.
        bytes: u64,
    },
    /// The connection is reset: before the answer, or within the body.
    Reset {
        /// What of the body comes first; nothing at 0.
        #[serde(default)]
        after_bytes: u64,
    },
    /// Every answer takes longer.
    Latency {
        /// By this much.
        ms: u64,
    },
    /// Heads take longer.
    SlowHead {
        /// By this much.
        ms: u64,
    },
    /// Nothing is answered until the reader gives up.
    Stall,
}

impl Fault {
    /// The name by which it is counted: its key in JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::TooManyRequests { .. } => "too_many_requests",
            Self::RateLimit { .. } => "rate_limit",
            Self::ServerError { .. } => "server_error",
            Self::HtmlPage { .. } => "html_page",
            Self::SlowBody { .. } => "slow_body",
            Self::CutBody { .. } => "cut_body",
            Self::PageCap { .. } => "page_cap",
            Self::RefuseLongRange { .. } => "refuse_long_range",
            Self::RefuseLargeBody { .. } => "refuse_large_body",
            Self::Lagging { .. } => "lagging",
            Self::EntriesBehind { .. } => "entries_behind",
            Self::WrongKey => "wrong_key",
            Self::Fork { .. } => "fork",
            Self::BitFlip { .. } => "bit_flip",
            Self::BadHashTile { .. } => "bad_hash_tile",
            Self::ReorderedDataTile { .. } => "reordered_data_tile",
            Self::WrongLeafIndex { .. } => "wrong_leaf_index",
            Self::WrongIssuer => "wrong_issuer",
            Self::MissingIssuer => "missing_issuer",
            Self::PartialsDeleted => "partials_deleted",
            Self::PartialsMissing => "partials_missing",
            Self::Idle => "idle",
            Self::GzipBomb { .. } => "gzip_bomb",
            Self::GzipUnasked => "gzip_unasked",
            Self::HugeBody { .. } => "huge_body",
            Self::Reset { .. } => "reset",
            Self::Latency { .. } => "latency",
            Self::SlowHead { .. } => "slow_head",
            Self::Stall => "stall",
        }
    }
}

/// A fault, and where and when it shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// What is wrong.
    pub fault: Fault,
    /// Requests that it shows at; none for all that it can show at.
    #[serde(default)]
    pub on: Vec<RequestKind>,
    /// From 0 to 1: how likely it shows where it could.
    #[serde(default = "always")]
    pub chance: f64,
    /// It shows at every so many-th request where it could: 2 alternates.
    #[serde(default = "each")]
    pub every: u64,
    /// It shows so often and then no more.
    #[serde(default)]
    pub times: Option<u64>,
}

fn always() -> f64 {
    1.0
}

fn each() -> u64 {
    1
}

impl From<Fault> for FaultRule {
    fn from(fault: Fault) -> Self {
        Self {
            fault,
            on: Vec::new(),
            chance: always(),
            every: each(),
            times: None,
        }
    }
}

impl FaultRule {
    /// Shows it at these requests alone.
    #[must_use]
    pub fn on(mut self, kinds: &[RequestKind]) -> Self {
        self.on = kinds.to_vec();
        self
    }

    /// Shows it with this probability.
    #[must_use]
    pub fn chance(mut self, chance: f64) -> Self {
        self.chance = chance;
        self
    }

    /// Shows it at every so many-th request.
    #[must_use]
    pub fn every(mut self, every: u64) -> Self {
        self.every = every;
        self
    }

    /// Shows it so often and then no more.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Reads a rule as the command line has it: JSON, or `kind,field=value…` with the fields of the fault
    /// and of the rule, lists joined by `+`: `too_many_requests,probability=0.2,on=entries+sth`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self> {
        if text.trim_start().starts_with('{') {
            return serde_json::from_str(text).with_context(|| format!("read the fault {text}"));
        }
        let mut parts = text.split(',');
        let kind = parts.next().unwrap_or_default().trim();
        let (mut fault, mut rule) = (serde_json::Map::new(), serde_json::Map::new());
        for part in parts {
            let (name, value) = part
                .split_once('=')
                .with_context(|| format!("{part:?} in the fault {text:?} is not field=value"))?;
            if name == "on" {
                let kinds = value.split('+').map(|kind| Value::String(kind.to_owned()));
                rule.insert(name.to_owned(), kinds.collect());
                continue;
            }
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
            let fields = match name {
                "chance" | "every" | "times" => &mut rule,
                _ => &mut fault,
            };
            fields.insert(name.to_owned(), value);
        }
        let with_fields = Value::Object(
            [(kind.to_owned(), Value::Object(fault.clone()))]
                .into_iter()
                .collect(),
        );
        let bare = Value::String(kind.to_owned());
        let candidates = if fault.is_empty() {
            vec![bare, with_fields]
        } else {
            vec![with_fields]
        };
        let read = |fault: Value| {
            let mut rule = rule.clone();
            rule.insert("fault".to_owned(), fault);
            serde_json::from_value(Value::Object(rule))
        };
        let mut results: Vec<serde_json::Result<Self>> = candidates.into_iter().map(read).collect();
        let first_good = results.iter().position(Result::is_ok);
        let chosen = first_good.unwrap_or(results.len() - 1);
        results
            .swap_remove(chosen)
            .with_context(|| format!("read the fault {text:?}; `tamis-testbed ctlog --help` lists them"))
    }
}

/// The faults of one log.
pub(super) struct Faults(Mutex<Active>);

struct Active {
    rules: Vec<ActiveRule>,
    shown: BTreeMap<&'static str, u64>,
    random: Random,
}

struct ActiveRule {
    rule: FaultRule,
    /// Requests where it could have shown.
    met: u64,
    shown: u64,
    tokens: f64,
    filled: Instant,
}

impl Faults {
    pub(super) fn new(seed: u64, log: u64, rules: Vec<FaultRule>) -> Self {
        Self(Mutex::new(Active {
            rules: rules.into_iter().map(ActiveRule::new).collect(),
            shown: BTreeMap::new(),
            random: Random::for_item(seed, 10, log),
        }))
    }

    /// Adds a rule beside those there are.
    pub(super) fn add(&self, rule: FaultRule) {
        lock(&self.0).rules.push(ActiveRule::new(rule));
    }

    /// Puts a rule in the place of those for the same kind of fault.
    pub(super) fn set(&self, rule: FaultRule) {
        let mut active = lock(&self.0);
        active
            .rules
            .retain(|old| old.rule.fault.name() != rule.fault.name());
        active.rules.push(ActiveRule::new(rule));
    }

    pub(super) fn clear(&self) {
        lock(&self.0).rules.clear();
    }

    pub(super) fn clear_kind(&self, name: &str) {
        lock(&self.0).rules.retain(|old| old.rule.fault.name() != name);
    }

    pub(super) fn rules(&self) -> Vec<FaultRule> {
        lock(&self.0)
            .rules
            .iter()
            .map(|active| active.rule.clone())
            .collect()
    }

    pub(super) fn shown(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.0).shown.clone()
    }

    /// The first fault that shows at this request, of those that `pick` takes.
    pub(super) fn show<T>(&self, kind: RequestKind, pick: impl FnMut(&Fault) -> Option<T>) -> Option<T> {
        self.show_up_to(kind, 1, pick).pop()
    }

    /// All faults that show at this request, of those that `pick` takes.
    pub(super) fn show_all<T>(&self, kind: RequestKind, pick: impl FnMut(&Fault) -> Option<T>) -> Vec<T> {
        self.show_up_to(kind, usize::MAX, pick)
    }

    fn show_up_to<T>(
        &self,
        kind: RequestKind,
        most: usize,
        mut pick: impl FnMut(&Fault) -> Option<T>,
    ) -> Vec<T> {
        let active = &mut *lock(&self.0);
        let mut picked = Vec::new();
        for rule in &mut active.rules {
            if picked.len() == most {
                break;
            }
            if !rule.rule.on.is_empty() && !rule.rule.on.contains(&kind) {
                continue;
            }
            let Some(found) = pick(&rule.rule.fault) else {
                continue;
            };
            if rule.is_due(&mut active.random) {
                *active.shown.entry(rule.rule.fault.name()).or_default() += 1;
                picked.push(found);
            }
        }
        picked
    }
}

impl ActiveRule {
    fn new(rule: FaultRule) -> Self {
        Self {
            rule,
            met: 0,
            shown: 0,
            tokens: f64::INFINITY,
            filled: Instant::now(),
        }
    }

    /// Whether it shows at a request where it could.
    fn is_due(&mut self, random: &mut Random) -> bool {
        self.met += 1;
        if self.rule.times.is_some_and(|times| self.shown >= times)
            || !self.met.is_multiple_of(self.rule.every.max(1))
        {
            return false;
        }
        let chance = match self.rule.fault {
            Fault::TooManyRequests { probability, .. } => probability * self.rule.chance,
            _ => self.rule.chance,
        };
        let drawn = random.below(1 << 32) as f64 / (1_u64 << 32) as f64;
        let is_due = drawn < chance && self.is_over_rate();
        self.shown += u64::from(is_due);
        is_due
    }

    /// For a rate, whether this request is above it; true for every other fault.
    fn is_over_rate(&mut self) -> bool {
        let Fault::RateLimit { per_s, .. } = self.rule.fault else {
            return true;
        };
        let elapsed = self.filled.elapsed().as_secs_f64();
        self.filled = Instant::now();
        let burst = per_s.max(1.0);
        self.tokens = (self.tokens + elapsed * per_s).min(burst);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_from_both_forms() {
        let rule =
            FaultRule::parse("too_many_requests,probability=0.2,retry_after_s=3,on=entries+sth,times=4")
                .expect("a rule");
        let fault = Fault::TooManyRequests {
            probability: 0.2,
            retry_after_s: Some(3),
        };
        let expected = FaultRule::from(fault)
            .on(&[RequestKind::Entries, RequestKind::Sth])
            .times(4);
        assert_eq!(rule, expected);
        let json = serde_json::to_string(&rule).expect("JSON");
        assert_eq!(FaultRule::parse(&json).expect("a rule"), expected);
        assert_eq!(FaultRule::parse("stall").expect("a rule"), Fault::Stall.into());
        assert_eq!(
            FaultRule::parse("reset").expect("a rule"),
            Fault::Reset { after_bytes: 0 }.into()
        );
        for bad in [
            "nonsense",
            "page_cap",
            "page_cap,entries=x",
            "stall,on=tea",
            "bit_flip,index=1,bit=2",
        ] {
            assert!(FaultRule::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_rule_shows_when_it_should_and_is_counted() {
        let faults = Faults::new(1, 0, Vec::new());
        faults.add(FaultRule::from(Fault::Stall).every(2).times(2));
        let shows = (0..8).map(|_| faults.show(RequestKind::Sth, |_| Some(())).is_some());
        assert_eq!(
            shows.collect::<Vec<_>>(),
            [false, true, false, true, false, false, false, false]
        );
        assert_eq!(faults.shown().get("stall"), Some(&2));
        faults.set(FaultRule::from(Fault::Stall).on(&[RequestKind::Entries]));
        assert!(faults.show(RequestKind::Sth, |_| Some(())).is_none());
        assert!(faults.show(RequestKind::Entries, |_| Some(())).is_some());
        faults.set(FaultRule::from(Fault::Stall).chance(0.25));
        let shown = (0..10_000).filter(|_| faults.show(RequestKind::Sth, |_| Some(())).is_some());
        let shown = shown.count();
        assert!((2_200..2_800).contains(&shown), "{shown}");
    }
}
