//! Months of expiry, and which window a date belongs to as months pass.
//!
//! # Invariants
//! The current month of a [`Calendar`] only moves forward, so a month that passed never comes back.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use time::OffsetDateTime;

/// Months ahead of the current one that have a window of their own: no public certificate lives longer
/// than 398 days.
pub(super) const MONTHS_AHEAD: u32 = 14;
/// Start of year 0 and end of year 9999; dates beyond count as these.
const SECONDS_MIN: i64 = -62_167_219_200;
const SECONDS_MAX: i64 = 253_402_300_799;
const MONTHS_MAX: u32 = 10_000 * 12;

/// A month of the Gregorian calendar in UTC, counted from January of year 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Month(u32);

impl Month {
    /// The month that holds this second since 1970.
    pub(super) fn of(seconds: i64) -> Self {
        let date = OffsetDateTime::from_unix_timestamp(seconds.clamp(SECONDS_MIN, SECONDS_MAX))
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        Self(date.year().unsigned_abs() * 12 + u32::from(u8::from(date.month())) - 1)
    }

    /// The month `months` later, at most the last of year 9999.
    pub(super) fn plus(self, months: u32) -> Self {
        Self(self.0.saturating_add(months).min(MONTHS_MAX - 1))
    }

    /// How many months `self` is behind `earlier`; 0 if it is not.
    pub(super) fn since(self, earlier: Self) -> u32 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.0 / 12, self.0 % 12 + 1)
    }
}

/// The text is no month, or no window.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

impl FromStr for Month {
    type Err = Unreadable;

    /// Exactly what `Display` writes.
    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let (year, month) = text.split_once('-').ok_or(Unreadable)?;
        let read = |digits: &str| digits.parse::<u32>().map_err(|_| Unreadable);
        let (year, month) = (read(year)?, read(month)?);
        if year >= MONTHS_MAX / 12 || !(1..=12).contains(&month) {
            return Err(Unreadable);
        }
        let read = Self(year * 12 + month - 1);
        if read.to_string() == text {
            Ok(read)
        } else {
            Err(Unreadable)
        }
    }
}

/// A set of filters that grow, are asked and are dropped together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum WindowKey {
    /// Certificates that expire in this month.
    Month(Month),
    /// Dates before the first window and beyond the last.
    Others,
    /// Dates that could not be read.
    Undated,
}

impl fmt::Display for WindowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Month(month) => month.fmt(f),
            Self::Others => f.write_str("others"),
            Self::Undated => f.write_str("undated"),
        }
    }
}

impl FromStr for WindowKey {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        match text {
            "others" => Ok(Self::Others),
            "undated" => Ok(Self::Undated),
            _ => text.parse().map(Self::Month),
        }
    }
}

/// Where keys of a date lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In this window.
    In(WindowKey),
    /// In this window of a month, or among the others if they came while the month was far ahead.
    InOrStray(WindowKey),
    /// In a window that may have been dropped.
    Dropped,
}

/// Which months have, had and will have windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Calendar {
    /// The first month that ever had a window: what expired before lies among the others.
    pub(super) first: Month,
    /// From `first` up to this one, windows were dropped.
    pub(super) current: Month,
    /// Months of which keys lie among the others because they were too far ahead.
    pub(super) strays: BTreeSet<Month>,
}

impl Calendar {
    pub(super) fn starting(now: Month) -> Self {
        Self {
            first: now,
            current: now,
            strays: BTreeSet::new(),
        }
    }

    /// Moves on to `now`, never back; whether it moved.
    pub(super) fn advance(&mut self, now: Month) -> bool {
        let moves = now > self.current;
        self.current = self.current.max(now);
        self.strays.retain(|month| *month >= now);
        moves
    }

    /// Where to ask for a key of this date.
    pub(super) fn place(&self, not_after: Option<i64>) -> Place {
        let Some(month) = not_after.map(Month::of) else {
            return Place::In(WindowKey::Undated);
        };
        if month < self.first || month > self.current.plus(MONTHS_AHEAD) {
            Place::In(WindowKey::Others)
        } else if month < self.current {
            Place::Dropped
        } else if self.strays.contains(&month) {
            Place::InOrStray(WindowKey::Month(month))
        } else {
            Place::In(WindowKey::Month(month))
        }
    }

    /// Where to put a key of this date; None if its month is dropped. Remembers months that are far ahead.
    pub(super) fn put(&mut self, not_after: Option<i64>) -> Option<WindowKey> {
        match self.place(not_after) {
            Place::Dropped => None,
            Place::InOrStray(window) => Some(window),
            Place::In(window) => {
                if let (WindowKey::Others, Some(month)) = (window, not_after.map(Month::of))
                    && month > self.current
                {
                    self.strays.insert(month);
                }
                Some(window)
            }
        }
    }

