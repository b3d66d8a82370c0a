//! Capacity rules: how many procs are active.
//!
//! Procs that are not active sleep. A rule is told of arrivals and timers, decides before the scheduling pass (online
//! simulation) and may lower the active procs after it (two-level policy); see [`super::composed`] for the order.
use crate::error::{SimError, Stop};
use crate::kernel::{Cluster, JobId, Recorder};
use crate::platform::Machine;
use crate::registry::{Entry, Slot};
use crate::spec::SimSpec;

use super::batch::Batch;

/// All procs are always active.
pub const NONE: Entry = Entry {
    slot: Slot::Capacity,
    name: "none",
    version: 1,
    source: "",
    doc: "All procs are always active.",
    params: &[],
};

/// The chosen capacity rule.
#[derive(Debug, Clone)]
pub(crate) enum Capacity {
    /// All procs are always active.
    None,
}

impl Capacity {
    /// The rule of a spec on a machine.
    pub(crate) fn new(spec: &SimSpec, _machine: &Machine) -> Result<Capacity, SimError> {
        match spec.part(Slot::Capacity).entry().name {
            "none" => Ok(Capacity::None),
            other => Err(SimError::Invalid(format!("the batch policy does not know the capacity_rule `{other}`"))),
        }
    }

    /// Before anything else happens: timers are set here.
    pub(crate) fn begin<R: Recorder>(&mut self, _cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        match self {
            Capacity::None => Ok(()),
        }
    }

    /// A job has arrived.
    pub(crate) fn submitted<R: Recorder>(&mut self, _cluster: &Cluster<'_, R>, _job: JobId) {}

    /// A timer of the rule has come.
    pub(crate) fn timer<R: Recorder>(&mut self, _cluster: &Cluster<'_, R>, _token: u64) {}

    /// Before the scheduling pass: raises, and decides by online simulation.
    pub(crate) fn before_pass<R: Recorder>(
        &mut self,
        _batch: &Batch,
        _cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        Ok(())
    }

    /// After the scheduling pass: lowers.
    pub(crate) fn after_pass<R: Recorder>(
        &mut self,
        _batch: &Batch,
        _cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        Ok(())
    }
}
