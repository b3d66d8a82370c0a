//! No backfilling.
use super::list::{List, ListRule, Listed};
use super::pooled::{Pooled, Strict};
use super::queue::Queue;
use super::rule::{Backfill, changes_running_jobs};
use crate::batch::kernel::{Cluster, Copied, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::gear::{Candidate, Gears};
use crate::batch::policy::order::Order;
use crate::error::Result;
use crate::spec::{Component, Role, SimSpec};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::Backfill,
    name: "none",
    version: 1,
    doc: "No job overtakes the head of the queue.",
    ..Component::BATCH
};

/// Jobs start in order until one does not fit.
#[derive(Debug, Clone)]
pub(in crate::batch::policy) struct InOrder(Queue);

impl InOrder {
    pub(super) fn new(machine: &Machine) -> InOrder {
        InOrder(Queue::new(machine.procs()))
    }
}

impl Backfill for InOrder {
    fn of(spec: &SimSpec, machine: &Machine) -> Option<InOrder> {
        (!changes_running_jobs(spec)).then(|| InOrder::new(machine))
    }

    #[inline]
    fn submitted<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId) {
        self.0.insert(order, cluster, job);
    }

    fn pass<G: Gears, R: Recorder>(&mut self, order: Order, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let queue = &mut self.0;
        queue.sort(order, cluster);
        while queue.len() > 0 && queue.procs(queue.head()) <= cluster.free(0) {
            let (head, others) = (queue.head(), queue.len() - 1);
            let candidate = Candidate::estimated(cluster, queue.job(head), queue.estimate_s(head));
            let gear = gears.at(candidate, cluster.now_s(), others);
            cluster.start(queue.job(head), gear, false)?;
            queue.pop_head();
        }
        Ok(())
    }

    fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.0.jobs()
    }

    fn fork<R: Recorder>(&self, _: &Copied, copy: &Cluster<'_, R>) -> InOrder {
        InOrder::new(copy.machine())
    }
}

/// [`InOrder`] on a machine with pools.
pub(in crate::batch::policy) type InOrderOfPools = Pooled<Strict>;

/// [`InOrder`] under a power cap.
pub(in crate::batch::policy) type InOrderUnderCap = Listed<UnderCap>;

/// Jobs start in order until one does not fit the procs or the power.
#[derive(Debug, Clone, Default)]
pub(in crate::batch::policy) struct UnderCap;

impl ListRule for UnderCap {
    fn of(spec: &SimSpec) -> Option<UnderCap> {
        changes_running_jobs(spec).then_some(UnderCap)
    }

    fn pass<G: Gears, R: Recorder>(&mut self, list: &mut List, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        list.start_in_order(gears, cluster)
    }
}
