//! Power under a cap, as EASY of procs counts it.
use super::easy_of_procs::EasyOfProcs;
use super::list::{Start, widest};
use super::releases::Shadow;
use super::resources::Resources;
use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::policy::cap::allowance::Allowance;
use crate::batch::policy::gear::{Candidate, Gears};

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
        self.widest = widest.min(cluster.free());
    }
}

impl<A: Resources> EasyOfProcs<A> {
    /// How a job whose procs fit may overtake under a cap, and whether it then ends later than the reservation. `ask`: the gear
    /// rule's choice if the job may be late, or not.
    pub(super) fn overtaking_at<G: Gears, R: Recorder>(
        &self,
        candidate: Candidate,
        job: JobId,
        shadow: &Shadow<A>,
        ask: impl Fn(bool) -> Option<(u8, bool)>,
        gears: &G,
        cluster: &Cluster<'_, R>,
    ) -> Option<(Start, bool)> {
        let Power { allowance, left_w, .. } = &self.power;
        let on_extra =
            |gear| self.overtaking == Some(true) && shadow.extra.covers(A::taken(cluster, allowance, job, gear));
        let factors = cluster.gears_for(job);
        let in_time = |gear: u8| {
            let end_s = cluster.now_s() + candidate.estimate_s * factors[usize::from(gear)].time_factor;
            gears.in_time(end_s, shadow.at_s)
        };
        let mut choice = ask(on_extra(None))?;
        if choice.1 && !on_extra(Some(choice.0)) {
            // At the chosen gear, the procs fit beside the reservation, but not the watts. A higher gear that ends in time
            // is chosen instead; without one, the cap may lower the job to a gear whose watts fit.
            choice = ask(false).unwrap_or(choice);
        }
        let ceiling = choice.0;
        let mut fitting = allowance.fitting(cluster, job, ceiling, *left_w);
        let gear = fitting.find(|gear| in_time(*gear) || on_extra(Some(*gear)))?;
        Some((Start { gear, ceiling }, !in_time(gear)))
    }
}
