//! Any bytes are a log list or an error; what is listed can be judged, and follows itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_ct_log::log_list::{Change, Follow, FollowRules, LOGS_MAX, LogList, accept};

fuzz_target!(|bytes: &[u8]| {
    let Ok(list) = LogList::read(bytes) else { return };
    assert!(list.logs.len() + list.skipped.len() <= LOGS_MAX);
    let rules = FollowRules::default();
    for log in &list.logs {
        assert_eq!(list.log(&log.id()), Some(log));
        assert!(log.monitoring_url().starts_with("https://") && log.monitoring_url().ends_with('/'));
        assert!(!log.origin().is_empty() && !log.origin().ends_with('/'));
    }
    let is_followed = |follow| !matches!(follow, Follow::No(_));
    let any = list.logs.iter().any(|log| is_followed(log.follow(&rules)));
    assert_eq!(accept(None, &list, &rules).is_ok(), any);
    if any {
        assert_eq!(accept(Some(&list), &list, &rules), Ok(Change::default()));
    }
});
