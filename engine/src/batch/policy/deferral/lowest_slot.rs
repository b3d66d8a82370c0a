//! Lowest slot: a job starts in the interval with the least value.
use super::forecast::Forecast;
use super::rule::{Ask, DEFERRAL, DeferralRule, Lows, TIE, Verdict};
use crate::spec::{Choice, Component};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    name: "lowest-slot",
    version: 2,
    source: "Hanafy et al. 2024 (GAIA), Lowest Carbon Slot",
    doc: "A job is released at the begin of the interval of the signal with the least value within its longest deferral, \
          at the first of several.",
    reads: "The present value of the signal and its forecast. No fact of the job but its submission.",
    guarantees: "A job enters the queue `defer_wait_max_s` after its submission at the latest. With \
                 `defer_forecast` = \"oracle\", no interval up to then has a lesser value. The queue may delay \
                 the start to a worse one.",
    ..DEFERRAL
};

/// The rule `lowest-slot`.
#[derive(Debug, Clone)]
pub(super) struct LowestSlot {
    lows: Lows,
}

impl DeferralRule for LowestSlot {
    fn of(_: &Choice) -> Option<LowestSlot> {
        Some(LowestSlot { lows: Lows::new(TIE) })
    }

    fn decide(&mut self, ask: &Ask, forecast: &mut Forecast) -> Verdict {
        forecast.reach(ask.latest_s);
        let count = forecast.interval_of(ask.latest_s) + 1;
        match self.lows.among(count, forecast) {
            [.., least] if *least > 0 => Verdict::At(forecast.begins_s()[*least]),
            _ => Verdict::Now,
        }
    }
}
