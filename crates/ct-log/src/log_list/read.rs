//! Reads the JSON of a list, log by log.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::{Api, Interval, LIST_BYTES_MAX, LOGS_MAX, ListError, LogDescription, LogList, SkippedLog, State};
use crate::answers;
use crate::certificate::time;
use crate::key::{LogId, PublicKey};
use crate::merkle::{Hash, Tree};

const TEXT_BYTES_MAX: usize = 512;
/// What is usual where a list does not say.
const MMD_S: u64 = 86_400;

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow, default)]
    version: Cow<'a, str>,
    #[serde(borrow, default)]
    log_list_timestamp: Cow<'a, str>,
    operators: Vec<Operator>,
}

#[derive(Deserialize)]
struct Operator {
    #[serde(default)]
    name: String,
    #[serde(default)]
    logs: Option<Vec<Value>>,
    #[serde(default)]
    tiled_logs: Option<Vec<Value>>,
}

pub(super) fn list(bytes: &[u8]) -> Result<LogList, ListError> {
    let list: List<'_> = answers::json(bytes, LIST_BYTES_MAX)?;
    let timestamp_ms = milliseconds(&list.log_list_timestamp).ok_or_else(|| ListError::Timestamp {
        found: cut(&list.log_list_timestamp),
    })?;
    let mut read = LogList {
        version: cut(&list.version),
        timestamp_ms,
        logs: Vec::new(),
        skipped: Vec::new(),
    };
    for operator in &list.operators {
        let logs = operator.logs.iter().flatten().map(|log| (log, Kind::Rfc6962));
        let tiled = operator
            .tiled_logs
            .iter()
            .flatten()
            .map(|log| (log, Kind::Static));
        for (value, kind) in logs.chain(tiled) {
            if read.logs.len() + read.skipped.len() >= LOGS_MAX {
                return Err(ListError::TooMany);
            }
            match log(&operator.name, value, kind) {
                Ok(log) if read.log(&log.id()).is_none() => read.logs.push(log),
                Ok(_) => read.skipped.push(skipped(operator, value, "it is listed twice")),
                Err(problem) => read.skipped.push(skipped(operator, value, problem)),
            }
        }
    }
    Ok(read)
}

#[derive(Clone, Copy)]
enum Kind {
    Rfc6962,
    Static,
}

fn skipped(operator: &Operator, log: &Value, problem: &str) -> SkippedLog {
    SkippedLog {
        operator: cut(&operator.name),
        description: text(log, "description").map(cut).unwrap_or_default(),
        problem: problem.to_owned(),
    }
}

fn log(operator: &str, log: &Value, kind: Kind) -> Result<LogDescription, &'static str> {
    let key = text(log, "key").ok_or("it has no key")?;
    let key = PublicKey::from_base64(key).map_err(|_| "its key is none that a log may have")?;
    let id = text(log, "log_id").ok_or("it has no log_id")?;
    if LogId::from_base64(id) != Some(key.id()) {
        return Err("its log_id is not the hash of its key");
    }
    let url = |name| text(log, name).and_then(prefix);
    let api = match kind {
        Kind::Rfc6962 => Api::Rfc6962 {
            url: url("url").ok_or("its url is no https:// prefix")?,
        },
        Kind::Static => Api::Static {
            submission_url: url("submission_url").ok_or("its submission_url is no https:// prefix")?,
            monitoring_url: url("monitoring_url").ok_or("its monitoring_url is no https:// prefix")?,
        },
    };
    let (state, state_since_ms) = state(log.get("state"))?;
    let interval = match log.get("temporal_interval") {
        None | Some(Value::Null) => None,
        Some(value) => Some(interval(value).ok_or("its temporal_interval is none")?),
    };
    Ok(LogDescription {
        operator: cut(operator),
        description: text(log, "description").map(cut).unwrap_or_default(),
        key,
        api,
        mmd_s: log.get("mmd").and_then(Value::as_u64).unwrap_or(MMD_S),
        state,
        state_since_ms,
        interval,
        is_test: text(log, "log_type") == Some("test"),
    })
}

/// The one state that an object names, and since when.
fn state(value: Option<&Value>) -> Result<(State, u64), &'static str> {
    let states = match value {
        None | Some(Value::Null) => return Ok((State::Unknown, 0)),
        Some(value) => value.as_object().ok_or("its state is no object")?,
    };
    let mut states = states.iter().filter(|(_, value)| !value.is_null());
    let Some((name, value)) = states.next() else {
        return Ok((State::Unknown, 0));
    };
    if states.next().is_some() {
        return Err("it has two states at once");
    }
    let state = match name.as_str() {
        "pending" => State::Pending,
        "qualified" => State::Qualified,
        "usable" => State::Usable,
        "readonly" => State::ReadOnly(final_tree(value)?),
        "retired" => State::Retired(final_tree(value)?),
        "rejected" => State::Rejected,
        _ => State::Unknown,
    };
    let since = text(value, "timestamp").and_then(milliseconds).unwrap_or(0);
    Ok((state, since))
}

