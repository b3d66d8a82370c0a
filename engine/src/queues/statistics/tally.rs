//! Sums over completed jobs by class, and counts for the distribution of response times.
use crate::queues::kernel::policy::Completed;
use crate::queues::kernel::simulation::Observer;
use crate::series::SeriesPoint;

/// Sums over completed jobs.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    pub(super) classes: Vec<ClassTally>,
    pub(super) histogram: Option<Histogram>,
}

/// Sums over the completed jobs of one class.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct ClassTally {
    pub(super) completed: u64,
    /// Jobs with a wait above 0.
    pub(super) waited: u64,
    pub(super) wait_s: f64,
    pub(super) response_s: f64,
}

impl Tally {
    pub(super) fn new(classes: usize, histogram: Option<Histogram>) -> Tally {
        Tally { classes: vec![ClassTally::default(); classes], histogram }
    }

    /// Sums over all classes.
    pub(super) fn total(&self) -> ClassTally {
        self.classes.iter().fold(ClassTally::default(), |sum, class| sum.join(class))
    }
}

impl ClassTally {
    pub(super) fn join(&self, other: &ClassTally) -> ClassTally {
        ClassTally {
            completed: self.completed + other.completed,
            waited: self.waited + other.waited,
            wait_s: self.wait_s + other.wait_s,
            response_s: self.response_s + other.response_s,
        }
    }
}

impl Observer for Tally {
    #[inline(always)]
    fn completed(&mut self, done: &Completed) {
        let (wait_s, response_s) = (done.wait_s(), done.response_s());
        let class = &mut self.classes[done.job.class as usize];
        class.completed += 1;
        class.waited += u64::from(wait_s > 0.0);
        class.wait_s += wait_s;
        class.response_s += response_s;
        if let Some(histogram) = &mut self.histogram {
            histogram.add(response_s);
        }
    }
}

/// Counts of values in intervals of equal width.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    step_s: f64,
    /// The last element counts the values beyond all intervals.
    counts: Vec<u64>,
}

impl Histogram {
    /// Intervals of `step_s` up to `max_s`, both above 0 and their ratio below 2^31.
    pub(super) fn new(step_s: f64, max_s: f64) -> Histogram {
        let steps = (max_s / step_s + 0.5) as usize;
        Histogram { step_s, counts: vec![0; steps.max(1) + 1] }
    }

    #[inline]
    fn add(&mut self, value_s: f64) {
        let last = self.counts.len() - 1;
        self.counts[((value_s / self.step_s) as usize).min(last)] += 1;
    }

    /// Writes the distribution function at 0 and at the end of each interval.
    pub(super) fn write(&self, series: &'static str, points: &mut Vec<SeriesPoint>) {
        let total = self.counts.iter().sum::<u64>() as f64;
        let mut below = 0_u64;
        for (i, count) in self.counts.iter().enumerate() {
            points.push(SeriesPoint { series, level: None, x: i as f64 * self.step_s, value: below as f64 / total });
            below += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_is_the_share_of_lower_values() {
        let mut histogram = Histogram::new(0.5, 1.5);
        for value in [0.0, 0.4, 0.5, 1.2, 1.6, 99.0, 0.1, 0.2] {
            histogram.add(value);
        }
        let mut points = Vec::new();
        histogram.write("response_time_cdf", &mut points);
        let points: Vec<_> = points.iter().map(|p| (p.x, p.value)).collect();
        assert_eq!(points, [(0.0, 0.0), (0.5, 0.5), (1.0, 0.625), (1.5, 0.75)]);
    }
}
