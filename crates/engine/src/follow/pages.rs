//! How many entries to ask an RFC 6962 log for.
//!
//! A log may answer with fewer than asked: it has a limit, or it aligns its answers to a grid. Asking for
//! what it really serves, aligned, makes each request whole. A log whose backend refuses long answers says so
//! with an error, for as long as the question is too long.

/// Of one request.
const ENTRIES_MAX: u64 = 1_024;
/// Whole pages in a row before a longer one is tried again, after an error and after a short answer.
const PATIENCE: u32 = 8;
const PATIENCE_AFTER_SHORT: u32 = 1_024;

/// What is known of a log's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pages {
    size: u64,
    /// What the log serves, as far as short answers told.
    cap: u64,
    max: u64,
    /// Where a short answer ended: a line of the log's grid, if it has one.
    line: Option<u64>,
    whole_in_a_row: u32,
    short_in_a_row: u32,
}

impl Pages {
    /// `max` is what a person set, or nothing.
    pub(crate) fn new(max: Option<u64>) -> Self {
        let max = max.unwrap_or(ENTRIES_MAX).clamp(1, 100_000);
        Self {
            size: max,
            cap: max,
            max,
            line: None,
            whole_in_a_row: 0,
            short_in_a_row: 0,
        }
    }

    /// Entries of a page, as far as is known.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Behind the last entry to ask for, from `start` to at most `end`: to the next line of the grid.
    pub(crate) fn end(&self, start: u64, end: u64) -> u64 {
        let line = self.line.unwrap_or(start).min(start);
        let pages = (start - line) / self.size + 1;
        line.saturating_add(pages.saturating_mul(self.size)).min(end)
    }

    /// Learns from a whole answer of `served` entries to a question for [`start`, `end`).
    pub(crate) fn served(&mut self, start: u64, end: u64, served: u64) {
        let asked = end.saturating_sub(start);
        if served == 0 {
            return;
        }
        if served < asked {
            self.short(start + served, served);
            return;
        }
        self.short_in_a_row = 0;
        if asked == self.size {
            self.whole_in_a_row += 1;
        }
        if self.size < self.cap && self.whole_in_a_row >= PATIENCE {
            self.size = (self.size * 2).min(self.cap);
            self.whole_in_a_row = 0;
        } else if self.cap < self.max && self.whole_in_a_row >= PATIENCE_AFTER_SHORT {
            self.cap = (self.cap * 2).min(self.max);
            self.line = None;
            self.whole_in_a_row = 0;
        }
    }

    /// An answer that ended at `line` with fewer entries than were asked for.
    fn short(&mut self, line: u64, served: u64) {
        self.whole_in_a_row = 0;
        self.short_in_a_row += 1;
        // Two lines of a grid are as far apart as its pages are long.
        let apart = self.line.and_then(|last| line.checked_sub(last)).unwrap_or(0);
        if apart >= served && apart <= self.max {
            self.size = apart;
        } else if self.line.is_none() || served > self.size || self.short_in_a_row > 1 {
            self.size = served.min(self.max);
        }
        self.cap = self.size;
        self.line = Some(line);
    }

    /// Learns that a question for so many was refused; false where it cannot be shorter.
    pub(crate) fn refused(&mut self, asked: u64) -> bool {
        self.whole_in_a_row = 0;
        if asked <= 1 {
            return false;
        }
        self.size = self.size.min((asked / 2).max(1));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log that serves at most `cap` entries, aligned to a grid or not, and refuses over `refuses`.
    fn read(cap: u64, grid: bool, refuses: u64, from: u64, to: u64) -> (u64, Pages) {
        let mut pages = Pages::new(None);
        let (mut at, mut requests) = (from, 0);
        while at < to {
            let end = pages.end(at, to);
            assert!(end > at && end <= to);
            requests += 1;
            assert!(requests < 100_000, "it never ends");
            if end - at > refuses {
                assert!(pages.refused(end - at));
                continue;
            }
            let line = if grid { (at / cap + 1) * cap } else { at + cap };
            let served = end.min(line) - at;
            pages.served(at, end, served);
            at += served;
        }
        (requests, pages)
    }

    #[test]
    fn the_size_that_a_log_serves_is_learned() {
        for cap in [32, 256, 1_000, 1_024, 5_000] {
            for grid in [false, true] {
                let (requests, pages) = read(cap, grid, u64::MAX, 100, 100 + 64 * 1_024);
                let least = (64 * 1_024_u64).div_ceil(cap.min(ENTRIES_MAX));
                assert!(
                    requests <= least + least / 2,
                    "{cap} {grid}: {requests} for {least}"
                );
                if cap <= ENTRIES_MAX {
                    assert!(requests <= least + 3, "{cap} {grid}: {requests} for {least}");
                    assert_eq!(pages.size(), cap, "{pages:?}");
                }
            }
        }
    }

    #[test]
    fn a_limit_that_shrinks_is_followed() {
        let mut pages = Pages::new(None);
        pages.served(0, 1_024, 256);
        assert_eq!((pages.size(), pages.end(256, 10_000)), (256, 512));
        pages.served(256, 512, 32);
        assert_eq!((pages.size(), pages.end(288, 10_000)), (32, 320));
    }

    #[test]
    fn what_was_halved_by_errors_grows_again_up_to_what_the_log_serves() {
        let mut pages = Pages::new(None);
        pages.served(0, 1_024, 256);
        assert!(pages.refused(256) && pages.refused(128));
        assert_eq!(pages.size(), 64);
        let mut at = 256;
        for _ in 0..3 * PATIENCE {
            let end = pages.end(at, 1 << 40);
            pages.served(at, end, end - at);
            at = end;
        }
        assert_eq!(pages.size(), 256);
    }

    #[test]
    fn what_is_refused_is_asked_for_in_halves_down_to_one() {
        let (_, pages) = read(u64::MAX / 4, false, 100, 0, 10_000);
        assert!(pages.size() <= 128);
        let (requests, _) = read(u64::MAX / 4, false, 1, 0, 500);
        assert!(requests < 1_200, "{requests}");
        let mut pages = Pages::new(None);
        assert!(!pages.refused(1));
    }
}
