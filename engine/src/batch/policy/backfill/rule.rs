//! The trait of backfilling rules.
use crate::batch::kernel::{Cluster, Copied, Ended, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::cap::acting::acting;
use crate::batch::policy::cap::allowance::Allowance;
use crate::batch::policy::deferral;
use crate::batch::policy::gear::Gears;
use crate::batch::policy::order::Order;
use crate::error::Result;
use crate::spec::SimSpec;

/// A backfilling rule: keeps the waiting jobs and starts them.
pub(super) trait Backfill: Clone {
    /// The rule of a spec on a machine, without waiting jobs. `None`: another type of the file is for the spec.
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Self>;

    /// A job has arrived. Jobs of one instant arrive in workload order.
    fn submitted<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId);

    /// A job has ended.
    fn ended<R: Recorder>(&mut self, _: &Cluster<'_, R>, _: &Ended) {}

    /// A running job has a later estimated end than `before_s` (s), because its prediction has passed.
    fn corrected<R: Recorder>(&mut self, _: &Cluster<'_, R>, _: JobId, _before_s: f64) {
        self.procs_changed();
    }

    /// A running job has been suspended or resumed: one change of [`Cluster::rescheduled_count`]. Only for rules that keep a list
    /// of estimated ends.
    fn rescheduled<R: Recorder>(&mut self, _: &Cluster<'_, R>, _: JobId) {}

    /// Whether a pass would start no job; it is then skipped. Only for rules that can tell without a pass.
    #[inline(always)]
    fn refuses_all<R: Recorder>(&mut self, _: &Cluster<'_, R>) -> bool {
        false
    }

    /// A scheduling pass.
    ///
    /// # Errors
    /// Those of the decisions and of [`Cluster::step`].
    fn pass<G: Gears, R: Recorder>(&mut self, order: Order, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()>;

    /// The waiting jobs, in queue order unless the order changes with time. Under a power cap, the first one is always
    /// first in the queue order.
    fn jobs(&self) -> impl Iterator<Item = JobId>;

    /// Whether every key of the backfilling order so far had a value.
    ///
    /// # Errors
    /// That of the order.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Procs have been put to sleep or woken since the last pass, or have finished waking.
    fn procs_changed(&mut self) {}

    /// A pass follows, possibly without an arrival or an end.
    fn time_passed(&mut self, _: Order) {}

    /// Sets how jobs may start from now on. Called under a power cap only, before every pass.
    fn allow(&mut self, _: Allowance) {}

    /// The jobs that the last pass started, with their ceilings (the gear rule's choices). Called only if
    /// running jobs change.
    fn started(&self) -> &[(JobId, u8)] {
        &[]
    }

    /// Whether a waiting job has a reservation after the instant of the last pass. Called only if running jobs change.
    fn has_future_reservation(&self) -> bool {
        false
    }

    /// The rule for a copy of the cluster, without waiting jobs. Results of earlier passes are not copied: the first
    /// pass of the copy looks at all jobs.
    fn fork<R: Recorder>(&self, copied: &Copied, copy: &Cluster<'_, R>) -> Self;
}

/// Whether starts are limited, or running jobs get other gears or are suspended, so that their estimated ends move: under
/// a power cap that is not only measured, and by some deferral rules.
pub(super) fn changes_running_jobs(spec: &SimSpec) -> bool {
    acting(spec).is_some() || deferral::suspends(spec)
}
