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
    /// Begin of the forecast that `below_s` is of (s).
    present_s: f64,
    /// By interval, as far as it was read: time before its begin in which values are below the present one (s).
    below_s: Vec<f64>,
    /// Buffer: the intervals with values below all before them.
    falls: Vec<usize>,
}

impl DeferralRule for WaitAwhile {
    fn of(choice: &Choice) -> Option<WaitAwhile> {
        let (below_s, falls) = (Vec::new(), Vec::new());
        Some(WaitAwhile { of_run: of_run(choice), present_s: f64::NAN, below_s, falls })
    }

    fn decide(&mut self, ask: &Ask, forecast: &mut Forecast) -> Verdict {
        if self.executes(ask, forecast) {
            return Verdict::Now;
        }
        // A job needs an interval unless the intervals of lower values suffice. So the first needed interval has a value below
        // all values before it, and all later intervals with such a value are needed, too.
        let length_s = ask.length_s(self.of_run);
        let (begins_s, values) = (forecast.begins_s(), forecast.values());
        let (last, last_s) = last_of(ask.latest_s + length_s, forecast);
        let mut least = values[0];
        self.falls.clear();
        for (at, &value) in values.iter().enumerate().take(last + usize::from(last_s > 0.0)) {
            if value < least {
                self.falls.push(at);
                least = value;
            }
        }
        let suffice = |at: &usize| {
            let time_s = |below: usize| if below == last { last_s } else { begins_s[below + 1] - begins_s[below] };
            let below = (1..=last).map(|below| if values[below] < values[*at] { time_s(below) } else { 0.0 });
            below.sum::<f64>() >= length_s
        };
        let first = self.falls.get(self.falls.partition_point(suffice));
        first.map_or(Verdict::Now, |at| Verdict::At(begins_s[*at]))
    }

    fn executes(&mut self, ask: &Ask, forecast: &mut Forecast) -> bool {
        let length_s = ask.length_s(self.of_run);
        let end_s = ask.latest_s + length_s;
        forecast.reach(end_s);
        if self.present_s != forecast.present_s() {
            self.present_s = forecast.present_s();
            self.below_s.clear();
            self.below_s.push(0.0);
        }
        let (last, last_s) = last_of(end_s, forecast);
        let (begins_s, values) = (forecast.begins_s(), forecast.values());
        let is_below = |at: usize| values[at] < values[0];
        for at in self.below_s.len() - 1..last {
            let time_s = if is_below(at) { begins_s[at + 1] - begins_s[at] } else { 0.0 };
            self.below_s.push(self.below_s[at] + time_s);
        }
        self.below_s[last] + if is_below(last) { last_s } else { 0.0 } < length_s
    }
}

/// The interval of the forecast that holds an instant, or its last one, and the part of it before the instant (s).
fn last_of(end_s: f64, forecast: &Forecast) -> (usize, f64) {
    let last = forecast.interval_of(end_s);
    (last, forecast.end_of(last).min(end_s) - forecast.begins_s()[last])
}
