//! The names of one certificate: each once, in one text arena that is used again for the next.
//!
//! # Limits
//! At most `names_max` names are kept and the rest counted, so that memory follows what is indexed
//! and never what a certificate claims; a text is cut at [`TEXT_BYTES_MAX`].

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::text;

/// Of one identifier; a host name is at most 253 bytes long.
pub const TEXT_BYTES_MAX: usize = 1_024;

/// Up to this many names are compared one by one, which is quicker than hashing.
const SCANNED_MAX: usize = 12;

/// One identifier of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// A host name in lower-case A-labels; at least one flag is set.
    Host {
        /// Without `*.`.
        host: &'a str,
        /// The certificate names the host itself.
        exact: bool,
        /// The certificate names `*.` below the host.
        wildcard: bool,
    },
    /// An IP address.
    Ip(IpAddr),
    /// An e-mail address.
    Email(&'a str),
    /// Anything else: URIs, principal names, what is no host name.
    Other(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Host,
    Ip,
    Email,
    Other,
}

pub(crate) const EXACT: u8 = 1;
pub(crate) const WILDCARD: u8 = 2;

#[derive(Clone, Copy, Debug)]
struct Slot {
    start: u32,
    bytes: u16,
    kind: Kind,
    bits: u8,
}

/// The set of them.
#[derive(Clone, Debug)]
pub(crate) struct NameSet {
    arena: String,
    slots: Vec<Slot>,
    /// Slot numbers by hash, once there are more than [`SCANNED_MAX`].
    table: HashTable<u32>,
    /// Drawn at random, so that nobody can prepare names that collide.
    seed: u64,
    dropped: u32,
    /// Where an address becomes text.
    shown: String,
}

/// What [`NameSet::insert`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    Kept,
    /// Kept, but only the first [`TEXT_BYTES_MAX`] of it.
    Cut,
    /// Not kept, because `names_max` are.
    Dropped,
}

