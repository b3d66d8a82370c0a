//! Arrivals whose rate changes at given instants.
use crate::queues::{Arrivals, Job};

/// A stream whose rates are multiplied by a factor that changes: time runs faster where it is greater. With Poisson
/// arrivals it is again Poisson in each phase, and the jobs and their work are those of the unchanged stream.
#[derive(Debug, Clone)]
pub struct Rescaled<A> {
    inner: A,
    /// (from when (s), factor), the first from 0; factors above 0.
    phases: Vec<(f64, f64)>,
    now: usize,
    /// The inner stream's time at the beginning of the present phase (s).
    inner_s: f64,
}

impl<A: Arrivals> Rescaled<A> {
    /// The stream with (from when, factor) in order of time, the first from 0; factors above 0.
    pub fn new(inner: A, phases: Vec<(f64, f64)>) -> Rescaled<A> {
        Rescaled { inner, phases, now: 0, inner_s: 0.0 }
    }
}

impl<A: Arrivals> Arrivals for Rescaled<A> {
    fn next(&mut self) -> Job {
        let job = self.inner.next();
        while let Some((end_s, _)) = self.phases.get(self.now + 1) {
            let (begin_s, factor) = self.phases[self.now];
            let next_s = self.inner_s + (end_s - begin_s) * factor;
            if job.arrived_s < next_s {
                break;
            }
            self.inner_s = next_s;
            self.now += 1;
        }
        let (begin_s, factor) = self.phases[self.now];
        Job { arrived_s: begin_s + (job.arrived_s - self.inner_s) / factor, ..job }
    }
}
