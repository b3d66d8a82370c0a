//! Quantile threshold: a job is released while the signal is among the low values of the coming time.
use super::forecast::Forecast;
use super::rule::{
    Ask, DEFER_FORECAST, DEFER_FORECAST_ERROR, DEFER_SHARE, DEFER_SIGNAL, DEFER_WAIT_MAX_S, DEFERRAL, DeferralRule,
    Verdict, problems_of_suspension,
};
use crate::spec::{Choice, Component, Default, Param, Role, Type};

/// A share of the coming time.
const fn share(name: &'static str, default: f64, doc: &'static str) -> Param {
    let ty = Type::Real { min: 0.0, max: 1.0, min_allowed: true, unlimited: false };
    Param { name, ty, unit: "", default: Default::Real(default), doc }
}

/// Parameter: the quantile of short jobs.
const SHORT: Param = share(
    "defer_quantile_short",
    0.2,
    "Quantile of the coming values up to which short jobs are released (OpenDC: 0.2).",
);
/// Parameter: the quantile of long jobs.
const LONG: Param = share(
    "defer_quantile_long",
    0.35,
    "Quantile of the coming values up to which other jobs are released (OpenDC: 0.35).",
);
/// Parameter: the border between the two.
const SHORT_S: Param = Param::positive(
    "defer_short_s",
    1e12,
    "s",
    Default::Real(7_200.0),
    "Jobs with a smaller estimate are short (OpenDC: two hours).",
);
/// Parameter: the horizon.
const HORIZON_S: Param = Param::positive(
    "defer_horizon_s",
    1e9,
    "s",
    Default::Real(86_400.0),
    "The coming time whose values are compared (OpenDC: 24 hours).",
);

/// Parameter: the quantile above which running jobs are suspended.
pub(super) const SUSPEND: Param = Param {
    name: "defer_quantile_suspend",
    ty: Type::Real { min: 0.0, max: 1.0, min_allowed: true, unlimited: false },
    unit: "",
    default: Default::Unset,
    doc: "Quantile of the coming values above which deferrable jobs that run are suspended (OpenDC's task stopper: 0.6). \
          They keep their procs, which draw idle power, and resume at the latest when they would otherwise end later than \
          `defer_wait_max_s` after their submission and their estimate. Without it, jobs that run are not suspended.",
};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    name: "quantile",
    version: 3,
    source: "OpenDC-STEAM 2026, time shifting",
    doc: "A job is released while the present value is at most a quantile of the forecast values from now to the horizon, \
          one value for each interval of the signal; else the rule looks again at the next change of the signal.",
    reads: "The present value of the signal and its forecast up to `defer_horizon_s`, and whether the estimate of \
            the job is below `defer_short_s`.",
    guarantees: "A job enters the queue `defer_wait_max_s` after its submission at the latest; the queue may \
                 delay the start to a worse instant. With `defer_quantile_suspend`, a suspended job resumes early \
                 enough to end `defer_wait_max_s` and its estimate after its submission, if it does not outlive \
                 its estimate and started early enough.",
    params: &[
        DEFER_SIGNAL,
        DEFER_WAIT_MAX_S,
        DEFER_SHARE,
        DEFER_FORECAST,
        DEFER_FORECAST_ERROR,
        SHORT,
        LONG,
        SHORT_S,
        HORIZON_S,
        SUSPEND,
    ],
    problems: |spec| match spec.choice(Role::Deferral).get(SUSPEND.name) {
        Some(_) => problems_of_suspension(spec),
        None => Vec::new(),
    },
    ..DEFERRAL
};

/// The groups of jobs: the first two wait, the jobs of the third run.
const SHORT_JOBS: usize = 0;
const LONG_JOBS: usize = 1;
const RUNNING_JOBS: usize = 2;

/// The rule `quantile`.
#[derive(Debug, Clone)]
pub(super) struct Quantile {
    /// By group.
    shares: [f64; 3],
    short_s: f64,
    horizon_s: f64,
    /// Begin of the forecast that was read (s), number of values that were read, and of those below the present one.
    known: (f64, usize, usize),
}

impl DeferralRule for Quantile {
    fn of(choice: &Choice) -> Option<Quantile> {
        let real = |param: Param| choice.real(param.name);
        let shares = [real(SHORT), real(LONG), choice.opt_real(SUSPEND.name).unwrap_or(1.0)];
        Some(Quantile { shares, short_s: real(SHORT_S), horizon_s: real(HORIZON_S), known: (f64::NAN, 0, 0) })
    }

    fn decide(&mut self, ask: &Ask, forecast: &mut Forecast) -> Verdict {
        let group = if ask.estimate_s < self.short_s { SHORT_JOBS } else { LONG_JOBS };
        if self.opens(group, ask.now_s, forecast) { Verdict::Now } else { Verdict::With(group) }
    }

    fn opens(&mut self, group: usize, now_s: f64, forecast: &mut Forecast) -> bool {
        let end_s = now_s + self.horizon_s;
        forecast.reach(end_s);
        let count = forecast.begins_s().partition_point(|begin_s| *begin_s < end_s).max(1);
        let (mut read, mut below) = (self.known.1, self.known.2);
        if self.known.0 != forecast.present_s() || read > count {
            (read, below) = (0, 0);
        }
        let (values, present) = (forecast.values(), forecast.values()[0]);
        below += values[read..count].iter().filter(|value| **value < present).count();
        self.known = (forecast.present_s(), count, below);
        // The present value is at most the value of a rank if no more values are below it.
        let rank = (count as f64 * self.shares[group]).floor() as usize;
        below <= rank.min(count - 1)
    }

    fn executes(&mut self, ask: &Ask, forecast: &mut Forecast) -> bool {
        self.opens(RUNNING_JOBS, ask.now_s, forecast)
    }
}
