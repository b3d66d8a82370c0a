//! The `failures` table: one row a failed attempt.

use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use powersweep_engine::facts::Datum;
use powersweep_experiments::TaskSpec;

use crate::axes::Axes;
use crate::builder::Arrays;
use crate::columns::{self, Column, ColumnType, Declared};
use crate::identity::{self, TaskColumn, Texts, declared};
use crate::tasks::push_record;

/// How one attempt failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The worker's name.
    pub worker: String,
    /// When the coordinator learned of it (microseconds since 1970, UTC).
    pub failed_at_us: i64,
    /// Kind of failure, one word: `spec`, `workload`, `panic`, `deadline`, `memory`, `events`, `crash`, ...
    pub kind: String,
    /// What happened, for people.
    pub message: String,
}

fn failure() -> Vec<Declared<Failure>> {
    use ColumnType::{Instant, Int, Text};
    vec![
        declared("attempt", Int, "", "farm", "Number of the attempt, from 1.", |f| Datum::Int(i64::from(f.attempt))),
        declared("worker", Text, "", "farm", "Name of the worker.", |f| Datum::Text(&f.worker)),
        declared("failed_at", Instant, "", "farm", "When the coordinator learned of it, by its clock.", |f| {
            Datum::Int(f.failed_at_us)
        }),
        declared(
            "failure_kind",
            Text,
            "",
            "farm",
            "Kind of failure in one word, such as `panic` or `deadline`.",
            |f| Datum::Text(&f.kind),
        ),
        declared("message", Text, "", "farm", "What happened, for people.", |f| Datum::Text(&f.message)),
    ]
}

struct Declarations {
    origin: Vec<TaskColumn>,
    failure: Vec<Declared<Failure>>,
    axes: Axes,
    columns: Vec<Column>,
    schema: SchemaRef,
}

static DECLARATIONS: LazyLock<Declarations> = LazyLock::new(|| {
    let (origin, failure, axes) = (identity::origin(), failure(), Axes::new(&[]));
    let mut columns: Vec<Column> = origin.iter().map(|d| d.column.clone()).collect();
    columns.extend(failure.iter().map(|d| d.column.clone()));
    columns.extend(axes.columns());
    let schema = columns::schema(&columns);
    Declarations { origin, failure, axes, columns, schema }
});

/// The columns in order.
pub fn columns() -> Vec<Column> {
    DECLARATIONS.columns.clone()
}

/// The Arrow schema.
pub fn schema() -> SchemaRef {
    Arc::clone(&DECLARATIONS.schema)
}

/// Collects failures.
pub struct Builder {
    arrays: Arrays,
    texts: Texts,
}

impl Builder {
    /// An empty builder.
    pub fn new() -> Builder {
        Builder { arrays: Arrays::new(schema(), &DECLARATIONS.columns), texts: Texts::default() }
    }

    /// Adds the row of one failed attempt.
    pub fn push(&mut self, task: &TaskSpec, failure: &Failure) {
        let d = &*DECLARATIONS;
        let arrays = &mut self.arrays;
        self.texts.set(task);
        let mut position = 0;
        for declared in &d.origin {
            arrays.push(position, (declared.get)(task, &self.texts), 1);
            position += 1;
        }
        push_record(arrays, &mut position, &d.failure, failure);
        d.axes.push(arrays, position, task, &self.texts, 1);
        arrays.end_rows(1);
    }

    /// Rows so far.
    pub fn len(&self) -> usize {
        self.arrays.rows()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows as a batch; the builder is empty afterwards and can go on.
    pub fn finish(&mut self) -> RecordBatch {
        self.arrays.finish()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Builder::new()
    }
}
