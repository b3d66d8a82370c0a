//! Jobs that no cap of the schedule admits, known before the simulation.
use super::allowance::limit_w;
use super::rule::{LeastGear, OVER_CAP_JOBS};
use super::schedule::caps_w;
use super::{NONE, Rule};
use crate::batch::platform::Machine;
use crate::batch::policy::{capacity, gear};
use crate::spec::{Role, SimSpec};

/// Whether the gear rule chooses the gear of a job during the run.
fn chooses_gears(spec: &SimSpec) -> bool {
    *spec.choice(Role::GearRule).component() != gear::top::COMPONENT
}

/// Advice for a job that starves under a rule, besides a higher cap.
pub(super) fn help(spec: &SimSpec, rule: &Rule) -> &'static str {
    if rule.least_gear() == LeastGear::OfGearRule && chooses_gears(spec) {
        return "choose gear_rule = \"top\" or another power_cap: over_cap_jobs = \"drop\" does not know the gears that \
                gear_rule chooses during the run";
    }
    if spec.choice(Role::Cap).text(OVER_CAP_JOBS.name) == "drop" {
        return "leave the job out by the rules of the workload: over_cap_jobs = \"drop\" knows the least power that the job \
                may need, and during the run it needs more";
    }
    "choose over_cap_jobs = \"drop\""
}

/// The reach of a cap: the least power of a job, and the greatest cap of the schedule.
///
/// The least power is a lower bound where the gear rule or a capacity rule decides during the run: a job that is not
/// admitted here never runs.
#[derive(Debug)]
pub(crate) struct CapReach<'m> {
    machine: &'m Machine,
    static_w: f64,
    /// Power of a proc that the job does not hold, at least (W).
    resting_w: f64,
    least_gear: LeastGear,
    /// Greatest cap of the schedule (W).
    pub(crate) greatest_w: f64,
    /// Whether jobs that are not admitted are dropped.
    pub(crate) drops: bool,
}

impl<'m> CapReach<'m> {
    /// The reach of a spec's cap; `None` without a cap, without the values of its signal, and under a rule that lets jobs run at any power.
    pub(crate) fn new(spec: &SimSpec, machine: &'m Machine) -> Option<CapReach<'m>> {
        let choice = spec.choice(Role::Cap);
        if *choice.component() == NONE {
            return None;
        }
        let least_gear = match Rule::of(spec, machine)?.least_gear() {
            LeastGear::Any => return None,
            // A rule other than `top` may choose any gear.
            LeastGear::OfGearRule if chooses_gears(spec) => LeastGear::Lowest,
            least => least,
        };
        // The values of a signal are not known before the simulation.
        let greatest_w = caps_w(spec, machine).into_iter().reduce(f64::max)?;
        let sleeps = *spec.choice(Role::Capacity).component() != capacity::NONE;
        Some(CapReach {
            machine,
            static_w: machine.static_w,
            resting_w: if sleeps { machine.idle_w.min(machine.sleep.asleep_w) } else { machine.idle_w },
            least_gear,
            greatest_w,
            drops: choice.text(OVER_CAP_JOBS.name) == "drop",
        })
    }

    /// Power of the machine with one job, alone, at the gear of least power at which the job may run (W).
    pub(crate) fn least_w(&self, procs: u32, job_class: u8, scale: f64) -> f64 {
        let gears = self.machine.gears_of(job_class);
        let gear = if self.least_gear == LeastGear::OfGearRule { gears.len() - 1 } else { 0 };
        let others = f64::from(self.machine.procs - procs.min(self.machine.procs));
        f64::from(procs) * gears[gear].busy_w * scale + others * self.resting_w + self.static_w
    }

    /// Whether some cap of the schedule admits a job. `scale`: the job's power divided by the model's.
    pub(crate) fn admits(&self, procs: u32, job_class: u8, scale: f64) -> bool {
        self.least_w(procs, job_class, scale) <= limit_w(self.greatest_w)
    }
}
