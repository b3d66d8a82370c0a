//! A battery between the grid and the meter of a facility, run by a rule on the signal that it is accounted under.
//!
//! The battery changes no schedule: it moves energy between the instants at which the facility draws it from the grid. It
//! follows the battery policies of OpenDC 3 (`BatteryPolicy` and its subclasses).

use std::collections::VecDeque;

use crate::energy::Cell;
use crate::signal::{Signal, SignalError};

/// When a battery charges and discharges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BatteryPolicy {
    /// Discharges while the signal is at least `upper`, charges while it is below `lower`, else idles.
    Thresholds {
        /// Charges below this value (unit of the signal).
        lower: f64,
        /// Discharges from this value on; at least `lower`.
        upper: f64,
    },
    /// The thresholds are a statistic of the last values of the signal, the present one included.
    Running {
        /// The statistic.
        statistic: Statistic,
        /// Number of values, at least 1.
        window: usize,
        /// A value before the first one; `None`: the window begins with the first value.
        first: Option<f64>,
    },
}

/// A statistic of the last values of a signal, and how the battery follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// Discharges from the mean on, charges below.
    Mean,
    /// As `Mean`, but charges only at values that are not below the value before. OpenDC's variable for charging on while the
    /// signal falls is never set (July 2026).
    MeanPlus,
    /// Discharges from the median on, charges below.
    Median,
    /// Discharges from the upper quartile on, charges up to the lower one. Until the window is full, both are the median.
    Quartiles,
}

/// A battery.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Battery {
    /// Energy that it stores at most (J).
    pub capacity_j: f64,
    /// Power that it draws from the grid while it charges (W).
    pub charge_w: f64,
    /// Stored energy at the begin of the run (J).
    pub initial_j: f64,
    /// Stored energy over the energy drawn for it, above 0 up to 1.
    pub efficiency: f64,
    /// When it charges and discharges.
    pub policy: BatteryPolicy,
}

/// What a battery did in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stored {
    /// Change of the weight of the run (unit of the signal * kWh): negative if the battery saves.
    pub change: f64,
    /// Energy that the battery drew from the grid (J).
    pub charged_j: f64,
    /// Energy that the facility drew from the battery in place of the grid (J).
    pub discharged_j: f64,
    /// Stored energy at the end of the run (J).
    pub end_j: f64,
}

/// What the battery does while the signal keeps a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Charge,
    Discharge,
    Idle,
}

impl Battery {
    /// Runs the battery through a run. While it discharges, it supplies the whole facility until it is empty.
    ///
    /// `cells`, `factors`: see [`Signal::weigh`]. The signal must be constant between its changes.
    ///
    /// # Errors
    /// [`SignalError::NotCovered`] with the first instant that the signal does not cover.
    pub fn run(&self, signal: &Signal, cells: &[Cell], factors: &[f64]) -> Result<Stored, SignalError> {
        let mut stored = Stored { end_j: self.initial_j.min(self.capacity_j), ..Stored::default() };
        let mut rule = Rule::new(self.policy);
        let (mut index, mut action) = (None, Action::Idle);
        let mut change = 0.0;
        for (at, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.to_s > cell.from_s) {
            let piece = signal.piece_of(cell, index.unwrap_or(0))?;
            let value = piece.value_at(cell.from_s);
            // Cells also end where other signals change.
            if index != Some(piece.index) {
                index = Some(piece.index);
                action = rule.next(value);
            }
            match action {
                Action::Charge => {
                    let room_j = self.capacity_j - stored.end_j;
                    let kept_j = (self.charge_w * self.efficiency * (cell.to_s - cell.from_s)).min(room_j);
                    stored.end_j += kept_j;
                    stored.charged_j += kept_j / self.efficiency;
                    change += value * kept_j / self.efficiency;
                }
                Action::Discharge => {
                    let demand_j = cell.machine.energy_j * factors.get(at).copied().unwrap_or(1.0);
                    let supplied_j = demand_j.min(stored.end_j);
                    stored.end_j -= supplied_j;
                    stored.discharged_j += supplied_j;
                    change -= value * supplied_j;
                }
                Action::Idle => {}
            }
        }
        stored.change = change / crate::account::J_PER_KWH;
        Ok(stored)
    }
}

