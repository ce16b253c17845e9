//! One row of the names table and how equal rows fold.

use crate::record::NameBits;

/// What a row tells besides its key. `organization` is local to the source that holds the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowAttrs {
    pub(crate) issuance: u64,
    pub(crate) seq: u64,
    pub(crate) first_seen: i64,
    pub(crate) not_before: Option<i64>,
    pub(crate) not_after: Option<i64>,
    pub(crate) issuer: u32,
    /// 0 = none.
    pub(crate) organization: u32,
    pub(crate) bits: NameBits,
}

impl RowAttrs {
    /// Folds a row of the same key and issuance: bits are united, times keep the smallest. Answers
    /// true when `other` is the older one, whose issuer and organisation are then kept.
    pub(crate) fn fold(&mut self, other: &Self) -> bool {
        let older = other.seq < self.seq;
        let bits = self.bits | other.bits;
        let first_seen = self.first_seen.min(other.first_seen);
        if older {
            *self = *other;
        }
        self.bits = bits;
        self.first_seen = first_seen;
        older
    }
}

/// A sorted source of rows: a memtable run or the names table of a segment.
pub(crate) trait RowCursor {
    /// The current row, or `None` behind the last one.
    fn row(&self) -> Option<(&[u8], &RowAttrs)>;

    /// Moves to the next row.
    fn advance(&mut self) -> crate::Result<()>;

    /// The organisation that a row of this source refers to.
    fn organization(&self, number: u32) -> crate::Result<String>;

    /// Damage met since the last call; the rows around it still came.
    fn take_faults(&mut self) -> Vec<crate::Error> {
        Vec::new()
    }
}
