//! What a policy knows of a signal's future.
use std::f64::consts::PI;
use std::ops::Range;

use super::curve::Curve;
use super::rule::{DEFER_FORECAST, DEFER_FORECAST_ERROR};
use crate::rng::{Philox, Purpose};
use crate::signal::Signal;
use crate::spec::Choice;
use crate::summary::sum::Sum;

const HOUR_S: f64 = 3_600.0;
const DAY_S: f64 = 86_400.0;
/// Lead time of the published error (h).
const PUBLISHED_LEAD_H: f64 = 96.0;
/// Correlation of the errors of two neighbouring hours.
const CORRELATION: f64 = 0.97;

/// The kind of knowledge.
#[derive(Debug, Clone)]
enum Kind {
    /// The true values.
    Oracle,
    /// The values of the same time on the last day that is known.
    Persistence,
    /// The true values with an error.
    Noise(Noise),
}

/// Forecasts of a signal. A forecast is issued at the begin of each interval of the signal: all jobs that are decided about
/// in this interval see the same one. Its intervals have numbers from 0, the present one. True values are kept from one forecast
/// to the next.
#[derive(Debug, Clone)]
pub(super) struct Forecast {
    curve: Curve,
    kind: Kind,
    /// The interval in which the forecast was issued.
    issued: Option<i64>,
    /// The end of that interval (s).
    until_s: f64,
    /// Begins of the reached intervals (s), and their values, with passed ones at the front.
    begins_s: Vec<f64>,
    values: Vec<f64>,
    /// Number of passed intervals at the front.
    passed: usize,
    /// The place from which on the begins have equal steps.
    even_from: usize,
    /// Intervals in a second, by the length of the present one.
    rate: f64,
    /// Number of forecasts whose values were not kept from the one before.
    renewed_count: u64,
    /// Integral from the begin of the forecast, as far as windows were read.
    sum: Sum,
    /// The first term of this sum at the begin of each interval.
    sums: Vec<f64>,
    /// Its second term: so the error of a window is small against its own cost, however great the sums are.
    rests: Vec<f64>,
    /// Buffer of the integrals over the windows of a job.
    windows: Vec<f64>,
}

