//! How fast an operator may be asked, found out by asking.
//!
//! Additive increase, multiplicative decrease, over two quantities: requests at once, and the time between
//! the starts of two. Success widens both slowly; a refusal (429, 503) narrows both at once and pauses; a
//! latency that grows narrows the first, since a server that is slow is not made faster by more questions.
//!
//! # Concurrency
//! [`Pace`] is pure; [`Gate`] owns one behind a lock that is never held across an await.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// What is known of operators: they begin with this many requests at once. Where it is below five, fifty
/// milliseconds lie between two.
const STARTS: [(&str, u32); 5] = [
    ("digicert", 2),
    ("sectigo", 2),
    ("trustasia", 3),
    ("cloudflare", 4),
    ("google", 6),
];
const START_OF_OTHERS: u32 = 4;
const START_ON_THIS_MACHINE: u32 = 8;
const SPACING_FLOOR: Duration = Duration::from_millis(50);
const SPACING_MAX: Duration = Duration::from_secs(20);
/// Above this the time between two requests grows slowly: a limit of one in so many seconds is found closely.
const SPACING_WIDE: Duration = Duration::from_secs(2);
/// After a refusal that does not say how long to wait; doubled by each further one.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(120);
/// A log on this machine is nobody's but one's own.
const NEAR_MAX: Duration = Duration::from_millis(250);
/// A latency below this is never held against a server.
const LATENCY_FAIR: Duration = Duration::from_secs(2);

/// What an operator allows, as far as is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pace {
    concurrency: f64,
    concurrency_max: f64,
    spacing: Duration,
    spacing_floor: Duration,
    /// Longest time between two requests, and longest pause that nobody asked for.
    limits: (Duration, Duration),
    paused_until: Option<Instant>,
    refusals: u32,
    narrowed_at: Option<Instant>,
    latency: Duration,
    latency_least: Duration,
}

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// With an answer, after so long.
    Answered(Duration),
    /// Too many questions; perhaps with how long to wait.
    Refused(Option<Duration>),
    /// In some other way that says nothing about the pace.
    Failed,
}

/// What a person sets for an operator or a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) concurrency: Option<u32>,
    pub(crate) spacing: Option<Duration>,
}

impl Pace {
    /// Where to begin with an operator.
    pub(crate) fn of(operator: &str, is_on_this_machine: bool, limits: Limits) -> Self {
        let operator = operator.to_ascii_lowercase();
        let known = STARTS.iter().find(|(name, _)| operator.contains(name));
        let start = match known {
            _ if is_on_this_machine => START_ON_THIS_MACHINE,
            Some((_, start)) => *start,
            None => START_OF_OTHERS,
        };
        let concurrency = f64::from(limits.concurrency.unwrap_or(start).max(1));
        let is_wide = concurrency >= 5.0 || is_on_this_machine;
        let floor = if is_wide { Duration::ZERO } else { SPACING_FLOOR };
        let spacing_floor = limits.spacing.unwrap_or(floor);
        Self {
            concurrency,
            // What a person sets is an upper limit.
            concurrency_max: if limits.concurrency.is_some() {
                concurrency
            } else {
                concurrency * 2.0
            },
            spacing: spacing_floor,
            spacing_floor,
            limits: if is_on_this_machine {
                (NEAR_MAX, NEAR_MAX)
            } else {
                (SPACING_MAX.max(spacing_floor), PAUSE_MAX)
            },
            paused_until: None,
            refusals: 0,
            narrowed_at: None,
            latency: Duration::ZERO,
            latency_least: Duration::MAX,
        }
    }

    /// Requests at once.
    pub(crate) fn concurrency(&self) -> u32 {
        (self.concurrency.floor() as u32).max(1)
    }

    pub(crate) fn spacing(&self) -> Duration {
        self.spacing
    }

    /// When the next request may start, if the last one started at `last`.
    fn next_start(&self, last: Option<Instant>, now: Instant) -> Instant {
        let spaced = last.map_or(now, |last| last + self.spacing);
        spaced.max(self.paused_until.unwrap_or(now)).max(now)
    }

    /// Learns from a question that started at `started`.
    pub(crate) fn learn(&mut self, verdict: Verdict, started: Instant, now: Instant) {
        match verdict {
            Verdict::Answered(latency) => self.answered(latency),
            Verdict::Refused(wait) => self.refused(wait, started, now),
            Verdict::Failed => {}
        }
    }

    fn answered(&mut self, latency: Duration) {
        self.refusals = 0;
        self.latency_least = self.latency_least.min(latency);
        self.latency = if self.latency.is_zero() {
            latency
        } else {
            self.latency.mul_f64(0.875) + latency.mul_f64(0.125)
        };
        let fair = LATENCY_FAIR.max(self.latency_least.saturating_mul(4));
        if self.latency > fair {
            self.concurrency = (self.concurrency - 0.1).max(1.0);
            return;
        }
        self.concurrency = (self.concurrency + 0.25 / self.concurrency).min(self.concurrency_max);
        self.spacing = self.spacing.mul_f64(0.93).max(self.spacing_floor);
        if self.spacing < Duration::from_millis(1) {
            self.spacing = self.spacing_floor;
        }
    }

    fn refused(&mut self, wait: Option<Duration>, started: Instant, now: Instant) {
        if let Some(wait) = wait {
            let until = now + wait;
            self.paused_until = Some(self.paused_until.map_or(until, |known| known.max(until)));
        }
        // Questions that were on their way when the pace was narrowed say nothing new.
        if self.narrowed_at.is_some_and(|narrowed| started < narrowed) {
            return;
        }
        self.narrowed_at = Some(now);
        self.concurrency = (self.concurrency / 2.0).max(1.0);
        let factor = if self.spacing < SPACING_WIDE { 2.0 } else { 1.25 };
        self.spacing = self.spacing.mul_f64(factor).max(SPACING_FLOOR).min(self.limits.0);
        if wait.is_none() {
            let pause = PAUSE_FIRST
                .saturating_mul(1 << self.refusals.min(10))
                .min(self.limits.1);
            self.paused_until = Some(now + pause);
        }
        self.refusals = self.refusals.saturating_add(1);
    }
}

