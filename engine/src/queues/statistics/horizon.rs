//! Statistics of a run that starts empty and ends at an instant.
use super::measure::{Measurement, Readings};
use super::summary::QueueSummary;
use super::tally::Tally;
use crate::error::SimError;
use crate::limits::Limits;
use crate::queues::kernel::arrivals::Arrivals;
use crate::queues::kernel::policy::QueuePolicy;
use crate::queues::kernel::simulation::{Simulation, Until};
use crate::spec::{Choice, Component, Default, Param, Role};

/// Description of the statistics.
pub const COMPONENT: Component = Component {
    role: Role::Statistics,
    name: "horizon",
    version: 1,
    source: "Al-Daoud, Al-Azzoni & Down 2011, section 5",
    doc: "Means of a run of queues that starts empty and ends at an instant: over the jobs completed by then, with the \
          energy of the whole time. Replications differ in their seeds.",
    params: &[Param::positive(
        "horizon_s",
        1e12,
        "s",
        Default::Real(20_000.0),
        "Simulated time, in the unit of the rates.",
    )],
    ..Component::QUEUES
};

/// Runs to the horizon.
///
/// # Errors
/// The errors of the run; [`SimError::Empty`] if no job completed.
pub(in crate::queues) fn run<A: Arrivals, P: QueuePolicy>(
    statistics: &Choice,
    measurement: &Measurement,
    mut simulation: Simulation<A, P>,
    limits: &Limits<'_>,
) -> Result<QueueSummary, SimError> {
    let horizon_s = statistics.real("horizon_s");
    let start = Readings::of(&mut simulation);
    let mut tally = Tally::new(simulation.servers().table().classes, None);
    simulation.run(Until::horizon(horizon_s), limits, &mut tally)?;
    if tally.total().completed == 0 {
        return Err(SimError::Empty(format!("no job was completed by {horizon_s} s")));
    }
    Ok(measurement.summarize(&start, &mut simulation, &tally))
}
