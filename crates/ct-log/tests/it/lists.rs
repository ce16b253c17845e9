//! Real log lists: signature, contents, which logs are followed, and which list may follow another.

use serde_json::{Value, json};
use tamis_ct_log::key::{LogId, PublicKey};
use tamis_ct_log::log_list::{
    Api, Follow, FollowRules, GOOGLE_KEY_PEM, ListError, LogList, NotFollowed, Refused, State, accept,
};

use crate::testdata;

const GOOGLE: &str = "ct/log_lists/google_v3_log_list.json";
const OLDER: &str = "ct/log_lists/appmattus_tiled.json";

fn google() -> LogList {
    LogList::read(&testdata(GOOGLE)).unwrap()
}

#[test]
fn googles_list_is_signed_and_no_byte_can_be_changed() {
    let (list, signature) = (testdata(GOOGLE), testdata("ct/log_lists/google_v3_log_list.sig"));
    let key = PublicKey::from_pem(GOOGLE_KEY_PEM.as_bytes()).unwrap();
    assert_eq!(
        PublicKey::from_pem(&testdata("ct/log_lists/google_v3_pubkey.pem")),
        Ok(key.clone())
    );
    let read = LogList::read_signed(&list, &signature, &key).unwrap();
    assert_eq!(read, google());
    let refused = |list: &[u8], signature: &[u8]| {
        matches!(
            LogList::read_signed(list, signature, &key),
            Err(ListError::Signature(_))
        )
    };
    for at in (0..list.len()).step_by(61).chain([list.len() - 1]) {
        let mut other = list.clone();
        other[at] ^= 1;
        assert!(refused(&other, &signature), "byte {at} of the list");
    }
    for at in 0..signature.len() {
        let mut other = signature.clone();
        other[at] ^= 1;
        assert!(refused(&list, &other), "byte {at} of the signature");
        assert!(refused(&list, &signature[..at]));
    }
    assert!(refused(&list[..list.len() - 1], &signature));
}

#[test]
fn googles_list_is_read_whole() {
    let list = google();
    assert_eq!(
        (list.version.as_str(), list.timestamp_ms),
        ("85.92", 1_780_062_168_000)
    );
    assert_eq!((list.logs.len(), list.skipped.as_slice()), (56, &[][..]));
    assert_eq!(list.age_ms(list.timestamp_ms + 5), 5);
    assert_eq!(list.age_ms(0), 0);
    let count = |is: fn(&Api, State) -> bool| list.logs.iter().filter(|log| is(&log.api, log.state)).count();
    assert_eq!(
        count(|api, state| matches!((api, state), (Api::Rfc6962 { .. }, State::Usable))),
        27
    );
    assert_eq!(
        count(|api, state| matches!((api, state), (Api::Static { .. }, State::Usable))),
        21
    );
    assert_eq!(count(|_, state| matches!(state, State::ReadOnly(Some(_)))), 4);
    assert_eq!(count(|_, state| state == State::Retired(None)), 4);
    let id = LogId::from_base64("JS+Uwisp6W6fQRpyBytpXFtS/5epDSVAu/zcUexN7gs=").unwrap();
    let mammoth = list.log(&id).unwrap();
    let Follow::ToTheEnd(tree) = mammoth.follow(&FollowRules::default()) else {
        panic!("{mammoth:?}")
    };
    assert_eq!((tree.size, mammoth.mmd_s), (65_240_567, 86_400));
    assert_eq!(
        tree.root.to_string(),
        "N7bqzTXnPktVFG8/h3gi5pcuxCo+mfWyv+XlIIS4cEU="
    );
    let tuscolo = list
        .logs
        .iter()
        .find(|log| log.monitoring_url().contains("tuscolo2026h2"))
        .unwrap();
    assert_eq!(
        tuscolo.submission_url(),
        "https://tuscolo2026h2.sunlight.geomys.org/"
    );
    assert_eq!(
        tuscolo.monitoring_url(),
        "https://tuscolo2026h2.skylight.geomys.org/"
    );
    assert_eq!(
        (tuscolo.origin(), tuscolo.mmd_s),
        ("tuscolo2026h2.sunlight.geomys.org", 60)
    );
    assert_eq!(
        tuscolo.id().to_string(),
        "Rq+GPTs+5Z+ld96oJF02sNntIqIj9GF3QSKUUu6VUF8="
    );
    let interval = tuscolo.interval.unwrap();
    assert!(interval.contains(1_790_000_000_000) && !interval.contains(list.timestamp_ms));
}

