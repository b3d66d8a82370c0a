//! A batch policy with a capacity rule or a power cap.
//!
//! One instant, in this order: completions; arrivals, with their raise of active procs; change of the cap; decision of
//! the capacity rule; enforcement of the cap on running jobs; one scheduling pass; increments under the cap; lowering of
//! active procs. [`Batch`] alone, without the two rules, is the hot path and knows nothing of them.
use super::backfill::within_priority;
use super::capacity::{self, Capacity};
use super::capped::CappedBatch;
use super::watch::Watch;
use crate::batch::kernel::{Cluster, Ended, JobId, Policy, Recorder};
use crate::batch::platform::Machine;
use crate::error::{SimError, Stop};
use crate::series::SeriesPoint;
use crate::spec::{Role, SimSpec, Value};
use crate::summary::PowerIntegrals;

/// [`Batch`](super::batch::Batch) with a capacity rule and a power cap.
#[derive(Debug, Clone)]
pub struct Composed {
    batch: CappedBatch,
    capacity: Capacity,
    watch: Option<Watch>,
    begun: bool,
}

impl Composed {
    /// Whether a spec has a capacity rule or a cap.
    pub fn is_needed(spec: &SimSpec) -> bool {
        [Role::Capacity, Role::Cap].into_iter().any(|role| spec.choice(role).component().name != "none")
            || Composed::is_watched(spec)
    }

    /// Whether power and occupancy are watched over time: under a cap, by priority, and where the spec asks for it.
    fn is_watched(spec: &SimSpec) -> bool {
        let name = |role: Role| spec.choice(role).component().name;
        name(Role::Cap) != "none"
            || name(Role::Backfill) == within_priority::COMPONENT.name
            || spec.choice(Role::Statistics).get("watch_machine") == Some(&Value::Bool(true))
    }

    /// The policy of a spec on a machine; `series`: what is watched is kept over time.
    ///
    /// # Errors
    /// [`SimError::Invalid`] if a component is not known to the batch policy, or does not fit the machine.
    pub fn new(spec: &SimSpec, machine: &Machine, series: bool) -> Result<Composed, SimError> {
        Ok(Composed {
            batch: CappedBatch::new(spec, machine)?,
            capacity: Capacity::new(spec, machine)?,
            watch: Composed::is_watched(spec).then(|| Watch::new(spec, series)),
            begun: false,
        })
    }
}

impl Composed {
    /// What was watched, once the run is over; the series are appended to `points`.
    pub(crate) fn finish(self, points: Option<&mut Vec<SeriesPoint>>) -> Option<PowerIntegrals> {
        let watch = self.watch?;
        let integrals = watch.integrals();
        if let Some(points) = points {
            watch.write(points);
        }
        Some(integrals)
    }
}

#[cfg(test)]
impl Composed {
    /// Makes the next pass look at everything.
    pub(crate) fn forget(&mut self) {
        self.batch.procs_changed();
    }

    /// What copies are made of.
    pub(crate) fn capped_batch(&self) -> &CappedBatch {
        &self.batch
    }
}

impl Policy for Composed {
    fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        self.batch.submitted(cluster, job);
        self.capacity.submitted(cluster, job);
    }

    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        self.batch.ended(cluster, ended);
    }

    fn timer<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, token: u64) {
        if token & capacity::TOKEN != 0 {
            self.capacity.timer();
        } else {
            self.batch.timer(cluster, token);
        }
    }

    fn pass<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        if !self.begun {
            self.begun = true;
            self.batch.begin(cluster)?;
            self.capacity.begin(cluster)?;
        }
        self.batch.change(cluster)?;
        self.capacity.before_pass(&mut self.batch, cluster)?;
        self.batch.schedule(cluster)?;
        self.capacity.after_pass(&self.batch, cluster)?;
        if let Some(watch) = &mut self.watch {
            watch.look(cluster, self.batch.cap_w());
        }
        Ok(())
    }
}
