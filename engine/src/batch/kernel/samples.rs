//! Powers of jobs that change while they run.
//!
//! A job has samples of its power, each for a step of its run time at the top gear. When a sample ends, the job takes the scale
//! of the next sample. These instants lie between the events of a schedule: no job arrives or ends at them. The policy is
//! told of them because a power cap reacts to the power of the machine.

use std::ops::Range;
use std::sync::Arc;

use super::cluster::Cluster;
use super::events::{End, Ends};
use super::powers::Scales;
use super::recorder::Recorder;
use crate::limits::list_bytes;
use crate::timers::time_key;
use crate::workload::swf::PowerSeries;

/// The samples of a job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JobSamples {
    /// Run time at the top gear from a sample to the next (s).
    pub(crate) step_s: f64,
    /// The samples in the list of all; at least one.
    pub(crate) range: Range<usize>,
    /// Processors that a sample is the power of.
    pub(crate) procs: f64,
    /// Power of the model for a processor at the top gear (W).
    pub(crate) top_w: f64,
}

/// The present sample of an entry of the running table.
#[derive(Debug, Clone, Copy, Default)]
struct Present {
    /// Position among the job's samples.
    sample: usize,
    /// Instant up to which `scale_s` is integrated (s).
    since_s: f64,
    /// Integral of the scale since the job was settled (s).
    scale_s: f64,
}

/// The samples of all jobs, as scales.
#[derive(Debug, Clone)]
pub(crate) struct SampledScales {
    series: Arc<PowerSeries>,
    jobs: Vec<Option<JobSamples>>,
    /// Mean scale of each job over its run.
    means: Vec<f64>,
    /// The end of the present sample of each entry, unless it is the last one of its job.
    changes: Ends,
    /// By entry of the running table.
    present: Vec<Present>,
}

impl SampledScales {
    /// The samples of a series by job.
    pub(crate) fn new(series: Arc<PowerSeries>, jobs: Vec<Option<JobSamples>>, means: Vec<f64>) -> SampledScales {
        SampledScales { series, jobs, means, changes: Ends::default(), present: Vec::new() }
    }

    /// The scales of a job's samples.
    fn scales(&self, job: usize) -> Option<impl ExactSizeIterator<Item = f64>> {
        let samples = self.jobs[job].as_ref()?;
        let watts = &self.series.watts()[samples.range.clone()];
        Some(watts.iter().map(|watts| scale(*watts, samples)))
    }

    /// The scale of one of a job's samples.
    fn scale(&self, job: usize, sample: usize) -> Option<f64> {
        let samples = self.jobs[job].as_ref()?;
        self.series.watts()[samples.range.clone()].get(sample).map(|watts| scale(*watts, samples))
    }

    /// The least and the greatest scale of a job's samples.
    pub(crate) fn range(&self, job: usize) -> Option<(f64, f64)> {
        let scales = self.scales(job)?;
        Some(scales.fold((f64::INFINITY, 0.0), |(least, greatest), scale| (scale.min(least), scale.max(greatest))))
    }

    /// The mean scale of a job.
    pub(super) fn mean(&self, job: usize) -> f64 {
        self.means[job]
    }

    fn present(&mut self, entry: usize) -> &mut Present {
        if entry >= self.present.len() {
            self.present.resize(entry + 1, Present::default());
        }
        &mut self.present[entry]
    }

    pub(super) fn bytes(&self) -> usize {
        list_bytes(&self.jobs) + list_bytes(&self.means) + list_bytes(&self.present) + self.changes.bytes()
    }
}

/// The ratio of the power of a sample to the power of the model.
fn scale(watts: f64, samples: &JobSamples) -> f64 {
    watts / samples.procs / samples.top_w
}

