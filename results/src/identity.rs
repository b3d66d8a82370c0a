//! The farm's own columns: the keys of a row's task, and how an attempt ran.

use powersweep_engine::facts::{Datum, Fact, Kind};
use powersweep_experiments::TaskSpec;
use uuid::Uuid;

use crate::builder::Arrays;
use crate::columns::Column;

/// The task of a row, from the row's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowKey {
    /// Identity: the column `task_id`.
    pub task_id: Uuid,
    /// Index in the manifest that the task ran under: the column `task_index`; `None` if the row has no valid one.
    pub index: Option<u64>,
}

/// An instant: microseconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Micros(pub i64);

impl Fact for Micros {
    const KIND: Kind = Kind::Instant;
    fn datum(&self) -> Datum<'_> {
        Datum::Int(self.0)
    }
}

powersweep_engine::record! {
/// How one attempt at a task ran.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    /// Number of the attempt that gave this row, from 1.
    pub attempt: u32,
    /// Name of the worker.
    pub worker: String,
    /// Start of the attempt by the worker's clock.
    pub started_at: Micros,
    /// Wall time of the attempt on its slot, from lease to row.
    pub wall_ms: f64,
    /// Wall time of the simulation alone.
    pub engine_ms: f64,
    /// Wall time of reading, parsing and building the workload; 0 if another task had done it.
    pub parse_ms: f64,
}
}

/// Number of columns of [`keys`].
pub(crate) const KEYS: usize = 7;

/// The first columns of every table. They identify the task of a row; `task_id` joins the row with the task's row in
/// `tasks`.
pub(crate) fn keys() -> [Column; KEYS] {
    use Kind::{Int, Text};
    [
        Column::new("experiment", Text, "manifest", "Name of the experiment."),
        Column::new(
            "task_id",
            Text,
            "farm",
            "UUID (version 5) of the task's canonical spec: equal for equal simulations.",
        ),
        Column::new(
            "task_index",
            Int,
            "farm",
            "Index of the task in the sweep of the manifest of its file. Tables, figures and exports show the index in the \
             sweep of the newest manifest.",
        ),
        Column::new("workload", Text, "manifest", "Name of the manifest's workload block."),
        Column::new("platform", Text, "manifest", "Name of the manifest's platform block."),
        Column::new("policy", Text, "manifest", "Name of the manifest's policy block."),
        Column::new(
            "seed",
            Int,
            "manifest",
            "Seed of every random stream; seeds above 2^63 - 1 are stored as their two's complement.",
        ),
    ]
}

/// Pushes the values of [`keys`] for the next `n` rows, which belong to this task. Returns the position of the next
/// column.
pub(crate) fn push_keys(arrays: &mut Arrays, task: &TaskSpec, n: usize) -> usize {
    let mut buffer = Uuid::encode_buffer();
    let values = [
        Datum::Text(&task.experiment),
        Datum::Text(task.task_id.hyphenated().encode_lower(&mut buffer)),
        Datum::Int(i64::try_from(task.index).unwrap_or(i64::MAX)),
        Datum::Text(&task.workload),
        Datum::Text(&task.platform),
        Datum::Text(&task.policy),
        Datum::Int(task.sim.seed.cast_signed()),
    ];
    let next = values.len();
    let rows = arrays.rows()..arrays.rows() + n;
    for (position, value) in values.into_iter().enumerate() {
        arrays.push(position, value, &rows);
    }
    next
}
