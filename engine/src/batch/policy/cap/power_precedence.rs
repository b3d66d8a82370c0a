//! The two static rules: jobs run at their ceilings, and either jobs are suspended for the cap's sake or the cap is
//! exceeded.
use super::allowance::above_idle_w;
use super::held::{AllHeld, Held};
use crate::batch::kernel::{Cluster, Recorder};
use crate::error::Stop;
use crate::spec::{Component, Role};

/// Description of the rule that suspends.
pub const POWER: Component = Component {
    role: Role::Cap,
    name: "power-precedence",
    version: 2,
    source: "Zhang et al. 2014, section V.B",
    doc: "Jobs start whatever the power. After each event all are resumed, then suspended until the power fits, the lowest \
          priority first, in it the last of the list first. Suspended jobs keep their procs, which draw idle power.",
    params: &[super::CAPS_W, super::CAP_PERIOD_S],
};
/// Description of the rule that does nothing.
pub const PERFORMANCE: Component = Component {
    role: Role::Cap,
    name: "performance-precedence",
    version: 1,
    source: "Zhang et al. 2014, section V.B",
    doc: "Jobs run as if there were no cap; by how much they exceed it is measured.",
    params: &[super::CAPS_W, super::CAP_PERIOD_S],
};

/// Suspends as few as it must, and resumes the others.
pub(super) fn suspend<R: Recorder>(held: &AllHeld, limit_w: f64, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
    let added_w = |cluster: &Cluster<'_, R>, held: &Held| {
        cluster.gear(held.job).map_or(0.0, |gear| above_idle_w(cluster, held.job, gear))
    };
    let resumed = held.jobs().iter().filter(|held| !cluster.is_executing(held.job));
    let mut power_w = cluster.power_w() + resumed.map(|held| added_w(cluster, held)).sum::<f64>();
    let mut last_first: Vec<Held> = held.jobs().to_vec();
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
