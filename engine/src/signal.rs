//! Signals on simulated time: values that are constant or linear between given instants.

use std::fmt::Debug;

/// Instants at which something changes, such as the values of signals.
pub trait Edges: Debug + Send + Sync {
    /// The first of them after an instant (s, simulated time); infinite if there is none.
    fn next_after(&self, at_s: f64) -> f64;
}

/// What a value stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sample {
    /// The mean of the interval from its time to the next time.
    Mean,
    /// The value at its time; between two times the signal is linear.
    Point,
}

/// The signal before its first time and after its last interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Beyond {
    /// A task that needs it fails.
    Error,
    /// The first or the last value holds.
    Hold,
    /// The whole series is repeated.
    Wrap,
}

/// A signal on simulated time.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    /// Begins of the intervals.
    times_s: Vec<f64>,
    /// A value for each interval; then that of `end_s`, if the series has one.
    values: Vec<f64>,
    /// Values that are estimates; empty if the source does not say.
    estimated: Vec<bool>,
    /// End of the last interval.
    end_s: f64,
    sample: Sample,
    beyond: Beyond,
}

/// The interval of a signal that holds an instant: the value is `value + slope * (t - from_s)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Piece {
    pub(crate) index: usize,
    from_s: f64,
    to_s: f64,
    value: f64,
    pub(crate) slope: f64,
}

/// A signal that cannot be used, or an instant that it does not cover.
#[derive(Debug, Clone, PartialEq)]
pub enum SignalError {
    /// The times do not increase, a number is not finite, or there is no interval.
    Malformed,
    /// The run needs the signal at this instant (s, simulated time).
    NotCovered(f64),
}

impl Signal {
    /// A signal whose value i holds from time i (s, simulated time), the last until `end_s`.
    ///
    /// If the last time is `end_s`, no interval has its value: it is that of the end, to which the line of the last interval
    /// leads, and which holds behind the end. `estimated`: empty, or one for each value.
    ///
    /// # Errors
    /// [`SignalError::Malformed`].
    pub fn new(
        mut times_s: Vec<f64>,
        values: Vec<f64>,
        estimated: Vec<bool>,
        end_s: f64,
        sample: Sample,
        beyond: Beyond,
    ) -> Result<Signal, SignalError> {
        let increase = times_s.windows(2).all(|pair| pair[0] < pair[1]);
        let finite = times_s.iter().chain(&values).chain([&end_s]).all(|number| number.is_finite());
        let lengths = times_s.len() == values.len() && [0, values.len()].contains(&estimated.len());
        let last_s = *times_s.last().ok_or(SignalError::Malformed)?;
        if !(increase && finite && lengths && last_s <= end_s) {
            return Err(SignalError::Malformed);
        }
        times_s.pop_if(|last_s| *last_s == end_s);
        if times_s.is_empty() && beyond != Beyond::Hold {
            return Err(SignalError::Malformed);
        }
        Ok(Signal { times_s, values, estimated, end_s, sample, beyond })
    }

    /// Begin of the first interval (s); the end if there is none.
    pub(crate) fn first_s(&self) -> f64 {
        self.times_s.first().copied().unwrap_or(self.end_s)
    }

    /// End of the last interval (s).
    pub(crate) fn end_s(&self) -> f64 {
        self.end_s
    }

    /// Whether the value of each interval is an estimate; empty if the source does not say.
    pub(crate) fn estimated(&self) -> &[bool] {
        &self.estimated
    }

