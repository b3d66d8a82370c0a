//! The top gear.
use super::rule::{Candidate, Gears, RESERVATION_INCLUSIVE};
use crate::batch::platform::Machine;
use crate::spec::{Component, Role, SimSpec};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::GearRule,
    name: "top",
    version: 1,
    doc: "Every job runs at the top gear.",
    reads: "Nothing.",
    guarantees: "Jobs run at the top gear, unless a power cap lowers them.",
    params: &[RESERVATION_INCLUSIVE],
    ..Component::BATCH
};

/// The rule `top`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Top {
    gear: u8,
    reservation_inclusive: bool,
}

impl Top {
    pub(crate) fn new(machine: &Machine, reservation_inclusive: bool) -> Top {
        Top { gear: (machine.gears.len() - 1) as u8, reservation_inclusive }
    }
}

impl Gears for Top {
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Top> {
        Some(Top::new(machine, spec.choice(Role::GearRule).bool(RESERVATION_INCLUSIVE.name)))
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
    fn is_constant(&self) -> bool {
        true
    }

    #[inline]
    fn reservation_inclusive(&self) -> bool {
        self.reservation_inclusive
    }

    fn reserve(
        &self,
        job: Candidate,
        _: f64,
        _: usize,
        mut earliest: impl FnMut(u8, f64, f64) -> Option<f64>,
    ) -> Option<(u8, f64, f64)> {
        earliest(self.gear, job.estimate_s, f64::INFINITY).map(|start_s| (self.gear, start_s, job.estimate_s))
    }
}
