//! The `tasks` table: one row a finished task.

use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use powersweep_engine::facts::{Datum, Field};
use powersweep_engine::workload::RuleCounts;
use powersweep_engine::{Measured, QueueSummary, Summary};
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
    metrics: Vec<Metric>,
    columns: Vec<Column>,
    schema: SchemaRef,
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
    let origin = identity::origin();
    let run = identity::run();
    let axes = Axes::new(&[]);
    let counts: Vec<_> = RuleCounts::FIELDS.iter().map(|f| Declared::of_field(f, "rules of the workload")).collect();
    let metrics = Metric::all();
    let mut columns: Vec<Column> = Vec::new();
    columns.extend(origin.iter().map(|d| d.column.clone()));
    columns.extend(run.iter().map(|d| d.column.clone()));
    columns.extend(axes.columns());
    columns.extend(counts.iter().map(|d| d.column.clone()));
    columns.extend(metrics.iter().map(|d| d.column.clone()));
    let schema = columns::schema(&columns);
    Declarations { origin, run, axes, counts, metrics, columns, schema }
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
    pub fn push(&mut self, task: &TaskSpec, counts: &RuleCounts, measured: &Measured, run: &RunFacts) {
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
        position = d.columns.len() - d.counts.len() - d.metrics.len();
        push_record(arrays, &mut position, &d.counts, counts);
        for metric in &d.metrics {
            arrays.push(position, metric.value(measured), 1);
            position += 1;
        }
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
