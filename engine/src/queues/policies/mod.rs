//! Policies of queues.
pub mod buffered;
pub mod classes;
mod unfit;

use super::statistics::summary::QueueSummary;
use crate::details::Details;
use crate::error::SimError;
use crate::limits::Limits;
use crate::spec::{Role, SimSpec};

/// Simulates a spec of queues that has no problems.
///
/// # Errors
/// See [`SimError`].
pub(crate) fn simulate(spec: &SimSpec, limits: &Limits<'_>, details: &mut Details) -> Result<QueueSummary, SimError> {
    if *spec.choice(Role::Policy).component() == buffered::COMPONENT {
        buffered::simulate(spec, limits, details)
    } else {
        classes::model::simulate(spec, limits, details)
    }
}
