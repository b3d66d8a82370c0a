//! Notices that this process stood still: a batch system suspended it, or its machine slept.

use std::time::{Duration, Instant, SystemTime};

/// Time between two looks that counts as a standstill. The loop looks four times a second.
const STANDSTILL: Duration = Duration::from_secs(5);

/// Looks at both clocks: the monotonic clock stands still while a machine sleeps. Setting the wall clock costs one
/// connection.
pub(super) struct Standstill {
    last: (Instant, SystemTime),
}

impl Standstill {
    pub(super) fn begin() -> Standstill {
        Standstill { last: (Instant::now(), SystemTime::now()) }
    }

    /// How long the process stood still since the last look; `None` if it did not.
    pub(super) fn look(&mut self) -> Option<Duration> {
        self.look_at((Instant::now(), SystemTime::now()))
    }

    fn look_at(&mut self, now: (Instant, SystemTime)) -> Option<Duration> {
        let before = std::mem::replace(&mut self.last, now);
        let wall = now.1.duration_since(before.1).unwrap_or_default();
        let still = wall.max(now.0.duration_since(before.0));
        (still >= STANDSTILL).then_some(still)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_of_either_clock_is_a_standstill() {
        let mut standstill = Standstill::begin();
        let (mono, wall) = standstill.last;
        let s = Duration::from_secs;
        assert_eq!(standstill.look_at((mono + s(4), wall + s(4))), None);
        assert_eq!(standstill.look_at((mono + s(14), wall + s(14))), Some(s(10)), "the process was suspended");
        assert_eq!(standstill.look_at((mono + s(15), wall + s(75))), Some(s(61)), "the machine slept");
        assert_eq!(standstill.look_at((mono + s(16), wall)), None, "the wall clock was set back");
    }
}
