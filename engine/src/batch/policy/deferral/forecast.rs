//! What a policy knows of a signal's future.
use std::f64::consts::PI;

use super::curve::Curve;
use super::rule::{DEFER_FORECAST, DEFER_FORECAST_ERROR};
use crate::rng::{Philox, Purpose};
use crate::signal::Signal;
use crate::spec::Choice;

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

/// An interval of a forecast.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    /// Begin of the interval (s). The present interval begins now or earlier.
    pub(super) begin_s: f64,
    pub(super) value: f64,
    /// Integral of the forecast from the begin of the forecast to the begin of the interval.
    sum: f64,
}

impl Interval {
    /// The integral from the begin of the forecast to an instant in the interval.
    #[inline]
    pub(super) fn sum_to(&self, at_s: f64) -> f64 {
        self.sum + self.value * (at_s - self.begin_s)
    }
}

/// Forecasts of a signal. A forecast is issued at the begin of each interval of the signal: all jobs that are decided about
/// in this interval see the same one. Its intervals have numbers from 0, the present one.
#[derive(Debug, Clone)]
pub(super) struct Forecast {
    curve: Curve,
    kind: Kind,
    /// The interval in which the forecast was issued.
    issued: Option<i64>,
    /// The end of that interval (s).
    until_s: f64,
    intervals: Vec<Interval>,
}

impl Forecast {
    pub(super) fn new(choice: &Choice, signal: &Signal, seed: u64) -> Forecast {
        let kind = match choice.text(DEFER_FORECAST.name) {
            "persistence" => Kind::Persistence,
            "noise" => Kind::Noise(Noise::new(choice.real(DEFER_FORECAST_ERROR.name), seed)),
            _ => Kind::Oracle,
        };
        let curve = Curve::new(signal);
        Forecast { curve, kind, issued: None, until_s: f64::NEG_INFINITY, intervals: Vec::new() }
    }

    /// Issues the forecast of the present interval; `false` if the signal does not cover it. `now_s` never decreases.
    pub(super) fn issue(&mut self, now_s: f64) -> bool {
        if now_s < self.until_s {
            return true;
        }
        let present = self.curve.interval(now_s);
        let Some(value) = self.curve.value(present) else { return false };
        self.issued = Some(present);
        self.until_s = self.curve.begin_s(present + 1);
        self.intervals.clear();
        // The interval before a series has no begin.
        let begin_s = self.curve.begin_s(present).max(f64::MIN).max(if present < 0 { now_s } else { f64::MIN });
        self.intervals.push(Interval { begin_s, value, sum: 0.0 });
        if let Kind::Noise(noise) = &mut self.kind {
            noise.issue(present);
        }
        true
    }

    /// Extends the forecast by an interval; `false` if the signal ends.
    fn extend(&mut self) -> bool {
        let Some(present) = self.issued else { return false };
        let (first, last) = (self.intervals[0], self.intervals[self.intervals.len() - 1]);
        let next = present + self.intervals.len() as i64;
        let begin_s = self.curve.begin_s(next);
        let Some(truth) = self.curve.value(next).filter(|_| begin_s < f64::INFINITY) else { return false };
        let value = match &mut self.kind {
            Kind::Oracle => truth,
            Kind::Persistence => {
                let days = ((begin_s - first.begin_s) / DAY_S).ceil();
                let known = self.curve.interval(begin_s - days * DAY_S);
                // Before the first day, the present value is all that is known.
                self.curve.value(known).unwrap_or(first.value)
            }
            Kind::Noise(noise) => truth * (1.0 + noise.error((begin_s - first.begin_s) / HOUR_S)).max(0.0),
        };
        self.intervals.push(Interval { begin_s, value, sum: last.sum_to(begin_s) });
        true
    }

    /// Extends the forecast until it has the interval that holds an instant (s). Returns the instant up to which it is known
    /// then: that one or a later one, unless the signal ends before.
    #[inline]
    pub(super) fn reach(&mut self, at_s: f64) -> f64 {
        while let Some(last) = self.intervals.last() {
            if last.begin_s > at_s {
                return last.begin_s;
            }
            if !self.extend() {
                return self.end_of(self.intervals.len() - 1);
            }
        }
        f64::NEG_INFINITY
    }

    /// The intervals from the present one on, as far as the forecast was extended.
    #[inline]
    pub(super) fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// The present interval.
    #[inline]
    pub(super) fn present(&self) -> Interval {
        self.intervals[0]
    }

    /// The begin of the next interval (s), as far as the forecast was extended; infinite behind that.
    pub(super) fn next_s(&self) -> f64 {
        self.intervals.get(1).map_or(f64::INFINITY, |next| next.begin_s)
    }

    /// The interval that holds an instant (s), among those that were reached.
    #[inline]
    pub(super) fn interval_of(&self, at_s: f64) -> usize {
        let last = self.intervals.len() - 1;
        // Most series have equal steps: the guess is right for them.
        let step_s = self.next_s() - self.present().begin_s;
        let mut interval = (((at_s - self.present().begin_s) / step_s) as usize).min(last);
        while interval > 0 && self.intervals[interval].begin_s > at_s {
            interval -= 1;
        }
        while interval < last && self.intervals[interval + 1].begin_s <= at_s {
            interval += 1;
        }
        interval
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
