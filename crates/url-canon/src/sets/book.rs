//! Versions of rule sets beside each other, of which one of each name is active.
//!
//! # Invariants
//! Loading changes no key: only [`RuleBook::activate`] does, and it is a decision of the caller. A version
//! once loaded never changes.

use std::collections::BTreeMap;

use super::document::{RuleSet, SetError};
use super::matcher::Matcher;

/// Versions that one book holds at most.
const VERSIONS_MAX: usize = 1_000;

/// Rule sets by name and version.
#[derive(Debug, Clone, Default)]
pub struct RuleBook {
    loaded: BTreeMap<(String, String), RuleSet>,
    active: BTreeMap<String, String>,
}

/// What loading did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loaded {
    /// The version is new; it is not active.
    New,
    /// It was there before, the same.
    Known,
}

/// Why a book refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookError {
    /// The set itself is wrong.
    #[error(transparent)]
    Set(#[from] SetError),
    /// Other rules under a version that is loaded: keys of one version would differ.
    #[error("{id} is loaded with other rules; give the changed set a version of its own")]
    Changed {
        /// `name@version`.
        id: String,
    },
    /// Nothing of that name and version was loaded.
    #[error("{id} is not loaded")]
    NotLoaded {
        /// `name@version`.
        id: String,
    },
    /// More versions than a book holds.
    #[error("there are {VERSIONS_MAX} versions loaded; forget some")]
    Full,
}

impl RuleBook {
    /// Puts a version beside the others. Nothing becomes active by it.
    ///
    /// # Errors
    /// A faulty set, other rules under a known version, or a full book.
    pub fn load(&mut self, set: RuleSet) -> Result<Loaded, BookError> {
        set.check()?;
        let place = (set.name.clone(), set.version.clone());
        match self.loaded.get(&place) {
            Some(known) if *known == set => return Ok(Loaded::Known),
            Some(_) => return Err(BookError::Changed { id: set.id() }),
            None if self.loaded.len() >= VERSIONS_MAX => return Err(BookError::Full),
            None => {}
        }
        self.loaded.insert(place, set);
        Ok(Loaded::New)
    }

    /// Decides that a loaded version holds from now on. Returns the version that held before.
    ///
    /// # Errors
    /// If it was never loaded.
    pub fn activate(&mut self, name: &str, version: &str) -> Result<Option<String>, BookError> {
        if !self.loaded.contains_key(&(name.to_owned(), version.to_owned())) {
            return Err(BookError::NotLoaded {
                id: format!("{name}@{version}"),
            });
        }
        Ok(self.active.insert(name.to_owned(), version.to_owned()))
    }

    /// Takes a set out of the keys; its versions stay loaded.
    pub fn deactivate(&mut self, name: &str) -> Option<String> {
        self.active.remove(name)
    }

    /// The active version of a set.
    #[must_use]
    pub fn active(&self, name: &str) -> Option<&str> {
        self.active.get(name).map(String::as_str)
    }

    /// The active sets as one matcher.
    ///
    /// # Errors
    /// None for sets that were loaded.
    pub fn matcher(&self) -> Result<Matcher, SetError> {
        let sets: Vec<&RuleSet> = self
            .active
            .iter()
            .filter_map(|(name, version)| self.loaded.get(&(name.clone(), version.clone())))
            .collect();
        Matcher::new(&sets)
    }
}
