//! Lowest slot: a job starts in the interval with the least value.
use super::forecast::Forecast;
use super::rule::{Ask, DEFERRAL, DeferralRule, Verdict, best};
use crate::spec::{Choice, Component};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    name: "lowest-slot",
    version: 2,
    source: "Hanafy et al. 2024 (GAIA), Lowest Carbon Slot",
    doc: "A job is released at the begin of the interval of the signal with the least value within its longest deferral, \
          at the first of several.",
    ..DEFERRAL
};

/// The rule `lowest-slot`.
#[derive(Debug, Clone)]
pub(super) struct LowestSlot;

impl DeferralRule for LowestSlot {
    fn of(_: &Choice) -> Option<LowestSlot> {
        Some(LowestSlot)
    }

    fn decide(&mut self, ask: &Ask, forecast: &mut Forecast) -> Verdict {
        forecast.reach(ask.latest_s);
        let count = forecast.interval_of(ask.latest_s) + 1;
        best(forecast.begins_s(), &forecast.values()[..count])
    }
}
