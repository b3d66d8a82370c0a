//! Wait awhile: a job executes in the intervals of least value, and is suspended between them.
use std::collections::VecDeque;

use super::forecast::Forecast;
use super::rule::{
    Ask, DEFER_FORECAST, DEFER_FORECAST_ERROR, DEFER_LENGTH, DEFER_SHARE, DEFER_SIGNAL, DEFER_WAIT_MAX_S, DEFERRAL,
    DeferralRule, Lows, Verdict, of_run, problems_of_suspension,
};
use crate::spec::{Choice, Component};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    name: "wait-awhile",
    version: 2,
    source: "Wiesner et al. 2021; Hanafy et al. 2024 (GAIA), Wait Awhile",
    doc: "A job executes in those intervals of the signal that have the least values and suffice for its length, the \
          first of equal ones, up to the instant at which it would end after its longest deferral. It is released at the \
          first of them. Once it has started, it is suspended at the begin of an interval that is not among them, by the \
          forecast of that interval and for the rest of its length. Suspended jobs keep their procs, which draw idle power.",
    reads: "The present value of the signal and its forecast, and the estimate of the job, or its run time (an \
            oracle) if `defer_length` = \"run\".",
    guarantees: "A job enters the queue `defer_wait_max_s` after its submission at the latest. A suspended job \
                 resumes early enough to end `defer_wait_max_s` and its assumed length after its submission, if \
                 it is not longer than assumed and started early enough.",
    params: &[DEFER_SIGNAL, DEFER_WAIT_MAX_S, DEFER_SHARE, DEFER_FORECAST, DEFER_FORECAST_ERROR, DEFER_LENGTH],
    problems: problems_of_suspension,
    ..DEFERRAL
};

/// The rule `wait-awhile`.
#[derive(Debug, Clone)]
pub(super) struct WaitAwhile {
    of_run: bool,
    lows: Lows,
    below: Below,
}

impl DeferralRule for WaitAwhile {
    fn of(choice: &Choice) -> Option<WaitAwhile> {
        Some(WaitAwhile { of_run: of_run(choice), lows: Lows::new(0.0), below: Below::default() })
    }

    fn decide(&mut self, ask: &Ask, forecast: &mut Forecast) -> Verdict {
        let length_s = ask.length_s(self.of_run);
        let end = End::of(ask.latest_s + length_s, forecast);
        self.below.follow(forecast);
        // A job needs an interval unless the intervals of lower values suffice. So the first needed interval has a value below
        // all values before it, and all later intervals with such a value are needed, too.
        let lows = self.lows.among(end.last + usize::from(end.last_s > 0.0), forecast);
        let first = lows.partition_point(|low| self.below.time_s(*low, &end, forecast) >= length_s);
        lows.get(first).filter(|low| **low > 0).map_or(Verdict::Now, |low| Verdict::At(forecast.begins_s()[*low]))
    }

    fn executes(&mut self, ask: &Ask, forecast: &mut Forecast) -> bool {
        let length_s = ask.length_s(self.of_run);
        let end = End::of(ask.latest_s + length_s, forecast);
        self.below.follow(forecast);
        self.below.time_s(0, &end, forecast) < length_s
    }
}

/// The end of a job.
#[derive(Debug, Clone, Copy)]
struct End {
    /// The interval that holds it, or the last one that is known.
    last: usize,
    /// The part of that interval before the end (s).
    last_s: f64,
}

impl End {
    #[inline(always)]
    fn of(end_s: f64, forecast: &mut Forecast) -> End {
        let known_s = forecast.reach(end_s);
        let last = forecast.interval_of(end_s);
        let until_s = if known_s > end_s { end_s } else { forecast.end_of(last).min(end_s) };
        End { last, last_s: until_s - forecast.begins_s()[last] }
    }
}

/// Times in which the signal is below the value of an interval.
#[derive(Debug, Clone, Default)]
struct Below {
    /// See [`Forecast::version`].
    version: (u64, i64),
    /// By interval, as far as it was read: by the number of intervals from it on, time behind it in which values are below
    /// its own (s).
    times_s: VecDeque<Vec<f64>>,
    /// Unused buffers.
    spare: Vec<Vec<f64>>,
}

impl Below {
    /// Keeps the times of the intervals that have kept their values.
    #[inline]
    fn follow(&mut self, forecast: &Forecast) {
        if forecast.version() != self.version {
            self.forget(forecast.version());
        }
    }

    fn forget(&mut self, version: (u64, i64)) {
        let kept = (version.0 == self.version.0).then_some(version.1 - self.version.1);
        let passed = kept.and_then(|passed| usize::try_from(passed).ok()).unwrap_or(usize::MAX);
        self.spare.extend(self.times_s.drain(..passed.min(self.times_s.len())));
        self.version = version;
    }

    /// Time between an interval and an end in which the signal is below the value of the interval (s).
    #[inline(always)]
    fn time_s(&mut self, interval: usize, end: &End, forecast: &Forecast) -> f64 {
        let values = forecast.values();
        let known = self.times_s.get(interval).and_then(|times_s| times_s.get(end.last - interval)).copied();
        let time_s = known.unwrap_or_else(|| self.read_on(interval, end.last, forecast));
        time_s + if values[end.last] < values[interval] { end.last_s } else { 0.0 }
    }

    /// Reads the times of an interval up to another one, and returns the last.
    fn read_on(&mut self, interval: usize, last: usize, forecast: &Forecast) -> f64 {
        let spare = &mut self.spare;
        while self.times_s.len() <= interval {
            let mut times_s = spare.pop().unwrap_or_default();
            times_s.clear();
            times_s.push(0.0);
            self.times_s.push_back(times_s);
        }
        let (times_s, value) = (&mut self.times_s[interval], forecast.values()[interval]);
        let (from, mut time_s) = (interval + times_s.len() - 1, times_s[times_s.len() - 1]);
        let steps = forecast.begins_s()[from..=last].windows(2);
        times_s.extend(forecast.values()[from..last].iter().zip(steps).map(|(other, begins_s)| {
            time_s += if *other < value { begins_s[1] - begins_s[0] } else { 0.0 };
            time_s
        }));
        time_s
    }
}
