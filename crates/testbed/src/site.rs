//! A site: what someone keeps having certificates issued for.
//!
//! Everything about a site follows from the corpus seed and the site's number, so a renewal months
//! later needs no memory of the first certificate.

use crate::issuers::{Issuers, KeyKind, Validation};
use crate::random::Random;
use crate::words::{ENDINGS, INTERNATIONAL, LABELS, LEGAL_FORMS, PLACES, STAGES, SYLLABLES, WORDS};

/// Most names in one certificate.
const NAMES_MAX: usize = 10;
/// Weights of 1, 2, … 10 names: mean 2.3.
const NAME_COUNTS: [u64; NAMES_MAX] = [380, 385, 100, 40, 25, 20, 15, 15, 10, 10];

pub(crate) struct Site {
    pub(crate) names: Vec<String>,
    pub(crate) ip: Option<[u8; 4]>,
    pub(crate) issuer: usize,
    pub(crate) key: KeyKind,
    pub(crate) organisation: Option<Organisation>,
    /// Some authorities leave the subject empty.
    pub(crate) has_common_name: bool,
}

pub(crate) struct Organisation {
    pub(crate) name: String,
    pub(crate) country: &'static str,
    pub(crate) city: &'static str,
}

impl Site {
    /// The site with this number, over a pool of `domains` registrable domains.
    pub(crate) fn new(seed: u64, number: u64, domains: u64, issuers: &Issuers) -> Self {
        let random = &mut Random::for_item(seed, 2, number);
        let domain = domain(seed, random.rank(domains));
        let issuer = issuers.pick(random);
        let profile = &issuers.all()[issuer].profile;
        let count = 1 + random.pick_weighted(&NAME_COUNTS, |weight| *weight);
        let with_organisation = match profile.validates {
            Validation::Domain => random.chance(20),
            Validation::Organisation => random.chance(800),
        };
        Self {
            names: names(&domain, count, random),
            ip: random.chance(4).then(|| [203, 0, 113, random.below(256) as u8]),
            issuer,
            key: if random.chance(500) {
                KeyKind::Ec
            } else {
                KeyKind::Rsa
            },
            organisation: with_organisation.then(|| organisation(random)),
            has_common_name: random.chance(850),
        }
    }
}

/// The registrable domain of a rank; a pure function, so the pool takes no memory. Ranks may share
/// a domain: five million ranks make 4.4 million domains.
fn domain(seed: u64, rank: u64) -> String {
    let random = &mut Random::for_item(seed, 3, rank);
    let mut domain = String::with_capacity(32);
    match random.below(100) {
        0..=39 => {
            domain.push_str(random.pick(WORDS));
            domain.push_str(random.pick(WORDS));
            if random.chance(600) {
                domain.push_str(random.pick(SYLLABLES));
            }
        }
        40..=54 => {
            domain.push_str(random.pick(WORDS));
            domain.push('-');
            domain.push_str(random.pick(WORDS));
            if random.chance(300) {
                domain.push('-');
                domain.push_str(random.pick(WORDS));
            }
        }
        55..=89 => {
            for _ in 0..random.between(3, 6) {
                domain.push_str(random.pick(SYLLABLES));
            }
        }
        90..=98 => {
            domain.push_str(random.pick(WORDS));
            domain.push_str(&random.between(1, 10_000).to_string());
        }
        _ => domain.push_str(random.pick(INTERNATIONAL)),
    }
    let (ending, _) = ENDINGS[random.pick_weighted(ENDINGS, |(_, weight)| *weight)];
    domain.push('.');
    domain.push_str(ending);
    domain
}

fn names(domain: &str, count: usize, random: &mut Random) -> Vec<String> {
    let base = if random.chance(250) {
        format!("{}.{domain}", label(random))
    } else {
        domain.to_owned()
    };
    let mut names = Vec::with_capacity(count);
    match (count, random.below(100)) {
        (1, 0..=34) => names.push(base),
        (1, 35..=54) => names.push(format!("www.{base}")),
        (1, 55..=64) => names.push(format!("*.{base}")),
        (1, _) => names.push(below(&base, random)),
        (2, 0..=54) => names.extend([format!("www.{base}"), base]),
        (2, 55..=84) => names.extend([format!("*.{base}"), base]),
        _ => {
            names.push(base.clone());
            // Bounded: a table of hundreds of labels rarely repeats ten times in a row.
            for _ in 0..4 * count {
                let name = below(&base, random);
                if names.len() < count && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
    names
}

/// A name below `base`.
fn below(base: &str, random: &mut Random) -> String {
    let mut name = String::with_capacity(64);
    match random.below(100) {
        0..=69 => name.push_str(label(random)),
        70..=79 => {
            random.push_hex(&mut name, 12);
            name.push('.');
            name.push_str(random.pick(STAGES));
        }
        80..=89 => {
            name.push_str(label(random));
            name.push('.');
            name.push_str(random.pick(STAGES));
        }
        90..=95 => {
            name.push_str(label(random));
            name.push('-');
            random.push_hex(&mut name, 6);
        }
        _ => {
            name.push_str("*.");
            name.push_str(random.pick(STAGES));
        }
    }
    name.push('.');
    name.push_str(base);
    name
}

/// A label, earlier ones of the table more often.
fn label(random: &mut Random) -> &'static str {
    LABELS[random.rank(LABELS.len() as u64) as usize]
}

fn organisation(random: &mut Random) -> Organisation {
    let mut name = String::new();
    for word in [random.pick(WORDS), random.pick(WORDS)] {
        let (first, rest) = word.split_at(1);
        name.push_str(&first.to_uppercase());
        name.push_str(rest);
        name.push(' ');
    }
    name.push_str(random.pick(LEGAL_FORMS));
    let (country, city) = random.pick(PLACES);
    Organisation { name, country, city }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn sites_look_like_the_web() {
        let issuers = Issuers::new(1);
        let sites: Vec<_> = (0..20_000)
            .map(|number| Site::new(1, number, 5_000_000, &issuers))
            .collect();
        let total: usize = sites.iter().map(|site| site.names.len()).sum();
        let mean = total as f64 / sites.len() as f64;
        assert!((2.2..2.4).contains(&mean), "{mean}");
        let organisations = sites.iter().filter(|site| site.organisation.is_some()).count();
        assert!((1600..2400).contains(&organisations), "{organisations}");
        for site in &sites {
            let distinct: HashSet<_> = site.names.iter().collect();
            assert_eq!(distinct.len(), site.names.len(), "{:?}", site.names);
            assert!(
                site.names.iter().all(|name| name.len() <= 253 && name.is_ascii()),
                "{:?}",
                site.names
            );
        }
    }

    #[test]
    fn the_pool_has_millions_of_domains() {
        let distinct: HashSet<_> = (0..200_000).map(|rank| domain(1, rank)).collect();
        assert!(distinct.len() > 190_000, "{}", distinct.len());
    }
}
