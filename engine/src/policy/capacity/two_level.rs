//! The two-level policy: all procs, or as few as a given number.
use crate::error::SimError;
use crate::kernel::{Cluster, Recorder};
use crate::platform::Machine;
use crate::policy::batch::Batch;
use crate::registry::{Default, Entry, Param, Part, Slot, Type};

/// Registry entry of the two-level policy.
pub const ENTRY: Entry = Entry {
    slot: Slot::Capacity,
    name: "two-level",
    version: 1,
    source: "Lawson & Smirni 2005, section 3.2",
    doc: "All procs, or `two_level_procs` (L) of them: lowered to L when at most L are in use and no waiting job needs \
          more, raised to all when a job arrives that needs more than L. All are active at the start.",
    params: &[Param {
        name: "two_level_procs",
        ty: Type::Int { min: 1, max: 1 << 30 },
        unit: "procs",
        default: Default::Required,
        identity: true,
        doc: "Active procs at the lower level (L); at most those of the machine.",
    }],
};

/// The rule `two-level`.
#[derive(Debug, Clone)]
pub(super) struct TwoLevel {
    low: u32,
}

impl TwoLevel {
    pub(super) fn new(part: &Part, machine: &Machine) -> Result<TwoLevel, SimError> {
        let low = part.int("two_level_procs");
        let machine_procs = Some(f64::from(machine.procs()));
        if let Some(problem) = super::too_many("two_level_procs", Some(low), machine_procs) {
            return Err(SimError::Invalid(problem));
        }
        Ok(TwoLevel { low: low as u32 })
    }

    /// The lower level, if the procs in use and the waiting jobs allow it and all procs are active.
    pub(super) fn lowered<R: Recorder>(&self, batch: &Batch, cluster: &Cluster<'_, R>) -> Option<u32> {
        let (active, procs) = (cluster.active(0), cluster.machine().procs());
        // Procs that wake are in use as well: only idle ones go to sleep.
        let in_use = active - cluster.free(0);
        let lower = active == procs && self.low < procs && in_use <= self.low;
        (lower && batch.all_need_at_most(self.low, cluster)).then_some(self.low)
    }
}
