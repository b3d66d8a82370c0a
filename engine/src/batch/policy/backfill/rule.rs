//! What a backfilling rule is asked.
use crate::batch::kernel::{Cluster, Copied, Ended, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::cap::allowance::Allowance;
use crate::batch::policy::gear::Gears;
use crate::batch::policy::order::Order;
use crate::error::Stop;
use crate::spec::{Role, SimSpec};

/// A backfilling rule: keeps the waiting jobs and starts them.
pub(super) trait Backfill: Clone {
    /// The rule of a spec on a machine, with nobody waiting. None: another type of the file is for the spec.
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Self>;

    /// A job has arrived. Jobs of one instant come in workload order.
    fn submitted<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId);

    /// A job has ended.
    fn ended<R: Recorder>(&mut self, _: &Cluster<'_, R>, _: &Ended) {}

    /// Whether a pass would start nothing; then there is none. A rule that knows this cheaply says so.
    #[inline(always)]
    fn refuses_all<R: Recorder>(&mut self, _: &Cluster<'_, R>) -> bool {
        false
    }

    /// A scheduling pass.
    ///
    /// # Errors
    /// Those of the decisions and of [`Cluster::step`], passed on.
    fn pass<G: Gears, R: Recorder>(
        &mut self,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop>;

    /// The waiting jobs. Under a power cap the first is first in the order.
    fn jobs(&self) -> impl Iterator<Item = JobId>;

    /// Procs have been put to sleep or woken since the last pass, or have finished waking.
    fn procs_changed(&mut self) {}

    /// A pass may come though no job arrived or ended.
    fn time_passed(&mut self, _: Order) {}

    /// How jobs may start from now on. Called under a power cap only, before every pass.
    fn allow(&mut self, _: Allowance) {}

    /// The jobs that the last pass started, with the gear rule's choices: their ceilings. Asked under a power cap only.
    fn started(&self) -> &[(JobId, u8)] {
        &[]
    }

    /// Whether a waiting job has a reservation that was still to come at the last pass. Asked under a power cap only.
    fn waits_for_reservation(&self) -> bool {
        false
    }

    /// The rule for a copy of the cluster, with nobody waiting. What it has found out about waiting jobs is not copied: the
    /// first pass of the copy looks at all.
    fn fork<R: Recorder>(&self, copied: &Copied, copy: &Cluster<'_, R>) -> Self;

    /// The waiting jobs in the order in which the copy is told of them.
    fn arrivals(&self) -> Vec<JobId> {
        // A queue sorts by itself, but from arrivals in order.
        let mut jobs: Vec<JobId> = self.jobs().collect();
        jobs.sort_unstable();
        jobs
    }
}

/// Whether a spec has a power cap.
pub(super) fn is_capped(spec: &SimSpec) -> bool {
    spec.choice(Role::Cap).component().name != "none"
}
