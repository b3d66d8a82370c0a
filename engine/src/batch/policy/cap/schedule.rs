//! A cap that changes in time: a list of caps, each for one period; the list repeats.
use crate::spec::Choice;

/// The caps of a spec, from the first submit on.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    caps_w: Vec<f64>,
    period_s: f64,
    /// Number of periods that have passed.
    passed: u64,
}

impl Schedule {
    pub(super) fn new(choice: &Choice) -> Schedule {
        let caps_w = choice.reals("cap_schedule_w").to_vec();
        Schedule { caps_w, period_s: choice.real("cap_period_s"), passed: 0 }
    }

    /// The present cap, for ever.
    pub(super) fn fork(&self) -> Schedule {
        Schedule { caps_w: vec![self.cap_w()], passed: 0, ..*self }
    }

    /// The next period begins.
    pub(super) fn next(&mut self) {
        self.passed += 1;
    }

    /// The present cap (W).
    pub(super) fn cap_w(&self) -> f64 {
        self.caps_w[(self.passed % self.caps_w.len() as u64) as usize]
    }

    /// Number of caps in the list.
    pub(super) fn count(&self) -> usize {
        self.caps_w.len()
    }

    /// Begin of the next period (s), with that of the first one; `None` if the list has one cap.
    pub(super) fn next_s(&self, first_s: f64) -> Option<f64> {
        (self.caps_w.len() > 1).then(|| first_s + (self.passed + 1) as f64 * self.period_s)
    }
}
