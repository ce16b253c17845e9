//! What a log was caught in: answers that contradict what it signed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which contradiction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LieKind {
    /// Entries that it served do not hash to the root that it signed.
    Entry,
    /// Two heads that it signed cannot be of one tree.
    Fork,
    /// A head that its key did not sign.
    Signature,
    /// A tile of hashes or a proof that does not lead to the root that it signed.
    Proof,
    /// An entry that says that it belongs elsewhere in the tree.
    LeafIndex,
    /// The certificate of an issuer has another hash than its name.
    Issuer,
}

impl LieKind {
    /// All of them, in the order of their numbers on disk.
    pub(crate) const ALL: [Self; 6] = [
        Self::Entry,
        Self::Fork,
        Self::Signature,
        Self::Proof,
        Self::LeafIndex,
        Self::Issuer,
    ];

    /// As it is written in JSON and in labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Entry => "entry",
            Self::Fork => "fork",
            Self::Signature => "signature",
            Self::Proof => "proof",
            Self::LeafIndex => "leaf_index",
            Self::Issuer => "issuer",
        }
    }
}

impl fmt::Display for LieKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Entry => "entries do not hash to the signed root",
            Self::Fork => "two signed heads contradict each other",
            Self::Signature => "a head is not signed by the key of the log",
            Self::Proof => "a proof or a tile of hashes does not lead to the signed root",
            Self::LeafIndex => "an entry says that it has another index",
            Self::Issuer => "an issuer's certificate has another hash than its name",
        })
    }
}

/// One contradiction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lie {
    /// Which.
    pub kind: LieKind,
    /// The leaves that it is about, `[first, end)`; of heads, from the smaller size to the larger.
    pub leaves: [u64; 2],
    /// When it was caught, in milliseconds since 1970.
    pub at_ms: u64,
    /// Asked again, the log gave what it signed: the right entries are in the index too.
    pub healed: bool,
    /// What exactly.
    pub detail: String,
}

impl Lie {
    /// The leaves that cannot be proved because of it.
    pub(crate) fn standing(&self) -> Option<(u64, u64)> {
        (self.kind == LieKind::Entry && !self.healed).then_some((self.leaves[0], self.leaves[1]))
    }
}
