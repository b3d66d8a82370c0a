//! Power-aware dynamic resource configuration: gears by priority.
//!
//! After jobs have started or ended, or the cap has changed:
//!
//! - If the power exceeds the cap, power-level decrement lowers all jobs of the lowest priority by one gear at a time,
//!   until the power fits or all of them are at the lowest gear; then the jobs of the next priority.
//! - Otherwise power-level increment raises all jobs of the highest priority by one gear at a time while the power
//!   fits; then the jobs of the next priority. The printed loop never ends once a step exceeds the cap. Here that step
//!   is not taken, and the next priority follows.
use super::allowance::Allowance;
use super::held::HeldJobs;
use super::rule::{
    CAP, CAP_PERIOD_S, CAP_SCHEDULE_SHARE, CAP_SCHEDULE_W, CAP_SIGNAL, CAP_SIGNAL_SHARE, CapRule, OVER_CAP_JOBS,
};
use crate::batch::kernel::{Cluster, Recorder};
use crate::batch::platform::Machine;
use crate::error::Result;
use crate::spec::{Component, Default, Param, Role, SimSpec, Type};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    name: "pdrc",
    version: 2,
    source: "Zhang et al. 2014, Algorithms 2 and 3",
    doc: "Running jobs are lowered by priority, the lowest first, while the power exceeds the cap, and raised by priority, \
          the highest first, while it fits.",
    reads: "The power of the machine, the cap, the watts of jobs at each gear, as far as they are known, and \
            priorities.",
    guarantees: "After each pass, the known power exceeds the cap only if all running jobs are at their lowest \
                 gears. With `pdrc_start` = \"fitting\", a start never brings that about; with \"blind\" it may.",
    params: &[
        CAP_SCHEDULE_W,
        CAP_SCHEDULE_SHARE,
        CAP_SIGNAL,
        CAP_SIGNAL_SHARE,
        CAP_PERIOD_S,
        OVER_CAP_JOBS,
        Param {
            name: "pdrc_start",
            ty: Type::OneOf(&["fitting", "blind"]),
            unit: "",
            default: Default::Text("fitting"),
            doc: "`fitting`: a job starts at the highest gear at which the power fits with all others at the lowest \
                  gear, else not at all; `blind`: jobs start at the lowest gear even if the power then exceeds the cap \
                  (the paper).",
        },
    ],
    ..CAP
};

/// The rule `pdrc`.
#[derive(Debug, Clone, std::default::Default)]
pub(super) struct Pdrc {
    blind: bool,
}

impl CapRule for Pdrc {
    fn of(spec: &SimSpec, _: &Machine) -> Option<Pdrc> {
        Some(Pdrc { blind: spec.choice(Role::Cap).text("pdrc_start") == "blind" })
    }

    fn allowance(&self, limit_w: f64) -> Allowance {
        if self.blind {
            Allowance { lowest: true, ..Allowance::ANY }
        } else {
            Allowance { limit_w, lowered: true, lowest: false }
        }
    }

    fn after_pass<R: Recorder>(&self, held: &mut HeldJobs, changed: bool, cluster: &mut Cluster<'_, R>) -> Result<()> {
        held.adjust(true, changed, cluster)
    }
}
