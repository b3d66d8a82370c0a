//! The `jobs` table: one row a simulated job, on request.

use powersweep_engine::JobRecord;
use powersweep_engine::facts::{Datum, Field, Kind};

use crate::columns::Declared;

/// The one column that no field of the record holds.
const WAIT: Field<JobRecord> = Field {
    name: "wait_s",
    doc: "Start minus submit (s).",
    kind: Kind::Real,
    optional: false,
    get: |job| Datum::Real(job.start_s - job.submit_s),
};

crate::rows::table!(JobRecord, {
    let mut columns = Declared::of_fields(JobRecord::FIELDS, "simulation");
    let run = columns.iter().position(|c| c.column.name == "run_s").expect("a field of the record");
    columns.insert(run, Declared::of_field(&WAIT, "simulation"));
    columns
});
