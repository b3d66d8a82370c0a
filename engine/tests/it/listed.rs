//! Arrivals from a list.

use powersweep_engine::queues::{Arrivals, Job};

/// A given list of jobs.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    jobs: std::vec::IntoIter<Job>,
}

impl Listed {
    /// Jobs by (arrival, work, class), in order of arrival.
    pub(crate) fn new(jobs: &[(f64, f64, u32)]) -> Listed {
        let job =
            |(number, &(arrived_s, work, class)): (usize, _)| Job { arrived_s, work, number: number as u64, class };
        Listed { jobs: jobs.iter().enumerate().map(job).collect::<Vec<_>>().into_iter() }
    }
}

impl Arrivals for Listed {
    fn next(&mut self) -> Job {
        self.jobs.next().unwrap_or(Job { arrived_s: f64::INFINITY, work: 0.0, number: u64::MAX, class: 0 })
    }
}
