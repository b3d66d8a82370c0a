//! The time of a slot by phase, on the monotonic clock.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use powersweep_proto::v1;

/// The phase of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waiting for a task.
    Idle,
    /// Getting a workload: decoding the spec, fetching, parsing, building.
    Parse,
    /// Simulating.
    Engine,
    /// Making rows, or waiting because the outbox is full.
    Store,
}

/// Time spent by phase. Each instant counts in exactly one phase, so that the totals add up to the slot's life.
#[derive(Debug)]
pub(crate) struct Clock {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    since: Instant,
    spent: [Duration; 4],
}

impl Clock {
    /// An idle slot from now on.
    pub(crate) fn new() -> Clock {
        Clock { state: Mutex::new(State { phase: Phase::Idle, since: Instant::now(), spent: Default::default() }) }
    }

    /// Ends the present phase; returns how long it lasted.
    pub(crate) fn enter(&self, phase: Phase) -> Duration {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let lasted = now.duration_since(state.since);
        let ended = state.phase as usize;
        state.spent[ended] += lasted;
        state.phase = phase;
        state.since = now;
        lasted
    }

    /// Totals up to now, the present phase included.
    pub(crate) fn spent(&self) -> v1::TimeSpent {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut spent = state.spent;
        spent[state.phase as usize] += state.since.elapsed();
        let s = |phase: Phase| spent[phase as usize].as_secs_f64();
        v1::TimeSpent {
            engine_s: s(Phase::Engine),
            parse_s: s(Phase::Parse),
            store_s: s(Phase::Store),
            idle_s: s(Phase::Idle),
        }
    }
}

/// An operation on two times, field by field.
pub(crate) fn by_field(a: v1::TimeSpent, b: v1::TimeSpent, of: fn(f64, f64) -> f64) -> v1::TimeSpent {
    v1::TimeSpent {
        engine_s: of(a.engine_s, b.engine_s),
        parse_s: of(a.parse_s, b.parse_s),
        store_s: of(a.store_s, b.store_s),
        idle_s: of(a.idle_s, b.idle_s),
    }
}
