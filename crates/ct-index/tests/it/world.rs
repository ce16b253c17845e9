//! A small world of certificates, and what an index of them must say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tamis_ct_index::compact::prune::What;
use tamis_ct_index::key::Identifier;
use tamis_ct_index::record::{CertificateKind, Fingerprint, Issuance, Position};
use tamis_ct_index::{Batch, FilterMode, Index, Observation, Options, Snapshot};

/// One observation, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Number of the issuance; everything else about it follows from this.
    pub(crate) issuance: u64,
    pub(crate) precert: bool,
    pub(crate) position: Option<(u16, u64)>,
    pub(crate) at: i64,
}

pub(crate) const HOSTS: [&str; 8] = [
    "imfht.com",
    "www.imfht.com",
    "a.b.imfht.com",
    "imfht-x.com",
    "imfht.org",
    "example.com",
    "deep.www.example.com",
    "localhost",
];

impl Seen {
    /// Any observation of an issuance.
    pub(crate) fn of(issuance: u64) -> Self {
        Self {
            issuance,
            precert: false,
            position: None,
            at: 0,
        }
    }

    pub(crate) fn names(&self) -> Vec<(&'static str, u8)> {
        let count = 1 + self.issuance % 3;
        let names: BTreeMap<&str, u8> = (0..count)
            .map(|step| {
                (
                    HOSTS[((self.issuance * 7 + step * 3) % 8) as usize],
                    1 + ((self.issuance + step) % 3) as u8,
                )
            })
            .collect();
        names.into_iter().collect()
    }

    pub(crate) fn hash(&self) -> u64 {
        self.issuance.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    pub(crate) fn sha256(&self) -> [u8; 32] {
        let mut sha256 = [self.issuance as u8; 32];
        sha256[..8].copy_from_slice(&(self.hash() ^ u64::from(self.precert)).to_be_bytes());
        sha256
    }

    pub(crate) fn serial(&self) -> Vec<u8> {
        self.issuance.to_be_bytes().to_vec()
    }

    pub(crate) fn organization(&self) -> String {
        if self.issuance.is_multiple_of(4) {
            format!("Org {}", self.issuance % 12)
        } else {
            String::new()
        }
    }

    pub(crate) fn not_before(&self) -> Option<i64> {
        (!self.issuance.is_multiple_of(5)).then_some(1_700_000_000 + self.issuance as i64 * 1_000)
    }

    pub(crate) fn not_after(&self) -> Option<i64> {
        (!self.issuance.is_multiple_of(7)).then_some(1_707_776_000 + self.issuance as i64 * 1_000)
    }

    pub(crate) fn push(&self, batch: &mut Batch) {
        let organization = self.organization();
        let serial = self.serial();
        let names = self.names();
        let kind = if self.precert {
            CertificateKind::Precertificate
        } else {
            CertificateKind::Certificate
        };
        let position = self.position.map(|(log, index)| Position {
            log,
            index,
            timestamp_ms: self.at as u64 * 1_000,
        });
        let observation = Observation {
            issuance: Issuance(self.hash()),
            serial: &serial,
            fingerprint: Some(Fingerprint {
                kind,
                sha256: self.sha256(),
            }),
            position,
            first_seen: self.at,
            not_before: self.not_before(),
            not_after: self.not_after(),
            issuer: [
                "CN=R10,O=Let's Encrypt,C=US",
                "CN=WE1,O=Google Trust Services,C=US",
            ][(self.issuance % 2) as usize],
            organization: &organization,
            names_total: names.len() as u64,
            deviations: u64::from(self.issuance.is_multiple_of(9)),
        };
        let common_name = [names[0].0];
        batch.push(
            &observation,
            common_name.into_iter(),
            names
                .into_iter()
                .map(|(name, bits)| (Identifier::Host(name), bits)),
        );
    }
}

pub(crate) fn batch(seen: &[Seen]) -> Batch {
    let mut batch = Batch::new();
    for one in seen {
        one.push(&mut batch);
    }
    batch
}

/// Every issuance twice, as precertificate and certificate, in two logs.
pub(crate) fn pairs(count: u64) -> Vec<Seen> {
    (0..count)
        .flat_map(|issuance| {
            let at = 1_700_000_000 + issuance as i64;
            [
                Seen {
                    issuance,
                    precert: true,
                    position: Some((1, 100 + issuance)),
                    at,
                },
                Seen {
                    issuance,
                    precert: false,
                    position: Some((2, 5_000 + issuance * 2)),
                    at: at + 60,
                },
            ]
        })
        .collect()
}

pub(crate) fn options(flush_rows: usize) -> Options {
    Options {
        flush_rows,
        now: || 1_764_500_000,
        identity_key: Some([1, 2, 3, 4]),
        ..Options::default()
    }
}

pub(crate) fn open(dir: &Path, flush_rows: usize) -> Index {
    open_with(dir, flush_rows, options(flush_rows).filters)
}

pub(crate) fn open_with(dir: &Path, flush_rows: usize, filters: FilterMode) -> Index {
    let options = Options {
        filters,
        ..options(flush_rows)
    };
    let index = Index::open(dir, options).unwrap();
    for log in ["log-a", "log-b", "log-c"] {
        index.register_log(log).unwrap();
    }
    index
}

/// What must be known of an issuance.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) fingerprints: BTreeSet<[u8; 32]>,
    pub(crate) positions: BTreeSet<(u16, u64)>,
    pub(crate) first_seen: i64,
}

