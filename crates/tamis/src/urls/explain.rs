//! `tamis urls explain`: are two URLs the same, under which profile, and which rule decided?

use serde_json::{Map, Value, json};
use tamis_url_canon::{Canonicalizer, Profile, Rule, Step};

use super::ExplainArgs;
use crate::Outcome;
use crate::render;

pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<Outcome> {
    let matcher = args.keys.matcher()?;
    let mut canonicalizer = args.keys.canonicalizer(matcher.as_ref());
    let (a, b) = (args.a.as_bytes(), args.b.as_bytes());
    for url in [a, b] {
        if let Err(reject) = canonicalizer.canon(url) {
            talk!("{} has no key: {reject}", String::from_utf8_lossy(url));
            return Ok(Outcome::Nothing);
        }
    }
    let explanation = canonicalizer.explain(a, b)?;
    let [key_a, key_b] = &explanation.keys;
    let [steps_a, steps_b] = &explanation.steps;
    let deciding: Vec<Value> = explanation
        .deciding
        .iter()
        .map(|rule| rule_facts(*rule))
        .collect();
    let (decided_by, would_meet_by) = if explanation.same {
        (deciding, Vec::new())
    } else {
        (Vec::new(), deciding)
    };
    let mut facts = Map::new();
    for (name, value) in [
        ("same", json!(explanation.same)),
        ("profile", json!(args.keys.profile.name())),
        ("id", json!(canonicalizer.id())),
        ("key_a", json!(key_a)),
        ("key_b", json!(key_b)),
        ("decided_by", json!(decided_by)),
        ("differ_in", json!(explanation.differ_in)),
        ("would_meet_by", json!(would_meet_by)),
        ("same_under", json!(same_under(a, b))),
        ("steps_a", steps(steps_a)),
        ("steps_b", steps(steps_b)),
    ] {
        facts.insert(name.to_owned(), value);
    }
    render::document(args.format.format, &facts)?;
    Ok(Outcome::Success)
}

/// The profiles, without rule sets, under which two URLs are the same.
fn same_under(a: &[u8], b: &[u8]) -> Vec<&'static str> {
    let key = |profile, url: &[u8]| {
        let mut canonicalizer = Canonicalizer::new(profile);
        canonicalizer
            .canon(url)
            .ok()
            .map(|canonical| canonical.key.to_owned())
    };
    let mut same = Vec::new();
    for profile in Profile::ALL {
        let first = key(profile, a);
        if first.is_some() && first == key(profile, b) {
            same.push(profile.name());
        }
    }
    same
}

fn rule_facts(rule: Rule) -> Value {
    json!({ "rule": rule.name(), "class": rule.class().name(), "what": rule.what() })
}

/// What each rule changed.
pub(super) fn steps(steps: &[Step]) -> Value {
    let steps = steps.iter().map(|step| {
        json!({
            "rule": step.rule.name(),
            "class": step.rule.class().name(),
            "before": step.before,
            "after": step.after,
        })
    });
    steps.collect()
}
