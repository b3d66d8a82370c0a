//! The `jobs` table: one row a simulated job, on request.

use std::sync::LazyLock;

use arrow::datatypes::SchemaRef;
use powersweep_engine::JobRecord;
use powersweep_engine::facts::{Datum, Field, Kind};

use crate::columns::{Column, Declared};
use crate::rows::{Layout, Record, Rows};

/// The one column that no field of the record holds.
const WAIT: Field<JobRecord> = Field {
    name: "wait_s",
    doc: "Start minus submit (s).",
    kind: Kind::Real,
    optional: false,
    get: |job| Datum::Real(job.start_s - job.submit_s),
};

static LAYOUT: LazyLock<Layout<JobRecord>> = LazyLock::new(|| {
    let fields = JobRecord::FIELDS.iter().flat_map(|field| {
        let wait = (field.name == "run_s").then_some(&WAIT);
        wait.into_iter().chain([field])
    });
    Layout::new(fields.map(|f| Declared::of_field(f, "simulation")).collect())
});

/// The columns in order.
pub fn columns() -> Vec<Column> {
    LAYOUT.columns()
}

/// The Arrow schema.
pub fn schema() -> SchemaRef {
    LAYOUT.schema()
}

impl Record for JobRecord {
    fn layout() -> &'static Layout<JobRecord> {
        &LAYOUT
    }
}

/// Collects the jobs of tasks.
pub type Builder = Rows<JobRecord>;
