//! The power that starting jobs must fit in.
use std::ops::RangeInclusive;

use crate::batch::kernel::{Cluster, JobId, Recorder};

/// Relative excess over a cap that counts as rounding.
const ROUNDING: f64 = 1e-9;

/// Number of parts of a limit: rounding to whole parts, for millions of jobs, is far less than [`ROUNDING`].
const PARTS: f64 = (1_u64 << 50) as f64;

/// Greatest power that does not exceed a cap (W).
pub(crate) fn limit_w(cap_w: f64) -> f64 {
    cap_w * (1.0 + ROUNDING)
}

/// How jobs may start while a power cap holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Allowance {
    /// Greatest power (W); infinite if starts ignore the cap.
    pub(crate) limit_w: f64,
    /// Running jobs count with the power of their lowest gears: the cap rule may lower them.
    pub(crate) lowered: bool,
    /// Jobs start at the lowest gear; the cap rule raises them later.
    pub(crate) lowest: bool,
}

impl Allowance {
    /// Every job starts at its ceiling, at any power.
    pub(crate) const ANY: Allowance = Allowance { limit_w: f64::INFINITY, lowered: false, lowest: false };

    /// Power that starting jobs may add (W); negative if the cap is exceeded.
    pub(crate) fn left_w<R: Recorder>(&self, cluster: &Cluster<'_, R>) -> f64 {
        if self.limit_w == f64::INFINITY {
            return f64::INFINITY;
        }
        self.limit_w - if self.lowered { lowest_w(cluster) } else { cluster.power_w() }
    }

    /// A power (W) in whole parts of the limit; 0 if there is no limit.
    pub(crate) fn parts(&self, watts: f64) -> i64 {
        let parts = watts * (PARTS / self.limit_w);
        // The conversion cuts fractions off; a call that rounds takes longer.
        (parts + 0.5_f64.copysign(parts)) as i64
    }

    /// The power of parts of the limit (W); infinite if there is no limit.
    pub(crate) fn watts(&self, parts: i64) -> f64 {
        if self.limit_w == f64::INFINITY { f64::INFINITY } else { parts as f64 * (self.limit_w / PARTS) }
    }

    /// Power that a job at a gear takes from that of other jobs (W).
    pub(crate) fn counted_w<R: Recorder>(&self, cluster: &Cluster<'_, R>, job: JobId, gear: u8) -> f64 {
        above_idle_w(cluster, job, if self.lowered { 0 } else { gear })
    }

    /// The gears at which a job may start.
    pub(crate) fn gears(&self, ceiling: u8) -> RangeInclusive<u8> {
        let lowest = if self.limit_w == f64::INFINITY { ceiling } else { 0 };
        if self.lowest { 0..=0 } else { lowest..=ceiling }
    }

    /// The gears at which a job that adds at most `left_w` (W) may start, the highest first.
    #[inline]
    pub(crate) fn fitting<R: Recorder>(
        &self,
        cluster: &Cluster<'_, R>,
        job: JobId,
        ceiling: u8,
        left_w: f64,
    ) -> impl Iterator<Item = u8> {
        let (machine, gears) = (cluster.machine(), cluster.gears_for(job));
        let (procs, scale) = (cluster.procs(job), cluster.known_scale(job));
        self.gears(ceiling)
            .rev()
            .filter(move |gear| machine.added_w(procs, &gears[usize::from(*gear)], scale) <= left_w)
    }
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance::ANY
    }
}

/// Power of the machine with all executing jobs at their lowest gears (W), by their known powers.
pub(crate) fn lowest_w<R: Recorder>(cluster: &Cluster<'_, R>) -> f64 {
    let machine = cluster.machine();
    if cluster.has_scales() {
        let saved_w = |(job, procs, gear, _): (JobId, u32, u8, f64)| {
            let gears = machine.gears_of(cluster.job_class(job));
            f64::from(procs) * cluster.known_scale(job) * (gears[usize::from(gear)].busy_w - gears[0].busy_w)
        };
        let executing = cluster.each_running().filter(|(job, ..)| cluster.is_executing(*job));
        return cluster.power_w() - executing.map(saved_w).sum::<f64>();
    }
    let saved_w = |(job_class, gear, procs): (usize, usize, u32)| {
        let gears = machine.gears_of(job_class as u8);
        f64::from(procs) * (gears[gear].busy_w - gears[0].busy_w)
    };
    cluster.power_w() - cluster.executing().map(saved_w).sum::<f64>()
}

/// Power of a job's procs at a gear above the power of the same procs when idle (W). It goes by
/// the known power of the job.
pub(crate) fn above_idle_w<R: Recorder>(cluster: &Cluster<'_, R>, job: JobId, gear: u8) -> f64 {
    let gear = &cluster.gears_for(job)[usize::from(gear)];
    cluster.machine().added_w(cluster.procs(job), gear, cluster.known_scale(job))
}
