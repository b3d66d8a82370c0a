//! All running jobs change their gears together: the frequency adjustment of the knapsack policy.
use super::held::HeldJobs;
use super::rule::{CAP, CapRule};
use crate::batch::kernel::{Cluster, Recorder};
use crate::error::Result;
use crate::spec::Component;

/// Description of the rule.
pub const COMPONENT: Component = Component {
    name: "uniform",
    version: 2,
    source: "Zhang et al. 2014, section IV.C",
    doc: "Jobs start at the highest gear at which the power fits, else not at all, and keep that gear until the cap \
          changes: then all running jobs step down together until the power fits, or up together while it does. With \
          `backfill` = \"knapsack\" the knapsack chooses jobs and gear.",
    ..CAP
};

/// The rule `uniform`.
#[derive(Debug, Clone, Default)]
pub(super) struct Uniform;

impl CapRule for Uniform {
    fn before_pass<R: Recorder>(
        &self,
        held: &mut HeldJobs,
        cap_changed: bool,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        held.adjust(false, cap_changed, cluster)
    }
}
