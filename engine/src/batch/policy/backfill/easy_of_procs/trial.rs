//! Trials: passes that plan starts on given free procs and start no job, for rules that decide by what would start.
use super::{EasyOfProcs, Release, Releases, Resources, Shadow};
use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::policy::backfill::releases::NO_JOB;
use crate::batch::policy::backfill::rule::Backfill;
use crate::batch::policy::gear::Gears;
use crate::batch::policy::order::Order;
use crate::error::Result;

impl EasyOfProcs {
    /// Procs of the jobs that a pass would start if `free` procs were free and none slept or woke. `None` in orders that
    /// change, which move the queue and whose keys may read what starts change, and with a rule that suspends jobs.
    pub(in crate::batch::policy) fn procs_of_starts<G: Gears, R: Recorder>(
        &mut self,
        order: Order,
        gears: &G,
        free: u32,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<Option<u32>> {
        if self.suspends || order.changes() || self.backfill_order.as_ref().is_some_and(|order| order.get().changes()) {
            return Ok(None);
        }
        let (reserved, early_end, front) = (self.reserved, self.early_end, self.queue.front());
        self.procs_changed();
        self.others.clear();
        (self.trial, self.free) = (true, free);
        self.pass_in(order, gears, cluster)?;
        self.queue.put_back(front);
        (self.trial, self.reserved, self.early_end) = (false, reserved, early_end);
        self.procs_changed();
        Ok(Some(free - self.free))
    }
}

impl<A: Resources> EasyOfProcs<A> {
    /// Plans a start.
    #[cold]
    pub(super) fn plan<R: Recorder>(&mut self, job: JobId, gear: u8, cluster: &Cluster<'_, R>) {
        let end_s = cluster.now_s() + cluster.estimate_s(job) * cluster.gears_for(job)[usize::from(gear)].time_factor;
        self.others.push(Release { end_s, job: NO_JOB, taken: A::procs(cluster.procs(job)) });
    }

    /// The reservation of a head that needs `need`, beside executing jobs also from procs that wake, suspended jobs or planned starts.
    #[cold]
    pub(super) fn shadow_with_others<R: Recorder>(
        &mut self,
        free: A,
        need: A,
        cluster: &Cluster<'_, R>,
    ) -> Option<Shadow<A>> {
        if !self.trial {
            self.others.clear();
            self.others.extend(self.releases.suspended(cluster.now_s()).chain(Release::coming(cluster)));
        }
        self.others.sort_unstable_by(|a, b| a.end_s.total_cmp(&b.end_s));
        let found = self
            .releases
            .shadow_with(self.others.iter().copied(), cluster.now_s(), free, need, |job| cluster.is_running(job));
        if cfg!(debug_assertions) && !self.trial {
            let mut all = Releases::default();
            self.collect(cluster, &mut all);
            all.add_waking(cluster);
            assert_eq!(found, all.shadow_of_collected(cluster.now_s(), free, need, false), "the kept list is wrong");
        }
        found
    }
}
