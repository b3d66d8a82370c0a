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
    doc: "Jobs start at the highest gear up to the gear rule's choice at which the power fits, else not at all, and keep \
          that gear until the cap changes: then all running jobs step down together until the power fits, or up together \
          while it does, none above the gear rule's choice. With \
          `backfill` = \"knapsack\" the knapsack chooses jobs and gear.",
    reads: "The power of the machine, the cap, and the watts of jobs at each gear, as far as they are known.",
    guarantees: "A start never raises the power above the cap. Before each pass, all running jobs step down until \
                 the power fits: the known power exceeds the cap only if all running jobs are at their lowest \
                 gears.",
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
