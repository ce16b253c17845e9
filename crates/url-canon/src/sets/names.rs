//! Sets of names: exact ones in a table, prefixes and expressions behind it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use regex::bytes::Regex;
use regex_syntax::hir::literal::{ExtractKind, Extractor};

use super::document::{SetError, Shaped, compile};
use super::shape::Shape;
use crate::key::spelled;

/// One entry of a list of names.
#[derive(Debug, Clone)]
pub(super) enum NamePattern {
    /// The name itself, as it is spelled in a key.
    Exact(Vec<u8>),
    /// Names that begin so.
    Prefix(Vec<u8>),
    /// Names that an expression matches as a whole.
    Expression(String, Regex),
}

impl NamePattern {
    /// Reads `name`, `prefix*` or `/expression/`.
    pub(super) fn parse(text: &str) -> Result<Self, SetError> {
        if let Some(inner) = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            let whole = format!("^(?:{inner})$");
            let regex = compile(&whole, false).map_err(|source| SetError::Pattern {
                pattern: text.to_owned(),
                source: Box::new(source),
            })?;
            return Ok(Self::Expression(whole, regex));
        }
        Ok(match text.strip_suffix('*') {
            Some(prefix) => Self::Prefix(spelled(prefix.as_bytes())),
            None => Self::Exact(spelled(text.as_bytes())),
        })
    }

    pub(super) fn matches(&self, name: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => exact == name,
            Self::Prefix(prefix) => name.starts_with(prefix),
            Self::Expression(_, regex) => regex.is_match(name),
        }
    }
}

/// Many names, asked at once.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    /// Which of (length, first byte, last byte) occur: most names of most URLs end here.
    filter: Filter,
    exact: HashMap<Vec<u8>, Vec<Shape>, BuildHasherDefault<ShortHasher>>,
    prefixes: Vec<Vec<u8>>,
    expressions: Vec<Expression>,
    /// How names begin that prefixes and expressions can match.
    starts: Option<Starts>,
}

/// An expression, and what every name that it matches begins with, if that can be told.
#[derive(Debug, Clone)]
struct Expression {
    prefixes: Vec<Vec<u8>>,
    regex: Regex,
}

impl Names {
    pub(super) fn new(patterns: &[String], shaped: &[Shaped]) -> Result<Self, SetError> {
        let mut names = Self::default();
        for pattern in patterns {
            match NamePattern::parse(pattern)? {
                NamePattern::Exact(name) => {
                    names.filter.add(&name);
                    // Without a shape the name goes whatever its value.
                    names.exact.insert(name, Vec::new());
                }
                NamePattern::Prefix(prefix) => names.add_prefix(prefix),
                NamePattern::Expression(pattern, regex) => names.add_expression(&pattern, regex),
            }
        }
        for Shaped { name, value } in shaped {
            let name = spelled(name.as_bytes());
            names.filter.add(&name);
            match names.exact.get_mut(&name) {
                Some(shapes) if shapes.is_empty() => {}
                Some(shapes) => shapes.push(*value),
                None => {
                    names.exact.insert(name, vec![*value]);
                }
            }
        }
        Ok(names)
    }

    fn add_prefix(&mut self, prefix: Vec<u8>) {
        self.start(&prefix);
        self.prefixes.push(prefix);
    }

    fn add_expression(&mut self, pattern: &str, regex: Regex) {
        let mut extractor = Extractor::new();
        extractor
            .kind(ExtractKind::Prefix)
            .limit_literal_len(4)
            .limit_total(64);
        let hir = regex_syntax::ParserBuilder::new()
            .unicode(false)
            .utf8(false)
            .build()
            .parse(pattern);
        let found = hir.map(|hir| extractor.extract(&hir)).ok();
        let literals = found
            .as_ref()
            .and_then(|found| found.literals())
            .unwrap_or_default();
        let mut prefixes: Vec<Vec<u8>> = literals
            .iter()
            .map(|literal| literal.as_bytes().to_vec())
            .collect();
        if prefixes.is_empty() || prefixes.iter().any(Vec::is_empty) {
            prefixes = vec![Vec::new()];
        }
        prefixes.iter().for_each(|prefix| self.start(prefix));
        self.expressions.push(Expression { prefixes, regex });
    }

