//! Power under a cap, as EASY of procs counts it.
use super::list::widest;
use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::policy::cap::allowance::Allowance;

/// State of the rule that a cap and changes of running jobs need.
#[derive(Debug, Clone, Default)]
pub(super) struct Power {
    pub(super) allowance: Allowance,
    /// Least power above idle of a proc at any gear (W).
    pub(super) least_w: f64,
    /// Power that starting jobs may add (W).
    pub(super) left_w: f64,
    /// Procs: no wider job can start at any gear.
    pub(super) widest: u32,
    /// The estimated ends of running jobs have moved, or move with the clock: the releases must be collected again.
    pub(super) moved: bool,
    /// They have moved since the pass before.
    pub(super) moves: bool,
    pub(super) rescheduled_count: u64,
    /// From the top gear down: the least power that a proc adds (W), and the least time factor.
    pub(super) gears: Vec<(f64, f64)>,
    /// Jobs that the last pass started, with their ceilings.
    pub(super) started: Vec<(JobId, u8)>,
}

impl Power {
    /// Measures the power that starting jobs may add.
    pub(super) fn measure<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) {
        self.left_w = self.allowance.left_w(cluster);
        // With powers of their own, a wide job may draw less than a narrow one.
        let widest = if cluster.has_scales() { u32::MAX } else { widest(self.left_w, self.least_w) };
        self.widest = widest.min(cluster.free(0));
    }
}
