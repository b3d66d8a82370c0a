//! Powers of jobs that differ from those of the model.
//!
//! A scale is the power of a job divided by the model's power, at every gear. The meter counts procs at the model's power; what
//! the scaled jobs draw beyond it is one more addend, a whole number of 2^-30 W: sums of whole numbers have no drift.

use std::collections::BTreeMap;

use super::cluster::{Cluster, JobId, Running};
use super::recorder::Recorder;
use super::samples::SampledScales;
use crate::limits::list_bytes;

/// Parts of a watt in which the excess is counted.
const PARTS: f64 = (1_u64 << 30) as f64;

/// What a policy knows of scales.
#[derive(Debug, Clone)]
pub(crate) enum Known {
    /// All.
    True,
    /// Nothing: the power of the model.
    Model,
    /// These scales, by job.
    Scales(Vec<f64>),
    /// The mean scale of the ended jobs of the same user.
    History {
        /// User by job; negative: not known.
        users: Vec<i32>,
        /// Sum of scales and number of ended jobs, by user.
        ended: BTreeMap<i32, (f64, f64)>,
    },
}

/// The scales of jobs.
#[derive(Debug, Clone)]
pub(crate) struct Scales {
    /// True scale of each job. For a job with samples of its power, the scale of the present sample.
    pub(crate) by_job: Vec<f64>,
    /// What the policy knows.
    pub(crate) known: Known,
    /// Scales of jobs whose power changes while they run.
    pub(crate) samples: Option<Box<SampledScales>>,
}

impl Scales {
    /// The scale of a job, as far as the policy knows it.
    pub(crate) fn known(&self, job: usize) -> f64 {
        match &self.known {
            Known::True => self.by_job[job],
            Known::Model => 1.0,
            Known::Scales(scales) => scales[job],
            Known::History { users, ended } => ended.get(&users[job]).map_or(1.0, |(sum, count)| sum / count),
        }
    }

    /// A job has ended.
    pub(super) fn ended(&mut self, job: usize) {
        if let Known::History { users, ended } = &mut self.known
            && users[job] >= 0
        {
            let (sum, count) = ended.entry(users[job]).or_default();
            *sum += self.samples.as_ref().map_or(self.by_job[job], |samples| samples.mean(job));
            *count += 1.0;
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let known = match &self.known {
            Known::True | Known::Model => 0,
            Known::Scales(scales) => list_bytes(scales),
            Known::History { users, ended } => list_bytes(users) + ended.len() * 2 * size_of::<(i32, (f64, f64))>(),
        };
        list_bytes(&self.by_job) + known + self.samples.as_ref().map_or(0, |samples| samples.bytes())
    }
}

/// Power that the meter adds to that of the levels.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Excess {
    parts: i128,
    /// `parts` in watts, so that few instants convert it.
    pub(super) watts: f64,
}

impl Excess {
    #[inline]
    pub(super) fn add(&mut self, parts: i128) {
        if parts != 0 {
            self.parts += parts;
            self.watts = self.parts as f64 / PARTS;
        }
    }
}

impl<'w, R: Recorder> Cluster<'w, R> {
    /// Sets the scales; called before the first instant.
    pub(in crate::batch) fn set_scales(&mut self, scales: Scales) {
        let (mut low_w, mut high_w) = (f64::INFINITY, 0.0_f64);
        for (at, (job, &scale)) in self.jobs.iter().zip(&scales.by_job).enumerate() {
            let of_samples = scales.samples.as_ref().and_then(|samples| samples.range(at));
            let (least, greatest) = of_samples.unwrap_or((scale, scale));
            for gear in self.machine.gears_of(job.class) {
                (low_w, high_w) = (low_w.min(gear.busy_w * least), high_w.max(gear.busy_w * greatest));
            }
        }
        self.meter.widen(low_w, high_w);
        self.scales = Some(Box::new(scales));
    }

    /// Power of a job divided by the model's power.
    #[inline(always)]
    pub(super) fn scale(&self, job: JobId) -> f64 {
        match &self.scales {
            None => 1.0,
            Some(scales) => scales.by_job[job as usize],
        }
    }

    /// Power of a job divided by the model's power, as far as the policy knows it.
    #[inline]
    pub fn known_scale(&self, job: JobId) -> f64 {
        self.scales.as_ref().map_or(1.0, |scales| scales.known(job as usize))
    }

    /// Whether jobs of the same class, procs and gear can differ in power.
    #[inline]
    pub fn has_scales(&self) -> bool {
        self.scales.is_some()
    }

    /// What an executing job draws beyond the power of the model, in parts of a watt.
    #[inline(always)]
    pub(super) fn excess(&self, run: &Running) -> i128 {
        match &self.scales {
            None => 0,
            Some(scales) => {
                let busy_w = self.gears[run.level()].busy_w;
                let scale = scales.by_job[run.job as usize];
                (f64::from(run.procs) * busy_w * (scale - 1.0) * PARTS).round() as i128
            }
        }
    }

    /// Adds the excess of a job that has started.
    #[cold]
    pub(super) fn exceed_by_start(&mut self, entry: usize) {
        self.first_sample(entry);
        let excess = self.excess(&self.running[entry]);
        self.meter.exceed(excess);
    }

    /// Removes the excess of a job that ends, and learns its power. Returns its mean scale since it was settled.
    #[cold]
    pub(super) fn exceed_by_end(&mut self, entry: usize) -> f64 {
        let (job, excess) = (self.running[entry].job, self.excess(&self.running[entry]));
        self.meter.exceed(-excess);
        let scale = self.settled_scale(entry);
        self.forget_sample(entry);
        if let Some(scales) = &mut self.scales {
            scales.ended(job as usize);
        }
        scale
    }

    /// The scales of a copy, in which jobs that wait draw what the policy knows, and jobs that run their present power.
    pub(super) fn copied_scales(&self, numbers: &[JobId]) -> Option<Box<Scales>> {
        self.scales.as_ref()?;
        let known: Vec<f64> = numbers.iter().map(|&job| self.known_scale(job)).collect();
        let drawn = |(&job, &known): (&JobId, &f64)| if self.is_running(job) { self.scale(job) } else { known };
        let by_job = numbers.iter().zip(&known).map(drawn).collect();
        Some(Box::new(Scales { by_job, known: Known::Scales(known), samples: None }))
    }
}
