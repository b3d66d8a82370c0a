//! Signals on simulated time: values that are constant or linear between given instants, and what the energy of a run
//! weighs under them.

use crate::energy::{Cell, Edges, Energy};

/// Joules in a kilowatt-hour.
const J_PER_KWH: f64 = 3.6e6;

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
    times_s: Vec<f64>,
    values: Vec<f64>,
    /// Intervals whose value is an estimate; empty if the source does not say.
    estimated: Vec<bool>,
    end_s: f64,
    sample: Sample,
    beyond: Beyond,
}

/// The interval of a signal that holds an instant: the value is `value + slope * (t - from_s)`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    index: usize,
    from_s: f64,
    to_s: f64,
    value: f64,
    slope: f64,
}

/// What the energy of a run weighs under a signal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weight {
    /// Energy of the machine times the signal (unit of the signal * kWh).
    pub machine: f64,
    /// Energy of the jobs times the signal.
    pub jobs: f64,
    /// The same if each job had started at its submission.
    pub at_once: f64,
    /// Mean of the signal, weighted by the machine's energy; NaN without energy.
    pub mean: f64,
    /// Mean of the signal over the time of the run; NaN for a run without a duration.
    pub time_mean: f64,
    /// Share of the run's time in intervals whose value is an estimate; `None` if the source does not say.
    pub estimated_share: Option<f64>,
}

