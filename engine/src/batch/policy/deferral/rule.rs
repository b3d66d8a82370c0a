//! The trait of deferral rules, and their common parameters.
use super::forecast::Forecast;
use crate::batch::platform::pools;
use crate::batch::policy::cap::acting::acting;
use crate::spec::{Choice, Component, Default, Param, Role, SimSpec, Type, Value};

/// Parameter: the signal.
pub(super) const DEFER_SIGNAL: Param = Param {
    name: "defer_signal",
    ty: Type::Signal { quantities: &["carbon", "price"] },
    unit: "",
    default: Default::Required,
    doc: "Label of the signal of [signals] that jobs wait for: low values are better.",
};

/// Parameter: the longest deferral.
pub(super) const DEFER_WAIT_MAX_S: Param = Param::positive(
    "defer_wait_max_s",
    1e12,
    "s",
    Default::Real(86_400.0),
    "Longest time from a job's submission to its release to the queue.",
);

/// Parameter: the share of deferrable jobs.
pub(super) const DEFER_SHARE: Param = Param {
    name: "defer_share",
    ty: Type::Real { min: 0.0, max: 1.0, min_allowed: true, unlimited: false },
    unit: "",
    default: Default::Real(1.0),
    doc: "Share of the jobs that may be deferred, drawn for each job by the seed; the others enter the queue at once.",
};

/// Parameter: the knowledge of the future.
pub(super) const DEFER_FORECAST: Param = Param::one_of(
    "defer_forecast",
    &["oracle", "persistence", "noise"],
    "Knowledge of the signal's future: its true values; its values of the same time of the day before; or its true values \
     times 1 + an autoregressive error that grows with the lead time (`defer_forecast_error`).",
);

/// Parameter: the error of forecasts.
pub(super) const DEFER_FORECAST_ERROR: Param = Param {
    name: "defer_forecast_error",
    ty: Type::Real { min: 0.0, max: 10.0, min_allowed: true, unlimited: false },
    unit: "",
    default: Default::Real(0.11),
    doc: "Mean absolute error of the forecast \"noise\" four days ahead, relative to the value (the published error of \
          Great Britain's carbon intensity is about 0.11).",
};

/// Parameter: the length of a job.
pub(super) const DEFER_LENGTH: Param = Param::one_of(
    "defer_length",
    &["estimate", "run"],
    "Length of the job that the rule assumes: its estimate, or its true run time (an oracle), both at the top gear.",
);

/// Common part of the components. A rule with more parameters repeats the five.
pub(super) const DEFERRAL: Component = Component {
    role: Role::Deferral,
    params: &[DEFER_SIGNAL, DEFER_WAIT_MAX_S, DEFER_SHARE, DEFER_FORECAST, DEFER_FORECAST_ERROR],
    ..Component::BATCH
};

/// A job that may be deferred.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    pub(super) now_s: f64,
    /// The latest release (s).
    pub(super) latest_s: f64,
    pub(super) estimate_s: f64,
    pub(super) run_s: f64,
}

impl Ask {
    /// The assumed length of the job, by [`DEFER_LENGTH`] (s); at least 1 s.
    pub(super) fn length_s(&self, of_run: bool) -> f64 {
        if of_run { self.run_s.max(1.0) } else { self.estimate_s.max(1.0) }
    }
}

/// Whether a choice assumes true run times; a rule without [`DEFER_LENGTH`] assumes estimates.
pub(super) fn of_run(choice: &Choice) -> bool {
    choice.get(DEFER_LENGTH.name) == Some(&Value::Text("run".to_owned()))
}

/// Combinations that a rule refuses if it suspends running jobs.
pub(super) fn problems_of_suspension(spec: &SimSpec) -> Vec<String> {
    let name = |role: Role| spec.choice(role).component().name;
    let rule = name(Role::Deferral);
    let mut problems = Vec::new();
    if let Some(cap) = acting(spec) {
        let why = if cap == "admission" {
            "gives their watts to other jobs, so that the power would exceed the cap at their resumption"
        } else {
            "changes their gears or suspends them, too: only one of them can decide about running jobs"
        };
        problems.push(format!("`deferral` \"{rule}\" suspends running jobs, and `power_cap` \"{cap}\" {why}"));
    }
    if let Some(limit) = pools::limit_of(spec) {
        problems.push(format!(
            "`deferral` \"{rule}\" suspends running jobs, which cannot be combined with `{limit}`: choose a deferral that does not"
        ));
    }
    if name(Role::Capacity) == "ols" {
        problems.push(format!(
            "`deferral` \"{rule}\" suspends running jobs, and `capacity_rule` \"ols\" simulates the future without a signal, in \
             which suspended jobs would never resume"
        ));
    }
    problems
}

