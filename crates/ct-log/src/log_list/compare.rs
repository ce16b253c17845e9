//! Whether a new list may take the place of the last good one.
//!
//! Google announced hours in which some clients are served a list that holds nothing but mimics, signed
//! with the same key; and an old list stays validly signed for ever. So a signature is not enough.

use super::{Follow, FollowRules, LogList};
use crate::key::LogId;

/// What a new list changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Logs that are to be read and were not listed, or not to be read, before.
    pub started: Vec<LogId>,
    /// Logs that were to be read and are listed no more, or not to be read now.
    pub ended: Vec<LogId>,
    /// Logs that are read to the end from now on.
    pub ending: Vec<LogId>,
}

/// Why a list is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Nothing in it is to be read.
    #[error("the new log list names no log to follow; keep the last good list")]
    NoLogs,
    /// It was made before the last good one.
    #[error(
        "the new log list is older than the last good one ({new_ms} < {last_ms} ms); keep that, and look whether a cache serves old answers"
    )]
    Older {
        /// Of the new list, in milliseconds since 1970.
        new_ms: u64,
        /// Of the last good one.
        last_ms: u64,
    },
    /// Most logs that were read and are still within their time are gone.
    #[error(
        "the new log list keeps {kept} of {known} logs that are followed and not past their time; this is how a list for other clients looks: keep the last good list, and see that the User-Agent says who you are"
    )]
    LosesMost {
        /// Logs that were followed and should still be.
        known: usize,
        /// Those of them that the new list still names.
        kept: usize,
    },
}

/// Judges `new` by `last`, the last good list; the first list of all has none.
///
/// A list is refused if it is older, if nothing in it is to be followed, or if it loses more than half of
/// the logs that were followed; logs whose interval is over when the new list was made do not count, since
/// shards go away in their time.
///
/// # Errors
/// [`Refused`].
pub fn accept(last: Option<&LogList>, new: &LogList, rules: &FollowRules<'_>) -> Result<Change, Refused> {
    let is_followed = |follow: Follow| !matches!(follow, Follow::No(_));
    if !new.logs.iter().any(|log| is_followed(log.follow(rules))) {
        return Err(Refused::NoLogs);
    }
    let followed_before = last.into_iter().flat_map(|last| &last.logs);
    let followed_before: Vec<_> = followed_before
        .filter(|log| is_followed(log.follow(rules)))
        .collect();
    if let Some(last) = last {
        if new.timestamp_ms < last.timestamp_ms {
            return Err(Refused::Older {
                new_ms: new.timestamp_ms,
                last_ms: last.timestamp_ms,
            });
        }
        let is_in_time = |end_ms: u64| end_ms > new.timestamp_ms;
        let (mut known, mut kept) = (0, 0);
        for log in &followed_before {
            if log.interval.is_none_or(|interval| is_in_time(interval.end_ms)) {
                known += 1;
                kept += usize::from(new.log(&log.id()).is_some());
            }
        }
        if kept * 2 < known {
            return Err(Refused::LosesMost { known, kept });
        }
    }
    let mut change = Change::default();
    for log in &new.logs {
        let (id, now) = (log.id(), log.follow(rules));
        let before = followed_before.iter().find(|before| before.id() == id);
        let tailed_before = before.is_some_and(|before| before.follow(rules) == Follow::Tail);
        if is_followed(now) && before.is_none() {
            change.started.push(id);
        } else if is_followed(now) && tailed_before && now != Follow::Tail {
            change.ending.push(id);
        }
    }
    let ended = followed_before.iter().map(|log| log.id()).filter(|id| {
        let now = new.log(id).map(|log| log.follow(rules));
        !now.is_some_and(is_followed)
    });
    change.ended = ended.collect();
    Ok(change)
}
