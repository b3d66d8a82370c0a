//! The `jobs` table: one row a simulated job, on request.

use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use powersweep_engine::JobRecord;
use powersweep_engine::facts::{Datum, Field, Kind};
use powersweep_experiments::TaskSpec;

use crate::axes::Axes;
use crate::builder::Arrays;
use crate::columns::{self, Column, Declared};
use crate::identity::{self, TaskColumn, Texts};

/// The one column that no field of the record holds.
const WAIT: Field<JobRecord> = Field {
    name: "wait_s",
    doc: "Start minus submit (s).",
    kind: Kind::Real,
    optional: false,
    get: |job| Datum::Real(job.start_s - job.submit_s),
};

struct Declarations {
    origin: Vec<TaskColumn>,
    axes: Axes,
    job: Vec<Declared<JobRecord>>,
    columns: Vec<Column>,
    schema: SchemaRef,
}

static DECLARATIONS: LazyLock<Declarations> = LazyLock::new(|| {
    let fields = JobRecord::FIELDS.iter().flat_map(|field| {
        let wait = (field.name == "run_s").then_some(&WAIT);
        wait.into_iter().chain([field])
    });
    let job: Vec<_> = fields.map(|f| Declared::of_field(f, "simulation")).collect();
    let own: Vec<_> = job.iter().map(|d| d.column.name.as_str()).collect();
    let axes = Axes::new(&own);
    let origin = identity::origin();
    let mut columns: Vec<Column> = origin.iter().map(|d| d.column.clone()).collect();
    columns.extend(axes.columns());
    columns.extend(job.iter().map(|d| d.column.clone()));
    let schema = columns::schema(&columns);
    Declarations { origin, axes, job, columns, schema }
});

/// The columns in order.
pub fn columns() -> Vec<Column> {
    DECLARATIONS.columns.clone()
}

/// The Arrow schema.
pub fn schema() -> SchemaRef {
    Arc::clone(&DECLARATIONS.schema)
}

/// Collects the jobs of tasks.
pub struct Builder {
    arrays: Arrays,
    texts: Texts,
}

impl Builder {
    /// An empty builder.
    pub fn new() -> Builder {
        Builder { arrays: Arrays::new(schema(), &DECLARATIONS.columns), texts: Texts::default() }
    }

    /// Adds one row a job of this task.
    pub fn push(&mut self, task: &TaskSpec, jobs: &[JobRecord]) {
        let d = &*DECLARATIONS;
        let arrays = &mut self.arrays;
        self.texts.set(task);
        for (position, declared) in d.origin.iter().enumerate() {
            arrays.push(position, (declared.get)(task, &self.texts), jobs.len());
        }
        d.axes.push(arrays, d.origin.len(), task, &self.texts, jobs.len());
        let first = d.columns.len() - d.job.len();
        for (i, declared) in d.job.iter().enumerate() {
            for job in jobs {
                arrays.push(first + i, (declared.get)(job), 1);
            }
        }
        arrays.end_rows(jobs.len());
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