/// The naive index: a map of everything.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) issuances: BTreeMap<u64, Expected>,
}

impl Model {
    pub(crate) fn add(&mut self, seen: &Seen) {
        let known = self.issuances.entry(seen.issuance).or_insert(Expected {
            first_seen: seen.at,
            ..Expected::default()
        });
        known.first_seen = known.first_seen.min(seen.at);
        known.fingerprints.insert(seen.sha256());
        known.positions.extend(seen.position);
    }

    /// Removes what a prune by dates removes; answers how many issuances that are.
    pub(crate) fn prune(&mut self, what: &What) -> u64 {
        let What::Dates {
            expired_before,
            seen_before,
        } = *what
        else {
            panic!("months are not modelled");
        };
        let before = self.issuances.len();
        self.issuances.retain(|&issuance, expected| {
            let end = Seen::of(issuance).not_after();
            let expired = expired_before.is_none_or(|before| end.is_some_and(|end| end < before));
            let seen = seen_before.is_none_or(|before| expected.first_seen < before);
            !(expired && seen)
        });
        (before - self.issuances.len()) as u64
    }

    /// Name to (bits, issuances, first and last seen).
    pub(crate) fn names(&self, under: &str) -> BTreeMap<String, (u8, u64, i64, i64)> {
        let mut names = BTreeMap::new();
        for (&issuance, expected) in &self.issuances {
            let seen = Seen {
                issuance,
                precert: false,
                position: None,
                at: 0,
            };
            for (name, bits) in seen.names() {
                if name == under || name.ends_with(&format!(".{under}")) {
                    let entry = names.entry(name.to_owned()).or_insert((0, 0, i64::MAX, i64::MIN));
                    entry.0 |= bits;
                    entry.1 += 1;
                    entry.2 = entry.2.min(expected.first_seen);
                    entry.3 = entry.3.max(expected.first_seen);
                }
            }
        }
        names
    }

    pub(crate) fn rows(&self) -> u64 {
        let names = |&issuance: &u64| {
            Seen {
                issuance,
                precert: false,
                position: None,
                at: 0,
            }
            .names()
            .len() as u64
        };
        self.issuances.keys().map(names).sum()
    }

