//! Machines: classes of equal processors and their gears.

/// The machine that a simulation runs on: classes of equal processors.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The classes; a homogeneous machine has one.
    pub classes: Vec<MachineClass>,
    /// Constant power besides that of the processors (W).
    pub static_w: f64,
}

/// Equal processors with one table of gears.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineClass {
    /// Processors.
    pub procs: u32,
    /// Gears, slowest first, at least one: as jobs of the first class run on them.
    pub gears: Vec<Gear>,
    /// The same gears as jobs of the second, third, ... class run on them, all of the same number. Without any, the class
    /// of a job does not matter.
    pub more_job_classes: Vec<Vec<Gear>>,
    /// Power of an idle processor (W).
    pub idle_w: f64,
    /// Power states besides busy and idle.
    pub sleep: SleepStates,
}

/// One gear of a processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gear {
    /// Run time at this gear over that at the top gear (Etinski eq. 5); 1 at the top gear.
    pub time_factor: f64,
    /// Power of a busy processor (W).
    pub busy_w: f64,
}

/// Powers and delays of switching processors off and on. All zero: instant and free.
#[derive(Debug, Clone, Copy, PartialEq, std::default::Default)]
pub struct SleepStates {
    /// Power of a processor asleep (W).
    pub asleep_w: f64,
    /// Power while it switches off (W).
    pub off_w: f64,
    /// Time that it takes to switch off; it cannot be woken before it is over (s).
    pub off_s: f64,
    /// Power while it wakes (W).
    pub wake_w: f64,
    /// Time that it takes to wake (s).
    pub wake_s: f64,
}

impl MachineClass {
    /// The gears as jobs of a class (from 0) run on them.
    ///
    /// # Panics
    /// If the machine tells classes apart and has fewer: `simulate` checks the jobs before.
    pub fn gears_of(&self, job_class: u8) -> &[Gear] {
        if job_class == 0 || self.more_job_classes.is_empty() {
            &self.gears
        } else {
            &self.more_job_classes[usize::from(job_class) - 1]
        }
    }

    /// Classes of jobs that it tells apart, at least one.
    pub fn job_classes(&self) -> usize {
        1 + self.more_job_classes.len()
    }
}

impl Machine {
    /// What is wrong with jobs of so many classes (the greatest from 0), if anything.
    pub(crate) fn job_class_problem(&self, job_id: i64, job_class: u8) -> Option<String> {
        let classes = self.classes.iter().map(MachineClass::job_classes).min().unwrap_or(1);
        (classes > 1 && usize::from(job_class) >= classes).then(|| {
            format!(
                "job {job_id} is of class {}, and the platform has tables for {classes} classes of jobs",
                u32::from(job_class) + 1
            )
        })
    }

    /// Processors of all classes.
    pub fn procs(&self) -> u32 {
        self.classes.iter().map(|c| c.procs).sum()
    }
}
