//! Rule sets as data: which parameters, sites, wrappers and routes class C rules may touch.
//!
//! A [`RuleSet`] is a document (`docs/url-rules.md`), [`Matcher`] what some of them are compiled to,
//! [`RuleBook`] holds versions beside each other and says which is active.
//!
//! # Invariants
//! - A name of [`NEVER_GLOBAL`] is dropped at named sites or nowhere.
//! - Exceptions win over every set of a matcher.

mod book;
mod denied;
mod document;
mod hosts;
pub(crate) mod import;
mod matcher;
mod names;
mod shape;

pub use book::{BookError, Loaded, RuleBook};
pub use denied::NEVER_GLOBAL;
pub use document::{Exception, RuleSet, SetError, Shaped, SiteRules, Wrapper};
pub use matcher::Matcher;
pub(crate) use matcher::{Hits, Site};
pub use shape::Shape;
