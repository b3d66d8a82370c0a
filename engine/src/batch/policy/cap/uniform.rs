//! All running jobs step together: the frequency adjustment of the knapsack policy.
use super::held::{AllHeld, Step};
use crate::batch::kernel::{Cluster, Recorder};
use crate::error::Stop;
use crate::spec::{Component, Role};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::Cap,
    name: "uniform",
    version: 2,
    source: "Zhang et al. 2014, section IV.C",
    doc: "Jobs start at the highest gear at which the power fits, else not at all, and keep it until the cap changes: then \
          all running jobs step down together until the power fits, or up together while it does. With `backfill` = \
          \"knapsack\" the knapsack chooses jobs and gear.",
    params: &[super::CAPS_W, super::CAP_PERIOD_S],
};

/// Steps down while the power exceeds the cap; `up`: else up.
pub(super) fn adjust<R: Recorder>(
    held: &mut AllHeld,
    limit_w: f64,
    up: bool,
    cluster: &mut Cluster<'_, R>,
) -> Result<(), Stop> {
    held.plan(cluster);
    if held.power_w() > limit_w {
        while held.power_w() > limit_w && held.step(cluster, None, Step::Down, limit_w)? {}
    } else if up {
        while held.step(cluster, None, Step::Up, limit_w)? {}
    }
    held.carry_out(cluster)
}
