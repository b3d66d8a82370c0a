//! Carbon saving per waiting time: a short wait for a small saving may be better than a long one for a great saving.
use super::forecast::Forecast;
use super::rule::{
    Ask, DEFER_FORECAST, DEFER_FORECAST_ERROR, DEFER_LENGTH, DEFER_SHARE, DEFER_SIGNAL, DEFER_WAIT_MAX_S, DEFERRAL,
    DeferralRule, TIE, Verdict, best, of_run,
};
use crate::spec::{Choice, Component};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    name: "saving-per-wait",
    version: 3,
    source: "Hanafy et al. 2024 (GAIA), Carbon Saving per waiting Time",
    doc: "A job is released where (C(now) - C(start)) / (start - now + length) is greatest, with C the integral of the \
          signal over the job's length from an instant, now or at a change of the signal within its longest deferral, at \
          the first of several.",
    reads: "The present value of the signal and its forecast, and the estimate of the job, or its run time (an \
            oracle) if `defer_length` = \"run\".",
    guarantees: "A job enters the queue `defer_wait_max_s` after its submission at the latest, and waits only \
                 where the forecast promises a saving. The queue may delay the start to a worse instant.",
    params: &[DEFER_SIGNAL, DEFER_WAIT_MAX_S, DEFER_SHARE, DEFER_FORECAST, DEFER_FORECAST_ERROR, DEFER_LENGTH],
    ..DEFERRAL
};

/// The rule `saving-per-wait`.
#[derive(Debug, Clone)]
pub(super) struct SavingPerWait {
    of_run: bool,
}

impl DeferralRule for SavingPerWait {
    fn of(choice: &Choice) -> Option<SavingPerWait> {
        Some(SavingPerWait { of_run: of_run(choice) })
    }

    fn decide(&mut self, ask: &Ask, forecast: &mut Forecast) -> Verdict {
        let (now_s, length_s) = (ask.now_s, ask.length_s(self.of_run));
        let (begins_s, costs) = forecast.windows(now_s, ask.latest_s, length_s);
        let Some((at_once, later)) = costs.split_first_mut() else { return Verdict::Now };
        for (cost, begin_s) in later.iter_mut().zip(&begins_s[1..]) {
            // The least of the negative savings is the greatest saving.
            let saved = if *at_once - *cost > TIE * at_once.abs() { *at_once - *cost } else { 0.0 };
            *cost = -saved / (begin_s - now_s + length_s);
        }
        *at_once = 0.0;
        best(begins_s, costs)
    }
}
