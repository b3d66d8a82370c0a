//! Estimated ends that move: by another gear, a suspension or a resumption.
use super::{EasyOfProcs, Release, Resources};
use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::policy::backfill::rule::Backfill;

impl<A: Resources> EasyOfProcs<A> {
    /// Begins a pass under a cap or a rule that suspends jobs. What earlier passes found holds while estimated ends do not move and
    /// the power changes with the starts and ends of jobs alone.
    pub(super) fn begin<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) {
        self.power.started.clear();
        let (before_w, rescheduled_count) = (self.power.left_w, cluster.rescheduled_count());
        if A::CAPPED {
            self.power.measure(cluster);
        }
        let moved = self.power.rescheduled_count != rescheduled_count;
        self.power.moved |= moved;
        // The expected end of a suspended job moves with the clock.
        let moves = moved || (self.stale && cluster.suspended() > 0);
        (self.power.moves, self.power.rescheduled_count) = (moves, rescheduled_count);
        if moves || if self.stale { cluster.in_transition() } else { self.power.left_w > before_w } {
            self.procs_changed();
        }
    }

    /// A job has been suspended or resumed: the kept list of releases follows. Under a cap that limits starts, the list is
    /// collected again, because the order of equal ends may count there.
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
