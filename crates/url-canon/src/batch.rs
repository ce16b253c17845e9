//! Many URLs at once, into buffers that are used again.

use crate::canon::Canonicalizer;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::parse::Reject;

/// The keys of a batch. Filled again, it allocates nothing once it has grown to the size of its batches.
#[derive(Debug, Default)]
pub struct Batch {
    keys: Vec<u8>,
    entries: Vec<Result<(usize, Fingerprint), Reject>>,
}

impl Batch {
    /// Makes the keys (with rule sets: the equivalences) and fingerprints of `urls`, in their order.
    pub fn fill<'a>(
        &mut self,
        urls: impl IntoIterator<Item = &'a [u8]>,
        canonicalizer: &mut Canonicalizer,
        fingerprinter: &Fingerprinter,
    ) {
        self.keys.clear();
        self.entries.clear();
        for url in urls {
            let entry = canonicalizer.canon(url).map(|canonical| {
                let key = canonical.equivalence.as_bytes();
                self.keys.extend_from_slice(key);
                (self.keys.len(), fingerprinter.of(key))
            });
            self.entries.push(entry);
        }
    }

    /// Key and fingerprint, or the reason why there are none, of each URL.
    pub fn iter(&self) -> impl Iterator<Item = Result<(&str, Fingerprint), Reject>> {
        let mut start = 0;
        self.entries.iter().map(move |entry| {
            let (end, fingerprint) = (*entry)?;
            let key = self.keys.get(start..end).unwrap_or_default();
            start = end;
            Ok((std::str::from_utf8(key).unwrap_or_default(), fingerprint))
        })
    }

    /// How many URLs the batch had.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it had none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