#[test]
fn what_is_followed_is_decided_by_state() {
    let count = |list: &LogList, rules: &FollowRules<'_>| {
        let mut counts = [0; 4];
        for log in &list.logs {
            let at = match log.follow(rules) {
                Follow::Tail => 0,
                Follow::ToTheEnd(_) => 1,
                Follow::No(NotFollowed::Retired) => 2,
                Follow::No(NotFollowed::Placeholder) => 3,
                other => panic!("{log:?}: {other:?}"),
            };
            counts[at] += 1;
        }
        counts
    };
    let rules = FollowRules::default();
    assert_eq!(count(&google(), &rules), [48, 4, 2, 2]);
    let older = LogList::read(&testdata(OLDER)).unwrap();
    assert_eq!(older.logs.len(), 44);
    assert_eq!(count(&older, &rules), [41, 0, 3, 0]);
    let excluded = [google().logs[0].id()];
    let rules = FollowRules {
        excluded: &excluded,
        ..rules
    };
    assert_eq!(google().logs[0].follow(&rules), Follow::No(NotFollowed::Excluded));
    assert_eq!(google().logs[1].follow(&rules), Follow::Tail);
}

#[test]
fn every_state_has_its_answer() {
    let follow = |key: &str, value: Value, rules: &FollowRules<'_>| {
        let list = changed(|list| list["operators"][0]["logs"][0][key] = value.clone());
        list.logs[0].follow(rules)
    };
    let rules = FollowRules::default();
    let of_state = |state: &str| follow("state", json!({ state: {} }), &rules);
    assert_eq!(of_state("usable"), Follow::Tail);
    assert_eq!(of_state("qualified"), Follow::Tail);
    assert_eq!(of_state("readonly"), Follow::ToItsHead);
    assert_eq!(of_state("retired"), Follow::No(NotFollowed::Retired));
    assert_eq!(of_state("rejected"), Follow::No(NotFollowed::Rejected));
    assert_eq!(of_state("pending"), Follow::No(NotFollowed::Pending));
    assert_eq!(of_state("sleeping"), Follow::No(NotFollowed::UnknownState));
    let pending = FollowRules {
        pending: true,
        ..rules
    };
    assert_eq!(follow("state", json!({"pending": {}}), &pending), Follow::Tail);
    assert_eq!(
        follow("log_type", json!("test"), &rules),
        Follow::No(NotFollowed::Test)
    );
    assert_eq!(follow("log_type", json!("prod"), &rules), Follow::Tail);
    let address = json!("https://ct.example.org/log/");
    assert_eq!(
        follow("url", address, &rules),
        Follow::No(NotFollowed::Placeholder)
    );
    // What a description says changes nothing.
    assert_eq!(
        follow("description", json!("Bogus mimic test log, retired"), &rules),
        Follow::Tail
    );
}

