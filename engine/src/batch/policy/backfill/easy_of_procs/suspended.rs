//! Jobs that a cap suspends and resumes one by one: the kept list of releases follows.
use super::{Release, Resources};
use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::policy::backfill::easy::EasyUnderCap;
use crate::batch::policy::backfill::resources::ProcsAndWatts;
use crate::batch::policy::backfill::rule::Backfill;

impl EasyUnderCap {
    /// A job has been suspended or resumed, one change of [`Cluster::rescheduled_count`]. Under a cap that limits starts, the
    /// count differs then, and the list is collected again.
    pub(in crate::batch::policy) fn rescheduled<R: Recorder>(
        &mut self,
        cluster: &Cluster<'_, R>,
        job: JobId,
        before_s: f64,
    ) {
        self.procs_changed();
        if self.power.moved || self.power.allowance.limit_w < f64::INFINITY {
            return;
        }
        self.power.rescheduled_count += 1;
        let taken = ProcsAndWatts::taken(cluster, &self.power.allowance, job, cluster.gear(job));
        if cluster.is_executing(job) {
            self.suspended.retain(|release| release.job != job);
            let end_s = cluster.estimated_end_s(job).expect("the job holds procs");
            self.releases.add(Release { end_s, job, taken }, |job| cluster.is_running(job));
        } else {
            self.releases.take(job, before_s);
            let left_s = cluster.estimate_left_s(job).expect("the job holds procs");
            let at = self.suspended.partition_point(|release| release.end_s <= left_s);
            self.suspended.insert(at, Release { end_s: left_s, job, taken });
        }
    }
}