    fn start(&mut self, prefix: &[u8]) {
        let starts = self.starts.get_or_insert_with(|| Starts(Box::new([0; 1024])));
        starts.add(prefix);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.starts.is_none()
    }

    /// False for most names that are not among them.
    #[inline]
    pub(super) fn may_have(&self, name: &[u8]) -> bool {
        self.filter.may_have(name) || self.starts.as_ref().is_some_and(|starts| starts.may_begin(name))
    }

    /// Whether a parameter is among them.
    pub(super) fn has(&self, name: &[u8], value: &[u8]) -> bool {
        let exact = self.filter.may_have(name).then(|| self.exact.get(name)).flatten();
        if exact.is_some_and(|shapes| shapes.is_empty() || shapes.iter().any(|shape| shape.fits(value))) {
            return true;
        }
        let starts = self.starts.as_ref();
        starts.is_some_and(|starts| starts.may_begin(name)) && self.begins(name)
    }

    fn begins(&self, name: &[u8]) -> bool {
        let mut expressions = self.expressions.iter().filter(|expression| {
            let prefixes = &expression.prefixes;
            prefixes.iter().any(|prefix| name.starts_with(prefix))
        });
        self.prefixes.iter().any(|prefix| name.starts_with(prefix))
            || expressions.any(|expression| expression.regex.is_match(name))
    }
}

/// A filter over short strings that costs a multiplication and a load.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    bits: Box<[u64; 256]>,
    is_empty: bool,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            bits: Box::new([0; 256]),
            is_empty: true,
        }
    }
}

impl Filter {
    /// By length, first, last and middle byte.
    #[inline]
    fn place(text: &[u8]) -> (usize, u64) {
        let byte = |at: usize| u32::from(text.get(at).copied().unwrap_or_default());
        let length = text.len();
        let mixed = byte(0) | byte(length.wrapping_sub(1)) << 8 | byte(length / 2) << 16;
        let mixed = (mixed ^ (length as u32) << 24).wrapping_mul(0x9e37_79b1) >> 18;
        ((mixed >> 6) as usize, 1 << (mixed & 63))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }

    pub(super) fn add(&mut self, text: &[u8]) {
        let (word, bit) = Self::place(text);
        if let Some(word) = self.bits.get_mut(word) {
            *word |= bit;
        }
        self.is_empty = false;
    }

    #[inline]
    pub(super) fn may_have(&self, text: &[u8]) -> bool {
        let (word, bit) = Self::place(text);
        self.bits.get(word).is_some_and(|word| word & bit != 0)
    }
}

/// The first two bytes of names, as a set; a name of one byte counts as followed by a zero.
#[derive(Debug, Clone)]
struct Starts(Box<[u64; 1024]>);

impl Starts {
    fn place(first: u8, second: u8) -> (usize, u64) {
        let pair = usize::from(u16::from_be_bytes([first, second]));
        (pair >> 6, 1 << (pair & 63))
    }

    fn add(&mut self, prefix: &[u8]) {
        let mut set = |first, second| {
            let (word, bit) = Self::place(first, second);
            if let Some(word) = self.0.get_mut(word) {
                *word |= bit;
            }
        };
        match *prefix {
            [] => self.0.fill(u64::MAX),
            [first] => (0..=u8::MAX).for_each(|second| set(first, second)),
            [first, second, ..] => set(first, second),
        }
    }

    #[inline]
    fn may_begin(&self, name: &[u8]) -> bool {
        let byte = |at: usize| name.get(at).copied().unwrap_or_default();
        let (word, bit) = Self::place(byte(0), byte(1));
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }
}

/// Multiplies and folds. The tables hold what rule sets name, so nobody fills them with collisions.
#[derive(Debug, Clone, Default)]
pub(super) struct ShortHasher(u64);

impl Hasher for ShortHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            if let Some(head) = word.get_mut(..chunk.len()) {
                head.copy_from_slice(chunk);
            }
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded")]
        let folded = product as u64 ^ (product >> 64) as u64;
        self.0 = folded;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
