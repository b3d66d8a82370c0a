//! Mean load of a machine in each step of a meter, from the jobs as they ran.

use super::{MeterStep, RanJob};
use crate::error::{Error, usage};

/// Mean procs and powers over a step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Procs of jobs without a measured power.
    pub model_procs: f64,
    /// Procs of jobs with a measured power.
    pub measured_procs: f64,
    /// Sum of the measured powers (W).
    pub measured_w: f64,
    /// Procs of no job.
    pub idle_procs: f64,
}

/// Jobs that run at an instant. Whole numbers, so that sums of changes have no drift: powers count in 2^-30 W.
#[derive(Debug, Clone, Copy, Default)]
struct Running {
    model_procs: i64,
    measured_procs: i64,
    parts: i128,
}

/// Parts of a watt.
const PARTS: f64 = (1_u64 << 30) as f64;

/// The mean load in each step.
///
/// # Errors
/// Jobs hold more procs than the machine has.
pub fn loads(jobs: &[RanJob], steps: &[MeterStep], procs: u32) -> Result<Vec<Load>, Error> {
    let mut changes: Vec<(f64, i64, &RanJob)> = Vec::with_capacity(2 * jobs.len());
    for job in jobs.iter().filter(|job| job.start_s < job.end_s) {
        changes.extend([(job.start_s, 1, job), (job.end_s, -1, job)]);
    }
    // Ends come before starts at the same instant: a job takes the procs of the one before.
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut changes = changes.into_iter().peekable();
    let mut now = Running::default();
    let mut loads = Vec::with_capacity(steps.len());
    for step in steps {
        let mut load = Load::default();
        let mut at_s = step.from_s;
        loop {
            let next_s = changes.peek().map_or(f64::INFINITY, |change| change.0);
            let until_s = next_s.clamp(at_s, step.to_s);
            let share = (until_s - at_s) / (step.to_s - step.from_s);
            load.model_procs += now.model_procs as f64 * share;
            load.measured_procs += now.measured_procs as f64 * share;
            load.measured_w += now.parts as f64 / PARTS * share;
            at_s = until_s;
            if next_s >= step.to_s {
                break;
            }
            if let Some((instant_s, sign, job)) = changes.next() {
                now.change(sign, job);
                let busy = now.model_procs + now.measured_procs;
                if busy > i64::from(procs) {
                    return Err(usage(format!(
                        "jobs hold {busy} procs at {instant_s} s, and the machine has {procs}: state more"
                    )));
                }
            }
        }
        load.idle_procs = (f64::from(procs) - load.model_procs - load.measured_procs).max(0.0);
        loads.push(load);
    }
    Ok(loads)
}

impl Running {
    fn change(&mut self, sign: i64, job: &RanJob) {
        let procs = sign * i64::from(job.procs);
        match job.mean_w {
            None => self.model_procs += procs,
            Some(mean_w) => {
                self.measured_procs += procs;
                self.parts += i128::from(sign) * (mean_w * PARTS).round() as i128;
            }
        }
    }
}
