//! Lowest window: the signal is least over the length of the job.
use super::forecast::Forecast;
use super::rule::{
    Ask, DEFER_FORECAST, DEFER_FORECAST_ERROR, DEFER_LENGTH, DEFER_SHARE, DEFER_SIGNAL, DEFER_WAIT_MAX_S, DEFERRAL,
    DeferralRule, Verdict, best, of_run,
};
use crate::spec::{Choice, Component};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    name: "lowest-window",
    version: 3,
    source: "Hanafy et al. 2024 (GAIA), Lowest Carbon Window",
    doc: "A job is released where the integral of the signal over its length is least, now or at a change of the signal \
          within its longest deferral, at the first of several.",
    reads: "The present value of the signal and its forecast, and the estimate of the job, or its run time (an \
            oracle) if `defer_length` = \"run\".",
    guarantees: "A job enters the queue `defer_wait_max_s` after its submission at the latest. With \
                 `defer_forecast` = \"oracle\", no window of the assumed length that begins now or at a later \
                 change of the signal up to then costs less. The queue may delay the start to a worse one.",
    params: &[DEFER_SIGNAL, DEFER_WAIT_MAX_S, DEFER_SHARE, DEFER_FORECAST, DEFER_FORECAST_ERROR, DEFER_LENGTH],
    ..DEFERRAL
};

/// The rule `lowest-window`.
#[derive(Debug, Clone)]
pub(super) struct LowestWindow {
    of_run: bool,
}

impl DeferralRule for LowestWindow {
    fn of(choice: &Choice) -> Option<LowestWindow> {
        Some(LowestWindow { of_run: of_run(choice) })
    }

    fn decide(&mut self, ask: &Ask, forecast: &mut Forecast) -> Verdict {
        let (begins_s, integrals) = forecast.windows(ask.now_s, ask.latest_s, ask.length_s(self.of_run));
        best(begins_s, integrals)
    }
}
