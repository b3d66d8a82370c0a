//! Statistics of queues: the metrics of a run, and its end.
mod batch_means;
pub mod horizon;
pub(super) mod measure;
pub mod steady_state;
pub(super) mod student;
pub(super) mod summary;
mod tally;

use super::kernel::arrivals::Arrivals;
use super::kernel::policy::QueuePolicy;
use super::kernel::servers::{ServerTable, Servers};
use super::kernel::simulation::Simulation;
use crate::details::Details;
use crate::error::SimError;
use crate::limits::Limits;
use crate::spec::{Role, SimSpec};
use measure::Measurement;
use summary::QueueSummary;

/// Runs a policy and measures it by the spec's statistics.
pub(super) fn measure<A: Arrivals, P: QueuePolicy>(
    spec: &SimSpec,
    table: ServerTable,
    arrivals: A,
    policy: P,
    measurement: &Measurement,
    limits: &Limits<'_>,
    details: &mut Details,
) -> Result<QueueSummary, SimError> {
    let simulation = Simulation::new(arrivals, policy, Servers::new(table)?);
    let statistics = spec.choice(Role::Statistics);
    match statistics.component().name {
        "horizon" => horizon::run(statistics, measurement, simulation, limits),
        _ => steady_state::run(statistics, measurement, simulation, limits, details),
    }
}
