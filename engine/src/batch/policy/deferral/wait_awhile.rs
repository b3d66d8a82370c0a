//! Wait awhile: a job executes in the intervals of least value, and is suspended between them.
use super::forecast::Forecast;
use super::rule::{
    Ask, DEFER_FORECAST, DEFER_FORECAST_ERROR, DEFER_LENGTH, DEFER_SHARE, DEFER_SIGNAL, DEFER_WAIT_MAX_S, DEFERRAL,
    DeferralRule, Verdict, of_run, problems_of_suspension,
};
use crate::spec::{Choice, Component};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    name: "wait-awhile",
    version: 2,
    source: "Wiesner et al. 2021; Hanafy et al. 2024 (GAIA), Wait Awhile",
    doc: "A job executes in those intervals of the signal that have the least values and suffice for its length, the \
          first of equal ones, up to the instant at which it would end after its longest deferral. It is released at the \
          first of them. Once it has started, it is suspended at the begin of an interval that is not among them, by the \
          forecast of that interval and for the rest of its length. Suspended jobs keep their procs, which draw idle power.",
    reads: "The present value of the signal and its forecast, and the estimate of the job, or its run time (an \
            oracle) if `defer_length` = \"run\".",
    guarantees: "A job enters the queue `defer_wait_max_s` after its submission at the latest. A suspended job \
                 resumes early enough to end `defer_wait_max_s` and its assumed length after its submission, if \
                 it is not longer than assumed and started early enough.",
    params: &[DEFER_SIGNAL, DEFER_WAIT_MAX_S, DEFER_SHARE, DEFER_FORECAST, DEFER_FORECAST_ERROR, DEFER_LENGTH],
    problems: problems_of_suspension,
    ..DEFERRAL
};

/// The rule `wait-awhile`.
#[derive(Debug, Clone)]
pub(super) struct WaitAwhile {
    of_run: bool,
    /// Buffer of the intervals of a decision: value, begin (s), length (s).
    intervals: Vec<(f64, f64, f64)>,
}

impl DeferralRule for WaitAwhile {
    fn of(choice: &Choice) -> Option<WaitAwhile> {
        Some(WaitAwhile { of_run: of_run(choice), intervals: Vec::new() })
    }

    fn decide(&mut self, ask: &Ask, forecast: &mut Forecast) -> Verdict {
        let length_s = ask.length_s(self.of_run);
        self.intervals.clear();
        self.intervals.extend(intervals(ask, length_s, forecast));
        // A stable sort: of equal values, the earlier interval is first.
        self.intervals.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut first_s, mut sum_s) = (f64::INFINITY, 0.0);
        for &(_, begin_s, interval_s) in &self.intervals {
            if sum_s >= length_s {
                break;
            }
            first_s = first_s.min(begin_s);
            sum_s += interval_s;
        }
        if first_s > ask.now_s && first_s.is_finite() { Verdict::At(first_s) } else { Verdict::Now }
    }

    fn executes(&mut self, ask: &Ask, forecast: &mut Forecast) -> bool {
        let length_s = ask.length_s(self.of_run);
        let present = forecast.values()[0];
        let mut better_s = 0.0;
        for (value, _, interval_s) in intervals(ask, length_s, forecast) {
            better_s += if value < present { interval_s } else { 0.0 };
            if better_s >= length_s {
                return false;
            }
        }
        true
    }
}

/// The known intervals from now to the latest end of a job of a length: value, begin (s), length (s).
fn intervals<'f>(
    ask: &Ask,
    length_s: f64,
    forecast: &'f mut Forecast,
) -> impl Iterator<Item = (f64, f64, f64)> + use<'f> {
    let (now_s, end_s) = (ask.now_s, ask.latest_s + length_s);
    forecast.reach(end_s);
    let forecast = &*forecast;
    forecast.begins_s().iter().zip(forecast.values()).enumerate().map_while(move |(at, (begin_s, value))| {
        let begin_s = begin_s.max(now_s);
        let until_s = forecast.end_of(at).min(end_s);
        (begin_s < until_s).then_some((*value, begin_s, until_s - begin_s))
    })
}
