//! Which caps act on a schedule, for rules that cannot be combined with them.
use crate::spec::{Role, SimSpec};

/// The name of the cap whose violation is only measured.
pub(super) const MEASURED: &str = "performance-precedence";

/// The name of the chosen cap, if it limits starts or changes running jobs.
pub(crate) fn acting(spec: &SimSpec) -> Option<&'static str> {
    let name = spec.choice(Role::Cap).component().name;
    (name != "none" && name != MEASURED).then_some(name)
}
