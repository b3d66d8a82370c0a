//! The `tasks` table: one row a finished task.

use std::slice;
use std::sync::LazyLock;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use powersweep_engine::facts::{Datum, Field};
use powersweep_engine::workload::RuleCounts;
use powersweep_engine::{Measured, QueueSummary, Summary};
use powersweep_experiments::TaskSpec;

use crate::axes::AXES;
use crate::builder::Arrays;
use crate::columns::{self, Column, Declared};
use crate::identity::{self, RunFacts};

/// The declarations of the own columns, in groups that each take their values from one record.
struct Declarations {
    run: Vec<Declared<RunFacts>>,
    counts: Vec<Declared<RuleCounts>>,
    metrics: Vec<Metric>,
    /// Position of the first axis.
    first_axis: usize,
    /// Position of the first column behind the axes.
    behind_axes: usize,
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
    let run = Declared::of_fields(RunFacts::FIELDS, "farm");
    let counts: Vec<_> = RuleCounts::FIELDS.iter().map(count).collect();
    let metrics = Metric::all();
    let mut columns = identity::keys();
    columns.extend(columns_of(&run));
    let first_axis = columns.len();
    columns.extend(AXES.columns());
    let behind_axes = columns.len();
    columns.extend(columns_of(&counts));
    columns.extend(metrics.iter().map(|m| m.column.clone()));
    let schema = columns::schema(&columns);
    Declarations { run, counts, metrics, first_axis, behind_axes, columns, schema }
});

/// The columns of declarations.
fn columns_of<R>(declared: &[Declared<R>]) -> impl Iterator<Item = Column> {
    declared.iter().map(|d| d.column.clone())
}

/// The column of a rule: null for a queueing model, which has no records.
fn count(field: &Field<RuleCounts>) -> Declared<RuleCounts> {
    let mut declared = Declared::of_field(field, "rules of the workload");
    declared.column.nullable = true;
    declared
}

/// The columns in order.
pub fn columns() -> Vec<Column> {
    DECLARATIONS.columns.clone()
}

/// Those of them that say what was simulated: kernel, log, components and parameters.
pub fn axes() -> Vec<Column> {
    AXES.columns()
}

/// The Arrow schema; the same in every part that this build writes.
pub fn schema() -> SchemaRef {
    DECLARATIONS.schema.clone()
}

/// Collects rows column by column.
pub struct Builder {
    arrays: Arrays,
    run: Option<Run>,
}

/// The last rows, of tasks that differ in nothing but the seed. Their axes are pushed for the row of the first task at
/// once, and for the others together when the run ends: some two hundred columns that most tasks of a sweep need not look
/// at.
struct Run {
    /// The first task.
    task: TaskSpec,
    /// Row of the second task.
    from: usize,
    /// Bytes of texts and lists in the axes of a row.
    bytes: usize,
}

impl Run {
    /// Whether a task may go on with the run. Its spec shares its choices with the run's if one decoder made both.
    fn takes(&self, task: &TaskSpec) -> bool {
        self.task.sim.shares_choices(&task.sim) && self.task.digest == task.digest
    }
}

impl Builder {
    /// An empty builder.
    pub fn new() -> Builder {
        let d = &*DECLARATIONS;
        Builder { arrays: Arrays::new(d.schema.clone(), &d.columns), run: None }
    }

    /// Adds the row of one finished task.
    pub fn push(&mut self, task: &TaskSpec, counts: &RuleCounts, measured: &Measured, run: &RunFacts) {
        let d = &*DECLARATIONS;
        let position = identity::push_keys(&mut self.arrays, task, 1);
        self.arrays.push_records(position, &d.run, slice::from_ref(run));
        self.push_axes(task);
        // A queueing model has no records for rules: nulls.
        let counts = if measured.jobs().is_some() { slice::from_ref(counts) } else { &[] };
        let position = self.arrays.push_records(d.behind_axes, &d.counts, counts);
        for (i, metric) in d.metrics.iter().enumerate() {
            self.arrays.push(position + i, metric.value(measured), 1);
        }
        self.arrays.end_rows(1);
    }

    /// Pushes the axes of the next row, unless it goes on with a run.
    fn push_axes(&mut self, task: &TaskSpec) {
        if self.run.as_ref().is_some_and(|run| run.takes(task)) {
            return;
        }
        self.end_run();
        let (row, before) = (self.len(), self.arrays.bytes());
        AXES.push(&mut self.arrays, DECLARATIONS.first_axis, task, &(row..row + 1));
        self.run = Some(Run { task: task.clone(), from: row + 1, bytes: self.arrays.bytes() - before });
    }

    /// Pushes the axes of the rest of a run.
    fn end_run(&mut self) {
        let rows = self.len();
        if let Some(run) = self.run.take().filter(|run| run.from < rows) {
            AXES.push(&mut self.arrays, DECLARATIONS.first_axis, &run.task, &(run.from..rows));
        }
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
        let to_come = self.run.as_ref().map_or(0, |run| self.len().saturating_sub(run.from) * run.bytes);
        self.arrays.bytes() + to_come
    }

    /// The rows as a batch; the builder is empty afterwards and can go on.
    pub fn finish(&mut self) -> RecordBatch {
        self.end_run();
        self.arrays.finish()
    }
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}