    /// Its times and its end (s, simulated time).
    pub fn edges(&self) -> impl Iterator<Item = f64> + '_ {
        self.times_s.iter().copied().chain([self.end_s])
    }

    /// What it is outside of its times.
    pub fn beyond(&self) -> Beyond {
        self.beyond
    }

    /// The values that hold before the first interval and behind the last one, if they do.
    pub(crate) fn held(&self) -> Option<(f64, f64)> {
        (self.beyond == Beyond::Hold).then(|| (self.values[0], self.values[self.values.len() - 1]))
    }

    /// The mean of the interval that holds an instant (s); `None` if the signal does not cover it.
    pub fn interval_mean(&self, at_s: f64) -> Option<f64> {
        let piece = self.piece(at_s)?;
        // A piece that extends to infinity is constant.
        let middle_s = if piece.slope == 0.0 { at_s } else { 0.5 * (piece.from_s + piece.to_s) };
        Some(piece.value_at(middle_s))
    }

    /// The mean of each interval.
    pub(crate) fn interval_means(&self) -> Vec<f64> {
        match self.sample {
            Sample::Mean => self.values[..self.times_s.len()].to_vec(),
            Sample::Point => {
                let middles = self.times_s.iter().zip(self.edges().skip(1)).map(|(from_s, to_s)| 0.5 * (from_s + to_s));
                middles.map(|middle_s| self.at(middle_s).unwrap_or(f64::NAN)).collect()
            }
        }
    }

    /// The piece that holds an instant; `None` if the signal does not cover it.
    pub(crate) fn piece(&self, at_s: f64) -> Option<Piece> {
        self.piece_near(at_s, 0)
    }

    /// [`Signal::piece`], which is faster if the piece is number `near` or the one behind it.
    pub(crate) fn piece_near(&self, at_s: f64, near: usize) -> Option<Piece> {
        let (first_s, last) = (self.first_s(), self.values.len() - 1);
        let constant = |index: usize, from_s: f64, to_s: f64| {
            Some(Piece { index, from_s, to_s, value: self.values[index], slope: 0.0 })
        };
        let mut turn_s = 0.0;
        if at_s < first_s || at_s >= self.end_s {
            match self.beyond {
                Beyond::Error => return None,
                Beyond::Hold if at_s < first_s => return constant(0, f64::NEG_INFINITY, first_s),
                Beyond::Hold => return constant(last, self.end_s, f64::INFINITY),
                Beyond::Wrap => {
                    let period_s = self.end_s - first_s;
                    turn_s = ((at_s - first_s) / period_s).floor() * period_s;
                }
            }
        }
        let local_s = at_s - turn_s;
        let begins = |index: usize| self.times_s.get(index).is_some_and(|time| *time <= local_s);
        let index = (near..near + 2).find(|index| begins(*index) && !begins(index + 1));
        let index = index.unwrap_or_else(|| self.times_s.partition_point(|time| *time <= local_s).saturating_sub(1));
        let from_s = self.times_s[index];
        let to_s = self.times_s.get(index + 1).copied().unwrap_or(self.end_s);
        let next = match self.values.get(index + 1) {
            Some(next) => *next,
            None if self.beyond == Beyond::Wrap => self.values[0],
            None => self.values[index],
        };
        let slope = match self.sample {
            Sample::Mean => 0.0,
            Sample::Point => (next - self.values[index]) / (to_s - from_s),
        };
        Some(Piece { index, from_s: from_s + turn_s, to_s: to_s + turn_s, value: self.values[index], slope })
    }

    /// The value at an instant (s); `None` if the signal does not cover it.
    pub fn at(&self, at_s: f64) -> Option<f64> {
        self.piece(at_s).map(|piece| piece.value_at(at_s))
    }
}

impl Edges for Signal {
    fn next_after(&self, at_s: f64) -> f64 {
        match self.piece(at_s) {
            // Rounding of times in a later turn must not give an edge that has passed.
            Some(piece) if piece.to_s > at_s => piece.to_s,
            Some(_) => at_s.next_up(),
            None if at_s < self.first_s() => self.first_s(),
            None => f64::INFINITY,
        }
    }
}

impl Piece {
    pub(crate) fn value_at(&self, at_s: f64) -> f64 {
        // A constant piece may begin at minus infinity.
        if self.slope == 0.0 { self.value } else { self.value + self.slope * (at_s - self.from_s) }
    }
}

#[cfg(test)]
mod tests;
