//! Questions, in batches grouped by window.

use std::collections::BTreeMap;

use super::month::{Place, WindowKey};
use super::window::{Placed, Status};
use super::{Hint, Shared, Windows};

impl Windows {
    /// Whether a segment can hold each of these issuances, in order; each filter is asked for many at once.
    pub(crate) fn may_know_batch(&self, issuances: &[(u64, Option<i64>)]) -> Vec<Hint> {
        let shared = self.shared();
        let mut hints = vec![Hint::Maybe; issuances.len()];
        if !shared.answers() {
            return hints;
        }
        let mut groups: BTreeMap<[Option<WindowKey>; 3], Vec<Placed>> = BTreeMap::new();
        for (at, &(key, not_after)) in issuances.iter().enumerate() {
            if let (false, Some(windows)) = (shared.is_waiting(key), shared.places(not_after)) {
                groups.entry(windows).or_default().push(Placed { key, at });
            }
        }
        for (windows, mut keys) in groups {
            for window in windows.into_iter().flatten() {
                shared.sift(window, &mut keys);
            }
            for placed in keys {
                if let Some(hint) = hints.get_mut(placed.at) {
                    *hint = Hint::New;
                }
            }
        }
        hints
    }
}

impl Shared {
    fn answers(&self) -> bool {
        self.off.is_none() && !self.rebuilding && !self.lacks_a_segment()
    }

    fn is_waiting(&self, key: u64) -> bool {
        self.pending.holds(key) || self.applying.holds(key)
    }

    /// The windows that could hold a key of this date; None if one of them may be dropped, or any could.
    fn places(&self, not_after: Option<i64>) -> Option<[Option<WindowKey>; 3]> {
        // A date that cannot be read now may have been read by the program that stored it.
        not_after?;
        let undated = Some(WindowKey::Undated);
        match self.calendar.place(not_after) {
            Place::In(window) => Some([Some(window), None, undated]),
            Place::InOrStray(window) => Some([Some(window), Some(WindowKey::Others), undated]),
            Place::Dropped => None,
        }
    }

    /// Leaves in `keys` those that the window does not hold. A window that is not there never had a key.
    fn sift(&self, window: WindowKey, keys: &mut Vec<Placed>) {
        match self.windows.get(&window) {
            None => {}
            Some(window) if window.status == Status::Complete => window.sift(keys, drop),
            Some(_) => keys.clear(),
        }
    }
}
