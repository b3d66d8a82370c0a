//! The wall clock, and gaps in a process's time: it was suspended, or its machine slept.

use std::time::{Duration, Instant, SystemTime};

/// The wall clock, microseconds since 1970 UTC.
pub fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Both clocks at the last look. The monotonic clock stands still while a machine sleeps.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// The monotonic clock.
    pub mono: Instant,
    /// The wall clock, which can be set.
    pub wall: SystemTime,
}

/// The time between two looks, by each clock.
#[derive(Debug, Clone, Copy)]
pub struct Gap {
    /// By the monotonic clock.
    pub mono: Duration,
    /// By the wall clock; `None` if it was set back.
    pub wall: Option<Duration>,
}

impl Clocks {
    /// Reads both.
    pub fn now() -> Clocks {
        Clocks { mono: Instant::now(), wall: SystemTime::now() }
    }

    /// Looks again.
    pub fn gap(&mut self) -> Gap {
        self.gap_until(Clocks::now())
    }

    /// Looks again at a given time.
    pub fn gap_until(&mut self, now: Clocks) -> Gap {
        let before = std::mem::replace(self, now);
        Gap { mono: now.mono.duration_since(before.mono), wall: now.wall.duration_since(before.wall).ok() }
    }
}
