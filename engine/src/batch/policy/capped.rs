//! A batch policy with a power cap: what copies of the cluster are simulated under, and [`super::composed`] but for the
//! capacity rule.
use super::backfill::Waiting;
use super::batch::Batch;
use super::cap::{self, Cap};
use crate::batch::kernel::{Cluster, Copied, Ended, JobId, Policy, Recorder};
use crate::batch::platform::Machine;
use crate::error::{SimError, Stop};
use crate::spec::SimSpec;

/// [`Batch`] with a power cap, which may be none.
#[derive(Debug, Clone)]
pub(crate) struct CappedBatch {
    batch: Batch,
    cap: Cap,
}

impl CappedBatch {
    /// The policy of a spec on a machine.
    pub(super) fn new(spec: &SimSpec, machine: &Machine) -> Result<CappedBatch, SimError> {
        Ok(CappedBatch { batch: Batch::new(spec, machine)?, cap: Cap::new(spec, machine)? })
    }

    /// The waiting jobs and their rule.
    pub(super) fn waiting(&self) -> &Waiting {
        self.batch.waiting()
    }

    /// The present cap (W).
    pub(super) fn cap_w(&self) -> Option<f64> {
        self.cap.cap_w()
    }

    /// Before anything else happens: timers are set here.
    pub(super) fn begin<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        self.cap.begin(cluster)
    }

    /// Procs have been put to sleep or woken since the last pass, or have finished waking.
    pub(super) fn procs_changed(&mut self) {
        self.batch.procs_changed();
    }

    /// The cap changes if its time has come.
    pub(super) fn change<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        self.cap.change(cluster)
    }

    /// Enforcement of the cap on running jobs; one scheduling pass; increments under the cap.
    pub(super) fn schedule<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        self.cap.enforce(&mut self.batch, cluster)?;
        self.batch.time_passed();
        self.batch.pass(cluster)?;
        self.cap.after_pass(&mut self.batch, cluster)
    }

    /// The policy for a copy of the cluster, whose active procs only the caller changes.
    pub(super) fn fork<R: Recorder>(&self, copied: &Copied, copy: &Cluster<'_, R>) -> CappedBatch {
        CappedBatch { batch: self.batch.fork(copied, copy), cap: self.cap.fork(copied) }
    }
}

impl Policy for CappedBatch {
    fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        self.batch.submitted(cluster, job);
    }

    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        self.batch.ended(cluster, ended);
        self.cap.ended(ended);
    }

    fn timer<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, token: u64) {
        if token & cap::TOKEN != 0 {
            self.cap.timer();
        } else {
            self.batch.timer(cluster, token);
        }
    }

    fn pass<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        self.change(cluster)?;
        self.schedule(cluster)
    }
}