    /// Compares everything an index says with this model.
    #[track_caller]
    pub(crate) fn check(&self, snapshot: &Snapshot) {
        for under in [
            "com",
            "org",
            "imfht.com",
            "example.com",
            "localhost",
            "nothing.example",
        ] {
            assert_eq!(
                all_names(snapshot, under, 3),
                self.names(under),
                "names under {under}"
            );
        }
        for (&issuance, expected) in &self.issuances {
            let seen = Seen {
                issuance,
                precert: false,
                position: None,
                at: 0,
            };
            let records = snapshot.by_issuance(Issuance(seen.hash())).unwrap();
            assert_eq!(records.len(), 1, "issuance {issuance}");
            let record = &records[0];
            assert_eq!(
                record
                    .fingerprints
                    .iter()
                    .map(|print| print.sha256)
                    .collect::<BTreeSet<_>>(),
                expected.fingerprints
            );
            let positions: BTreeSet<(u16, u64)> = record
                .positions
                .iter()
                .map(|position| (position.log, position.index))
                .collect();
            assert!(
                positions.is_subset(&expected.positions),
                "{positions:?} {:?}",
                expected.positions
            );
            assert_eq!(positions.len(), expected.positions.len().min(4));
            assert_eq!(
                (record.first_seen, &record.serial),
                (expected.first_seen, &seen.serial())
            );
            assert_eq!(record.organization, seen.organization());
            assert_eq!(
                (record.not_before, record.not_after),
                (seen.not_before(), seen.not_after())
            );
            for sha256 in &expected.fingerprints {
                assert_eq!(snapshot.by_sha256(sha256).unwrap(), records);
            }
            assert_eq!(snapshot.by_serial(&seen.serial()).unwrap(), records);
            assert_eq!(
                snapshot.by_id(record.id()).unwrap(),
                records,
                "id of issuance {issuance}"
            );
        }
        // What was pruned, or never was, is not found by any way.
        for issuance in (0..40).filter(|issuance| !self.issuances.contains_key(issuance)) {
            for precert in [true, false] {
                let seen = Seen {
                    precert,
                    ..Seen::of(issuance)
                };
                assert_eq!(snapshot.by_sha256(&seen.sha256()).unwrap(), []);
            }
            let seen = Seen::of(issuance);
            assert_eq!(snapshot.by_issuance(Issuance(seen.hash())).unwrap(), []);
            assert_eq!(snapshot.by_serial(&seen.serial()).unwrap(), []);
        }
        let totals = snapshot.stats().totals;
        let fingerprints: usize = self
            .issuances
            .values()
            .map(|expected| expected.fingerprints.len())
            .sum();
        assert_eq!(totals.issuances, self.issuances.len() as u64);
        assert_eq!(totals.certificates, fingerprints as u64);
        assert_eq!(totals.name_rows, self.rows());
        let deviating = self
            .issuances
            .keys()
            .filter(|issuance| issuance.is_multiple_of(9));
        assert_eq!(totals.deviations.iter().sum::<u64>(), deviating.count() as u64);
    }
}

/// All names through pages of `limit`.
pub(crate) fn all_names(
    snapshot: &Snapshot,
    under: &str,
    limit: usize,
) -> BTreeMap<String, (u8, u64, i64, i64)> {
    let mut query = tamis_ct_index::query::NamesQuery::under(under);
    query.paging.limit = limit;
    let mut names = BTreeMap::new();
    loop {
        let page = snapshot.names(&query).unwrap();
        assert!(page.faults.is_empty(), "{:?}", page.faults);
        assert!(page.items.len() <= limit);
        for item in page.items {
            let bits = u8::from(item.exact) | u8::from(item.wildcard) << 1;
            let told = (bits, item.issuances, item.first_seen, item.last_seen);
            assert_eq!(
                names.insert(item.name.clone(), told),
                None,
                "{} came twice",
                item.name
            );
        }
        let Some(next) = page.next else { return names };
        assert_ne!(
            query.paging.cursor.as_ref(),
            Some(&next),
            "the cursor must advance"
        );
        query.paging.cursor = Some(next);
    }
}

/// The folder is whole.
#[track_caller]
pub(crate) fn assert_whole(dir: &Path) {
    let report = tamis_ct_index::check(dir, |_, _| {}).unwrap();
    assert!(report.faults.is_empty(), "{:#?}", report.faults);
}
