//! Arrivals with a daily cycle.
//!
//! The day has 48 half hours with weights of mean 1. Arrivals are a renewal process on a warped clock, which runs through
//! half hour i at the speed of its weight: the logarithm of the gap, in seconds of that clock, is gamma distributed. So
//! gaps are short in the busy hours and long at night, while their mean over a day is that of the gamma.
use super::gamma;
use crate::rng::Philox;

/// Slots of the daily cycle.
pub(super) const SLOTS: usize = 48;
/// Length of a slot (s).
pub(super) const SLOT_S: f64 = 1800.0;
/// Half hour of the day, from 1, at which the fitted cycle begins. It covers the half hours 11 ..= 58, where numbers above
/// 48 are the early hours of the day.
const CYCLE_BEGIN: usize = 11;
/// Greatest natural logarithm of a gap: exp(13) s = 5.1 days; a greater draw is repeated.
const LOG_GAP_MAX: f64 = 13.0;

/// The weight of each half hour of the day.
pub(super) type Weights = [f64; SLOTS];

/// An endless sequence of arrivals from midnight on.
#[derive(Debug, Clone)]
pub(super) struct Arrivals {
    gap: (f64, f64),
    weights: &'static Weights,
    stream: Philox,
    /// Half hours since the first midnight.
    slot: u64,
    /// Position in the slot on the warped clock: from 0 to the slot's weight.
    warped: f64,
}

impl Arrivals {
    /// `gap`: shape and scale of ln(gap in s).
    pub(super) fn new(gap: (f64, f64), weights: &'static Weights, stream: Philox) -> Arrivals {
        Arrivals { gap, weights, stream, slot: 0, warped: 0.0 }
    }

    /// Instant of the next arrival: whole seconds since midnight, not before the previous arrival.
    pub(super) fn next_s(&mut self) -> f64 {
        let (shape, scale) = self.gap;
        let log = loop {
            let log = self.stream.gamma(shape, scale);
            if log <= LOG_GAP_MAX {
                break log;
            }
        };
        self.warped += libm::exp(log) / SLOT_S;
        let mut weight = self.weight();
        while self.warped > weight {
            self.warped -= weight;
            self.slot += 1;
            weight = self.weight();
        }
        libm::floor(SLOT_S * (self.slot as f64 + self.warped / weight))
    }

    fn weight(&self) -> f64 {
        self.weights[(self.slot % SLOTS as u64) as usize]
    }
}

/// The weight of each half hour of the day, with mean 1: the gamma's probability of [i - 1/2, i + 1/2] for half hour i, from
/// [`CYCLE_BEGIN`] on.
pub(super) fn weights((shape, scale): (f64, f64)) -> Weights {
    let mut weights = [0.0; SLOTS];
    for i in CYCLE_BEGIN..CYCLE_BEGIN + SLOTS {
        let at = i as f64;
        weights[(i - 1) % SLOTS] = gamma::cdf(at + 0.5, shape, scale) - gamma::cdf(at - 0.5, shape, scale);
    }
    let mean = weights.iter().sum::<f64>() / SLOTS as f64;
    weights.map(|w| w / mean)
}
