//! The trait of power caps, and their common parameters.
use super::allowance::Allowance;
use super::held::HeldJobs;
use crate::batch::kernel::{Cluster, Recorder};
use crate::batch::platform::Machine;
use crate::error::Result;
use crate::spec::{Component, Default, Param, Role, SimSpec, Type};

/// Parameter: the caps.
pub(super) const CAP_SCHEDULE_W: Param = Param {
    name: "cap_schedule_w",
    ty: Type::Reals { min: 0.0, max: 1e15 },
    unit: "W",
    default: Default::Unset,
    doc: "Schedule of one cap: the greatest powers of the machine, each for `cap_period_s`, from the first submit on; \
          the list repeats. An entry that equals the one before is no change of the cap. An axis is a list of schedules: \
          [[15000], [20000]] are two constant caps. Every cap needs this, `cap_schedule_share`, `cap_signal` or \
          `cap_signal_share`.",
};

/// Parameter: the caps, relative to the machine.
pub(super) const CAP_SCHEDULE_SHARE: Param = Param {
    name: "cap_schedule_share",
    ty: Type::Reals { min: 0.0, max: 1.0 },
    unit: "",
    default: Default::Unset,
    doc: "The schedule as shares of the machine's peak power, in place of `cap_schedule_w`: each above 0 up to 1. The peak \
          is the power with all procs busy at the top gear, with jobs of the class that draws most, and `cooling_w`. It \
          follows `procs` and `size_factor`.",
};

/// Parameter: a signal of caps.
pub(super) const CAP_SIGNAL: Param = Param {
    name: "cap_signal",
    ty: Type::Signal { quantities: &["cap"] },
    unit: "",
    default: Default::Unset,
    doc: "Label of a signal of [signals] with the quantity `cap`: the greatest power of the machine over time (W), in place \
          of a schedule.",
};

/// Parameter: a signal of caps, relative to the machine.
pub(super) const CAP_SIGNAL_SHARE: Param = Param {
    name: "cap_signal_share",
    ty: Type::Signal { quantities: &["cap-share"] },
    unit: "",
    default: Default::Unset,
    doc: "Label of a signal of [signals] with the quantity `cap-share`: the cap over time as a share of the machine's peak \
          power (see `cap_schedule_share`), in place of a schedule.",
};

/// Parameter: the period of each cap.
pub(super) const CAP_PERIOD_S: Param = Param {
    name: "cap_period_s",
    ty: Type::Real { min: 0.0, max: 1e12, min_allowed: false, unlimited: false },
    unit: "s",
    default: Default::Real(3000.0),
    doc: "How long each cap of the schedule holds (Zhang et al. 2014: 3000 s).",
};

/// Parameter: jobs that no cap of the schedule admits.
pub(super) const OVER_CAP_JOBS: Param = Param::one_of(
    "over_cap_jobs",
    &["error", "drop"],
    "A job that exceeds every cap of the schedule even alone on the machine, at the gear of least power at which \
     `power_cap` lets it run: the task fails, or the job is dropped and counted in `dropped_over_cap_count`. Gears that \
     `gear_rule` chooses during the run are not known before: with `power-precedence` and `bsld`, a job whose chosen gear no \
     cap admits fails the task in both cases.",
);

/// Common part of the components of power caps. A rule with more parameters repeats the six.
pub(super) const CAP: Component = Component {
    role: Role::Cap,
    params: &[CAP_SCHEDULE_W, CAP_SCHEDULE_SHARE, CAP_SIGNAL, CAP_SIGNAL_SHARE, CAP_PERIOD_S, OVER_CAP_JOBS],
    problems,
    ..Component::BATCH
};

/// The least power at which a rule lets a job run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeastGear {
    /// The power of its lowest gear has to fit.
    Lowest,
    /// The power of the gear rule's choice has to fit.
    OfGearRule,
    /// The job runs even if no power fits.
    Any,
}

impl LeastGear {
    /// The gear in words for an error.
    pub(super) fn words(self) -> &'static str {
        match self {
            LeastGear::OfGearRule => "the gear of `gear_rule`",
            LeastGear::Lowest | LeastGear::Any => "the lowest gear",
        }
    }
}

fn problems(spec: &SimSpec) -> Vec<String> {
    let choice = spec.choice(Role::Cap);
    let given: Vec<&str> = [CAP_SCHEDULE_W, CAP_SCHEDULE_SHARE, CAP_SIGNAL, CAP_SIGNAL_SHARE]
        .iter()
        .map(|param| param.name)
        .filter(|name| choice.get(name).is_some())
        .collect();
    match given[..] {
        [] => vec![format!(
            "`power_cap` \"{}\" needs its caps: `cap_schedule_w` in watts, `cap_schedule_share` as shares of the machine's \
             peak power, or a signal in `cap_signal` or `cap_signal_share`",
            choice.component().name
        )],
        [name] => {
            let zero = choice.opt_reals(name).is_some_and(|caps| caps.contains(&0.0));
            zero.then(|| format!("`{name}` must be above 0, not 0")).into_iter().collect()
        }
        [first, second, ..] => vec![format!("`{first}` and `{second}` both state the caps: give one of them")],
    }
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

    /// The gear of least power at which the rule starts or resumes a job within the cap. By default the lowest one, if
    /// starts keep to a limit at all.
    fn least_gear(&self) -> LeastGear {
        if self.allowance(0.0).limit_w == f64::INFINITY { LeastGear::Any } else { LeastGear::Lowest }
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
