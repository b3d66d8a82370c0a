//! Some rows of `tasks`, for people: chosen columns, or those that vary and the usual metrics.
//!
//! Only what is shown is read: the footers of the parts, the index of the row groups that may have the first rows, and
//! the shown columns of these rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};

use crate::frame::{MEASURE, RELATIVE, UNIT, unit_of};
use crate::order::{self, Order, Place};
use crate::reading::{ColumnStats, Reading};
use crate::scan::{self, RowGroup, Tasks};
use crate::{Cell, Error, Frame, Kind, OrKind};

/// Metrics of queueing models, with their headings.
const QUEUE_METRICS: &[(&str, &str)] = &[
    ("measured_jobs_count", "jobs"),
    ("wait_s_mean", "mean wait (s)"),
    ("turnaround_s_mean", "mean response (s)"),
    ("energy_per_job_j", "energy per job (J)"),
    ("energy_total_j", ENERGY),
];

/// The heading of energies.
const ENERGY: &str = "energy (J)";
/// The unit of energies of known powers.
const JOULES: &str = "J";

/// Metrics of batch simulations, with their headings.
const METRICS: &[(&str, &str)] = &[
    ("jobs_count", "jobs"),
    ("wait_s_mean", "mean wait (s)"),
    ("bsld_mean", "mean BSLD"),
    ("utilization_installed", "utilization"),
    ("reduced_count", "reduced jobs"),
    ("energy_total_j", ENERGY),
];

/// The columns that tell energies in joules from relative ones.
const POWER: [&str; 2] = ["power", "power_top_w"];
/// The column that tells queueing models from batch simulations.
pub const KIND: &str = "kind";

/// Rows that are read at once for a program.
const ROWS_AT_ONCE: usize = 1 << 16;

/// What is shown.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Names of columns; empty for the columns that vary, and the usual metrics.
    pub columns: Vec<String>,
    /// The rows and their order.
    pub order: Order,
    /// Rows that are left out before the first one.
    pub skip: usize,
    /// Maximum number of rows.
    pub rows: usize,
}

/// A table for people.
#[derive(Debug)]
pub struct Shown {
    /// Heading of each column of the rows.
    pub headings: Vec<String>,
    /// Number of first columns that are no metrics.
    pub axes: usize,
    /// The rows.
    pub rows: RecordBatch,
    /// The unit of energies ([`unit_of`]); empty where it is not known.
    pub energy: &'static str,
    /// Number of all rows that satisfy the conditions.
    pub count: usize,
    /// Number of the rows before the shown ones.
    pub skipped: usize,
}

/// The wanted rows; `None` if the experiment has no rows.
pub async fn shown(reading: &Reading, wanted: &Wanted) -> Result<Option<Shown>, Error> {
    let candidates = scan::candidates();
    let others = METRICS.iter().chain(QUEUE_METRICS).map(|(name, _)| *name).chain(POWER).chain([KIND]);
    let chosen = wanted.columns.iter().map(String::as_str);
    let needed: BTreeSet<&str> =
        candidates.iter().map(String::as_str).chain(others).chain(chosen).chain(wanted.order.needs()).collect();
    let tasks = Tasks::open(reading, &scan::columns(needed)).await?;
    let groups = tasks.groups();
    if groups.iter().all(|group| group.rows() == 0) {
        return Ok(None);
    }
    let first = order::first(&groups, &wanted.order, wanted.skip.saturating_add(wanted.rows)).await?;
    let places = first.places.get(wanted.skip..).unwrap_or_default();
    let skipped = wanted.skip.min(first.places.len());
    if !wanted.columns.is_empty() {
        let schema = scan::columns(wanted.columns.iter().map(String::as_str));
        let rows = order::rows_at(&groups, places, &schema).await?;
        let (headings, axes) = (wanted.columns.clone(), wanted.columns.len());
        let energy = unit_of_energies(&cells(&groups, places, &POWER).await?);
        return Ok(Some(Shown { headings, axes, rows, energy, count: first.count, skipped }));
    }
    let found = scan::search(&groups, &candidates).await?;
    let axes: Vec<&str> = found.iter().filter(|axis| axis.distinguishes()).map(|axis| axis.name.as_str()).collect();
    let metrics = if of_queues(&groups, places).await? { QUEUE_METRICS } else { METRICS };
    let energy = unit_of_energies(&cells(&groups, places, &POWER).await?);
    let names = axes.iter().copied().chain(metrics.iter().map(|(name, _)| *name));
    let rows = order::rows_at(&groups, places, &scan::columns(names)).await?;
    let of_metric = |(_, heading): &(&str, &str)| match *heading == ENERGY {
        true => format!("energy ({energy})"),
        false => (*heading).to_owned(),
    };
    let headings = axes.iter().map(|name| (*name).to_owned()).chain(metrics.iter().map(of_metric)).collect();
    Ok(Some(Shown { headings, axes: axes.len(), rows, energy, count: first.count, skipped }))
}

