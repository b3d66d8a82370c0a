//! What the energy of a run weighs under signals: emissions, cost and means.

use crate::energy::{Cell, Energy};
use crate::signal::{Piece, Signal, SignalError};

/// Joules in a kilowatt-hour.
pub const J_PER_KWH: f64 = 3.6e6;

/// What the energy of a run weighs under a signal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weight {
    /// Energy of the machine times the signal (unit of the signal * kWh).
    pub machine: f64,
    /// Energy of the machine times the signal; after the last submission without the energy of the idle machine.
    pub window: f64,
    /// Energy of the jobs times the signal.
    pub jobs: f64,
    /// Energy of the jobs times the signal, if each job had started at its submission.
    pub at_once: f64,
    /// Energy of the machine, and that energy at the meter of the facility (J).
    pub energy_j: f64,
    /// See `energy_j`.
    pub facility_j: f64,
    /// Mean of the signal, weighted by the facility's energy; NaN without energy.
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
    /// Whether the task's policy reads the signal: then the schedule depends on it.
    pub read_by_policy: bool,
    /// The signal's file, as in the manifest.
    pub signal_file: String,
    /// The zone that the file names; null if it names none.
    pub zone: Option<String>,
    /// The column of the file that was asked for; null if the manifest leaves it to the reader.
    pub signal_column: Option<String>,
    /// Calendar time of simulated time 0 (UTC, ISO 8601); null for a signal on simulated time.
    pub anchor: Option<String>,
    /// Energy at the meter of the facility (J): the machine's energy times `pue` over `supply_efficiency`.
    pub facility_energy_j: f64,
    /// Facility energy over the energy of the machine's supply: the PUE of the manifest, or its mean over the run, weighted
    /// by energy; null without energy.
    pub pue_mean: Option<f64>,
    /// Share of the supplied power that reaches the machine.
    pub supply_efficiency: f64,
    /// Emissions of the energy that the facility and its battery draw from the grid (g of CO2 equivalent): the exact
    /// integral of power times intensity, from the first submission to the last completion. A policy that ends later counts
    /// more idle power. Null for other quantities.
    pub emissions_g: Option<f64>,
    /// Emissions of making the machine and its battery (g of CO2 equivalent): hours of the run times the sum of procs
    /// times `embodied_g_per_proc_hour` and `battery_embodied_g_per_hour`. Null for other quantities.
    pub embodied_emissions_g: Option<f64>,
    /// Cost of the energy that the facility and its battery draw from the grid, in `currency`: the exact integral of power
    /// times price, from the first submission to the last completion. Null for other quantities.
    pub cost: Option<f64>,
    /// Currency of `cost`, as the file or the manifest names it.
    pub currency: Option<String>,
    /// The battery's policy, as in the manifest; null without a battery, as are all columns of batteries.
    pub battery_policy: Option<String>,
    /// Energy that the battery stores at most (kWh).
    pub battery_kwh: Option<f64>,
    /// Power that the battery draws from the grid while it charges (W).
    pub battery_charge_w: Option<f64>,
    /// The battery's threshold, or a value before the first one of a running policy; null if the policy has none.
    pub battery_threshold: Option<f64>,
    /// The threshold of discharging; null for policies other than `double`.
    pub battery_upper_threshold: Option<f64>,
    /// Number of values that a running policy looks at; null for other policies.
    pub battery_window: Option<u64>,
    /// Charge of the battery at the begin of the run, as a share of `battery_kwh`.
    pub battery_initial_share: Option<f64>,
    /// Energy that the battery gives over the energy that it draws for that.
    pub battery_efficiency: Option<f64>,
    /// Energy that the battery drew from the grid (J); null without a battery.
    pub battery_charged_j: Option<f64>,
    /// Energy that the facility drew from the battery in place of the grid (J); null without a battery.
    pub battery_discharged_j: Option<f64>,
    /// Energy in the battery at the end of the run (J); null without a battery.
    pub battery_end_j: Option<f64>,
    /// Mean of the signal weighted by the facility's energy, wherever it comes from (g/kWh, currency/kWh, W, degrees Celsius).
    pub signal_energy_mean: Option<f64>,
    /// Mean of the signal over the run's time (the same unit).
    pub signal_time_mean: Option<f64>,
    /// Emissions of the jobs' procs from start to end, each job with its mean power, at the meter (g).
    pub jobs_emissions_g: Option<f64>,
    /// Emissions of the jobs if each had started at its submission, with the same power and duration (g). The
    /// difference to `jobs_emissions_g` is what waiting bought.
    pub at_once_emissions_g: Option<f64>,
    /// As `jobs_emissions_g`, for the price.
    pub jobs_cost: Option<f64>,
    /// As `at_once_emissions_g`, for the price.
    pub at_once_cost: Option<f64>,
    /// Emissions in a window that does not depend on the policy, at the meter, without the battery (g). Until the last
    /// submission all power of the machine counts, afterwards its power above that of the idle machine.
    pub window_emissions_g: Option<f64>,
    /// As `window_emissions_g`, for the price.
    pub window_cost: Option<f64>,
    /// Share of the run's time in which the signal is an estimate of its publisher; null if the file does not say.
    pub estimated_share: Option<f64>,
}
}