fn final_tree(state: &Value) -> Result<Option<Tree>, &'static str> {
    let head = match state.get("final_tree_head") {
        None | Some(Value::Null) => return Ok(None),
        Some(head) => head,
    };
    let size = head.get("tree_size").and_then(Value::as_u64);
    let root = text(head, "sha256_root_hash").and_then(Hash::from_base64);
    match (size, root) {
        (Some(size), Some(root)) => Ok(Some(Tree { size, root })),
        _ => Err("its final_tree_head is none"),
    }
}

fn interval(value: &Value) -> Option<Interval> {
    let start_ms = milliseconds(text(value, "start_inclusive")?)?;
    let end_ms = milliseconds(text(value, "end_exclusive")?)?;
    (start_ms < end_ms).then_some(Interval { start_ms, end_ms })
}

/// An address that something can be put behind: https (or http on this machine), a host, no query, nothing
/// that needs escaping.
fn prefix(url: &str) -> Option<String> {
    let rest = match url.strip_prefix("https://") {
        Some(rest) => rest,
        None => url.strip_prefix("http://").filter(|_| super::is_loopback(url))?,
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_~/:[]".contains(&byte);
    let host = rest.split('/').next().unwrap_or_default();
    let has_host = host.bytes().any(|byte| byte.is_ascii_alphanumeric());
    let fits = url.len() <= TEXT_BYTES_MAX && has_host && rest.bytes().all(is_plain);
    fits.then(|| format!("{}/", url.trim_end_matches('/')))
}

/// `2026-05-29T13:42:48Z`, perhaps with a fraction, to milliseconds since 1970.
fn milliseconds(text: &str) -> Option<u64> {
    let digits: Vec<u8> = match text.as_bytes() {
        [date @ .., b'Z'] if text.len() <= 40 => date.to_vec(),
        _ => return None,
    };
    let (seconds, fraction) = digits.split_at_checked(19)?;
    let is_separator = |at: usize| matches!(at, 4 | 7 | 10 | 13 | 16);
    let shape = seconds.iter().enumerate().all(|(at, byte)| match at {
        4 | 7 => *byte == b'-',
        10 => matches!(byte, b'T' | b't' | b' '),
        13 | 16 => *byte == b':',
        _ => byte.is_ascii_digit(),
    });
    let fraction_ms = match fraction {
        [] => 0,
        [b'.', fraction @ ..] if fraction.iter().all(u8::is_ascii_digit) => {
            let digits = fraction.iter().chain(b"000").take(3);
            digits.fold(0, |ms, digit| ms * 10 + u64::from(digit - b'0'))
        }
        _ => return None,
    };
    let plain = seconds.iter().enumerate().filter(|(at, _)| !is_separator(*at));
    let mut plain: Vec<u8> = plain.map(|(_, byte)| *byte).collect();
    plain.push(b'Z');
    let moment = time::generalized(&plain).filter(|_| shape)?;
    u64::try_from(moment.unix_seconds)
        .ok()?
        .checked_mul(1_000)?
        .checked_add(fraction_ms)
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// What a list says in words is shown on terminals and pages, and kept for every log.
fn cut(text: &str) -> String {
    let kept = text
        .char_indices()
        .take_while(|(at, char)| at + char.len_utf8() <= TEXT_BYTES_MAX);
    kept.map(|(_, char)| if char.is_control() { ' ' } else { char })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let check = |text: &str, expected: Option<u64>| assert_eq!(milliseconds(text), expected, "{text}");
        check("1970-01-01T00:00:00Z", Some(0));
        check("2026-05-29T13:42:48Z", Some(1_780_062_168_000));
        check("2026-05-29T13:42:48.5Z", Some(1_780_062_168_500));
        check("2026-05-29T13:42:48.123456789Z", Some(1_780_062_168_123));
        for other in [
            "",
            "Z",
            "2026-05-29",
            "2026-05-29T13:42:48",
            "2026-05-29T13:42:48+02:00",
            "2026-13-29T13:42:48Z",
            "2026-05-29T13:42:48.xZ",
            "20260529134248Z",
            "2026x05-29T13:42:48Z",
            "1969-12-31T23:59:59Z",
        ] {
            check(other, None);
        }
    }

    #[test]
    fn prefixes() {
        let check = |url: &str, expected: Option<&str>| assert_eq!(prefix(url).as_deref(), expected, "{url}");
        check("https://ct.example/log/", Some("https://ct.example/log/"));
        check("https://ct.example/2026h1", Some("https://ct.example/2026h1/"));
        check(
            "https://[2001:db8::1]:8443/a",
            Some("https://[2001:db8::1]:8443/a/"),
        );
        check("http://127.0.0.1:8000/a", Some("http://127.0.0.1:8000/a/"));
        check("http://[::1]:8000", Some("http://[::1]:8000/"));
        for other in [
            "http://ct.example/",
            "http://127.0.0.1.ct.example/",
            "http://127.0.0.1@ct.example/",
            "http://127.0.0.1:80@ct.example/",
            "http://10.0.0.1/",
            "https:///log/",
            "https://",
            "https://a@ct.example/",
            "https://ct.example/?a",
            "https://ct.example/#a",
            "https://ct.example/a b",
            "https://ct.example/%2e%2e",
            "file:///etc/passwd",
        ] {
            check(other, None);
        }
        check(&format!("https://ct.example/{}", "a".repeat(600)), None);
    }

    /// A list with one log, in which something is replaced.
    fn with(from: &str, to: &str) -> LogList {
        let text = r#"{"version":"1","log_list_timestamp":"2026-05-29T13:42:48Z","operators":[
            {"name":"Without"},
            {"name":"Empty","logs":[],"tiled_logs":null,"email":[]},
            {"name":"Op","logs":[{"description":"a\u001b log","log_id":"sh4FzIuizYogTodm+Su5iiUgZ2va+nDnsklTLe+LkF4=","key":"MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE6Tx2p1yKY4015NyIYvdrk36es0uAc1zA4PQ+TGRY+3ZjUTIYY9Wyu+3q/147JG4vNVKLtDWarZwVqGkg6lAYzA==","url":"https://ct.example/log/","state":{"usable":{"timestamp":"2026-01-01T00:00:00Z"}},"temporal_interval":{"start_inclusive":"2026-01-01T00:00:00Z","end_exclusive":"2027-01-01T00:00:00Z"},"new_field":[1]}]}]}"#;
        let text = text.replacen(from, to, 1);
        list(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_log_is_read_and_unknown_things_passed_over() {
        let list = with("", "");
        let [log] = list.logs.as_slice() else {
            panic!("{list:?}")
        };
        assert_eq!(
            (log.operator.as_str(), log.description.as_str()),
            ("Op", "a  log")
        );
        assert_eq!(
            (log.state, log.mmd_s, log.is_test),
            (State::Usable, 86_400, false)
        );
        assert_eq!(log.origin(), "ct.example/log");
        assert!(log.interval.unwrap().contains(1_790_000_000_000));
        assert!(list.skipped.is_empty());
        assert!(with(r#""new_field":[1]"#, r#""log_type":"test""#).logs[0].is_test);
    }

    #[test]
    fn states_are_taken_from_the_object_alone() {
        let state =
            |text: &str| with(r#"{"usable":{"timestamp":"2026-01-01T00:00:00Z"}}"#, text).logs[0].state;
        assert_eq!(state(r#"{"pending":{}}"#), State::Pending);
        assert_eq!(state(r#"{"qualified":{}}"#), State::Qualified);
        assert_eq!(state(r#"{"rejected":{}}"#), State::Rejected);
        assert_eq!(state(r#"{"retired":{}}"#), State::Retired(None));
        assert_eq!(state(r#"{"sleeping":{}}"#), State::Unknown);
        assert_eq!(state("{}"), State::Unknown);
        assert_eq!(state("null"), State::Unknown);
        let root = Hash::EMPTY_ROOT;
        let text =
            format!(r#"{{"readonly":{{"final_tree_head":{{"tree_size":3,"sha256_root_hash":"{root}"}}}}}}"#);
        assert_eq!(state(&text), State::ReadOnly(Some(Tree { size: 3, root })));
    }

    #[test]
    fn a_log_that_cannot_be_read_costs_itself() {
        let problem = |from: &str, to: &str| {
            let list = with(from, to);
            assert!(list.logs.is_empty(), "{list:?}");
            list.skipped[0].problem.clone()
        };
        assert_eq!(
            problem("sh4FzI", "sh4FzJ"),
            "its log_id is not the hash of its key"
        );
        assert_eq!(problem("MFkw", "MFkx"), "its key is none that a log may have");
        assert_eq!(problem("https", "http"), "its url is no https:// prefix");
        assert_eq!(
            problem(r#"{"usable":"#, r#"{"retired":{},"usable":"#),
            "it has two states at once"
        );
        assert_eq!(problem("2027-01", "2025-01"), "its temporal_interval is none");
        assert_eq!(problem(r#""key""#, r#""kex""#), "it has no key");
        let twice = with(r#""new_field":[1]}"#, r#""a":1},7"#);
        assert_eq!((twice.logs.len(), twice.skipped.len()), (1, 1));
    }

    #[test]
    fn what_is_no_list_says_so() {
        let error = |text: &str| list(text.as_bytes()).unwrap_err();
        assert!(matches!(error("<html>"), ListError::Answer(error) if error.is_retryable()));
        assert!(matches!(error(r#"{"version":"1"}"#), ListError::Answer(_)));
        assert!(matches!(
            error(r#"{"operators":[]}"#),
            ListError::Timestamp { .. }
        ));
        let many = format!(
            r#"{{"log_list_timestamp":"2026-05-29T13:42:48Z","operators":[{{"logs":[{}1]}}]}}"#,
            "1,".repeat(LOGS_MAX)
        );
        assert!(matches!(error(&many), ListError::TooMany));
    }
}
