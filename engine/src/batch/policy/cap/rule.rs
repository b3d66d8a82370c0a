//! What a power cap's rule is asked.
use super::allowance::Allowance;
use super::held::AllHeld;
use crate::batch::kernel::{Cluster, Recorder};
use crate::batch::platform::Machine;
use crate::error::Stop;
use crate::spec::{Choice, Component, Default, Param, Role, SimSpec, Type};

/// The caps.
pub(super) const CAPS_W: Param = Param {
    name: "caps_w",
    ty: Type::Reals { min: 0.0, max: 1e15 },
    unit: "W",
    default: Default::Required,
    doc: "Greatest powers of the machine, each for `cap_period_s`, from the first submit on, over and over.",
};

/// How long each holds.
pub(super) const CAP_PERIOD_S: Param = Param {
    name: "cap_period_s",
    ty: Type::Real { min: 0.0, max: 1e12, min_allowed: false, unlimited: false },
    unit: "s",
    default: Default::Real(3000.0),
    doc: "How long each of `caps_w` holds (Zhang et al. 2014: 3000 s).",
};

/// What power caps have in common: their parameters, which a rule with more of them repeats, and what is wrong with them.
pub(super) const CAP: Component =
    Component { role: Role::Cap, params: &[CAPS_W, CAP_PERIOD_S], problems, ..Component::BATCH };

fn problems(spec: &SimSpec) -> Vec<String> {
    let wrong = caps_w(spec.choice(Role::Cap)).iter().find(|cap_w| **cap_w <= 0.0);
    wrong.map(|cap_w| format!("`caps_w` must be above 0 W, not {cap_w}")).into_iter().collect()
}

/// The caps, none while they are missing.
fn caps_w(choice: &Choice) -> &[f64] {
    if choice.get(CAPS_W.name).is_some() { choice.reals(CAPS_W.name) } else { &[] }
}

/// A rule that keeps the power below a cap, or measures by how much it is exceeded.
pub(super) trait CapRule: Clone {
    /// The rule of a spec on a machine.
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Self>;

    /// How jobs may start while the power may be `limit_w`. By default a job starts at the highest gear up to the gear
    /// rule's choice at which the power fits.
    fn allowance(&self, limit_w: f64) -> Allowance {
        Allowance { limit_w, ..Allowance::ANY }
    }

    /// The gear at which the rule leaves a waiting or suspended job the least power, in words.
    fn lowest_start(&self) -> &'static str {
        "the lowest gear"
    }

    /// Before a scheduling pass; `cap_changed`: the cap has changed since the pass before.
    ///
    /// # Errors
    /// Those of the decisions, passed on; so below.
    fn before_pass<R: Recorder>(
        &self,
        _held: &mut AllHeld,
        _limit_w: f64,
        _cap_changed: bool,
        _: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        Ok(())
    }

    /// After a scheduling pass; `changed`: the cap has changed, or jobs have started or ended, since the pass before.
    fn after_pass<R: Recorder>(
        &self,
        _held: &mut AllHeld,
        _limit_w: f64,
        _changed: bool,
        _: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        Ok(())
    }
}
