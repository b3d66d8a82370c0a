//! Machines: equal processors and their gears.
use super::pools::Pool;

/// The machine of a simulation: equal processors.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Processors.
    pub procs: u32,
    /// Gears for jobs of the first class, slowest first, at least one.
    pub gears: Vec<Gear>,
    /// Gears with the times and powers of jobs of the second, third, ... class. If empty, the class of a job does not matter.
    pub more_job_classes: Vec<Vec<Gear>>,
    /// Power of an idle processor (W).
    pub idle_w: f64,
    /// Power states besides busy and idle.
    pub sleep: SleepStates,
    /// Constant power besides that of the processors (W).
    pub static_w: f64,
    /// Pools besides all procs; none if procs alone count.
    pub pools: Vec<Pool>,
}

/// One gear of a processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gear {
    /// Run time at this gear over that at the top gear (Etinski eq. 5); 1 at the top gear.
    pub time_factor: f64,
    /// Power of a busy processor (W).
    pub busy_w: f64,
}

/// Powers and delays of switching processors off and on. With zeros, transitions take no time and no power.
#[derive(Debug, Clone, Copy, PartialEq, std::default::Default)]
pub struct SleepStates {
    /// Power of a sleeping processor (W).
    pub asleep_w: f64,
    /// Power while it switches off (W).
    pub off_w: f64,
    /// Time of switching off (s); only then can the processor wake.
    pub off_s: f64,
    /// Power while it wakes (W).
    pub wake_w: f64,
    /// Time of waking (s).
    pub wake_s: f64,
}

impl Machine {
    /// The gears for jobs of a class (from 0).
    ///
    /// # Panics
    /// If the machine has several classes of jobs, and fewer than needed: `simulate` checks the jobs first.
    pub fn gears_of(&self, job_class: u8) -> &[Gear] {
        if job_class == 0 || self.more_job_classes.is_empty() {
            &self.gears
        } else {
            &self.more_job_classes[usize::from(job_class) - 1]
        }
    }

    /// Greatest power of one processor (W).
    fn peak_proc_w(&self, sleeps: bool) -> f64 {
        let top = |job_class: usize| self.gears_of(job_class as u8).iter().map(|gear| gear.busy_w);
        let busy_w = (0..self.job_classes()).flat_map(top).fold(self.idle_w, f64::max);
        if sleeps { busy_w.max(self.sleep.wake_w).max(self.sleep.off_w) } else { busy_w }
    }

    /// Power that these procs add while they are busy at a gear (W): their power less that of as many idle ones. `scale`: the
    /// power of the job's procs, relative to the gear's.
    #[inline]
    pub(crate) fn added_w(&self, procs: u32, gear: &Gear, scale: f64) -> f64 {
        f64::from(procs) * (gear.busy_w * scale - self.idle_w)
    }

    /// Least power that a processor adds when it becomes busy (W), of all gears.
    pub(crate) fn least_above_idle_w(&self) -> f64 {
        let gears = std::iter::once(&self.gears).chain(&self.more_job_classes).flatten();
        gears.map(|gear| gear.busy_w - self.idle_w).fold(f64::INFINITY, f64::min)
    }

    /// For each gear, from the top one down: the least power that a processor adds when it becomes busy (W), and the least
    /// time factor, of all classes of jobs.
    pub(crate) fn least_of_gears(&self) -> Vec<(f64, f64)> {
        let of = |gear: usize, value: fn(&Gear) -> f64| {
            let gears = std::iter::once(&self.gears).chain(&self.more_job_classes).map(|gears| &gears[gear]);
            gears.map(value).fold(f64::INFINITY, f64::min)
        };
        let gears = (0..self.gears.len()).rev();
        gears.map(|gear| (of(gear, |gear| gear.busy_w) - self.idle_w, of(gear, |gear| gear.time_factor))).collect()
    }

    /// Number of classes of jobs with gears of their own, at least one.
    pub fn job_classes(&self) -> usize {
        1 + self.more_job_classes.len()
    }

    /// The problem of a job whose class (from 0) has no gears, if it has one.
    pub(crate) fn job_class_problem(&self, job_id: i64, job_class: u8) -> Option<String> {
        let classes = self.job_classes();
        (classes > 1 && usize::from(job_class) >= classes).then(|| {
            format!(
                "job {job_id} is of class {}, and the platform has tables for {classes} classes of jobs",
                u32::from(job_class) + 1
            )
        })
    }

    /// Power of the machine with all procs idle (W).
    pub fn idle_w(&self) -> f64 {
        f64::from(self.procs) * self.idle_w + self.static_w
    }

    /// Greatest power of the machine (W). `sleeps`: whether procs may switch off and wake.
    pub fn peak_w(&self, sleeps: bool) -> f64 {
        f64::from(self.procs) * self.peak_proc_w(sleeps) + self.static_w
    }

    /// Number of procs that can be busy at their lowest gear, the others idle, within a power (W).
    pub fn busy_procs_within(&self, power_w: f64) -> u32 {
        let each_w = (0..self.job_classes()).map(|job_class| self.gears_of(job_class as u8)[0].busy_w);
        let added_w = each_w.fold(f64::INFINITY, f64::min) - self.idle_w;
        let left_w = power_w - self.idle_w();
        if added_w <= 0.0 { self.procs } else { (left_w / added_w).clamp(0.0, f64::from(self.procs)) as u32 }
    }
}
