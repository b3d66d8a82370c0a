//! Power caps: what keeps the machine's power below a limit that may change in time.
//!
//! A rule is told of timers (changes of the cap), enforces the cap on running jobs before the scheduling pass and may
//! raise gears after it; see [`super::composed`] for the order.
use crate::error::{SimError, Stop};
use crate::kernel::{Cluster, Copied, Ended, Recorder};
use crate::platform::Machine;
use crate::registry::{Entry, Slot};
use crate::spec::SimSpec;

use super::batch::Batch;

/// No cap.
pub const NONE: Entry =
    Entry { slot: Slot::Cap, name: "none", version: 1, source: "", doc: "No power cap.", params: &[] };

/// The chosen cap rule.
#[derive(Debug, Clone)]
pub(crate) enum Cap {
    /// No cap.
    None,
}

impl Cap {
    /// The rule of a spec on a machine.
    pub(crate) fn new(spec: &SimSpec, _machine: &Machine) -> Result<Cap, SimError> {
        match spec.part(Slot::Cap).entry().name {
            "none" => Ok(Cap::None),
            other => Err(SimError::Invalid(format!("the batch policy does not know the power_cap `{other}`"))),
        }
    }

    /// The rule for a copy of the cluster, with the present cap for ever: a copy has none of the rule's timers. Whatever
    /// the rule knows of a job it must know by the number that the job has in the copy.
    pub(crate) fn fork(&self, _copied: &Copied) -> Cap {
        match self {
            Cap::None => Cap::None,
        }
    }

    /// Before anything else happens: timers are set here.
    pub(crate) fn begin<R: Recorder>(&mut self, _cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        match self {
            Cap::None => Ok(()),
        }
    }

    /// A job has ended.
    pub(crate) fn ended<R: Recorder>(&mut self, _cluster: &Cluster<'_, R>, _ended: &Ended) {}

    /// A timer of the rule has come: the cap changes.
    pub(crate) fn timer<R: Recorder>(&mut self, _cluster: &Cluster<'_, R>, _token: u64) {}

    /// Before the scheduling pass: enforces the cap on running jobs.
    pub(crate) fn before_pass<R: Recorder>(
        &mut self,
        _batch: &mut Batch,
        _cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        Ok(())
    }

    /// After the scheduling pass: raises gears.
    pub(crate) fn after_pass<R: Recorder>(
        &mut self,
        _batch: &mut Batch,
        _cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        Ok(())
    }
}
