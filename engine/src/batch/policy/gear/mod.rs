//! The gear (processor frequency) at which a job starts.
//!
//! A gear rule is a file with its description and a [`Gears`]; the list below registers it.
pub mod bsld;
mod rule;
pub mod top;

use crate::batch::platform::Machine;
use crate::batch::rules::rules;
use crate::spec::{Role, SimSpec};

pub(crate) use rule::{Candidate, Gears, HeadGear, RESERVATION_INCLUSIVE};

rules! { $
    /// The chosen gear rule.
    pub(super) enum GearRule {
        top: Top,
        bsld: Bsld,
    }
}

/// `each_gear_rule!(rule, gears => EXPRESSION)` evaluates an expression with the chosen rule, by code compiled for its type.
pub(super) use each as each_gear_rule;

impl GearRule {
    /// The rule of a spec on a machine; `None` if this folder does not have it.
    pub(super) fn of(spec: &SimSpec, machine: &Machine) -> Option<GearRule> {
        chosen!(spec.choice(Role::GearRule).component(), (spec, machine))
    }
}
