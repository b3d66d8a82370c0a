//! The `jobs` table: one row a simulated job, on request.

use std::sync::LazyLock;

use arrow::datatypes::SchemaRef;
use powersweep_engine::JobRecord;
use powersweep_engine::facts::{Datum, Field, Kind};
use powersweep_experiments::TaskSpec;

use crate::columns::{Column, Declared};
use crate::rows::{Layout, RowKind, Rows, columns_of};

/// The one column that no field of the record holds.
const WAIT: Field<JobRecord> = Field {
    name: "wait_s",
    doc: "Start minus submit (s).",
    kind: Kind::Real,
    optional: false,
    get: |job| Datum::Real(job.start_s - job.submit_s),
};

struct Declarations {
    job: Vec<Declared<JobRecord>>,
    layout: Layout,
}

static DECLARATIONS: LazyLock<Declarations> = LazyLock::new(|| {
    let fields = JobRecord::FIELDS.iter().flat_map(|field| {
        let wait = (field.name == "run_s").then_some(&WAIT);
        wait.into_iter().chain([field])
    });
    let job: Vec<_> = fields.map(|f| Declared::of_field(f, "simulation")).collect();
    let layout = Layout::new(Vec::new(), columns_of(&job));
    Declarations { job, layout }
});

/// The columns in order.
pub fn columns() -> Vec<Column> {
    DECLARATIONS.layout.columns()
}

/// The Arrow schema.
pub fn schema() -> SchemaRef {
    DECLARATIONS.layout.schema()
}

/// The table.
pub struct Jobs;

impl RowKind for Jobs {
    fn layout() -> &'static Layout {
        &DECLARATIONS.layout
    }
}

/// Collects the jobs of tasks.
pub type Builder = Rows<Jobs>;

impl Rows<Jobs> {
    /// Adds one row a job of this task.
    pub fn push(&mut self, task: &TaskSpec, jobs: &[JobRecord]) {
        let d = &*DECLARATIONS;
        self.push_task(task, jobs.len());
        self.push_records(d.layout.behind_axes(), &d.job, jobs);
        self.end(jobs.len());
    }
}
