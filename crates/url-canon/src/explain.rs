//! Why two URLs have one key, or two.
//!
//! Rules are tried by making the key again with some of them masked. That costs a key per rule, and says
//! nothing that the keys themselves do not.

use crate::canon::Canonicalizer;
use crate::parse::{Reject, Url};
use crate::rule::{Class, Rule, RuleBits};

/// What a rule did on the way from the input to the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The rule.
    pub rule: Rule,
    /// The URL before it. The parser applies its rules in one pass, so they share this and `after`.
    pub before: String,
    /// The URL after it.
    pub after: String,
}

/// Two URLs compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Whether they are the same under the rules that were asked for.
    pub same: bool,
    /// Their keys (with rule sets: their equivalences).
    pub keys: [String; 2],
    /// What happened to each.
    pub steps: [Vec<Step>; 2],
    /// If they are the same: the rules without any of which they would not be. If not: rules, each of
    /// which alone would make them the same.
    pub deciding: Vec<Rule>,
    /// If they are not the same: the parts in which their keys differ.
    pub differ_in: Vec<&'static str>,
}

impl Canonicalizer {
    /// The rules that changed a URL, one after the other, from what was given to the equivalence.
    ///
    /// # Errors
    /// As [`Canonicalizer::canon`].
    pub fn trace(&mut self, input: &[u8]) -> Result<Vec<Step>, Reject> {
        let canonical = self.canon(input)?;
        let fetched = canonical.fetch_url.to_owned();
        let fired = canonical.fired.union(canonical.fired_equivalence);
        let given = String::from_utf8_lossy(input).into_owned();
        let parsed = parser_rules();
        let mut steps: Vec<Step> = fired
            .only(parsed)
            .iter()
            .map(|rule| Step {
                rule,
                before: given.clone(),
                after: fetched.clone(),
            })
            .collect();
        let mut before = fetched;
        let mut mask = parsed;
        for rule in fired.minus(parsed).iter() {
            mask = mask.with(rule);
            let after = self.masked(mask, input)?;
            if after != before {
                let (before, after) = (std::mem::replace(&mut before, after.clone()), after);
                steps.push(Step { rule, before, after });
            }
        }
        Ok(steps)
    }

    /// Compares two URLs and says which rules decided.
    ///
    /// # Errors
    /// As [`Canonicalizer::canon`], for the first of the two that has no key.
    pub fn explain(&mut self, a: &[u8], b: &[u8]) -> Result<Explanation, Reject> {
        let keys = [
            self.canon(a)?.equivalence.to_owned(),
            self.canon(b)?.equivalence.to_owned(),
        ];
        let same = keys[0] == keys[1];
        let steps = [self.trace(a)?, self.trace(b)?];
        let (mut deciding, mut differ_in) = (Vec::new(), Vec::new());
        if same {
            let mut fired: Vec<Rule> = steps.iter().flatten().map(|step| step.rule).collect();
            fired.sort_unstable();
            fired.dedup();
            for rule in fired {
                let needed = match parser_rules().has(rule) {
                    // The parser has no switches: its rules decided if the URLs given differ and no other
                    // rule was needed to undo that.
                    true => a != b,
                    false => {
                        let mask = all().without(rule);
                        self.masked(mask, a)? != self.masked(mask, b)?
                    }
                };
                if needed {
                    deciding.push(rule);
                }
            }
        } else {
            differ_in = differing(&keys);
            for rule in Rule::ALL.iter().copied().filter(|rule| rule.class() == Class::C) {
                let usual = self.switch_on(rule);
                let first = self.canon(a)?.equivalence.to_owned();
                let meet = first == self.canon(b)?.equivalence;
                self.restore(usual);
                if meet {
                    deciding.push(rule);
                }
            }
        }
        Ok(Explanation {
            same,
            keys,
            steps,
            deciding,
            differ_in,
        })
    }

    /// The equivalence with some rules alone.
    fn masked(&mut self, mask: RuleBits, input: &[u8]) -> Result<String, Reject> {
        let usual = std::mem::replace(&mut self.mask, mask);
        let result = self
            .canon(input)
            .map(|canonical| canonical.equivalence.to_owned());
        self.mask = usual;
        result
    }
}

fn all() -> RuleBits {
    Rule::ALL.iter().copied().collect()
}

/// Rules that the parser applies, which cannot be switched.
fn parser_rules() -> RuleBits {
    Rule::ALL
        .iter()
        .copied()
        .filter(|&rule| rule <= Rule::PercentEncode)
        .collect()
}

fn differing(keys: &[String; 2]) -> Vec<&'static str> {
    let [Ok(a), Ok(b)] =
        [0, 1].map(|index| Url::parse(keys.get(index).map_or(&[][..], |key| key.as_bytes())))
    else {
        return vec!["key"];
    };
    let parts: [(&'static str, bool); 6] = [
        ("scheme", a.scheme() != b.scheme()),
        (
            "userinfo",
            (a.username(), a.password()) != (b.username(), b.password()),
        ),
        ("host", a.host() != b.host()),
        ("port", a.port() != b.port()),
        ("path", a.path() != b.path()),
        ("query", a.query() != b.query()),
    ];
    let fragment = (a.fragment() != b.fragment()).then_some("fragment");
    let parts = parts
        .into_iter()
        .filter_map(|(part, differs)| differs.then_some(part));
    parts.chain(fragment).collect()
}
