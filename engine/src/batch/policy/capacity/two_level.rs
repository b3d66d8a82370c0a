//! The two-level policy: all procs are active, or a given number.
use super::rule::{CapacityRule, problems, too_many};
use crate::batch::kernel::{Cluster, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::capped::CappedBatch;
use crate::error::Result;
use crate::spec::{Choice, Component, Default, Param, Role, SimSpec, Type};

/// Description of the two-level policy.
pub const COMPONENT: Component = Component {
    role: Role::Capacity,
    name: "two-level",
    version: 2,
    source: "Lawson & Smirni 2005, section 3.2",
    doc: "All procs, or `two_level_procs` (L) of them: lowered to L when at most L are in use and no waiting job needs \
          more, raised to all when a job arrives that needs more than L. All are active at the start.",
    reads: "Procs in use, and the procs of waiting and arriving jobs.",
    guarantees: "Only idle procs are put to sleep, and as many procs are active or waking as the widest waiting \
                 job needs. Waits have no bound.",
    params: &[Param {
        name: "two_level_procs",
        ty: Type::Int { min: 1, max: 1 << 30 },
        unit: "procs",
        default: Default::Required,
        doc: "Active procs at the lower level (L); at most those of the machine.",
    }],
    problems: problems::<TwoLevel>,
    ..Component::BATCH
};

/// The rule `two-level`.
#[derive(Debug, Clone)]
pub(crate) struct TwoLevel {
    low: u32,
}

impl CapacityRule for TwoLevel {
    fn of(spec: &SimSpec, _: &Machine) -> Option<TwoLevel> {
        Some(TwoLevel { low: spec.choice(Role::Capacity).int("two_level_procs") as u32 })
    }

    fn problems(choice: &Choice, machine_procs: Option<f64>) -> Vec<String> {
        too_many("two_level_procs", choice.opt_int("two_level_procs"), machine_procs).into_iter().collect()
    }

    fn raised(&self, _: u32, procs: u32) -> u32 {
        procs
    }

    /// The lower level, if all procs are active and neither the procs in use nor a waiting job exceed the lower level.
    fn after_pass<R: Recorder>(&mut self, batch: &CappedBatch, cluster: &mut Cluster<'_, R>) -> Result<Option<u32>> {
        let (active, procs) = (cluster.active(), cluster.machine().procs);
        // Waking procs count as in use: only idle procs can be put to sleep.
        let in_use = active - cluster.free();
        let lower = active == procs && in_use <= self.low;
        Ok((lower && !batch.waiting().any(|job| cluster.procs(job) > self.low)).then_some(self.low))
    }
}
