//! The trait of scheduling policies.
use super::cluster::{Cluster, Ended, JobId};
use super::recorder::Recorder;
use crate::error::Stop;

/// A scheduling policy: owns the waiting jobs, receives events and decides in [`Policy::pass`].
///
/// A policy is a value: it holds no clock, no random source and no reference to the run, so that a clone continues
/// exactly like the original. It depends only on the calls that it receives.
pub trait Policy: Clone {
    /// A job has arrived and waits. Jobs of one instant arrive in workload order.
    fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId);

    /// A job has ended and its procs are free.
    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended);

    /// The prediction of a running job has passed: the job has a later estimated end. `before_s`: the estimated end so far
    /// (s).
    fn corrected<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId, before_s: f64) {
        let _ = (cluster, job, before_s);
    }

    /// A timer of the policy is due.
    fn timer<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, token: u64) {
        let _ = (cluster, token);
    }

    /// The power of running jobs has changed at an instant at which no job arrives or ends.
    ///
    /// # Errors
    /// Those of [`Policy::pass`].
    fn powers_changed<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        let _ = cluster;
        Ok(())
    }

    /// The next pass follows a completion that was reported before the last pass ([`super::EventOrder::SubmitFirst`]).
    fn ended_before(&mut self) {}

    /// One scheduling pass, after the events of an instant (or after one of them, by event order).
    ///
    /// # Errors
    /// Those of the decisions and of [`Cluster::step`].
    fn pass<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop>;
}
