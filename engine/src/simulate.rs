//! The simulation of a spec of either model.
use crate::batch;
use crate::components::SERIES;
use crate::details::{Details, Measured};
use crate::error::SimError;
use crate::limits::Limits;
use crate::queues;
use crate::series::SeriesPoint;
use crate::spec::{Model, SimSpec};
use crate::workload::Workload;

/// Runs one simulation to its end.
///
/// `details`: optional tables to fill.
///
/// # Errors
/// [`SimError`] says which errors are final and which may be tried again.
pub fn simulate(
    spec: &SimSpec,
    workload: &Workload,
    limits: &Limits<'_>,
    details: &mut Details,
) -> Result<Measured, SimError> {
    details.clear();
    if let Some(problem) = spec.problems().first() {
        return Err(SimError::Invalid(problem.clone()));
    }
    let measured = match spec.model() {
        Model::Queues => queues::simulate(spec, limits, details).map(|summary| Measured::Queues(Box::new(summary))),
        Model::Batch => {
            batch::simulate(spec, workload, limits, details).map(|summary| Measured::Jobs(Box::new(summary)))
        }
    };
    let is_declared = |point: &SeriesPoint| SERIES.iter().any(|series| series.name == point.series);
    debug_assert!(
        details.series.iter().flatten().all(is_declared),
        "a component records a series that is not declared in `components::SERIES`"
    );
    measured
}
