//! Jobs that a rule suspends and resumes one by one: the kept list of releases follows.
use super::{EasyOfProcs, Release, Resources};
use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::policy::backfill::rule::Backfill;

impl<A: Resources> EasyOfProcs<A> {
    /// A job has been suspended or resumed. Under a cap that limits starts, the list is collected again: the order of equal ends
    /// may count there.
    #[inline(never)]
    pub(super) fn reschedule<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        self.procs_changed();
        let is_limited = self.power.moved || self.power.allowance.limit_w < f64::INFINITY;
        if self.overtaking.is_none() || (A::CAPPED && is_limited) {
            return;
        }
        self.power.rescheduled_count += 1;
        let executes = cluster.is_executing(job);
        let end_s = if executes { cluster.estimated_end_s(job) } else { cluster.suspended_left_s(job) };
        let taken = A::taken(cluster, &self.power.allowance, job, cluster.gear(job));
        let release = Release { end_s: end_s.expect("the job holds procs"), job, taken };
        self.releases.reschedule(release, executes, |job| cluster.is_running(job));
    }
}
