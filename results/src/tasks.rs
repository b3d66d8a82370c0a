//! The `tasks` table: one row a finished task.

use std::slice;
use std::sync::LazyLock;

use arrow::datatypes::SchemaRef;
use powersweep_engine::facts::{Datum, Field};
use powersweep_engine::workload::RuleCounts;
use powersweep_engine::{Measured, QueueSummary, Summary};
use powersweep_experiments::TaskSpec;

use crate::columns::{Column, Declared};
use crate::identity;
use crate::rows::{Layout, RowKind, Rows, columns_of};

pub use crate::identity::RunFacts;

/// The declarations of the own columns, in groups that each take their values from one record.
struct Declarations {
    run: Vec<Declared<RunFacts>>,
    counts: Vec<Declared<RuleCounts>>,
    metrics: Vec<Metric>,
    layout: Layout,
}

/// A column of the summaries. Summaries of jobs and of queues share the columns of their common names; a row has nulls
/// in those of the other kind.
struct Metric {
    column: Column,
    of_jobs: Option<fn(&Summary) -> Datum<'_>>,
    of_queues: Option<fn(&QueueSummary) -> Datum<'_>>,
}

impl Metric {
    /// One column a name, those of jobs first.
    fn all() -> Vec<Metric> {
        let column = |declared: Column, shared: bool| Column { nullable: declared.nullable || !shared, ..declared };
        let of_queues = |name: &str| QueueSummary::FIELDS.iter().find(|f| f.name == name);
        let mut metrics: Vec<Metric> = Summary::FIELDS
            .iter()
            .map(|field| {
                let twin = of_queues(field.name);
                let declared = Declared::of_field(field, "simulation").column;
                let mut column = column(declared, twin.is_some_and(|twin| !twin.optional));
                if let Some(twin) = twin.filter(|twin| twin.doc != field.doc) {
                    column.doc = format!("{} In a queueing model: {}", column.doc, twin.doc.trim());
                }
                Metric { column, of_jobs: Some(field.get), of_queues: twin.map(|twin| twin.get) }
            })
            .collect();
        let new = |field: &&Field<QueueSummary>| Summary::FIELDS.iter().all(|f| f.name != field.name);
        metrics.extend(QueueSummary::FIELDS.iter().filter(new).map(|field| Metric {
            column: column(Declared::of_field(field, "simulation of queues").column, false),
            of_jobs: None,
            of_queues: Some(field.get),
        }));
        metrics
    }

    fn value<'a>(&self, measured: &'a Measured) -> Datum<'a> {
        match measured {
            Measured::Jobs(summary) => self.of_jobs.map_or(Datum::Null, |get| get(summary)),
            Measured::Queues(summary) => self.of_queues.map_or(Datum::Null, |get| get(summary)),
        }
    }
}

static DECLARATIONS: LazyLock<Declarations> = LazyLock::new(|| {
    let run = identity::run();
    let counts: Vec<_> = RuleCounts::FIELDS.iter().map(count).collect();
    let metrics = Metric::all();
    let mut behind = columns_of(&counts);
    behind.extend(metrics.iter().map(|m| m.column.clone()));
    let layout = Layout::new(columns_of(&run), behind);
    Declarations { run, counts, metrics, layout }
});

/// The column of a rule: null for a queueing model, which has no records.
fn count(field: &Field<RuleCounts>) -> Declared<RuleCounts> {
    let mut declared = Declared::of_field(field, "rules of the workload");
    declared.column.nullable = true;
    declared
}

/// The columns in order.
pub fn columns() -> Vec<Column> {
    DECLARATIONS.layout.columns()
}

/// The Arrow schema; the same in every part that this build writes.
pub fn schema() -> SchemaRef {
    DECLARATIONS.layout.schema()
}

/// The table.
pub struct Tasks;

impl RowKind for Tasks {
    fn layout() -> &'static Layout {
        &DECLARATIONS.layout
    }
}

/// Collects rows column by column.
pub type Builder = Rows<Tasks>;

impl Rows<Tasks> {
    /// Adds the row of one finished task.
    pub fn push(&mut self, task: &TaskSpec, counts: &RuleCounts, measured: &Measured, run: &RunFacts) {
        let d = &*DECLARATIONS;
        self.push_task(task, 1);
        self.push_records(d.layout.front(), &d.run, slice::from_ref(run));
        // A queueing model has no records for rules: nulls.
        let counts = if measured.jobs().is_some() { slice::from_ref(counts) } else { &[] };
        let position = self.push_records(d.layout.behind_axes(), &d.counts, counts);
        for (i, metric) in d.metrics.iter().enumerate() {
            self.arrays().push(position + i, metric.value(measured), 1);
        }
        self.end(1);
    }
}
