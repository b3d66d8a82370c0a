//! The top gear.
use super::{Candidate, Gears};
use crate::batch::platform::MachineClass;
use crate::spec::{Choice, Component, Role};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::GearRule,
    name: "top",
    version: 1,
    source: "",
    doc: "Every job runs at the top gear.",
    params: &[super::RESERVATION_INCLUSIVE],
};

/// The rule `top`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Top {
    gear: u8,
    reservation_inclusive: bool,
}

impl Gears for Top {
    fn of(choice: &Choice, class: &MachineClass) -> Top {
        let reservation_inclusive = choice.bool("reservation_inclusive");
        Top { gear: (class.gears.len() - 1) as u8, reservation_inclusive }
    }

    #[inline]
    fn at(&self, _: Candidate, _: f64, _: usize) -> u8 {
        self.gear
    }

    #[inline]
    fn overtaking(&self, job: Candidate, now_s: f64, _: usize, until_s: f64, on_extra: bool) -> Option<(u8, bool)> {
        let late = !self.in_time(now_s + job.estimate_s, until_s);
        (on_extra || !late).then_some((self.gear, late))
    }

    #[inline]
    fn reservation_inclusive(&self) -> bool {
        self.reservation_inclusive
    }

    fn reserve(
        &self,
        job: Candidate,
        _: usize,
        mut earliest: impl FnMut(u8, f64) -> Option<f64>,
    ) -> Option<(u8, f64, f64)> {
        earliest(self.gear, job.estimate_s).map(|start_s| (self.gear, start_s, job.estimate_s))
    }
}
