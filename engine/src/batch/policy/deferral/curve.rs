//! A signal as policies see it: intervals with one value each, by a number that goes on in every turn of a repeated series.
use crate::signal::{Beyond, Signal};

/// Steps from the last interval to a sought one after which a search is faster.
const STEPS_MAX: u32 = 64;

/// Intervals of a signal; the value of each is its mean.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    begins_s: Vec<f64>,
    values: Vec<f64>,
    end_s: f64,
    beyond: Beyond,
    /// The values before and behind the series, if they hold.
    held: Option<(f64, f64)>,
    /// The interval that was found last.
    last: i64,
}

impl Curve {
    pub(super) fn new(signal: &Signal) -> Curve {
        let mut begins_s: Vec<f64> = signal.edges().collect();
        let end_s = begins_s.pop().unwrap_or(0.0);
        let (values, beyond, held) = (signal.interval_means(), signal.beyond(), signal.held());
        Curve { begins_s, values, end_s, beyond, held, last: 0 }
    }

    /// Begin of an interval (s). Before and behind a series that does not repeat, there is one interval each, whose begin is
    /// minus infinity and the end of the series.
    pub(super) fn begin_s(&self, interval: i64) -> f64 {
        if let Some(begin_s) = usize::try_from(interval).ok().and_then(|at| self.begins_s.get(at)) {
            return *begin_s;
        }
        let count = self.begins_s.len() as i64;
        match interval {
            _ if self.beyond == Beyond::Wrap => {
                let turn = interval.div_euclid(count);
                self.begins_s[interval.rem_euclid(count) as usize] + turn as f64 * (self.end_s - self.begins_s[0])
            }
            ..0 => f64::NEG_INFINITY,
            _ if interval == count => self.end_s,
            _ => f64::INFINITY,
        }
    }

    /// The value of an interval; `None` if the signal has none.
    pub(super) fn value(&self, interval: i64) -> Option<f64> {
        if let Some(value) = usize::try_from(interval).ok().and_then(|at| self.values.get(at)) {
            return Some(*value);
        }
        let count = self.values.len() as i64;
        match self.beyond {
            Beyond::Wrap => Some(self.values[interval.rem_euclid(count) as usize]),
            Beyond::Hold | Beyond::Error => {
                self.held.map(|(before, behind)| if interval < 0 { before } else { behind })
            }
        }
    }

    /// The interval that holds an instant (s).
    pub(super) fn interval(&mut self, at_s: f64) -> i64 {
        let mut interval = self.last;
        for _ in 0..STEPS_MAX {
            if self.begin_s(interval) > at_s {
                interval -= 1;
            } else if self.begin_s(interval + 1) <= at_s {
                interval += 1;
            } else {
                self.last = interval;
                return interval;
            }
        }
        self.last = self.search(at_s);
        self.last
    }

    fn search(&self, at_s: f64) -> i64 {
        let count = self.begins_s.len() as i64;
        let (turn, within_s) = match self.beyond {
            Beyond::Wrap => {
                let period_s = self.end_s - self.begins_s[0];
                let turn = ((at_s - self.begins_s[0]) / period_s).floor();
                (turn, at_s - turn * period_s)
            }
            Beyond::Hold | Beyond::Error if at_s >= self.end_s => return count,
            Beyond::Hold | Beyond::Error => (0.0, at_s),
        };
        turn as i64 * count + self.begins_s.partition_point(|begin_s| *begin_s <= within_s) as i64 - 1
    }
}