/// Number of groups of jobs that are released together.
pub(super) const GROUPS: usize = 2;

/// The decision about a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    /// It enters the queue.
    Now,
    /// It enters the queue at this instant (s).
    At(f64),
    /// It waits in a group, below [`GROUPS`], until the rule opens the group.
    With(usize),
}

/// A rule for the release of jobs.
pub(super) trait DeferralRule: Clone {
    /// The rule of a choice.
    fn of(choice: &Choice) -> Option<Self>;

    /// Decides about a job, before its latest release, by the forecast of the present interval.
    fn decide(&mut self, ask: &Ask, forecast: &mut Forecast) -> Verdict;

    /// Whether the jobs of a group are released, at a change of the signal.
    fn opens(&mut self, _group: usize, _now_s: f64, _forecast: &mut Forecast) -> bool {
        true
    }

    /// Whether a job that has started executes in the present interval; otherwise it is suspended. `ask` has the rest of
    /// the job's length, and the instant at which this rest must begin as the latest release.
    fn executes(&mut self, _ask: &Ask, _forecast: &mut Forecast) -> bool {
        true
    }
}

/// Relative difference up to which two costs are equal: sums of the same values in another order differ by less, because
/// [`Forecast::windows`] sums exactly.
pub(super) const TIE: f64 = 1e-11;

/// Values from this one on are no better than a value, if values that differ by `tie` are equal.
#[inline]
fn bound(value: f64, tie: f64) -> f64 {
    value - tie * value.abs()
}

/// The intervals of a forecast whose values are better than all before them, the present interval first. Jobs of one forecast
/// share them.
#[derive(Debug, Clone)]
pub(super) struct Lows {
    tie: f64,
    /// Begin of the forecast (s).
    present_s: f64,
    found: Vec<usize>,
    /// Number of intervals that were read.
    read: usize,
    /// The next one is below this value.
    bound: f64,
}

impl Lows {
    /// `tie`: relative difference up to which two values are equal.
    pub(super) fn new(tie: f64) -> Lows {
        Lows { tie, present_s: f64::NAN, found: Vec::new(), read: 0, bound: f64::INFINITY }
    }

    /// Those among a number of intervals that were reached; at least one.
    #[inline]
    pub(super) fn among(&mut self, count: usize, forecast: &Forecast) -> &[usize] {
        if self.present_s != forecast.present_s() {
            self.found.clear();
            (self.present_s, self.read, self.bound) = (forecast.present_s(), 0, f64::INFINITY);
        }
        if self.read < count {
            self.read_on(&forecast.values()[..count]);
        }
        let behind = self.found.iter().rev().take_while(|at| **at >= count).count();
        &self.found[..self.found.len() - behind]
    }

    fn read_on(&mut self, values: &[f64]) {
        for (at, &value) in values.iter().enumerate().skip(self.read) {
            if value < self.bound {
                self.found.push(at);
                self.bound = bound(value, self.tie);
            }
        }
        self.read = values.len();
    }
}

/// The best of the possible releases, the first of equal ones.
///
/// `costs`: of the release now, and at the begin of each later interval; none if nothing is known.
pub(super) fn best(begins_s: &[f64], costs: &[f64]) -> Verdict {
    let Some((now, later)) = costs.split_first() else { return Verdict::Now };
    let (mut bound_of_best, mut best) = (bound(*now, TIE), Verdict::Now);
    for (cost, begin_s) in later.iter().zip(&begins_s[1..]) {
        if *cost < bound_of_best {
            (bound_of_best, best) = (bound(*cost, TIE), Verdict::At(*begin_s));
        }
    }
    best
}