/// Calls `each` with the chosen columns of the wanted rows, some rows at a time, until it returns false. Returns the number of
/// rows after the wanted ones.
pub async fn each(
    reading: &Reading,
    wanted: &Wanted,
    mut each: impl FnMut(&RecordBatch) -> Result<bool, Error>,
) -> Result<usize, Error> {
    let schema = scan::columns(wanted.columns.iter().map(String::as_str));
    let needed: BTreeSet<&str> = wanted.columns.iter().map(String::as_str).chain(wanted.order.needs()).collect();
    let tasks = Tasks::open(reading, &scan::columns(needed)).await?;
    let groups = tasks.groups();
    let first = order::first(&groups, &wanted.order, wanted.skip.saturating_add(wanted.rows)).await?;
    for places in first.places.get(wanted.skip..).unwrap_or_default().chunks(ROWS_AT_ONCE) {
        if !each(&order::rows_at(&groups, places, &schema).await?)? {
            break;
        }
    }
    Ok(first.count - first.places.len())
}

/// The columns that [`usual_metrics`] and [`are_relative`] look at.
pub const LOOKED_AT: [&str; 3] = [KIND, POWER[0], POWER[1]];

/// Whether the energies of all rows are relative: the power of a busy proc is left at its default.
pub fn are_relative(groups: &[RowGroup<'_>]) -> bool {
    let is =
        |name: &str, value: Cell| groups.iter().all(|group| group.stats(name) == ColumnStats::Equal(value.clone()));
    is(POWER[0], Cell::Text("etinski".to_owned())) && is(POWER[1], Cell::Real(1.0))
}

/// The usual metrics of rows that are no counts.
pub fn usual_metrics(groups: &[RowGroup<'_>]) -> Vec<&'static str> {
    let all = if are_of_queues(groups) { QUEUE_METRICS } else { METRICS };
    all.iter().map(|(name, _)| *name).filter(|name| !name.ends_with("_count")).collect()
}

/// Whether the footers say that all rows are of queueing models.
pub fn are_of_queues(groups: &[RowGroup<'_>]) -> bool {
    let is_of_queues =
        |group: &RowGroup<'_>| matches!(group.stats(KIND), ColumnStats::Equal(Cell::Text(kind)) if kind != "batch");
    !groups.is_empty() && groups.iter().all(is_of_queues)
}

/// Whether these rows are all of queueing models.
async fn of_queues(groups: &[RowGroup<'_>], places: &[Place]) -> Result<bool, Error> {
    let kinds = cells(groups, places, &[KIND]).await?;
    let is_of_queues = |kind: &Vec<Cell>| matches!(&kind[0], Cell::Text(kind) if kind != "batch");
    Ok(!kinds.is_empty() && kinds.iter().all(is_of_queues))
}

impl Shown {
    /// The rows, with the headings as names of the columns. Measures have their tag and their unit, parameters have none.
    pub fn frame(&self) -> Result<Frame, Error> {
        let parameters: BTreeSet<String> = scan::candidates().into_iter().collect();
        let is_measure = |of: &Field| *of.data_type() == DataType::Float64 && !parameters.contains(of.name());
        let named = |(field, heading): (&FieldRef, &String)| match field.name() == heading {
            true if is_measure(field) => FieldRef::new(self.measure(field)),
            true => FieldRef::clone(field),
            // The heading has the unit.
            false => FieldRef::new(Field::new(heading, field.data_type().clone(), true)),
        };
        let fields: Vec<FieldRef> = self.rows.schema_ref().fields().iter().zip(&self.headings).map(named).collect();
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), self.rows.columns().to_vec());
        Ok(Frame::new(rows.or_kind(Kind::Failure)?, self.axes))
    }

    fn measure(&self, field: &Field) -> Field {
        let mut metadata = field.metadata().clone();
        metadata.insert(MEASURE.to_owned(), field.name().clone());
        if metadata.get(UNIT).is_some_and(|unit| unit_of(field.name(), unit, self.energy != JOULES) != unit) {
            metadata.insert(UNIT.to_owned(), self.energy.to_owned());
        }
        field.clone().with_metadata(metadata)
    }

    /// Number of rows after the shown ones.
    pub fn more(&self) -> usize {
        self.count - self.skipped - self.rows.num_rows()
    }
}

/// The unit of energies, from the shown rows' [`POWER`]: they are joules unless the power of a busy proc is left at its default.
fn unit_of_energies(found: &[Vec<Cell>]) -> &'static str {
    let is_relative = |row: &&Vec<Cell>| row[0] == Cell::Text("etinski".to_owned()) && row[1] == Cell::Real(1.0);
    match found.iter().filter(is_relative).count() {
        0 => JOULES,
        count if count == found.len() => RELATIVE,
        _ => "J or relative",
    }
}

/// These columns of these rows.
async fn cells(groups: &[RowGroup<'_>], places: &[Place], names: &[&str]) -> Result<Vec<Vec<Cell>>, Error> {
    let batch = order::rows_at(groups, places, &scan::columns(names.iter().copied())).await?;
    let row = |row: usize| batch.columns().iter().map(|column| Cell::of(column, row)).collect();
    Ok((0..batch.num_rows()).map(row).collect())
}
