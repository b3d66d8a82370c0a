//! Backfilling rules: which waiting jobs may overtake the head of the queue.
//!
//! A backfilling rule is a file with its description and a [`Backfill`], or a [`ListRule`](list::ListRule) if speed
//! does not matter; the list below registers it. A file may have a second type for the same rule under a power cap.
pub mod conservative;
pub mod easy;
mod easy_of_procs;
pub mod kept_head;
pub mod knapsack;
mod list;
pub mod none;
mod power;
mod profile;
mod queue;
mod releases;
mod resources;
mod rule;
pub mod wasm;
pub mod within_priority;

use crate::batch::kernel::{Cluster, Copied, Ended, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::cap::allowance::Allowance;
use crate::batch::policy::gear::Gears;
use crate::batch::policy::order::Order;
use crate::batch::rules::rules;
use crate::error::Result;
use crate::spec::{Role, SimSpec};
use rule::Backfill;

rules! { $
    /// The chosen backfilling rule, with the waiting jobs.
    pub(super) enum BackfillRule {
        none: InOrderOfPools | InOrder | InOrderUnderCap,
        easy: EasyOfPools | EasyOfProcs | EasyUnderCap,
        within_priority: WithinPriority,
        knapsack: Knapsack,
        conservative: Conservative | ConservativeUnderCap | ConservativeOfPools,
        kept_head: KeptHead | KeptHeadUnderCap,
        wasm: ByModule,
    }
}

impl BackfillRule {
    /// The rule of a spec on a machine, without waiting jobs; `None` if this folder does not have it.
    pub(super) fn of(spec: &SimSpec, machine: &Machine) -> Option<BackfillRule> {
        chosen!(spec.choice(Role::Backfill).component(), (spec, machine))
    }

    /// No backfilling.
    pub(super) fn in_order(machine: &Machine) -> BackfillRule {
        if machine.pools.is_empty() {
            BackfillRule::InOrder(none::InOrder::default())
        } else {
            BackfillRule::InOrderOfPools(none::InOrderOfPools::default())
        }
    }

    #[inline(always)]
    pub(super) fn submitted<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId) {
        // Here and below, the most common rule has a branch of its own and needs no jump table.
        if let BackfillRule::EasyOfProcs(easy) = self {
            return easy.submitted(order, cluster, job);
        }
        self.submitted_to_another(order, cluster, job);
    }

    #[inline(never)]
    fn submitted_to_another<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId) {
        each!(self, rule => rule.submitted(order, cluster, job));
    }

    #[inline(always)]
    pub(super) fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        if let BackfillRule::EasyOfProcs(easy) = self {
            return easy.ended(cluster, ended);
        }
        self.ended_of_another(cluster, ended);
    }

    #[inline(never)]
    fn ended_of_another<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        each!(self, rule => rule.ended(cluster, ended));
    }

    pub(super) fn corrected<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId, before_s: f64) {
        each!(self, rule => rule.corrected(cluster, job, before_s));
    }

    /// A running job has been suspended or resumed.
    pub(super) fn rescheduled<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        each!(self, rule => rule.rescheduled(cluster, job));
    }

    /// Whether every key of the backfilling order so far had a value.
    #[inline(always)]
    pub(super) fn check(&self) -> Result<()> {
        if let BackfillRule::EasyOfProcs(easy) = self {
            return easy.check();
        }
        each!(self, rule => rule.check())
    }

    #[inline(always)]
    pub(super) fn refuses_all<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) -> bool {
        if let BackfillRule::EasyOfProcs(easy) = self {
            return easy.refuses_all(cluster);
        }
        self.another_refuses_all(cluster)
    }

    #[inline(never)]
    fn another_refuses_all<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) -> bool {
        each!(self, rule => rule.refuses_all(cluster))
    }

    #[inline(always)]
    pub(super) fn pass<G: Gears, R: Recorder>(
        &mut self,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        if let BackfillRule::EasyOfProcs(easy) = self {
            return easy.pass(order, gears, cluster);
        }
        each!(self, rule => rule.pass(order, gears, cluster))
    }

    /// The waiting jobs, in any order.
    pub(super) fn jobs(&self) -> Vec<JobId> {
        each!(self, rule => rule.jobs().collect())
    }

    /// The first waiting job.
    pub(super) fn first(&self) -> Option<JobId> {
        each!(self, rule => rule.jobs().next())
    }

    /// Whether a condition holds for a waiting job.
    pub(super) fn any(&self, holds: impl FnMut(JobId) -> bool) -> bool {
        each!(self, rule => rule.jobs().any(holds))
    }

    pub(super) fn procs_changed(&mut self) {
        each!(self, rule => rule.procs_changed());
    }

    pub(super) fn time_passed(&mut self, order: Order) {
        each!(self, rule => rule.time_passed(order));
    }

    pub(super) fn allow(&mut self, allowance: Allowance) {
        each!(self, rule => rule.allow(allowance));
    }

    pub(super) fn started(&self) -> &[(JobId, u8)] {
        each!(self, rule => rule.started())
    }

    pub(super) fn has_future_reservation(&self) -> bool {
        each!(self, rule => rule.has_future_reservation())
    }

    /// The rule for a copy of the cluster, with the same jobs waiting.
    pub(super) fn fork<R: Recorder>(&self, order: Order, copied: &Copied, copy: &Cluster<'_, R>) -> BackfillRule {
        let mut fork = same!(self, rule => rule.fork(copied, copy));
        // In queue order, in which the copy takes arrivals at one instant.
        for job in self.jobs().into_iter().filter_map(|job| copied.number(job)) {
            fork.submitted(order, copy, job);
        }
        fork
    }
}
