//! The dependence of the seeds of an experiment's rows.

use powersweep_engine::seeds::{self, Dependence};
use powersweep_results::Table;

use crate::reading::Reading;
use crate::rows::parameter;
use crate::scan::{self, ColumnScan, LABELS, Tasks};
use crate::{Cell, Datasets, Error, source};

/// The dependence of the seeds of an experiment's rows.
///
/// # Errors
/// The rows cannot be read.
pub async fn of_experiment(datasets: &Datasets, experiment: &str) -> Result<Dependence, Error> {
    let reading = datasets.read(experiment, Table::Tasks).await?;
    let tasks = Tasks::open(&reading, &scan::columns(seeds::READ.into_iter().chain(LABELS))).await?;
    let found = scan::search(&tasks.groups(), &seeds::READ.map(str::to_owned)).await?;
    of_rows(datasets, &reading, &found).await
}

/// The dependence of the seeds of rows of `tasks`. `found`: their columns, at least [`seeds::READ`].
///
/// # Errors
/// The rows cannot be read.
pub async fn of_rows(datasets: &Datasets, reading: &Reading, found: &[ColumnScan]) -> Result<Dependence, Error> {
    let dependence = of_columns(found);
    if !matches!(dependence, Dependence::Resampled(_)) {
        return Ok(dependence);
    }
    let rows = source::rows(datasets, reading, [&seeds::columns(), &[]], Vec::new()).await?.with_dependence();
    Ok(rows.dependence(0..rows.len()))
}

/// The dependence of the seeds of a row, by the cells of [`seeds::columns`].
pub fn of_cells(cells: &[Cell]) -> Dependence {
    let names = seeds::columns();
    seeds::dependence_by(|name| parameter(cells.get(names.iter().position(|known| *known == name)?)?))
}

/// The dependence by the first values of columns; alike only if no other value is there.
fn of_columns(found: &[ColumnScan]) -> Dependence {
    let of = |name: &str| found.iter().find(|column| column.name == name);
    let is_one = seeds::READ.iter().all(|name| of(name).is_some_and(|column| !column.varies()));
    match seeds::dependence_by(|name| parameter(of(name)?.value()?)) {
        Dependence::Alike if !is_one => Dependence::Independent,
        found => found,
    }
}
