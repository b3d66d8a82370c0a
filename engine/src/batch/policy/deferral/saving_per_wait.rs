//! Carbon saving per waiting time: a short wait for a small saving may be better than a long one for a great saving.
use super::forecast::Forecast;
use super::rule::{
    Ask, DEFER_FORECAST, DEFER_FORECAST_ERROR, DEFER_LENGTH, DEFER_SHARE, DEFER_SIGNAL, DEFER_WAIT_MAX_S, DEFERRAL,
    DeferralRule, TIE, Verdict, best_window, of_run,
};
use crate::spec::{Choice, Component};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    name: "saving-per-wait",
    version: 2,
    source: "Hanafy et al. 2024 (GAIA), Carbon Saving per waiting Time",
    doc: "A job is released where (C(now) - C(start)) / (start - now + length) is greatest, with C the integral of the \
          signal over the job's length from an instant, now or at a change of the signal within its longest deferral, at \
          the first of several.",
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
        let mut at_once = None;
        best_window(ask, length_s, forecast, |at_s, later| {
            let at_once = *at_once.get_or_insert(later);
            // The least of the negative savings is the greatest saving.
            let saved = if at_once - later > TIE * at_once.abs() { at_once - later } else { 0.0 };
            -saved / (at_s - now_s + length_s)
        })
    }
}