impl Signal {
    /// Weighs the energy of a run by the signal. The cells must not extend over a change of the signal.
    ///
    /// `factors`: the facility's power over the machine's in each cell; empty if they are equal.
    ///
    /// # Errors
    /// [`SignalError::NotCovered`] with the first instant that the signal does not cover.
    pub fn weigh(&self, cells: &[Cell], factors: &[f64]) -> Result<Weight, SignalError> {
        let (mut machine, mut idle_after, mut jobs, mut at_once) = (0.0, 0.0, 0.0, 0.0);
        let (mut energy_j, mut facility_j) = (0.0, 0.0);
        let (mut time_s, mut value_s, mut estimated_s) = (0.0, 0.0, 0.0);
        let mut index = 0;
        for (at, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.to_s > cell.from_s) {
            let factor = factors.get(at).copied().unwrap_or(1.0);
            let piece = self.piece_of(cell, index)?;
            index = piece.index;
            let value = piece.value_at(cell.from_s);
            let weigh = |energy: Energy| factor * (value * energy.energy_j + piece.slope * energy.moment_js);
            machine += weigh(cell.machine);
            idle_after += weigh(cell.idle_after);
            jobs += weigh(cell.jobs);
            at_once += weigh(cell.at_once);
            let dt_s = cell.to_s - cell.from_s;
            energy_j += cell.machine.energy_j;
            facility_j += factor * cell.machine.energy_j;
            time_s += dt_s;
            value_s += piece.value_at(0.5 * (cell.from_s + cell.to_s)) * dt_s;
            if self.estimated().get(piece.index).is_some_and(|estimated| *estimated) {
                estimated_s += dt_s;
            }
        }
        Ok(Weight {
            machine: machine / J_PER_KWH,
            window: (machine - idle_after) / J_PER_KWH,
            jobs: jobs / J_PER_KWH,
            at_once: at_once / J_PER_KWH,
            energy_j,
            facility_j,
            mean: machine / facility_j,
            time_mean: value_s / time_s,
            estimated_share: (!self.estimated().is_empty()).then(|| estimated_s / time_s),
        })
    }

    /// The piece that holds a cell, most often number `near` or the one behind it.
    ///
    /// # Errors
    /// [`SignalError::NotCovered`] with the first instant that the signal does not cover.
    pub(crate) fn piece_of(&self, cell: &Cell, near: usize) -> Result<Piece, SignalError> {
        let piece = self.piece_near(0.5 * (cell.from_s + cell.to_s), near);
        piece.ok_or(SignalError::NotCovered(self.uncovered(cell)))
    }

    /// The first instant of a cell that the signal does not cover.
    fn uncovered(&self, cell: &Cell) -> f64 {
        if cell.from_s < self.first_s() { cell.from_s } else { cell.from_s.max(self.end_s()) }
    }
}
