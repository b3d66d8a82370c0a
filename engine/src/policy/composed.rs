//! A batch policy with a capacity rule or a power cap.
//!
//! One instant, in this order: completions; arrivals, with their raise of active procs; change of the cap; decision of
//! the capacity rule; enforcement of the cap on running jobs; one scheduling pass; increments under the cap; lowering of
//! active procs. [`Batch`] alone, without the two rules, is the hot path and knows nothing of them.
use super::batch::Batch;
use super::cap::Cap;
use super::capacity::Capacity;
use crate::error::{SimError, Stop};
use crate::kernel::{Cluster, Copied, Ended, JobId, Policy, Recorder};
use crate::platform::Machine;
use crate::registry::Slot;
use crate::spec::SimSpec;

/// Timers whose token has this bit are the cap's, the others the capacity rule's and, below [`CAPACITY_TOKENS`], the
/// scheduling policy's own.
pub(crate) const CAP_TOKENS: u64 = 1 << 63;

/// Timers whose token has this bit, and not that of the cap, are the capacity rule's.
pub(crate) const CAPACITY_TOKENS: u64 = 1 << 62;

/// [`Batch`] with a capacity rule and a power cap.
#[derive(Debug, Clone)]
pub(crate) struct Composed {
    batch: Batch,
    capacity: Capacity,
    cap: Cap,
    begun: bool,
}

impl Composed {
    /// Whether a spec has a capacity rule or a cap.
    pub(crate) fn is_needed(spec: &SimSpec) -> bool {
        [Slot::Capacity, Slot::Cap].into_iter().any(|slot| spec.part(slot).entry().name != "none")
    }

    /// The policy of a spec on a machine.
    pub(crate) fn new(spec: &SimSpec, machine: &Machine) -> Result<Composed, SimError> {
        Ok(Composed {
            batch: Batch::new(spec, machine)?,
            capacity: Capacity::new(spec, machine)?,
            cap: Cap::new(spec, machine)?,
            begun: false,
        })
    }
}

impl Composed {
    /// The policy for a copy of the cluster, whose active procs only the caller changes.
    pub(crate) fn fork<R: Recorder>(batch: &Batch, cap: &Cap, copied: &Copied, copy: &Cluster<'_, R>) -> Composed {
        Composed { batch: batch.fork(copied, copy), capacity: Capacity::none(), cap: cap.fork(copied), begun: true }
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
        self.cap.ended(cluster, ended);
    }

    fn timer<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, token: u64) {
        if token & CAP_TOKENS != 0 {
            self.cap.timer(cluster, token);
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
        self.capacity.before_pass(&mut self.batch, &self.cap, cluster)?;
        self.cap.before_pass(&mut self.batch, cluster)?;
        self.batch.pass(cluster)?;
        self.cap.after_pass(&mut self.batch, cluster)?;
        self.capacity.after_pass(&self.batch, cluster)
    }
}