/// Lets requests to one operator through at its pace.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    pace: Pace,
    in_flight: u32,
    last_start: Option<Instant>,
}

/// Leave for one request; given back when dropped.
#[derive(Debug)]
pub(crate) struct Leave {
    gate: Arc<Gate>,
    started: Instant,
}

impl Gate {
    pub(crate) fn new(pace: Pace) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                pace,
                in_flight: 0,
                last_start: None,
            }),
            freed: Notify::new(),
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How fast it lets through now.
    pub(crate) fn pace(&self) -> Pace {
        self.lock().pace.clone()
    }

    /// Begins anew with what a person set.
    pub(crate) fn reset(&self, pace: Pace) {
        self.lock().pace = pace;
        self.freed.notify_waiters();
    }

    /// Waits until a request may start.
    pub(crate) async fn leave(self: &Arc<Self>) -> Leave {
        loop {
            let freed = self.freed.notified();
            let wait = {
                let mut state = self.lock();
                let now = Instant::now();
                if state.in_flight >= state.pace.concurrency() {
                    None
                } else {
                    let start = state.pace.next_start(state.last_start, now);
                    if start <= now {
                        state.in_flight += 1;
                        state.last_start = Some(now);
                        let gate = Arc::clone(self);
                        return Leave { gate, started: now };
                    }
                    Some(start)
                }
            };
            match wait {
                Some(start) => tokio::time::sleep_until(start).await,
                None => freed.await,
            }
        }
    }
}

impl Leave {
    /// Tells how the request ended.
    pub(crate) fn ended(self, verdict: Verdict) {
        self.gate.lock().pace.learn(verdict, self.started, Instant::now());
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.in_flight = state.in_flight.saturating_sub(1);
        drop(state);
        self.gate.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Verdict = Verdict::Answered(Duration::from_millis(20));

    fn pace(operator: &str) -> Pace {
        Pace::of(operator, false, Limits::default())
    }

    #[test]
    fn known_operators_start_as_they_are_known() {
        let start = |operator: &str| (pace(operator).concurrency(), pace(operator).spacing());
        assert_eq!(start("DigiCert"), (2, SPACING_FLOOR));
        assert_eq!(start("Google"), (6, Duration::ZERO));
        assert_eq!(start("Somebody"), (4, SPACING_FLOOR));
        let here = Pace::of("Google", true, Limits::default());
        assert_eq!((here.concurrency(), here.spacing()), (8, Duration::ZERO));
    }

    #[test]
    fn refusals_halve_once_for_all_that_was_on_its_way() {
        let mut pace = pace("Google");
        let start = Instant::now();
        let later = start + Duration::from_secs(1);
        for _ in 0..4 {
            pace.learn(Verdict::Refused(None), start, later);
        }
        assert_eq!(pace.concurrency(), 3);
        assert_eq!(pace.next_start(None, later), later + PAUSE_FIRST);
        let again = later + Duration::from_secs(1);
        pace.learn(
            Verdict::Refused(Some(Duration::from_secs(9))),
            again,
            again + Duration::from_secs(1),
        );
        assert_eq!(pace.concurrency(), 1);
        assert_eq!(pace.next_start(None, again), again + Duration::from_secs(10));
    }

    #[test]
    fn a_server_that_never_says_how_long_is_asked_ever_more_rarely() {
        let mut pace = pace("DigiCert");
        let mut now = Instant::now();
        for _ in 0..40 {
            now += Duration::from_secs(200);
            pace.learn(Verdict::Refused(None), now, now);
        }
        assert_eq!(pace.spacing(), SPACING_MAX);
        assert_eq!(pace.next_start(None, now), now + PAUSE_MAX);
        for _ in 0..500 {
            pace.learn(FAST, now, now);
        }
        assert_eq!(pace.spacing(), SPACING_FLOOR);
        assert_eq!(pace.concurrency(), 4, "twice what it started with");
    }

    #[test]
    fn slowness_narrows_and_what_a_person_sets_is_kept() {
        let mut slow = pace("Google");
        for _ in 0..40 {
            slow.learn(FAST, Instant::now(), Instant::now());
        }
        let wide = slow.concurrency();
        for _ in 0..200 {
            slow.learn(
                // Slower than before, and slow by any measure.
                Verdict::Answered(Duration::from_secs(25)),
                Instant::now(),
                Instant::now(),
            );
        }
        assert!(wide > 6 && slow.concurrency() == 1);
        let limits = Limits {
            concurrency: Some(3),
            spacing: Some(Duration::from_secs(6)),
        };
        let mut set = Pace::of("Google", false, limits);
        for _ in 0..100 {
            set.learn(FAST, Instant::now(), Instant::now());
        }
        assert_eq!((set.concurrency(), set.spacing()), (3, Duration::from_secs(6)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_gate_never_lets_more_through_than_the_pace() {
        let gate = Gate::new(pace("DigiCert"));
        let first = gate.leave().await;
        let second = gate.leave().await;
        let third = tokio::time::timeout(Duration::from_secs(5), gate.leave()).await;
        assert!(third.is_err());
        drop(first);
        assert!(
            tokio::time::timeout(Duration::from_secs(5), gate.leave())
                .await
                .is_ok()
        );
        drop(second);
    }
}
