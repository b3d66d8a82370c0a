//! The `failures` table: one row a failed attempt.

use std::slice;
use std::sync::LazyLock;

use arrow::datatypes::SchemaRef;
use powersweep_engine::facts::Datum;
use powersweep_experiments::TaskSpec;

use crate::columns::{Column, ColumnType, Declared};
use crate::identity::declared;
use crate::rows::{Layout, RowKind, Rows, columns_of};

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
    failure: Vec<Declared<Failure>>,
    layout: Layout,
}

static DECLARATIONS: LazyLock<Declarations> = LazyLock::new(|| {
    let failure = failure();
    let layout = Layout::new(columns_of(&failure), Vec::new());
    Declarations { failure, layout }
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
pub struct Failures;

impl RowKind for Failures {
    fn layout() -> &'static Layout {
        &DECLARATIONS.layout
    }
}

/// Collects failures.
pub type Builder = Rows<Failures>;

impl Rows<Failures> {
    /// Adds the row of one failed attempt.
    pub fn push(&mut self, task: &TaskSpec, failure: &Failure) {
        let d = &*DECLARATIONS;
        self.push_task(task, 1);
        self.push_records(d.layout.front(), &d.failure, slice::from_ref(failure));
        self.end(1);
    }
}
