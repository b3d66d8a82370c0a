//! The rate of commits: a token bucket.
//!
//! On a directory, each commit is a synced file that exists for some seconds, whatever its size. A burst of commits may
//! start at once, so that a single request does not wait; a steady stream of small events is committed at a steady rate,
//! so that events share commits.

use std::time::{Duration, Instant};

/// Time between commits in a steady stream.
const INTERVAL: Duration = Duration::from_millis(25);
/// Commits that may start without waiting, after a pause of as many intervals.
const AT_ONCE: u32 = 100;

/// The token bucket of commits.
#[derive(Debug)]
pub(super) struct Pace {
    /// Time at which the commits so far would have ended at the steady rate.
    steady: Instant,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Pace {
        Pace { steady: now }
    }

    /// When the next commit may start; at once if the instant has passed.
    pub(super) fn next(&self) -> Instant {
        self.steady.checked_sub(INTERVAL * AT_ONCE).unwrap_or(self.steady)
    }

    /// A commit starts.
    pub(super) fn started(&mut self, now: Instant) {
        self.steady = self.steady.max(now) + INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_starts_at_once_and_a_stream_at_the_steady_rate() {
        // An `Instant` has no values before the start of the clock.
        let begin = Instant::now() + Duration::from_secs(3600);
        let mut pace = Pace::new(begin);
        let mut now = begin;
        for _ in 0..AT_ONCE {
            assert!(pace.next() <= now);
            pace.started(now);
        }
        let mut waits = Vec::new();
        for _ in 0..10 {
            waits.push(pace.next().saturating_duration_since(now));
            now = now.max(pace.next());
            pace.started(now);
        }
        assert!(waits[1..].iter().all(|&wait| wait == INTERVAL), "{waits:?}");
        now += INTERVAL * (AT_ONCE + 1);
        assert!(pace.next() + INTERVAL * AT_ONCE <= now + INTERVAL, "a burst is possible after a pause");
    }
}
