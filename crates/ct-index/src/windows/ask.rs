//! Questions: one by one, and in batches grouped by window.

use std::collections::BTreeMap;

use super::month::{Place, WindowKey};
use super::window::{Placed, Status};
use super::{Hint, Shared, Windows};

impl Windows {
    /// Whether a segment can hold this issuance.
    pub(crate) fn may_know(&self, issuance: u64, not_after: Option<i64>) -> Hint {
        let shared = self.shared();
        let known = !shared.answers()
            || shared.is_waiting(issuance)
            || shared.places(not_after).is_none_or(|windows| {
                windows
                    .into_iter()
                    .flatten()
                    .any(|w| shared.may_hold(w, issuance))
            });
        if known { Hint::Maybe } else { Hint::New }
    }

    /// [`may_know`](Self::may_know) of each, in order; faster, as each filter is asked for many at once.
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

    /// A window that is not there never had a key.
    fn may_hold(&self, window: WindowKey, key: u64) -> bool {
        self.windows
            .get(&window)
            .is_some_and(|window| window.status != Status::Complete || window.may_hold(key))
    }

    /// Leaves in `keys` those that the window does not hold.
    fn sift(&self, window: WindowKey, keys: &mut Vec<Placed>) {
        match self.windows.get(&window) {
            None => {}
            Some(window) if window.status == Status::Complete => window.sift(keys, drop),
            Some(_) => keys.clear(),
        }
    }
}
