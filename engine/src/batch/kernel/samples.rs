//! Powers of jobs that change while they run.
//!
//! A job has samples of its power over its run time at the top gear. At the end of a sample, the job's scale becomes that of
//! the next one. These instants lie between the events of a schedule: jobs neither arrive nor end at them. A policy is told
//! of them because a power cap reacts to the power of the machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use super::cluster::Cluster;
use super::recorder::Recorder;
use crate::limits::list_bytes;
use crate::timers::{key_time, time_key};
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

/// A change to the next sample: key of its instant, entry of the running table, plan.
type Change = (u64, u32, u32);

/// The present sample of an entry of the running table.
#[derive(Debug, Clone, Copy, Default)]
struct Present {
    /// The last planned change; an older plan is void.
    plan: u32,
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
    /// Mean scale by job; that of the present sample is in [`super::powers::Scales`].
    means: Vec<f64>,
    changes: BinaryHeap<Reverse<Change>>,
    /// By entry of the running table.
    present: Vec<Present>,
}

impl SampledScales {
    /// The samples of a series by job.
    pub(crate) fn new(series: Arc<PowerSeries>, jobs: Vec<Option<JobSamples>>, means: Vec<f64>) -> SampledScales {
        SampledScales { series, jobs, means, changes: BinaryHeap::new(), present: Vec::new() }
    }

    /// The scales of a job's samples.
    fn scales(&self, job: usize) -> Option<impl Iterator<Item = f64>> {
        let samples = self.jobs[job].as_ref()?;
        let watts = &self.series.watts()[samples.range.clone()];
        Some(watts.iter().map(|watts| watts / samples.procs / samples.top_w))
    }

    fn scale(&self, job: usize, sample: usize) -> Option<f64> {
        self.scales(job)?.nth(sample)
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
        list_bytes(&self.jobs)
            + list_bytes(&self.means)
            + list_bytes(&self.present)
            + self.changes.capacity() * size_of::<Reverse<Change>>()
    }
}

impl<R: Recorder> Cluster<'_, R> {
    /// Key of the next change to another sample, if there is one.
    pub(super) fn next_sample(&mut self) -> Option<u64> {
        let samples = self.scales.as_mut()?.samples.as_mut()?;
        while let Some(&Reverse((key, entry, plan))) = samples.changes.peek() {
            if samples.present[entry as usize].plan == plan {
                return Some(key);
            }
            samples.changes.pop();
        }
        None
    }

    /// Carries out all changes up to an instant. Returns whether the power of the machine is another one.
    pub(super) fn change_samples(&mut self, until: u64) -> bool {
        let before_w = self.meter.power_now_w();
        while self.next_sample().is_some_and(|key| key <= until) {
            let change = self.scales.as_mut().and_then(|scales| scales.samples.as_mut()?.changes.pop());
            let Some(Reverse((key, entry, _))) = change else { break };
            let entry = entry as usize;
            self.integrate_scale(entry, key_time(key));
            let next = self.scales.as_mut().and_then(|scales| {
                let present = scales.samples.as_mut()?.present(entry);
                present.sample += 1;
                Some(present.sample)
            });
            self.show_sample(entry, next.unwrap_or_default());
            self.plan_sample(entry);
        }
        self.meter.power_now_w() != before_w
    }

    /// A job starts in an entry with its first sample.
    pub(super) fn first_sample(&mut self, entry: usize) {
        let now_s = self.now_s;
        let job = self.running[entry].job as usize;
        let Some(scales) = &mut self.scales else { return };
        let Some(samples) = &mut scales.samples else { return };
        if let Some(scale) = samples.scale(job, 0) {
            scales.by_job[job] = scale;
            let present = samples.present(entry);
            *present = Present { plan: present.plan, sample: 0, since_s: now_s, scale_s: 0.0 };
            self.plan_sample(entry);
        }
    }

    /// Sets the scale of an executing job to that of a sample.
    fn show_sample(&mut self, entry: usize, sample: usize) {
        let before = self.excess(&self.running[entry]);
        let job = self.running[entry].job as usize;
        if let Some(scales) = &mut self.scales
            && let Some(scale) = scales.samples.as_ref().and_then(|samples| samples.scale(job, sample))
        {
            scales.by_job[job] = scale;
        }
        let after = self.excess(&self.running[entry]);
        self.meter.exceed(after - before);
    }

    /// Integrates the scale of an executing job up to an instant.
    fn integrate_scale(&mut self, entry: usize, until_s: f64) {
        let job = self.running[entry].job as usize;
        let Some(scales) = &mut self.scales else { return };
        let scale = scales.by_job[job];
        let Some(samples) = &mut scales.samples else { return };
        let present = samples.present(entry);
        present.scale_s += scale * (until_s - present.since_s);
        present.since_s = until_s;
    }

    /// The mean scale of an executing job since it was settled.
    pub(super) fn settled_scale(&mut self, entry: usize) -> f64 {
        let (job, span_s) = (self.running[entry].job, self.now_s - self.running[entry].since_s);
        let has_samples = |samples: &SampledScales| samples.jobs[job as usize].is_some();
        if !self.scales.as_ref().and_then(|scales| scales.samples.as_deref()).is_some_and(has_samples) {
            return self.scale(job);
        }
        self.integrate_scale(entry, self.now_s);
        let Some(samples) = self.scales.as_mut().and_then(|scales| scales.samples.as_mut()) else { return 1.0 };
        let scale_s = std::mem::take(&mut samples.present(entry).scale_s);
        if span_s > 0.0 { scale_s / span_s } else { 0.0 }
    }

    /// Plans the next change of a job whose present sample, gear and settled work are known. A job that does not execute, or
    /// is at its last sample, has none.
    pub(super) fn plan_sample(&mut self, entry: usize) {
        let run = &self.running[entry];
        let factor = self.gears[run.level()].time_factor;
        let Some(samples) = self.scales.as_mut().and_then(|scales| scales.samples.as_mut()) else { return };
        let present = samples.present(entry);
        present.plan = present.plan.wrapping_add(1);
        present.since_s = present.since_s.max(run.since_s);
        let (next, plan) = (present.sample + 1, present.plan);
        let Some(job) = samples.jobs[run.job as usize].as_ref().filter(|_| run.executing) else { return };
        let run_s = self.jobs[run.job as usize].run_s;
        let work_s = next as f64 * job.step_s;
        if next < job.range.len() && work_s < run_s {
            let at_s = run.since_s + (work_s - (run_s - run.run_left_s)) * factor;
            samples.changes.push(Reverse((time_key(at_s.max(run.since_s)), entry as u32, plan)));
        }
    }
}
