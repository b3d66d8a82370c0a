//! Arrivals whose rate changes at given instants.
use crate::queues::{Arrivals, Job};

/// A stream whose arrival rates are multiplied by a factor that changes. It has the jobs and work of the inner stream, on a
/// clock that runs faster by the factor, so that Poisson arrivals are again Poisson in each phase.
#[derive(Debug, Clone)]
pub struct Rescaled<A> {
    inner: A,
    /// First instant (s) and factor, above 0, of each phase; the first begins at 0.
    phases: Vec<(f64, f64)>,
    /// Index of the present phase.
    now: usize,
    /// Time of the inner stream at the beginning of the present phase (s).
    inner_s: f64,
}

impl<A: Arrivals> Rescaled<A> {
    /// The stream with phases of (first instant (s), factor above 0) in order of time; the first begins at 0.
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
