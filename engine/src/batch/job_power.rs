//! Measured powers of the jobs of a run, divided by the model's, and what the scheduler knows of them.

use std::sync::Arc;

use super::kernel::{JobSamples, Known, SampledScales, Scales};
use super::platform::Machine;
use crate::error::SimError;
use crate::rng::{Philox, Purpose};
use crate::spec::{Role, SimSpec};
use crate::workload::powers::{PowerOfRecord, are_used};
use crate::workload::swf::PowerSeries;
use crate::workload::{Job, Workload};

/// Power of a busy processor at the top gear (W), by the model.
fn top_w(job: &Job, machine: &Machine) -> f64 {
    machine.gears_of(job.class).last().map_or(0.0, |gear| gear.busy_w)
}

/// The powers of the jobs of a run.
#[derive(Debug)]
pub(super) struct JobPowers<'w> {
    powers: &'w [PowerOfRecord],
    series: Option<&'w Arc<PowerSeries>>,
    knowledge: &'w str,
    noise_sd: f64,
    seed: u64,
}

impl<'w> JobPowers<'w> {
    /// The powers of a spec's jobs; `None` if all jobs draw the power of the model.
    pub(super) fn new(spec: &'w SimSpec, workload: &'w Workload) -> Option<JobPowers<'w>> {
        let rules = spec.choice(Role::Rules);
        are_used(spec).then(|| JobPowers {
            powers: &workload.powers,
            series: workload.power_series.as_ref(),
            knowledge: rules.text("power_knowledge"),
            noise_sd: rules.real("power_noise_sd"),
            seed: spec.seed,
        })
    }

    fn of(&self, job: &Job) -> Option<&'w PowerOfRecord> {
        self.powers.binary_search_by_key(&job.record, |power| power.record).ok().map(|at| &self.powers[at])
    }

    /// Whether the power of a job was measured.
    fn is_measured(&self, job: &Job) -> bool {
        self.of(job).is_some_and(|power| power.proc_w.is_some())
    }

    /// The scales of jobs.
    ///
    /// # Errors
    /// [`SimError::Invalid`]: the model has no power to compare a measured one with.
    pub(super) fn scales(&self, jobs: &[Job], machine: &Machine) -> Result<Scales, SimError> {
        let scale = |job: &Job| {
            let Some(proc_w) = self.of(job).and_then(|power| power.proc_w) else { return Ok(1.0) };
            let top_w = top_w(job, machine);
            let scale = proc_w / top_w;
            if scale.is_finite() {
                return Ok(scale);
            }
            Err(SimError::Invalid(format!(
                "job {} has a measured power, and a busy processor at the top gear draws {top_w} W: state the watts of the \
                 platform, by which measured powers scale with the gear",
                job.id
            )))
        };
        let by_job: Vec<f64> = jobs.iter().map(scale).collect::<Result<_, _>>()?;
        let samples = self.series.map(|series| self.samples(series, jobs, &by_job, machine));
        let known = match self.knowledge {
            "oracle" => samples.as_ref().map_or(Known::True, |_| Known::Scales(by_job.clone())),
            "peak" => match &samples {
                None => Known::True,
                Some(samples) => {
                    let peak = |(at, mean): (usize, &f64)| samples.range(at).map_or(*mean, |(_, greatest)| greatest);
                    Known::Scales(by_job.iter().enumerate().map(peak).collect())
                }
            },
            "model" => Known::Model,
            "noise" => {
                // A stream for each job: the error does not depend on the other jobs.
                let error = |job: &Job| Philox::substream(self.seed, Purpose::JobPower, job.id as u32).normal();
                let noisy = |(scale, job): (&f64, &Job)| scale * libm::exp(self.noise_sd * error(job));
                Known::Scales(by_job.iter().zip(jobs).map(noisy).collect())
            }
            _ => Known::History {
                users: jobs.iter().map(|job| self.of(job).map_or(-1, |power| power.user)).collect(),
                ended: Default::default(),
            },
        };
        let samples = samples.map(Box::new);
        Ok(Scales { by_job, known, samples })
    }

    /// The samples of jobs.
    fn samples(&self, series: &Arc<PowerSeries>, jobs: &[Job], means: &[f64], machine: &Machine) -> SampledScales {
        let of_job = |job: &Job| {
            let (step_s, range) = series.of(job.record as usize - 1)?;
            // A job that `wide_jobs` cuts keeps its watts per processor.
            let procs = f64::from(self.of(job)?.procs);
            Some(JobSamples { step_s, range, procs, top_w: top_w(job, machine) })
        };
        SampledScales::new(Arc::clone(series), jobs.iter().map(of_job).collect(), means.to_vec())
    }

    /// Number of jobs with a measured power, and their share of the work (procs times run time at the top gear).
    pub(super) fn measured(&self, jobs: &[Job]) -> (u64, Option<f64>) {
        let work = |job: &Job| f64::from(job.procs) * job.run_s;
        let measured = || jobs.iter().filter(|job| self.is_measured(job));
        let all: f64 = jobs.iter().map(work).sum();
        (measured().count() as u64, (all > 0.0).then(|| measured().map(work).sum::<f64>() / all))
    }
}
