//! Statistics of a run from empty to an instant.
use super::arrivals::Arrivals;
use super::measure::{Measurement, Start};
use super::policy::QueuePolicy;
use super::simulation::{Simulation, Until};
use super::summary::QueueSummary;
use super::tally::Tally;
use crate::registry::{Default, Entry, Param, Part, Slot, Type};
use crate::{Limits, SimError};

/// Registry entry of the statistics.
pub const ENTRY: Entry = Entry {
    slot: Slot::Statistics,
    name: "horizon",
    version: 1,
    source: "Al-Daoud, Al-Azzoni & Down 2011, section 5",
    doc: "Means of a queueing run that starts empty and ends at an instant: of the tasks completed by then, with the energy \
          of the whole time. Replications are seeds.",
    params: &[Param {
        name: "horizon_s",
        ty: Type::Real { min: 0.0, max: 1e12, min_allowed: false, unlimited: false },
        unit: "s",
        default: Default::Real(20_000.0),
        identity: true,
        doc: "Simulated time, in the unit of the rates.",
    }],
};

/// Runs to the horizon.
///
/// # Errors
/// Those of the run; [`SimError::Empty`] if no task completed.
pub(super) fn run<A: Arrivals, P: QueuePolicy>(
    statistics: &Part,
    measurement: &Measurement,
    mut simulation: Simulation<A, P>,
    limits: &Limits<'_>,
) -> Result<QueueSummary, SimError> {
    let horizon_s = statistics.real("horizon_s");
    let start = Start::of(&mut simulation);
    let mut tally = Tally::new(simulation.servers().table().classes, None);
    simulation.run(Until::horizon(horizon_s), limits, &mut tally)?;
    if tally.total().completed == 0 {
        return Err(SimError::Empty(format!("no task was completed by {horizon_s} s")));
    }
    Ok(measurement.summarize(&start, &mut simulation, &tally))
}
