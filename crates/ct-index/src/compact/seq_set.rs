//! A set of sequence numbers.
//!
//! # Limits
//! A bit for each number in the stretches of 65,536 that have a member: at most an eighth of a byte for
//! each number ever given, however many are in it.

use std::collections::HashMap;

const STRETCH_BITS: u32 = 16;
const WORDS: usize = (1 << STRETCH_BITS) / 64;

/// Sequence numbers.
#[derive(Debug, Default)]
pub(super) struct SeqSet {
    stretches: HashMap<u64, Box<[u64; WORDS]>>,
    count: u64,
}

/// Stretch, word in it, and bit of that word.
fn place(seq: u64) -> (u64, usize, u64) {
    let within = seq & ((1 << STRETCH_BITS) - 1);
    (seq >> STRETCH_BITS, (within / 64) as usize, 1 << (within % 64))
}

impl SeqSet {
    /// Adds a number; false when it was there.
    pub(super) fn insert(&mut self, seq: u64) -> bool {
        let (stretch, word, bit) = place(seq);
        let words = self
            .stretches
            .entry(stretch)
            .or_insert_with(|| Box::new([0; WORDS]));
        let Some(word) = words.get_mut(word).filter(|word| **word & bit == 0) else {
            return false;
        };
        *word |= bit;
        self.count += 1;
        true
    }

    pub(super) fn contains(&self, seq: u64) -> bool {
        let (stretch, word, bit) = place(seq);
        let words = self.stretches.get(&stretch);
        words
            .and_then(|words| words.get(word))
            .is_some_and(|word| word & bit != 0)
    }

    pub(super) fn len(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(seqs in proptest::collection::vec(prop_oneof![0u64..300, 65_400u64..65_700, any::<u64>()], 0..200), asked in proptest::collection::vec(0u64..70_000, 0..200)) {
            let mut set = SeqSet::default();
            let mut model = BTreeSet::new();
            for &seq in &seqs {
                prop_assert_eq!(set.insert(seq), model.insert(seq));
            }
            prop_assert_eq!(set.len(), model.len() as u64);
            for seq in seqs.into_iter().chain(asked) {
                prop_assert_eq!(set.contains(seq), model.contains(&seq));
            }
        }
    }
}