impl NameSet {
    pub(crate) fn new() -> Self {
        Self {
            arena: String::new(),
            slots: Vec::new(),
            table: HashTable::new(),
            seed: RandomState::new().hash_one(0u8),
            dropped: 0,
            shown: String::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.arena.clear();
        self.slots.clear();
        self.table.clear();
        self.dropped = 0;
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Those kept and those dropped.
    pub(crate) fn total(&self) -> u32 {
        u32::try_from(self.slots.len())
            .unwrap_or(u32::MAX)
            .saturating_add(self.dropped)
    }

    pub(crate) fn insert(&mut self, kind: Kind, bits: u8, text: &str, names_max: usize) -> Inserted {
        let (text, was_cut) = text::cut(text, TEXT_BYTES_MAX);
        let done = if was_cut { Inserted::Cut } else { Inserted::Kept };
        let hash = self.hashes().then(|| hash_of(text, self.seed));
        if let Some(slot) = self
            .position(kind, text, hash)
            .and_then(|at| self.slots.get_mut(at))
        {
            slot.bits |= bits;
            return done;
        }
        if self.slots.len() >= names_max {
            self.dropped = self.dropped.saturating_add(1);
            return Inserted::Dropped;
        }
        let (Ok(start), Ok(bytes)) = (u32::try_from(self.arena.len()), u16::try_from(text.len())) else {
            self.dropped = self.dropped.saturating_add(1);
            return Inserted::Dropped;
        };
        self.arena.push_str(text);
        self.slots.push(Slot {
            start,
            bytes,
            kind,
            bits,
        });
        self.enter_in_table(hash);
        done
    }

    pub(crate) fn insert_ip(&mut self, ip: IpAddr, names_max: usize) -> Inserted {
        let mut shown = std::mem::take(&mut self.shown);
        shown.clear();
        let _ = write!(shown, "{ip}");
        let inserted = self.insert(Kind::Ip, 0, &shown, names_max);
        self.shown = shown;
        inserted
    }

    /// Whether this host is already there with these bits.
    pub(crate) fn has_host(&self, host: &str, bits: u8) -> bool {
        let hash = self.hashes().then(|| hash_of(host, self.seed));
        let slot = self
            .position(Kind::Host, host, hash)
            .and_then(|at| self.slots.get(at));
        slot.is_some_and(|slot| slot.bits & bits == bits)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Name<'_>> + Clone {
        self.slots.iter().map(|slot| {
            let text = text_of(&self.arena, slot);
            match slot.kind {
                Kind::Host => Name::Host {
                    host: text,
                    exact: slot.bits & EXACT != 0,
                    wildcard: slot.bits & WILDCARD != 0,
                },
                Kind::Ip => text.parse().map_or(Name::Other(text), Name::Ip),
                Kind::Email => Name::Email(text),
                Kind::Other => Name::Other(text),
            }
        })
    }

    fn hashes(&self) -> bool {
        self.slots.len() > SCANNED_MAX
    }

    fn position(&self, kind: Kind, text: &str, hash: Option<u64>) -> Option<usize> {
        let same = |slot: &Slot| {
            usize::from(slot.bytes) == text.len() && slot.kind == kind && text_of(&self.arena, slot) == text
        };
        let Some(hash) = hash else {
            return self.slots.iter().position(same);
        };
        let found = self
            .table
            .find(hash, |&at| self.slots.get(at as usize).is_some_and(same));
        found.map(|&at| at as usize)
    }

    /// Enters the newest slot; when it is the first too many to scan, all of them.
    fn enter_in_table(&mut self, hash: Option<u64>) {
        let Self {
            arena,
            slots,
            table,
            seed,
            ..
        } = self;
        let count = u32::try_from(slots.len()).unwrap_or(u32::MAX);
        let rehash = |&at: &u32| {
            slots
                .get(at as usize)
                .map_or(0, |slot| hash_of(text_of(arena, slot), *seed))
        };
        match hash {
            Some(hash) => {
                table.insert_unique(hash, count.saturating_sub(1), rehash);
            }
            None if slots.len() > SCANNED_MAX => {
                for at in 0..count {
                    table.insert_unique(rehash(&at), at, rehash);
                }
            }
            None => {}
        }
    }
}

fn hash_of(text: &str, seed: u64) -> u64 {
    xxh3_64_with_seed(text.as_bytes(), seed)
}

fn text_of<'a>(arena: &'a str, slot: &Slot) -> &'a str {
    let start = slot.start as usize;
    arena
        .get(start..start + usize::from(slot.bytes))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_once_beyond_the_scanned_ones() {
        let mut names = NameSet::new();
        for _ in 0..2 {
            names.clear();
            for round in 0..3u8 {
                for number in 0..100 {
                    let bits = if round == 1 { WILDCARD } else { EXACT };
                    names.insert(Kind::Host, bits, &format!("h{number}.example"), 1_000);
                }
            }
            assert_eq!((names.len(), names.total()), (100, 100));
            assert!(names.iter().all(|name| matches!(
                name,
                Name::Host {
                    exact: true,
                    wildcard: true,
                    ..
                }
            )));
            assert!(names.has_host("h99.example", EXACT | WILDCARD));
            assert!(!names.has_host("h100.example", EXACT));
        }
    }

    #[test]
    fn the_rest_is_counted() {
        let mut names = NameSet::new();
        for number in 0..50 {
            names.insert(Kind::Other, 0, &format!("{number}"), 20);
        }
        assert_eq!((names.len(), names.total()), (20, 50));
        assert_eq!(names.insert(Kind::Other, 0, "3", 20), Inserted::Kept);
        assert_eq!(names.total(), 50);
    }

    #[test]
    fn a_host_and_an_email_of_one_text_are_two() {
        let mut names = NameSet::new();
        names.insert(Kind::Email, 0, "a", 9);
        names.insert(Kind::Host, EXACT, "a", 9);
        names.insert_ip(IpAddr::from([192, 0, 2, 1]), 9);
        let found: Vec<_> = names.iter().collect();
        let host = Name::Host {
            host: "a",
            exact: true,
            wildcard: false,
        };
        assert_eq!(
            found,
            [Name::Email("a"), host, Name::Ip(IpAddr::from([192, 0, 2, 1]))]
        );
    }

    #[test]
    fn long_text_is_cut() {
        let mut names = NameSet::new();
        assert_eq!(
            names.insert(Kind::Other, 0, &"x".repeat(TEXT_BYTES_MAX + 1), 9),
            Inserted::Cut
        );
        assert_eq!(
            names.iter().next(),
            Some(Name::Other(&"x".repeat(TEXT_BYTES_MAX)))
        );
    }
}
