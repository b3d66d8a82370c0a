//! A batch policy with a capacity rule or a power cap.
//!
//! One instant, in this order: completions; arrivals, with their raise of active procs; change of the cap; decision of
//! the capacity rule; enforcement of the cap on running jobs; one scheduling pass; increments under the cap; lowering of
//! active procs. [`Batch`] alone, without the two rules, is the hot path and knows nothing of them.
use super::backfill;
use super::batch::Batch;
use super::cap::Cap;
use super::capacity::Capacity;
use super::watch::Watch;
use crate::batch::kernel::{Cluster, Copied, Ended, JobId, Policy, Recorder};
use crate::batch::platform::Machine;
use crate::error::{SimError, Stop};
use crate::series::SeriesPoint;
use crate::spec::{Role, SimSpec, Value};
use crate::summary::PowerIntegrals;

/// Timers whose token has this bit are the cap's, the others the capacity rule's and, below [`CAPACITY_TOKENS`], the
/// scheduling policy's own.
pub(crate) const CAP_TOKENS: u64 = 1 << 63;

/// Timers whose token has this bit, and not that of the cap, are the capacity rule's.
pub(crate) const CAPACITY_TOKENS: u64 = 1 << 62;

/// [`Batch`] with a capacity rule and a power cap.
#[derive(Debug, Clone)]
pub struct Composed {
    batch: Batch,
    capacity: Capacity,
    cap: Cap,
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
            || name(Role::Backfill) == backfill::WITHIN_PRIORITY.name
            || spec.choice(Role::Statistics).get("watch_machine") == Some(&Value::Bool(true))
    }

    /// The policy of a spec on a machine; `series`: what is watched is kept over time.
    ///
    /// # Errors
    /// [`SimError::Invalid`] if a component is not known to the batch policy, or does not fit the machine.
    pub fn new(spec: &SimSpec, machine: &Machine, series: bool) -> Result<Composed, SimError> {
        Ok(Composed {
            batch: Batch::new(spec, machine)?,
            capacity: Capacity::new(spec, machine)?,
            cap: Cap::new(spec)?,
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

    /// The policy for a copy of the cluster, whose active procs only the caller changes.
    pub(crate) fn fork<R: Recorder>(batch: &Batch, cap: &Cap, copied: &Copied, copy: &Cluster<'_, R>) -> Composed {
        Composed {
            batch: batch.fork(copied, copy),
            capacity: Capacity::none(),
            cap: cap.fork(copied),
            watch: None,
            begun: true,
        }
    }
}

#[cfg(test)]
impl Composed {
    /// Makes the next pass look at everything.
    pub(crate) fn forget(&mut self) {
        self.batch.procs_changed();
    }

    /// The parts of which copies are made.
    pub(crate) fn parts(&self) -> (&Batch, &Cap) {
        (&self.batch, &self.cap)
    }
}

impl Policy for Composed {
    fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        self.batch.submitted(cluster, job);
        self.capacity.submitted(cluster, job);
    }

    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        self.batch.ended(cluster, ended);
        self.cap.ended(ended);
    }

    fn timer<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, token: u64) {
        if token & CAP_TOKENS != 0 {
            self.cap.timer();
        } else if token & CAPACITY_TOKENS != 0 {
            self.capacity.timer();
        } else {
            self.batch.timer(cluster, token);
        }
    }

    fn pass<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        if !self.begun {
            self.begun = true;
            self.cap.begin(cluster)?;
            self.capacity.begin(cluster)?;
        }
        self.cap.change(cluster)?;
        self.capacity.before_pass(&mut self.batch, &self.cap, cluster)?;
        self.cap.enforce(&mut self.batch, cluster)?;
        self.batch.time_passed();
        self.batch.pass(cluster)?;
        self.cap.after_pass(&mut self.batch, cluster)?;
        self.capacity.after_pass(&self.batch, cluster)?;
        if let Some(watch) = &mut self.watch {
            watch.look(cluster, self.cap.cap_w());
        }
        Ok(())
    }
}
