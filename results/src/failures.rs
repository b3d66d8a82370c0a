//! The `failures` table: one row a failed attempt.

use std::sync::LazyLock;

use arrow::datatypes::SchemaRef;
use powersweep_engine::facts::{Datum, Kind};

use crate::columns::{Column, Declared};
use crate::identity::declared;
use crate::rows::{Layout, Record, Rows};

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
    use Kind::{Instant, Int, Text};
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

static LAYOUT: LazyLock<Layout<Failure>> = LazyLock::new(|| Layout::new(failure()));

/// The columns in order.
pub fn columns() -> Vec<Column> {
    LAYOUT.columns()
}

/// The Arrow schema.
pub fn schema() -> SchemaRef {
    LAYOUT.schema()
}

impl Record for Failure {
    fn layout() -> &'static Layout<Failure> {
        &LAYOUT
    }
}

/// Collects failures.
pub type Builder = Rows<Failure>;