/// A policy with the values that it has seen.
struct Rule {
    policy: BatteryPolicy,
    /// The last values, the oldest first.
    values: VecDeque<f64>,
    /// Their sum, if the policy compares with their mean.
    sum: ExactSum,
}

impl Rule {
    fn new(policy: BatteryPolicy) -> Rule {
        let mut rule = Rule { policy, values: VecDeque::new(), sum: ExactSum::default() };
        if let BatteryPolicy::Running { first: Some(first), .. } = policy {
            rule.see(first);
        }
        rule
    }

    /// Adds a value behind the last one.
    fn see(&mut self, value: f64) {
        self.values.push_back(value);
        self.sum.add(value);
    }

    /// The action while the signal has its next value.
    fn next(&mut self, value: f64) -> Action {
        let (statistic, window) = match self.policy {
            BatteryPolicy::Thresholds { lower, upper } => return action(value >= upper, value < lower),
            BatteryPolicy::Running { statistic, window, .. } => (statistic, window),
        };
        let previous = self.values.back().copied().unwrap_or(value);
        if self.values.len() >= window {
            let oldest = self.values.pop_front().unwrap_or(0.0);
            self.sum.add(-oldest);
        }
        self.see(value);
        match statistic {
            Statistic::Mean => action(self.is_mean_or_more(value), true),
            Statistic::MeanPlus => action(self.is_mean_or_more(value), value >= previous),
            Statistic::Quartiles if self.values.len() >= window => {
                action(value >= self.quantile(0.75), value <= self.quantile(0.25))
            }
            Statistic::Median | Statistic::Quartiles => action(value >= self.quantile(0.5), true),
        }
    }

    /// Whether a value is at least the mean of the values, without rounding: their number times the value is at least their
    /// sum. A rounded mean of equal values can be above them.
    fn is_mean_or_more(&self, value: f64) -> bool {
        let count = self.values.len() as f64;
        let product = count * value;
        let mut rest = self.sum.clone();
        rest.add(-product);
        // The error of the product.
        rest.add(-libm::fma(count, value, -product));
        !rest.is_positive()
    }

    /// A quantile of the values, linear between them. OpenDC reads the values above it in windows of uneven length.
    fn quantile(&self, share: f64) -> f64 {
        let mut values: Vec<f64> = self.values.iter().copied().collect();
        values.sort_by(f64::total_cmp);
        let at = share * (values.len() - 1) as f64;
        let below = values[at as usize];
        let above = values[(at.ceil() as usize).min(values.len() - 1)];
        below + (above - below) * at.fract()
    }
}

/// The action of a battery at a value. A value that is both high and low discharges it.
fn action(is_high: bool, is_low: bool) -> Action {
    match (is_high, is_low) {
        (true, _) => Action::Discharge,
        (false, true) => Action::Charge,
        (false, false) => Action::Idle,
    }
}

/// A sum without rounding: the terms' sum is that of these parts, which do not overlap, the least first (Shewchuk 1997).
#[derive(Debug, Clone, Default)]
struct ExactSum {
    parts: Vec<f64>,
}

impl ExactSum {
    fn add(&mut self, mut term: f64) {
        let mut kept = 0;
        for at in 0..self.parts.len() {
            let part = self.parts[at];
            let sum = term + part;
            let rest = sum - term;
            let error = (term - (sum - rest)) + (part - rest);
            if error != 0.0 {
                self.parts[kept] = error;
                kept += 1;
            }
            term = sum;
        }
        self.parts.truncate(kept);
        if term != 0.0 {
            self.parts.push(term);
        }
    }

    /// Whether the sum is above 0: the last part is greater than the others together.
    fn is_positive(&self) -> bool {
        self.parts.last().is_some_and(|part| *part > 0.0)
    }
}

#[cfg(test)]
mod tests;