crate::record! {
/// A task under one signal: a row of the table `accounts`.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// Label of the signal's block in the manifest.
    pub signal: String,
    /// Number of the combination of the block's lists, from 0.
    pub signal_index: u64,
    /// The quantity: carbon, price, cap or temperature.
    pub quantity: &'static str,
    /// The signal's file, as in the manifest.
    pub signal_file: String,
    /// The zone that the file names; null if it names none.
    pub zone: Option<String>,
    /// The column of the file that was asked for; null if the manifest leaves it to the reader.
    pub signal_column: Option<String>,
    /// Calendar time of simulated time 0 (UTC, ISO 8601); null for a signal on simulated time.
    pub anchor: Option<String>,
    /// Emissions of the machine's energy (g of CO2 equivalent): the exact integral of power times intensity. Null for
    /// other quantities.
    pub emissions_g: Option<f64>,
    /// Cost of the machine's energy, in `currency`: the exact integral of power times price. Null for other quantities.
    pub cost: Option<f64>,
    /// Currency of `cost`, as the file or the manifest names it.
    pub currency: Option<String>,
    /// Mean of the signal weighted by the machine's energy (g/kWh, currency/kWh, W, degrees Celsius).
    pub signal_energy_mean: Option<f64>,
    /// Mean of the signal over the run's time (the same unit).
    pub signal_time_mean: Option<f64>,
    /// Emissions of the jobs' procs from start to end, each job with its mean power (g).
    pub jobs_emissions_g: Option<f64>,
    /// Emissions of the jobs if each had started at its submission, with the same power and duration (g). The
    /// difference to `jobs_emissions_g` is what waiting bought.
    pub at_once_emissions_g: Option<f64>,
    /// As `jobs_emissions_g`, for the price.
    pub jobs_cost: Option<f64>,
    /// As `at_once_emissions_g`, for the price.
    pub at_once_cost: Option<f64>,
    /// Share of the run's time in which the signal is an estimate of its publisher; null if the file does not say.
    pub estimated_share: Option<f64>,
}
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
    /// `estimated`: empty, or one for each value.
    ///
    /// # Errors
    /// [`SignalError::Malformed`].
    pub fn new(
        times_s: Vec<f64>,
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
        let has_end = last_s < end_s || last_s == end_s && beyond == Beyond::Hold;
        if !(increase && finite && lengths && has_end) {
            return Err(SignalError::Malformed);
        }
        Ok(Signal { times_s, values, estimated, end_s, sample, beyond })
    }

    fn first_s(&self) -> f64 {
        self.times_s[0]
    }

    /// Its times and its end (s, simulated time).
    pub fn edges(&self) -> impl Iterator<Item = f64> + '_ {
        self.times_s.iter().copied().chain([self.end_s])
    }

    /// What it is outside of its times.
    pub fn beyond(&self) -> Beyond {
        self.beyond
    }

    /// Number of its intervals.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The mean of the interval that holds an instant (s); `None` if the signal does not cover it.
    pub(crate) fn interval_mean(&self, at_s: f64) -> Option<f64> {
        let piece = self.piece(at_s)?;
        // A piece that extends to infinity is constant.
        let middle_s = if piece.slope == 0.0 { at_s } else { 0.5 * (piece.from_s + piece.to_s) };
        Some(piece.value_at(middle_s))
    }

    /// The mean of each interval.
    pub(crate) fn interval_means(&self) -> Vec<f64> {
        match self.sample {
            Sample::Mean => self.values.clone(),
            Sample::Point => {
                let middles = self.times_s.iter().zip(self.edges().skip(1)).map(|(from_s, to_s)| 0.5 * (from_s + to_s));
                middles.map(|middle_s| self.at(middle_s).unwrap_or(f64::NAN)).collect()
            }
        }
    }

    /// The piece that holds an instant; `None` if the signal does not cover it.
    fn piece(&self, at_s: f64) -> Option<Piece> {
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
        let index = self.times_s.partition_point(|time| *time <= local_s).saturating_sub(1);
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

    /// The integral from `from_s` to `to_s`; `None` if the signal does not cover the interval.
    pub fn integral(&self, from_s: f64, to_s: f64) -> Option<f64> {
        let (mut at_s, mut sum) = (from_s, 0.0);
        while at_s < to_s {
            let piece = self.piece(at_s)?;
            let until_s = piece.to_s.max(at_s.next_up()).min(to_s);
            sum += piece.value_at(0.5 * (at_s + until_s)) * (until_s - at_s);
            at_s = until_s;
        }
        Some(sum)
    }

    /// Weighs the energy of a run by the signal. The cells must not extend over a change of the signal.
    ///
    /// # Errors
    /// [`SignalError::NotCovered`] with the first instant that the signal does not cover.
    pub fn weigh(&self, cells: &[Cell]) -> Result<Weight, SignalError> {
        let (mut machine, mut jobs, mut at_once) = (0.0, 0.0, 0.0);
        let (mut energy_j, mut time_s, mut value_s, mut estimated_s) = (0.0, 0.0, 0.0, 0.0);
        for cell in cells.iter().filter(|cell| cell.to_s > cell.from_s) {
            let middle_s = 0.5 * (cell.from_s + cell.to_s);
            let piece = self.piece(middle_s).ok_or(SignalError::NotCovered(self.uncovered(cell)))?;
            let value = piece.value_at(cell.from_s);
            let weigh = |energy: Energy| value * energy.energy_j + piece.slope * energy.moment_js;
            machine += weigh(cell.machine);
            jobs += weigh(cell.jobs);
            at_once += weigh(cell.at_once);
            let dt_s = cell.to_s - cell.from_s;
            energy_j += cell.machine.energy_j;
            time_s += dt_s;
            value_s += piece.value_at(middle_s) * dt_s;
            if self.estimated.get(piece.index).is_some_and(|estimated| *estimated) {
                estimated_s += dt_s;
            }
        }
        Ok(Weight {
            machine: machine / J_PER_KWH,
            jobs: jobs / J_PER_KWH,
            at_once: at_once / J_PER_KWH,
            mean: machine / energy_j,
            time_mean: value_s / time_s,
            estimated_share: (!self.estimated.is_empty()).then(|| estimated_s / time_s),
        })
    }

    /// The first instant of a cell that the signal does not cover.
    fn uncovered(&self, cell: &Cell) -> f64 {
        if cell.from_s < self.first_s() { cell.from_s } else { cell.from_s.max(self.end_s) }
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
    fn value_at(&self, at_s: f64) -> f64 {
        // A constant piece may begin at minus infinity.
        if self.slope == 0.0 { self.value } else { self.value + self.slope * (at_s - self.from_s) }
    }
}

#[cfg(test)]
mod tests;