#[test]
fn a_year_of_shards_may_come_and_go() {
    let (older, newer) = (LogList::read(&testdata(OLDER)).unwrap(), google());
    let rules = FollowRules::default();
    let change = accept(Some(&older), &newer, &rules).unwrap();
    assert!(change.started.len() > 20 && change.ended.len() > 10, "{change:?}");
    for id in &change.started {
        assert!(!matches!(newer.log(id).unwrap().follow(&rules), Follow::No(_)));
    }
    for id in &change.ended {
        assert!(
            newer
                .log(id)
                .is_none_or(|log| matches!(log.follow(&rules), Follow::No(_)))
        );
    }
    let older_ms = Refused::Older {
        new_ms: older.timestamp_ms,
        last_ms: newer.timestamp_ms,
    };
    assert_eq!(accept(Some(&newer), &older, &rules), Err(older_ms));
    assert_eq!(accept(Some(&newer), &newer, &rules), Ok(Default::default()));
    assert_eq!(accept(None, &newer, &rules).unwrap().started.len(), 52);
}

/// Google's list after a change.
fn changed(change: impl Fn(&mut Value)) -> LogList {
    let mut list: Value = serde_json::from_slice(&testdata(GOOGLE)).unwrap();
    change(&mut list);
    LogList::read(&serde_json::to_vec(&list).unwrap()).unwrap()
}

#[test]
fn a_list_that_loses_most_logs_is_refused() {
    let (last, rules) = (google(), FollowRules::default());
    let keep =
        |operators: usize| changed(|list| list["operators"].as_array_mut().unwrap().truncate(operators));
    assert_eq!(accept(Some(&last), &keep(0), &rules), Err(Refused::NoLogs));
    let Err(Refused::LosesMost { known, kept }) = accept(Some(&last), &keep(1), &rules) else {
        panic!()
    };
    assert_eq!((known, kept), (52, 6));
    let change = accept(Some(&last), &keep(6), &rules).unwrap();
    assert!(change.started.is_empty() && !change.ended.is_empty());
    // Nothing but placeholders is nothing to follow.
    let bogus = changed(|list| {
        let operators = list["operators"].as_array_mut().unwrap();
        operators.retain(|operator| operator["name"] == "Geomys");
        operators[0]["tiled_logs"] = json!([]);
    });
    assert_eq!(bogus.logs.len(), 1);
    assert_eq!(accept(None, &bogus, &rules), Err(Refused::NoLogs));
}

#[test]
fn half_of_the_logs_may_go_and_no_more() {
    let (last, rules) = (google(), FollowRules::default());
    let lose = |count: usize| {
        let mut list = last.clone();
        let mut left = count;
        list.logs.retain(|log| {
            let goes = left > 0 && !matches!(log.follow(&rules), Follow::No(_));
            left -= usize::from(goes);
            !goes
        });
        accept(Some(&last), &list, &rules)
    };
    assert_eq!(lose(26).unwrap().ended.len(), 26);
    assert_eq!(lose(27), Err(Refused::LosesMost { known: 52, kept: 25 }));
    // When all their intervals are over, all may go but what takes their place.
    let mut later = last.clone();
    later.timestamp_ms = 1_900_000_000_000;
    later.logs.truncate(1);
    assert_eq!(accept(Some(&last), &later, &rules).unwrap().ended.len(), 51);
}

#[test]
fn a_change_of_state_is_told() {
    let (last, rules) = (google(), FollowRules::default());
    let id = last.logs[0].id();
    let set = |state: Value| changed(|list| list["operators"][0]["logs"][0]["state"] = state.clone());
    let retired = accept(Some(&last), &set(json!({"retired": {}})), &rules).unwrap();
    assert_eq!(
        (retired.started, retired.ended, retired.ending),
        (vec![], vec![id], vec![])
    );
    let root = "N7bqzTXnPktVFG8/h3gi5pcuxCo+mfWyv+XlIIS4cEU=";
    let head = json!({"tree_size": 9, "sha256_root_hash": root});
    let readonly = set(json!({"readonly": {"final_tree_head": head}}));
    let ending = accept(Some(&last), &readonly, &rules).unwrap();
    assert_eq!(
        (ending.started, ending.ended, ending.ending),
        (vec![], vec![], vec![id])
    );
    let again = accept(Some(&set(json!({"retired": {}}))), &last, &rules).unwrap();
    assert_eq!(again.started, [id]);
}