impl Forecast {
    pub(super) fn new(choice: &Choice, signal: &Signal, seed: u64) -> Forecast {
        let kind = match choice.text(DEFER_FORECAST.name) {
            "persistence" => Kind::Persistence,
            "noise" => Kind::Noise(Noise::new(choice.real(DEFER_FORECAST_ERROR.name), seed)),
            _ => Kind::Oracle,
        };
        Forecast {
            curve: Curve::new(signal),
            kind,
            issued: None,
            until_s: f64::NEG_INFINITY,
            begins_s: Vec::new(),
            values: Vec::new(),
            passed: 0,
            even_from: 0,
            rate: 0.0,
            renewed_count: 0,
            sum: Sum::default(),
            sums: Vec::new(),
            rests: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// Whether the forecast was issued in the present interval. `now_s` never decreases.
    #[inline]
    pub(super) fn is_present(&self, now_s: f64) -> bool {
        now_s < self.until_s
    }

    /// Issues the forecast of the present interval; `false` if the signal does not cover it. `now_s` never decreases.
    #[inline]
    pub(super) fn issue(&mut self, now_s: f64) -> bool {
        self.is_present(now_s) || self.issue_next(now_s)
    }

    fn issue_next(&mut self, now_s: f64) -> bool {
        let present = self.curve.interval(now_s);
        let Some(value) = self.curve.value(present) else { return false };
        self.until_s = self.curve.begin_s(present + 1);
        self.sums.clear();
        self.rests.clear();
        // The interval before a series has no begin: its forecast begins at the instant of its issue, and cannot be kept.
        let before = self.issued.replace(present).filter(|before| *before >= 0 && matches!(self.kind, Kind::Oracle));
        let steps = before.and_then(|before| usize::try_from(present - before).ok());
        if let Some(steps) = steps.filter(|steps| *steps < self.values().len()) {
            self.pass(steps);
        } else {
            self.begins_s.clear();
            self.values.clear();
            (self.passed, self.even_from) = (0, 0);
            self.renewed_count += 1;
            let earliest_s = if present < 0 { now_s } else { f64::MIN };
            self.push(self.curve.begin_s(present).max(earliest_s), value);
        }
        self.rate = 1.0 / (self.until_s - self.present_s());
        if let Kind::Noise(noise) = &mut self.kind {
            noise.issue(present);
        }
        true
    }

    /// Makes a later interval the present one.
    fn pass(&mut self, steps: usize) {
        self.passed += steps;
        if self.passed > 64 + self.begins_s.len() / 2 {
            self.begins_s.drain(..self.passed);
            self.values.drain(..self.passed);
            self.even_from = self.even_from.saturating_sub(self.passed);
            self.passed = 0;
        }
    }

    /// Adds an interval.
    fn push(&mut self, begin_s: f64, value: f64) {
        if let [.., before_s, last_s] = self.begins_s[..]
            && begin_s - last_s != last_s - before_s
        {
            self.even_from = self.begins_s.len() - 1;
        }
        self.begins_s.push(begin_s);
        self.values.push(value);
    }

    /// Extends the forecast by an interval; `false` if the signal ends.
    fn extend(&mut self) -> bool {
        let Some(present) = self.issued else { return false };
        let first_s = self.present_s();
        let next = present + self.values().len() as i64;
        let begin_s = self.curve.begin_s(next);
        let Some(truth) = self.curve.value(next).filter(|_| begin_s < f64::INFINITY) else { return false };
        let value = match &mut self.kind {
            Kind::Oracle => truth,
            Kind::Persistence => {
                let days = ((begin_s - first_s) / DAY_S).ceil();
                let known = self.curve.interval(begin_s - days * DAY_S);
                // Before the first day, the present value is all that is known.
                self.curve.value(known).unwrap_or(self.values[self.passed])
            }
            Kind::Noise(noise) => truth * (1.0 + noise.error((begin_s - first_s) / HOUR_S)).max(0.0),
        };
        self.push(begin_s, value);
        true
    }

    /// The integral over a length from the begin of an interval, which ends in the interval `end` (s).
    #[inline]
    fn window(&self, begin: usize, end: usize, length_s: f64) -> f64 {
        let (begins_s, sums, rests) = (self.begins_s(), &self.sums, &self.rests);
        let whole = (sums[end] - sums[begin]) + (rests[end] - rests[begin]);
        whole + self.values()[end] * (length_s - (begins_s[end] - begins_s[begin]))
    }

    /// Adds the integrals to the begins of the intervals up to this one.
    fn integrate(&mut self, last: usize) {
        if self.sums.is_empty() {
            self.sum = Sum::default();
            self.sums.push(0.0);
            self.rests.push(0.0);
        }
        let from = self.sums.len() - 1;
        if from < last {
            let begins_s = self.begins_s[self.passed..][from..=last].windows(2);
            for (value, begins_s) in self.values[self.passed..][from..last].iter().zip(begins_s) {
                self.sum.add(value * (begins_s[1] - begins_s[0]));
                let (sum, rest) = self.sum.terms();
                self.sums.push(sum);
                self.rests.push(rest);
            }
        }
    }

    /// Extends the forecast until it has the interval that holds an instant (s). Returns the instant up to which it is known
    /// then: that one or a later one, unless the signal ends before.
    #[inline]
    pub(super) fn reach(&mut self, at_s: f64) -> f64 {
        match self.begins_s.last() {
            Some(&last_s) if last_s > at_s => last_s,
            _ => self.extend_to(at_s),
        }
    }

    fn extend_to(&mut self, at_s: f64) -> f64 {
        while let Some(&last_s) = self.begins_s.last() {
            if last_s > at_s {
                return last_s;
            }
            if !self.extend() {
                return self.end_of(self.values().len() - 1);
            }
        }
        f64::NEG_INFINITY
    }

    /// Begins of the intervals from the present one on (s), as far as the forecast was extended. The present one begins now
    /// or earlier.
    #[inline]
    pub(super) fn begins_s(&self) -> &[f64] {
        &self.begins_s[self.passed..]
    }

    /// Values of these intervals.
    #[inline]
    pub(super) fn values(&self) -> &[f64] {
        &self.values[self.passed..]
    }

    /// Number of forecasts that were not kept from the one before, and the number of the present interval: between two forecasts
    /// with one of the former, intervals keep their values, and the present one moves by the difference of the latter.
    #[inline]
    pub(super) fn version(&self) -> (u64, i64) {
        (self.renewed_count, self.issued.unwrap_or_default())
    }

    /// Begin of the present interval (s).
    #[inline]
    pub(super) fn present_s(&self) -> f64 {
        self.begins_s[self.passed]
    }

    /// The begin of the next interval (s), as far as the forecast was extended; infinite behind that.
    pub(super) fn next_s(&self) -> f64 {
        self.begins_s.get(self.passed + 1).copied().unwrap_or(f64::INFINITY)
    }

    /// The interval that holds an instant (s), among those that were reached.
    #[inline(always)]
    pub(super) fn interval_of(&self, at_s: f64) -> usize {
        let begins_s = self.begins_s();
        let last = begins_s.len() - 1;
        // Most series have equal steps: the guess is right for them.
        let mut interval = (((at_s - begins_s[0]) * self.rate) as u32 as usize).min(last);
        while interval > 0 && begins_s[interval] > at_s {
            interval -= 1;
        }
        while interval < last && begins_s[interval + 1] <= at_s {
            interval += 1;
        }
        interval
    }

    /// The begins of the intervals, and the integrals of the forecast over windows of a length that begin now, and at each
    /// begin of a later interval up to `latest_s`. Windows that end behind the known future are left out.
    pub(super) fn windows(&mut self, now_s: f64, latest_s: f64, length_s: f64) -> (&[f64], &mut [f64]) {
        let last_s = latest_s.min(self.reach(latest_s + length_s) - length_s);
        let mut windows = std::mem::take(&mut self.windows);
        windows.clear();
        if now_s <= last_s {
            let end_s = now_s + length_s;
            let (end, last) = (self.interval_of(end_s), self.interval_of(last_s));
            self.integrate(self.interval_of(last_s + length_s));
            windows.push(if end == 0 {
                self.values()[0] * length_s
            } else {
                let first_s = self.begins_s()[1] - now_s;
                self.values()[0] * first_s + self.window(1, end, length_s - first_s)
            });
            self.later_windows(1..last + 1, end, length_s, &mut windows);
        }
        self.windows = windows;
        (&self.begins_s[self.passed..], &mut self.windows)
    }

    /// Adds the integrals over the windows that begin with these intervals. `end`: the interval in which the window from now
    /// on ends; the others end there or later.
    fn later_windows(&self, begins: Range<usize>, mut end: usize, length_s: f64, windows: &mut Vec<f64>) {
        let (begins_s, values) = (self.begins_s(), self.values());
        let mut end_of = |begin: usize| {
            while begins_s.get(end + 1).is_some_and(|next_s| *next_s <= begins_s[begin] + length_s) {
                end += 1;
            }
            end
        };
        let Some(first) = begins.clone().next() else { return };
        let first_end = end_of(first);
        let ends = first_end..first_end + begins.len();
        if self.even_from <= self.passed + 1 && ends.end <= self.sums.len() {
            // The end of each window is as many intervals ahead: a loop without branches.
            let sums = self.sums[begins.clone()].iter().zip(&self.sums[ends.clone()]);
            let rests = self.rests[begins.clone()].iter().zip(&self.rests[ends.clone()]);
            let wholes = sums.zip(rests).map(|((sum, end_sum), (rest, end_rest))| (end_sum - sum) + (end_rest - rest));
            let whole_s =
                begins_s[begins].iter().zip(&begins_s[ends.clone()]).map(|(begin_s, last_s)| last_s - begin_s);
            let last = values[ends].iter().zip(whole_s).map(|(value, whole_s)| value * (length_s - whole_s));
            windows.extend(wholes.zip(last).map(|(whole, last)| whole + last));
            return;
        }
        for begin in begins {
            windows.push(self.window(begin, end_of(begin), length_s));
        }
    }

    /// The end of an interval (s), among those that were reached.
    pub(super) fn end_of(&self, interval: usize) -> f64 {
        self.issued.map_or(f64::NEG_INFINITY, |present| self.curve.begin_s(present + interval as i64 + 1))
    }
}

/// Relative errors of a forecast: an autoregressive process of the hours ahead that begins at 0, so that the error grows
/// with the lead time.
#[derive(Debug, Clone)]
struct Noise {
    seed: u64,
    /// Standard deviation of one step.
    step: f64,
    stream: Philox,
    /// Error by lead time (h).
    errors: Vec<f64>,
}

impl Noise {
    fn new(published: f64, seed: u64) -> Noise {
        // Of a normal error, the mean of the absolute value is sqrt(2/pi) standard deviations. The variance of the
        // process after h steps is step^2 (1 - c^2h) / (1 - c^2).
        let deviation = published / (2.0 / PI).sqrt();
        let squared = CORRELATION * CORRELATION;
        let growth = ((1.0 - libm::pow(squared, PUBLISHED_LEAD_H)) / (1.0 - squared)).sqrt();
        Noise { seed, step: deviation / growth, stream: Philox::stream(seed, Purpose::Forecast), errors: Vec::new() }
    }

    /// Begins the errors of another forecast.
    fn issue(&mut self, interval: i64) {
        // Intervals that differ by 2^32 share a stream.
        self.stream = Philox::substream(self.seed, Purpose::Forecast, interval as u32);
        self.errors.clear();
        self.errors.push(0.0);
    }

    /// The error of a lead time (h).
    fn error(&mut self, lead_h: f64) -> f64 {
        let lead = lead_h as usize;
        while self.errors.len() <= lead {
            let last = self.errors[self.errors.len() - 1];
            self.errors.push(CORRELATION * last + self.step * self.stream.normal());
        }
        self.errors[lead]
    }
}
