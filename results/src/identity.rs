//! Columns that say which task, run where and when: the farm's own facts.

use powersweep_engine::KERNEL_VERSION;
use powersweep_engine::facts::Datum;
use powersweep_experiments::{Digest, TaskSpec};
use uuid::Uuid;

use crate::columns::{Column, ColumnType, Declared};

/// How one attempt at a task ran.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The worker's name.
    pub worker: String,
    /// Start of the attempt by the worker's clock (microseconds since 1970, UTC).
    pub started_at_us: i64,
    /// Wall time of the attempt on its slot, from lease to row (ms).
    pub wall_ms: f64,
    /// Wall time of the simulation alone (ms).
    pub engine_ms: f64,
    /// Wall time of reading, parsing and building the workload; 0 if another task had done it (ms).
    pub parse_ms: f64,
}

/// Shorthand of the declarations below.
pub(crate) fn declared<R>(
    name: &str,
    ty: ColumnType,
    unit: &'static str,
    source: &str,
    doc: &str,
    get: for<'a> fn(&'a R) -> Datum<'a>,
) -> Declared<R> {
    let column =
        Column { name: name.to_owned(), ty, unit, nullable: false, doc: doc.to_owned(), source: source.to_owned() };
    Declared { column, get }
}

/// Texts of one task that are made once and copied into its rows.
#[derive(Default)]
pub(crate) struct Texts {
    task_id: String,
    digest: Option<Digest>,
    digest_text: String,
}

impl Texts {
    /// Makes the texts that are this task's own.
    pub(crate) fn set(&mut self, task: &TaskSpec) {
        let mut buffer = Uuid::encode_buffer();
        self.task_id.clear();
        self.task_id.push_str(task.task_id.hyphenated().encode_lower(&mut buffer));
    }

    /// Makes the texts that neighbours share. The digest's is kept while the digest stays the same.
    pub(crate) fn set_shared(&mut self, task: &TaskSpec) {
        if self.digest != task.digest {
            self.digest = task.digest;
            self.digest_text = task.digest.map(|d| d.to_string()).unwrap_or_default();
        }
    }

    pub(crate) fn log_digest(&self) -> Datum<'_> {
        if self.digest.is_some() { Datum::Text(&self.digest_text) } else { Datum::Null }
    }
}

/// A column that all rows of a task share, with its getter.
pub(crate) struct TaskColumn {
    pub(crate) column: Column,
    /// Whether neighbours of a sweep, which share everything but the seed, differ in it.
    pub(crate) of_each_task: bool,
    pub(crate) get: for<'a> fn(&'a TaskSpec, &'a Texts) -> Datum<'a>,
}

impl TaskColumn {
    /// The same column, with a value of its own for each task.
    pub(crate) fn of_each_task(self) -> TaskColumn {
        TaskColumn { of_each_task: true, ..self }
    }
}

/// Shorthand of [`TaskColumn`] declarations.
pub(crate) fn shared(
    name: &str,
    ty: ColumnType,
    source: &str,
    doc: &str,
    get: for<'a> fn(&'a TaskSpec, &'a Texts) -> Datum<'a>,
) -> TaskColumn {
    let (name, doc, source) = (name.to_owned(), doc.to_owned(), source.to_owned());
    let column = Column { name, ty, unit: "", nullable: false, doc, source };
    TaskColumn { column, of_each_task: false, get }
}

/// Experiment, task and kernel version: what every table begins with.
pub(crate) fn origin() -> Vec<TaskColumn> {
    vec![
        shared("experiment", ColumnType::Text, "manifest", "Name of the experiment.", |t, _| {
            Datum::Text(&t.experiment)
        }),
        shared(
            "task_id",
            ColumnType::Text,
            "farm",
            "UUID (version 5) of the task's canonical spec: equal for equal simulations.",
            |_, texts| Datum::Text(&texts.task_id),
        )
        .of_each_task(),
        shared(
            "kernel_version",
            ColumnType::Int,
            "simulation",
            "Version of the kernel; raised when results change for an unchanged spec.",
            |_, _| Datum::Int(i64::from(KERNEL_VERSION)),
        ),
    ]
}

/// Attempt, worker and times of a finished task.
pub(crate) fn run() -> Vec<Declared<RunFacts>> {
    vec![
        declared("attempt", ColumnType::Int, "", "farm", "Number of the attempt that gave this row, from 1.", |r| {
            Datum::Int(i64::from(r.attempt))
        }),
        declared("worker", ColumnType::Text, "", "farm", "Name of the worker.", |r| Datum::Text(&r.worker)),
        declared("started_at", ColumnType::Instant, "", "farm", "Start of the attempt by the worker's clock.", |r| {
            Datum::Int(r.started_at_us)
        }),
        declared(
            "wall_ms",
            ColumnType::Real,
            "ms",
            "farm",
            "Wall time of the attempt on its slot, from lease to row.",
            |r| Datum::Real(r.wall_ms),
        ),
        declared("engine_ms", ColumnType::Real, "ms", "farm", "Wall time of the simulation alone.", |r| {
            Datum::Real(r.engine_ms)
        }),
        declared(
            "parse_ms",
            ColumnType::Real,
            "ms",
            "farm",
            "Wall time of reading, parsing and building the workload; 0 if another task had done it.",
            |r| Datum::Real(r.parse_ms),
        ),
    ]
}
