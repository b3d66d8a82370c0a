//! What the kernel asks of a scheduling policy.
use super::cluster::{Cluster, Ended, JobId};
use super::recorder::Recorder;
use crate::error::Stop;

/// A scheduling policy: owns the waiting jobs, is told of events and decides in [`Policy::pass`].
///
/// A policy is a value: it holds no clock, no random source and no reference to the run, so that a clone continues
/// exactly like the original. It depends on nothing but the calls it gets.
pub trait Policy: Clone {
    /// A job has arrived and waits. Jobs of one instant come in workload order.
    fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId);

    /// A job has ended, its procs are free.
    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended);

    /// A timer that the policy set has come.
    fn timer<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, token: u64) {
        let _ = (cluster, token);
    }

    /// One scheduling pass: the events of an instant (or one of them, by event order) have been told.
    ///
    /// # Errors
    /// Those of the decisions and of [`Cluster::step`], passed on.
    fn pass<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop>;
}
