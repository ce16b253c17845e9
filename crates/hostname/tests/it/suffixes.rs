//! Registrable domains against the official vectors, the algorithm and another implementation.

use std::collections::HashSet;

use tamis_hostname::PublicSuffixes;

use crate::host;

const VECTORS: &str = include_str!("../../../../testdata/psl/test_psl.txt");
const ORACLE: &str = include_str!("../../../../testdata/psl/oracle_registrable.tsv");
const LIST: &str = include_str!("../../data/public_suffix_list.dat");

/// `'x'` gives `Some(x)`, `null` gives `None`.
fn argument(text: &str) -> Option<&str> {
    text.trim().strip_prefix('\'')?.strip_suffix('\'')
}

#[track_caller]
fn check(name: &str, registrable: Option<&str>) {
    // The vectors keep a leading dot, which `read` would mend.
    let canonical = if name.starts_with('.') {
        name.to_owned()
    } else {
        host(name).unwrap()
    };
    let found = PublicSuffixes::shipped().registrable(&canonical);
    assert_eq!(
        found,
        registrable.and_then(host).as_deref(),
        "registrable of {name:?}"
    );
}

#[test]
fn official_vectors() {
    let calls = VECTORS
        .lines()
        .filter_map(|line| line.strip_prefix("checkPublicSuffix(")?.strip_suffix(");"));
    let mut count = 0;
    for (name, registrable) in calls.map(|call| call.split_once(',').unwrap()) {
        count += 1;
        match argument(name) {
            Some(name) => check(name, argument(registrable)),
            None => assert_eq!(argument(registrable), None),
        }
    }
    assert_eq!(count, 78);
}

#[test]
fn answers_of_another_implementation() {
    let rules = rules();
    // That implementation takes `*.x` to imply `x`; the algorithm does not.
    let is_only_above_a_wildcard = |name: &str| rules.contains(&format!("*.{name}")) && !rules.contains(name);
    let mut differing = 0;
    for row in ORACLE.lines().skip(1) {
        let [name, suffix, registrable] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("no three columns: {row:?}");
        };
        if is_only_above_a_wildcard(name) {
            // Covered by `every_rule_as_the_algorithm_has_it`.
            differing += 1;
            continue;
        }
        check(name, Some(registrable).filter(|domain| !domain.is_empty()));
        assert_eq!(
            PublicSuffixes::shipped().suffix(&host(name).unwrap()),
            suffix,
            "suffix of {name:?}"
        );
    }
    assert_eq!((ORACLE.lines().count() - 1, differing), (2_000, 15));
}

/// Every rule of the shipped list, itself and with labels before it.
#[test]
fn every_rule_as_the_algorithm_has_it() {
    let rules = rules();
    let mut count = 0;
    for rule in &rules {
        let suffix = rule.trim_start_matches(['!', '*', '.']);
        for host in [
            suffix.to_owned(),
            format!("a.{suffix}"),
            format!("b.a.{suffix}"),
            format!("c.b.a.{suffix}"),
        ] {
            let labels = suffix_label_count(&host, &rules);
            assert_eq!(
                PublicSuffixes::shipped().suffix(&host),
                last_labels(&host, labels),
                "suffix of {host:?}"
            );
            let registrable = (labels < host.split('.').count()).then(|| last_labels(&host, labels + 1));
            assert_eq!(
                PublicSuffixes::shipped().registrable(&host),
                registrable,
                "registrable of {host:?}"
            );
            count += 1;
        }
    }
    assert!(count > 40_000, "{count}");
}

/// The rules of the shipped list with their domains in canonical form.
fn rules() -> HashSet<String> {
    let lines = LIST.lines().filter_map(|line| line.split_whitespace().next());
    let canonical = |rule: &str| {
        let domain = rule.trim_start_matches(['!', '*', '.']);
        format!("{}{}", rule.strip_suffix(domain).unwrap(), host(domain).unwrap())
    };
    lines
        .filter(|rule| !rule.starts_with("//"))
        .map(canonical)
        .collect()
}

/// The algorithm of <https://github.com/publicsuffix/list/wiki/Format>, word by word.
fn suffix_label_count(host: &str, rules: &HashSet<String>) -> usize {
    let label_count = host.split('.').count();
    let matching =
        |kind: &str, labels: usize| rules.contains(&format!("{kind}{}", last_labels(host, labels)));
    let all = 1..=label_count;
    if let Some(exception) = all.clone().find(|&labels| matching("!", labels)) {
        return exception - 1;
    }
    let is_rule = |&labels: &usize| matching("", labels) || (labels > 1 && matching("*.", labels - 1));
    all.filter(is_rule).max().unwrap_or(1)
}

fn last_labels(host: &str, count: usize) -> &str {
    let start = host
        .rmatch_indices('.')
        .nth(count - 1)
        .map_or(0, |(dot, _)| dot + 1);
    host.get(start..).unwrap()
}
