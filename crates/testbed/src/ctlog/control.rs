//! Control requests: what a script outside the process says to a world, and asks of it, below `/_sim/`.
//!
//! Questions are GET, orders are POST with a JSON object. They are not logs' business and count nowhere.

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answers::refuse;
use super::faults::FaultRule;
use super::http::{Answer, Request};
use super::list::ListChange;
use super::lock;
use super::request::parameter;
use super::wire::Body;
use super::world::Inner;
use crate::truth::hex;

/// Entries in one answer about the truth.
const TRUTH_ENTRIES_MAX: u64 = 10_000;

/// The control requests, as `/_sim` tells them.
pub const HELP: &str = r#"GET  /_sim/report[?log=NAME]                  what logs were asked; POST sets to 0
GET  /_sim/truth?log=NAME[&start=N&count=N]   size and root, and entries
GET  /_sim/faults[?log=NAME]                  rules, and how often faults were shown
POST /_sim/fault         {"log": NAME, "set"|"add": "KIND,FIELD=VALUE" or {"fault": …}}
POST /_sim/faults/clear  {"log": NAME[, "kind": KIND]}
POST /_sim/grow          {"log": NAME, "by": N}
POST /_sim/rate          {"log": NAME, "per_s": N}
POST /_sim/list          a change of the list, such as {"lose_most": {"keep": 1}} or
                         {"state": {"log": NAME, "state": "readonly"}}
"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultOrder {
    log: String,
    #[serde(default)]
    set: Option<Value>,
    #[serde(default)]
    add: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClearOrder {
    log: String,
    #[serde(default)]
    kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrowOrder {
    log: String,
    by: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RateOrder {
    log: String,
    per_s: f64,
}

/// Answers a control request; `path` is what follows `/_sim/`.
pub(super) fn control(world: &Inner, path: &str, request: &Request<'_>, body: &mut Body) -> Answer {
    let done = match (request.method, path) {
        ("GET", "") => {
            body.bytes.extend_from_slice(HELP.as_bytes());
            return Answer::ok("text/plain; charset=utf-8");
        }
        ("GET", "report") => report(world, request.query),
        ("GET", "truth") => truth(world, request.query),
        ("GET", "faults") => faults(world, request.query),
        ("POST", "report") => reset_report(world, request.query),
        ("POST", _) => order(world, path, request.body),
        _ => return refuse(404, "see /_sim for what there is", body),
    };
    match done {
        Ok(value) => {
            body.bytes.extend_from_slice(value.to_string().as_bytes());
            Answer::ok("application/json")
        }
        Err(error) => refuse(400, &format!("{error:#}"), body),
    }
}

fn order(world: &Inner, path: &str, body: &[u8]) -> Result<Value> {
    match path {
        "fault" => {
            let order: FaultOrder = read(body)?;
            let log = find(world, &order.log)?;
            match (order.set, order.add) {
                (Some(rule), None) => log.faults.set(rule_of(rule)?),
                (None, Some(rule)) => log.faults.add(rule_of(rule)?),
                _ => bail!("give either \"set\" or \"add\""),
            }
            Ok(json!({ "rules": log.faults.rules() }))
        }
        "faults/clear" => {
            let order: ClearOrder = read(body)?;
            let log = find(world, &order.log)?;
            match order.kind {
                Some(kind) => log.faults.clear_kind(&kind),
                None => log.faults.clear(),
            }
            Ok(json!({ "rules": log.faults.rules() }))
        }
        "grow" => {
            let order: GrowOrder = read(body)?;
            let log = find(world, &order.log)?;
            log.grow(order.by)?;
            Ok(json!({ "size": log.read().size() }))
        }
        "rate" => {
            let order: RateOrder = read(body)?;
            *lock(&find(world, &order.log)?.rate) = order.per_s;
            Ok(json!({ "per_s": order.per_s }))
        }
        "list" => {
            let change: ListChange = read(body)?;
            world.change_list(&change)?;
            Ok(json!({ "changed": true }))
        }
        _ => bail!("there is no order {path:?}; see /_sim"),
    }
}

fn rule_of(value: Value) -> Result<FaultRule> {
    match value {
        Value::String(text) => FaultRule::parse(&text),
        value => serde_json::from_value(value).context("read the rule"),
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).context("read the order; /_sim shows its form")
}

fn find(world: &Inner, name: &str) -> Result<std::sync::Arc<super::log::SimulatedLog>> {
    world
        .log(name)
        .with_context(|| format!("there is no log {name:?}"))
}

/// An object by log, or that of the one log that is asked for.
fn by_log(world: &Inner, query: &str, value: impl Fn(&super::log::SimulatedLog) -> Value) -> Result<Value> {
    if let Some(name) = parameter(query, "log") {
        return Ok(value(&*find(world, &name)?));
    }
    let logs = world.logs();
    let pairs = logs.iter().map(|log| (log.options.name.clone(), value(log)));
    Ok(Value::Object(pairs.collect()))
}

fn report(world: &Inner, query: &str) -> Result<Value> {
    by_log(world, query, |log| json!(log.counter.report()))
}

/// Gives what was counted until now, and counts from 0.
fn reset_report(world: &Inner, query: &str) -> Result<Value> {
    by_log(world, query, |log| {
        let report = log.counter.report();
        log.counter.reset();
        json!(report)
    })
}

fn faults(world: &Inner, query: &str) -> Result<Value> {
    by_log(
        world,
        query,
        |log| json!({ "rules": log.faults.rules(), "shown": log.faults.shown() }),
    )
}

fn truth(world: &Inner, query: &str) -> Result<Value> {
    let number = |name| parameter(query, name).and_then(|text| text.parse::<u64>().ok());
    let (start, count) = (number("start").unwrap_or(0), number("count").unwrap_or(0));
    by_log(world, query, |log| {
        let state = log.read();
        let mut truth = json!({ "size": state.size(), "root": state.root().to_string() });
        if count > 0 {
            let end = start
                .saturating_add(count.min(TRUTH_ENTRIES_MAX))
                .min(state.size());
            let entries = (start..end).filter_map(|index| {
                let submission = &state.entries.get(index as usize)?.submission;
                Some(json!({
                    "index": index,
                    "leaf_hash": state.tree.leaf(index)?.to_string(),
                    "sha256": hex(&submission.sha256()),
                    "names": submission.names().collect::<Vec<_>>(),
                }))
            });
            truth["entries"] = entries.collect();
        }
        truth
    })
}
