//! Notices that this process stood still: a batch system suspended it, or its machine slept.

use std::time::Duration;

use powersweep_proto::clocks::{Clocks, Gap};

/// Time between two looks that counts as a stall. The loop looks four times a second.
const STALL: Duration = Duration::from_secs(5);

/// Compares clocks to find that this process stood still. Setting the wall clock forward costs one connection.
pub(super) struct StallDetector {
    last: Clocks,
}

impl StallDetector {
    pub(super) fn begin() -> StallDetector {
        StallDetector { last: Clocks::now() }
    }

    /// How long the process stood still since the last look; `None` if it did not.
    pub(super) fn look(&mut self) -> Option<Duration> {
        stalled(self.last.gap())
    }
}

fn stalled(Gap { mono, wall }: Gap) -> Option<Duration> {
    let still = mono.max(wall.unwrap_or_default());
    (still >= STALL).then_some(still)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_of_either_clock_is_a_stall() {
        let mut last = Clocks::now();
        let (Clocks { mono, wall }, s) = (last, Duration::from_secs);
        let mut look_at = |mono, wall| stalled(last.gap_until(Clocks { mono, wall }));
        assert_eq!(look_at(mono + s(4), wall + s(4)), None);
        assert_eq!(look_at(mono + s(14), wall + s(14)), Some(s(10)), "the process was suspended");
        assert_eq!(look_at(mono + s(15), wall + s(75)), Some(s(61)), "the machine slept");
        assert_eq!(look_at(mono + s(16), wall), None, "the wall clock was set back");
    }
}
