//! Calibration: recorded starts and ends of jobs against a meter, without scheduling.
//!
//! In each step of the meter, the power is `loss_factor * (idle_w * idle procs + busy_w * busy procs of jobs without a
//! measured power + measured powers of the other jobs)`. Values that are stated are kept, the others are fitted by least
//! squares. The loss factor can be told from the other two only by jobs with a measured power: without any it is 1 unless
//! it is stated.
//!
//! All sums are exact integrals: powers are constant between starts and ends.

mod beta;
mod fit;
mod load;

pub use beta::{Beta, FrequencyJob, betas};
pub use load::{Load, loads};

use crate::error::{Error, usage};

/// A job as it ran, or the part of one with one power.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RanJob {
    /// Start (s).
    pub start_s: f64,
    /// End (s).
    pub end_s: f64,
    /// Procs that it held.
    pub procs: u32,
    /// Its measured mean power (W), if it was measured.
    pub mean_w: Option<f64>,
}

/// A step of a meter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeterStep {
    /// Begin (s).
    pub from_s: f64,
    /// End (s).
    pub to_s: f64,
    /// Mean power (W).
    pub mean_w: f64,
}

/// Values that are known before.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stated {
    /// Power of an idle proc (W).
    pub idle_w: Option<f64>,
    /// Power of a busy proc of a job without a measured power (W).
    pub busy_w: Option<f64>,
    /// Power at the meter divided by the power of the procs.
    pub loss_factor: Option<f64>,
}

/// A value of the platform.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// The value.
    pub value: f64,
    /// Its standard error, if it was fitted.
    pub error: Option<f64>,
    /// Where it comes from.
    pub from: Origin,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It was stated.
    Stated,
    /// It was fitted.
    Fitted,
    /// The best fit would be below 0.
    Bound,
    /// The steps say nothing about it: 1 for losses, 0 for powers.
    Unknown,
}

impl Origin {
    /// Its name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Origin::Stated => "stated",
            Origin::Fitted => "fitted",
            Origin::Bound => "at its bound",
            Origin::Unknown => "not in the data",
        }
    }
}

/// The simulated against the measured power, over the compared steps.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Errors {
    /// Mean of simulated minus measured power over time (W).
    pub bias_w: f64,
    /// That difference over the mean of the measured power.
    pub bias_share: f64,
    /// Root of the mean square difference (W), over time.
    pub rmse_w: f64,
    /// Mean absolute percentage error over steps whose measured power is above 0, as a share: |s - m| / m.
    pub mape: Option<f64>,
    /// Normalised absolute difference: sum |s - m| / sum m, over time.
    pub nad: Option<f64>,
}

/// Energies of the compared steps (J): jobs + idle + losses = simulated.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Energies {
    /// Jobs with a measured power.
    pub measured_jobs_j: f64,
    /// Jobs with the power of the model.
    pub model_jobs_j: f64,
    /// Idle procs.
    pub idle_j: f64,
    /// Losses between meter and procs.
    pub losses_j: f64,
    /// Their sum.
    pub simulated_j: f64,
    /// The meter.
    pub meter_j: f64,
}

/// A compared step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// The meter's step.
    pub step: MeterStep,
    /// Mean procs and powers of jobs.
    pub load: Load,
    /// Simulated mean power (W).
    pub simulated_w: f64,
}

/// A platform that fits a meter, and how well.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// Power of an idle proc (W).
    pub idle_w: Value,
    /// Power of a busy proc of a job without a measured power (W).
    pub busy_w: Value,
    /// Power at the meter divided by the power of the procs.
    pub loss_factor: Value,
    /// Mean power of a proc of jobs with a measured power (W), over proc-seconds.
    pub measured_proc_w: Option<f64>,
    /// Errors.
    pub errors: Errors,
    /// Energies.
    pub energies: Energies,
    /// The steps.
    pub steps: Vec<Compared>,
}

/// Compares jobs as they ran with a meter, and fits the values that are not stated.
///
/// `steps`: in order of time, without overlaps. `procs`: of the machine.
///
/// # Errors
/// There is no step, jobs hold more procs than the machine has, or the steps cannot tell two values apart.
pub fn calibrate(jobs: &[RanJob], steps: &[MeterStep], procs: u32, stated: Stated) -> Result<Calibration, Error> {
    if steps.is_empty() {
        return Err(usage("no step of the meter is within the span of the jobs".to_owned()));
    }
    let loads = loads(jobs, steps, procs)?;
    let [idle_w, busy_w, loss_factor] = fit::values(&loads, steps, stated)?;
    let mut energies = Energies::default();
    let (mut sum_s, mut bias, mut square, mut absolute) = (0.0, 0.0, 0.0, 0.0);
    let (mut shares, mut shares_count, mut measured_proc_s) = (0.0, 0.0, 0.0);
    let compare = |(load, step): (&Load, &MeterStep)| {
        let dt = step.to_s - step.from_s;
        let (model_w, idle) = (busy_w.value * load.model_procs, idle_w.value * load.idle_procs);
        let inner_w = load.measured_w + model_w + idle;
        let simulated_w = loss_factor.value * inner_w;
        energies.measured_jobs_j += load.measured_w * dt;
        energies.model_jobs_j += model_w * dt;
        energies.idle_j += idle * dt;
        energies.losses_j += (simulated_w - inner_w) * dt;
        energies.simulated_j += simulated_w * dt;
        energies.meter_j += step.mean_w * dt;
        measured_proc_s += load.measured_procs * dt;
        let difference_w = simulated_w - step.mean_w;
        sum_s += dt;
        bias += difference_w * dt;
        square += difference_w * difference_w * dt;
        absolute += difference_w.abs() * dt;
        if step.mean_w > 0.0 {
            shares += difference_w.abs() / step.mean_w;
            shares_count += 1.0;
        }
        Compared { step: *step, load: *load, simulated_w }
    };
    let compared = loads.iter().zip(steps).map(compare).collect();
    let meter_j = energies.meter_j;
    let errors = Errors {
        bias_w: bias / sum_s,
        bias_share: if meter_j > 0.0 { bias / meter_j } else { 0.0 },
        rmse_w: (square / sum_s).sqrt(),
        mape: (shares_count > 0.0).then(|| shares / shares_count),
        nad: (meter_j > 0.0).then(|| absolute / meter_j),
    };
    let measured_proc_w = (measured_proc_s > 0.0).then(|| energies.measured_jobs_j / measured_proc_s);
    Ok(Calibration { idle_w, busy_w, loss_factor, measured_proc_w, errors, energies, steps: compared })
}
