//! The gear (processor frequency) at which a job starts.
//!
//! A gear rule is a file with its description and a [`Gears`]; the list below registers it.
pub mod bsld;
mod rule;
pub mod top;

use crate::batch::platform::Machine;
use crate::batch::policy::rules::rules;
use crate::spec::{Role, SimSpec};

pub(crate) use rule::{Candidate, Gears, HeadGear};

rules! { $
    /// The chosen gear rule.
    pub(super) enum GearRule {
        top: Top,
        bsld: Bsld,
    }
}

/// A function with a gear rule of any type.
pub(super) trait UnderGears {
    /// Its result.
    type Output;

    /// Calls the function.
    fn run<G: Gears>(self, gears: &G) -> Self::Output;
}

impl GearRule {
    /// The rule of a spec on a machine; `None` if this folder does not have it.
    pub(super) fn of(spec: &SimSpec, machine: &Machine) -> Option<GearRule> {
        chosen!(spec.choice(Role::GearRule).component(), (spec, machine))
    }

    /// Calls a function with the rule, by code compiled for it.
    #[inline(always)]
    pub(super) fn under<U: UnderGears>(&self, user: U) -> U::Output {
        each!(self, gears => user.run(gears))
    }
}
