//! How fast compaction writes, so that queries and ingestion keep their latency; and how it is stopped.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// Bytes written between two looks at the clock.
const STEP_BYTES: u64 = 1 << 20;

/// A bound on bytes a second, and a stop.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    /// 0 for no bound.
    bytes_per_second: u64,
    /// Bytes since the last look, and when that was.
    bytes: u64,
    since: Option<Instant>,
}

impl Pace {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the bound; 0 for none.
    pub(crate) fn limit(&self, bytes_per_second: u64) {
        let mut state = self.lock();
        state.bytes_per_second = bytes_per_second;
        state.bytes = 0;
        state.since = None;
    }

    /// Ends whatever waits or merges.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Waits so long, or until it is stopped; answers true then.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let state = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(state, time, |state| !state.stopped);
        waited.unwrap_or_else(PoisonError::into_inner).0.stopped
    }

    /// Notes bytes written and waits where they came too fast.
    pub(crate) fn wrote(&self, bytes: u64) -> Result<()> {
        let mut state = self.lock();
        if state.stopped {
            return Err(Error::Stopped);
        }
        state.bytes += bytes;
        if state.bytes_per_second == 0 || state.bytes < STEP_BYTES {
            return Ok(());
        }
        let due = Duration::from_secs_f64(state.bytes as f64 / state.bytes_per_second as f64);
        let now = Instant::now();
        let taken = state.since.map_or(due, |since| now.duration_since(since));
        state.bytes = 0;
        state.since = Some(now.max(now + due.saturating_sub(taken)));
        drop(state);
        if self.wait(due.saturating_sub(taken)) {
            return Err(Error::Stopped);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_spreads_bytes_over_time_and_a_stop_ends_waiting() {
        let pace = Pace::default();
        let start = Instant::now();
        pace.wrote(1 << 40).unwrap();
        pace.limit(64 << 20);
        for _ in 0..5 {
            pace.wrote(1 << 20).unwrap();
        }
        // The first step sets the clock; four more take 16 ms each. A busy machine only adds to it.
        assert!(
            start.elapsed() >= Duration::from_millis(60),
            "{:?}",
            start.elapsed()
        );
        pace.stop();
        assert!(pace.wait(Duration::from_secs(3_600)));
        assert!(matches!(pace.wrote(1), Err(Error::Stopped)));
    }
}
