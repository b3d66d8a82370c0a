//! Power models: power and run times of a processor by gear and state.
pub mod etinski;
pub mod table;

/// Power and run times by gear, slowest first, for one list of gears.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Power of a busy processor by class of jobs and gear (W); one class: the same for all jobs.
    busy_w: Vec<Vec<f64>>,
    /// Run time over that at the top gear, by class of jobs and gear; empty if the platform scales run times.
    time_factors: Vec<Vec<f64>>,
    /// Power of an idle processor (W).
    pub idle_w: f64,
}

impl Model {
    /// Number of classes of jobs in the tables.
    pub fn job_classes(&self) -> usize {
        self.busy_w.len().max(self.time_factors.len())
    }

    /// Power of a busy processor (W).
    pub fn busy_w(&self, class: usize, gear: usize) -> f64 {
        self.busy_w[class.min(self.busy_w.len() - 1)][gear]
    }

    /// Run time over that at the top gear; `None` if the platform scales run times.
    pub fn time_factor(&self, class: usize, gear: usize) -> Option<f64> {
        self.time_factors.get(class).or(self.time_factors.last()).map(|factors| factors[gear])
    }
}
