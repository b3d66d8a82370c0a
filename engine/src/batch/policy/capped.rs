//! A batch policy with a power cap and without a capacity rule: the policy of copies of the cluster, and the core of
//! [`super::composed`].
use super::backfill::BackfillRule;
use super::batch::Batch;
use super::cap::{self, Cap};
use crate::batch::kernel::{Cluster, Copied, Ended, JobId, Policy, Recorder};
use crate::batch::platform::Machine;
use crate::error::{Result, SimError};
use crate::spec::SimSpec;

/// [`Batch`] with a power cap, if the spec has one.
#[derive(Debug, Clone)]
pub(crate) struct CappedBatch {
    pub(super) batch: Batch,
    pub(super) cap: Option<Cap>,
}

impl CappedBatch {
    /// The policy of a spec on a machine.
    pub(super) fn new(spec: &SimSpec, machine: &Machine) -> Result<CappedBatch, SimError> {
        Ok(CappedBatch { batch: Batch::new(spec, machine)?, cap: Cap::new(spec, machine)? })
    }

    /// The backfilling rule, with the waiting jobs.
    pub(super) fn waiting(&self) -> &BackfillRule {
        &self.batch.backfill
    }

    /// Procs have been put to sleep or woken since the last pass, or have finished waking.
    pub(super) fn procs_changed(&mut self) {
        self.batch.backfill.procs_changed();
    }

    /// A deferral rule has suspended or resumed running jobs.
    pub(super) fn rescheduled<R: Recorder>(&mut self, jobs: &mut Vec<JobId>, cluster: &Cluster<'_, R>) {
        jobs.drain(..).for_each(|job| self.batch.backfill.rescheduled(cluster, job));
    }

    /// The cap changes if its period has ended.
    pub(super) fn change<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        self.cap.as_mut().map_or(Ok(()), |cap| cap.change(cluster))
    }

    /// The cap is enforced on running jobs; then one scheduling pass; then gears are raised under the cap.
    pub(super) fn schedule<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        if let Some(cap) = &mut self.cap {
            cap.enforce(&mut self.batch.backfill, cluster)?;
        }
        self.batch.time_passed();
        self.batch.pass(cluster)?;
        self.cap.as_mut().map_or(Ok(()), |cap| cap.after_pass(&mut self.batch.backfill, cluster))
    }

    /// The policy for a copy of the cluster, in which only the caller changes the number of active procs.
    pub(super) fn fork<R: Recorder>(&self, copied: &Copied, copy: &Cluster<'_, R>) -> CappedBatch {
        CappedBatch { batch: self.batch.fork(copied, copy), cap: self.cap.as_ref().map(|cap| cap.fork(copied)) }
    }
}

impl Policy for CappedBatch {
    fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        self.batch.submitted(cluster, job);
    }

    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        self.batch.ended(cluster, ended);
        if let Some(cap) = &mut self.cap {
            cap.ended(cluster, ended);
        }
    }

    fn corrected<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId, before_s: f64) {
        self.batch.corrected(cluster, job, before_s);
    }

    fn timer<R: Recorder>(&mut self, _: &Cluster<'_, R>, token: u64) {
        if let Some(cap) = self.cap.as_mut().filter(|_| token & cap::TOKEN != 0) {
            cap.timer();
        }
    }

    fn pass<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        self.change(cluster)?;
        self.schedule(cluster)
    }
}
