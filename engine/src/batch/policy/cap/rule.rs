//! The trait of power caps, and their common parameters.
use super::allowance::Allowance;
use super::held::HeldJobs;
use crate::batch::kernel::{Cluster, Recorder};
use crate::batch::platform::Machine;
use crate::error::Result;
use crate::spec::{Component, Default, Param, Role, SimSpec, Type};

/// Parameter: the caps.
pub(super) const CAPS_W: Param = Param {
    name: "caps_w",
    ty: Type::Reals { min: 0.0, max: 1e15 },
    unit: "W",
    default: Default::Required,
    doc: "Greatest powers of the machine, each for `cap_period_s`, from the first submit on; the list repeats.",
};

/// Parameter: the period of each cap.
pub(super) const CAP_PERIOD_S: Param = Param {
    name: "cap_period_s",
    ty: Type::Real { min: 0.0, max: 1e12, min_allowed: false, unlimited: false },
    unit: "s",
    default: Default::Real(3000.0),
    doc: "How long each of `caps_w` holds (Zhang et al. 2014: 3000 s).",
};

/// Common part of the components of power caps. A rule with more parameters repeats the two.
pub(super) const CAP: Component =
    Component { role: Role::Cap, params: &[CAPS_W, CAP_PERIOD_S], problems, ..Component::BATCH };

fn problems(spec: &SimSpec) -> Vec<String> {
    let caps_w = spec.choice(Role::Cap).opt_reals(CAPS_W.name).unwrap_or_default();
    let wrong = caps_w.iter().find(|cap_w| **cap_w <= 0.0);
    wrong.map(|cap_w| format!("`caps_w` must be above 0 W, not {cap_w}")).into_iter().collect()
}

/// A rule that keeps the power below a cap, or measures by how much it is exceeded.
pub(super) trait CapRule: Clone + std::default::Default {
    /// The rule of a spec on a machine; by default one without parameters.
    fn of(_: &SimSpec, _: &Machine) -> Option<Self> {
        Some(Self::default())
    }

    /// How jobs may start while the power must not exceed `limit_w`. By default a job starts at the highest gear up to
    /// the gear rule's choice at which the power fits.
    fn allowance(&self, limit_w: f64) -> Allowance {
        Allowance { limit_w, ..Allowance::ANY }
    }

    /// The gear of least power at which the rule starts or resumes a job, in words for an error.
    fn lowest_start(&self) -> &'static str {
        "the lowest gear"
    }

    /// Before a scheduling pass: enforces the cap on running jobs. `cap_changed`: since the pass before.
    ///
    /// # Errors
    /// Those of the decisions.
    fn before_pass<R: Recorder>(&self, _: &mut HeldJobs, _cap_changed: bool, _: &mut Cluster<'_, R>) -> Result<()> {
        Ok(())
    }

    /// After a scheduling pass: adjusts running jobs. `changed`: the cap has changed, or jobs have started or ended, since
    /// the pass before.
    ///
    /// # Errors
    /// Those of the decisions.
    fn after_pass<R: Recorder>(&self, _: &mut HeldJobs, _changed: bool, _: &mut Cluster<'_, R>) -> Result<()> {
        Ok(())
    }
}
