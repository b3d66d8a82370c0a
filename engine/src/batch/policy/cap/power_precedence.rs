//! Jobs run at their ceilings, and are suspended while the power exceeds the cap.
use super::allowance::{Allowance, above_idle_w};
use super::held::{Held, HeldJobs};
use super::rule::{CAP, CapRule, LeastGear};
use crate::batch::kernel::{Cluster, Recorder};
use crate::error::Result;
use crate::spec::Component;

/// Description of the rule.
pub const COMPONENT: Component = Component {
    name: "power-precedence",
    version: 2,
    source: "Zhang et al. 2014, section V.B",
    doc: "Jobs start at any power. After each event all are resumed, then suspended until the power fits, the lowest \
          priority first, of equal ones the last to arrive first. Suspended jobs keep their procs, which draw idle power.",
    ..CAP
};

/// The rule `power-precedence`.
#[derive(Debug, Clone, Default)]
pub(super) struct PowerPrecedence;

impl CapRule for PowerPrecedence {
    fn allowance(&self, _: f64) -> Allowance {
        Allowance::ANY
    }

    fn least_gear(&self) -> LeastGear {
        LeastGear::OfGearRule
    }

    /// Suspends jobs until the power fits, and resumes the others. It does so at every event, because procs that fall
    /// asleep or wake change the power, too.
    fn after_pass<R: Recorder>(&self, held: &mut HeldJobs, _: bool, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let added_w = |cluster: &Cluster<'_, R>, held: &Held| {
            cluster.gear(held.job).map_or(0.0, |gear| above_idle_w(cluster, held.job, gear))
        };
        let resumed = held.jobs.iter().filter(|held| !cluster.is_executing(held.job));
        let mut power_w = cluster.power_w() + resumed.map(|held| added_w(cluster, held)).sum::<f64>();
        let limit_w = held.limit_w;
        let mut last_first: Vec<Held> = held.jobs.clone();
        last_first.sort_unstable_by(|a, b| b.priority.cmp(&a.priority).then(b.job.cmp(&a.job)));
        for held in &last_first {
            cluster.step()?;
            let suspend = power_w > limit_w;
            if suspend {
                power_w -= added_w(cluster, held);
            }
            match (suspend, cluster.is_executing(held.job)) {
                (true, true) => cluster.suspend(held.job)?,
                (false, false) => drop(cluster.resume(held.job)?),
                _ => {}
            }
        }
        Ok(())
    }
}
