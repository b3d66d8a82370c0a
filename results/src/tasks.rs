//! The `tasks` table: one row a finished task.

use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use powersweep_engine::Summary;
use powersweep_engine::workload::RuleCounts;
use powersweep_experiments::TaskSpec;

use crate::axes::Axes;
use crate::builder::Arrays;
use crate::columns::{self, Column, Declared};
use crate::identity::{self, TaskColumn, Texts};

pub use crate::identity::RunFacts;

/// The declarations of all columns, in groups that each take their values from one record.
struct Declarations {
    origin: Vec<TaskColumn>,
    run: Vec<Declared<RunFacts>>,
    axes: Axes,
    counts: Vec<Declared<RuleCounts>>,
    summary: Vec<Declared<Summary>>,
    columns: Vec<Column>,
    schema: SchemaRef,
}

static DECLARATIONS: LazyLock<Declarations> = LazyLock::new(|| {
    let origin = identity::origin();
    let run = identity::run();
    let axes = Axes::new(&[]);
    let counts: Vec<_> = RuleCounts::FIELDS.iter().map(|f| Declared::of_field(f, "rules of the workload")).collect();
    let summary: Vec<_> = Summary::FIELDS.iter().map(|f| Declared::of_field(f, "simulation")).collect();
    let mut columns: Vec<Column> = Vec::new();
    columns.extend(origin.iter().map(|d| d.column.clone()));
    columns.extend(run.iter().map(|d| d.column.clone()));
    columns.extend(axes.columns());
    columns.extend(counts.iter().map(|d| d.column.clone()));
    columns.extend(summary.iter().map(|d| d.column.clone()));
    let schema = columns::schema(&columns);
    Declarations { origin, run, axes, counts, summary, columns, schema }
});

/// The columns in order.
pub fn columns() -> Vec<Column> {
    DECLARATIONS.columns.clone()
}

/// The Arrow schema; the same in every part that this build writes.
pub fn schema() -> SchemaRef {
    Arc::clone(&DECLARATIONS.schema)
}

/// Collects rows column by column.
pub struct Builder {
    arrays: Arrays,
    texts: Texts,
}

impl Builder {
    /// An empty builder.
    pub fn new() -> Builder {
        Builder { arrays: Arrays::new(schema(), &DECLARATIONS.columns), texts: Texts::default() }
    }

    /// Adds the row of one finished task.
    pub fn push(&mut self, task: &TaskSpec, counts: &RuleCounts, summary: &Summary, run: &RunFacts) {
        let d = &*DECLARATIONS;
        let arrays = &mut self.arrays;
        self.texts.set(task);
        let mut position = 0;
        for declared in &d.origin {
            arrays.push(position, (declared.get)(task, &self.texts), 1);
            position += 1;
        }
        push_record(arrays, &mut position, &d.run, run);
        d.axes.push(arrays, position, task, &self.texts, 1);
        position = d.columns.len() - d.counts.len() - d.summary.len();
        push_record(arrays, &mut position, &d.counts, counts);
        push_record(arrays, &mut position, &d.summary, summary);
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

    /// Approximate bytes of the rows so far, before compression.
    pub fn bytes(&self) -> usize {
        self.arrays.bytes()
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

/// Pushes every declared value of a record, once, from `position` on.
pub(crate) fn push_record<R>(arrays: &mut Arrays, position: &mut usize, declared: &[Declared<R>], record: &R) {
    for d in declared {
        arrays.push(*position, (d.get)(record), 1);
        *position += 1;
    }
}