    /// Whether a window of this key can be asked.
    pub(super) fn has(&self, window: WindowKey) -> bool {
        match window {
            WindowKey::Month(month) => (self.current..=self.current.plus(MONTHS_AHEAD)).contains(&month),
            WindowKey::Others | WindowKey::Undated => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use time::macros::datetime;

    fn seconds(date: OffsetDateTime) -> i64 {
        date.unix_timestamp()
    }

    #[test]
    fn months_change_at_midnight_utc_leap_years_and_years_included() {
        for (last, month, next) in [
            (datetime!(2026-11-30 23:59:59 UTC), "2026-11", "2026-12"),
            (datetime!(2026-12-31 23:59:59 UTC), "2026-12", "2027-01"),
            (datetime!(2027-02-28 23:59:59 UTC), "2027-02", "2027-03"),
            (datetime!(2028-02-29 23:59:59 UTC), "2028-02", "2028-03"),
            (datetime!(2000-02-29 23:59:59 UTC), "2000-02", "2000-03"),
            (datetime!(2100-02-28 23:59:59 UTC), "2100-02", "2100-03"),
            (datetime!(1969-12-31 23:59:59 UTC), "1969-12", "1970-01"),
        ] {
            assert_eq!(Month::of(seconds(last)).to_string(), month);
            assert_eq!(Month::of(seconds(last) + 1).to_string(), next);
            assert_eq!(Month::of(seconds(last)).plus(1), Month::of(seconds(last) + 1));
        }
        assert_eq!(Month::of(i64::MIN).to_string(), "0000-01");
        assert_eq!(Month::of(i64::MAX).to_string(), "9999-12");
        assert_eq!(Month::of(i64::MAX).plus(u32::MAX).to_string(), "9999-12");
    }

    /// Fifteen windows: the current month and fourteen ahead, over the change of the year.
    #[test]
    fn a_date_falls_into_the_window_of_its_month_or_among_the_others() {
        let now = Month::of(seconds(datetime!(2026-11-15 12:00 UTC)));
        let mut calendar = Calendar::starting(now);
        let mut windows = BTreeSet::new();
        for day in 0..440 {
            let date = seconds(datetime!(2026-11-01 0:00 UTC)) + day * 86_400;
            let Place::In(window) = calendar.place(Some(date)) else {
                panic!("{date} is in no window");
            };
            windows.insert(window.to_string());
        }
        assert_eq!(windows.len(), 15, "{windows:?}");
        assert_eq!(windows.first().map(String::as_str), Some("2026-11"));
        assert_eq!(windows.last().map(String::as_str), Some("2028-01"));
        let past = Some(seconds(datetime!(2026-10-31 23:59:59 UTC)));
        let far = Some(seconds(datetime!(2028-02-29 0:00 UTC)));
        for date in [past, far, Some(i64::MIN), Some(i64::MAX)] {
            assert_eq!(calendar.place(date), Place::In(WindowKey::Others), "{date:?}");
        }
        assert_eq!(calendar.place(None), Place::In(WindowKey::Undated));
        assert_eq!(calendar.put(past), Some(WindowKey::Others));
        assert!(calendar.strays.is_empty(), "what is past never has a window");
        assert_eq!(calendar.put(far), Some(WindowKey::Others));

        assert!(calendar.advance(now.plus(3)) && !calendar.advance(now));
        let month = WindowKey::Month(now.plus(15));
        assert_eq!(
            calendar.place(far),
            Place::InOrStray(month),
            "it came as far future"
        );
        let dropped = Some(seconds(datetime!(2027-01-31 23:59:59 UTC)));
        assert_eq!(calendar.place(dropped), Place::Dropped);
        assert_eq!(calendar.put(dropped), None);
        assert_eq!(
            calendar.place(past),
            Place::In(WindowKey::Others),
            "it never had one"
        );
        assert!(!calendar.has(WindowKey::Month(now.plus(2))) && calendar.has(month));
        calendar.advance(now.plus(16));
        assert_eq!(calendar.place(far), Place::Dropped);
        assert!(calendar.strays.is_empty());
    }

    proptest! {
        #[test]
        fn names_round_trip_and_months_follow_dates(a: i64, b: i64, text in "[0-9-]{0,9}") {
            let (first, last) = (a.min(b), a.max(b));
            prop_assert!(Month::of(first) <= Month::of(last));
            for window in [WindowKey::Month(Month::of(a)), WindowKey::Others, WindowKey::Undated] {
                prop_assert_eq!(window.to_string().parse(), Ok(window));
            }
            if let Ok(read) = text.parse::<WindowKey>() {
                prop_assert_eq!(read.to_string(), text);
            }
        }
    }
}