impl<R: Recorder> Cluster<'_, R> {
    fn samples(&mut self) -> Option<&mut SampledScales> {
        self.scales.as_mut()?.samples.as_deref_mut()
    }

    /// Key of the next change to another sample; greater than every key if there is none.
    pub(super) fn next_sample(&self) -> u64 {
        let samples = self.scales.as_ref().and_then(|scales| scales.samples.as_ref());
        samples.map_or(u64::MAX, |samples| samples.changes.first_key())
    }

    /// Carries out all changes of the present instant, which has this key. Returns whether the machine draws another power.
    pub(super) fn change_samples(&mut self, now: u64) -> bool {
        let before_w = self.meter.power_now_w();
        while let Some(end) = self.samples().and_then(|samples| samples.changes.take(now)) {
            self.show_next_sample(end.entry());
        }
        self.meter.power_now_w() != before_w
    }

    /// A job starts in an entry with its first sample.
    pub(super) fn first_sample(&mut self, entry: usize) {
        let job = self.running[entry].job as usize;
        if let Some(Scales { by_job, samples: Some(samples), .. }) = self.scales.as_deref_mut()
            && let Some(scale) = samples.scale(job, 0)
        {
            by_job[job] = scale;
            *samples.present(entry) = Present { sample: 0, since_s: self.now_s, scale_s: 0.0 };
            self.plan_sample(entry);
        }
    }

    /// An executing job takes the scale of its next sample.
    fn show_next_sample(&mut self, entry: usize) {
        self.integrate_scale(entry);
        let before = self.excess(&self.running[entry]);
        let job = self.running[entry].job as usize;
        if let Some(Scales { by_job, samples: Some(samples), .. }) = self.scales.as_deref_mut() {
            let next = samples.present(entry).sample + 1;
            samples.present(entry).sample = next;
            by_job[job] = samples.scale(job, next).unwrap_or(by_job[job]);
        }
        let after = self.excess(&self.running[entry]);
        self.meter.exceed(after - before);
        self.plan_sample(entry);
    }

    /// Integrates the scale of an executing job up to now.
    fn integrate_scale(&mut self, entry: usize) {
        let (now_s, scale) = (self.now_s, self.scale(self.running[entry].job));
        if let Some(samples) = self.samples() {
            let present = samples.present(entry);
            present.scale_s += scale * (now_s - present.since_s);
            present.since_s = now_s;
        }
    }

    /// The mean scale of an executing job since it was settled.
    pub(super) fn settled_scale(&mut self, entry: usize) -> f64 {
        let (job, span_s) = (self.running[entry].job, self.now_s - self.running[entry].since_s);
        if self.samples().is_none_or(|samples| samples.jobs[job as usize].is_none()) {
            return self.scale(job);
        }
        self.integrate_scale(entry);
        let scale_s = self.samples().map_or(0.0, |samples| std::mem::take(&mut samples.present(entry).scale_s));
        if span_s > 0.0 { scale_s / span_s } else { 0.0 }
    }

    /// Plans the next change of a job whose present sample, gear and settled work are known. A job that does not execute, or
    /// is at its last sample, has none.
    pub(super) fn plan_sample(&mut self, entry: usize) {
        let run = &self.running[entry];
        let factor = self.gears[run.level()].time_factor;
        let Some(samples) = self.scales.as_mut().and_then(|scales| scales.samples.as_mut()) else { return };
        let next = samples.present(entry).sample + 1;
        let run_s = self.jobs[run.job as usize].run_s;
        let of_job = samples.jobs[run.job as usize].as_ref().filter(|job| run.executing && next < job.range.len());
        let work_s = of_job.map(|job| next as f64 * job.step_s).filter(|work_s| *work_s < run_s);
        match work_s {
            Some(work_s) => {
                let at_s = run.since_s + (work_s - (run_s - run.run_left_s)) * factor;
                samples.changes.set(End::new(time_key(at_s.max(run.since_s)), 0, entry as u32));
            }
            None => samples.changes.clear(entry),
        }
    }

    /// Forgets the next change of a job that ends.
    pub(super) fn forget_sample(&mut self, entry: usize) {
        if let Some(samples) = self.samples() {
            samples.changes.clear(entry);
        }
    }
}
