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

/// The columns, in groups whose values come from one record each.
struct Declarations {
    run: Vec<Declared<RunFacts>>,
    counts: Vec<Declared<RuleCounts>>,
    metrics: Vec<Metric>,
    /// Position of the first axis.
    first_axis: usize,
    /// Position of the first column after the axes.
    after_axes: usize,
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
    /// One column for each name; columns of jobs come first.
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
    let mut columns = Vec::from(identity::keys());
    columns.extend(columns_of(&run));
    let first_axis = columns.len();
    columns.extend(AXES.columns());
    let after_axes = columns.len();
    columns.extend(columns_of(&counts));
    columns.extend(metrics.iter().map(|m| m.column.clone()));
    let schema = columns::schema(&columns);
    Declarations { run, counts, metrics, first_axis, after_axes, columns, schema }
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

/// The columns of the simulated spec: kernel, log, components and parameters.
pub fn axes() -> Vec<Column> {
    AXES.columns()
}

/// Number of first columns that identify the task of a row, in every table.
pub const KEYS: usize = identity::KEYS;

/// The columns that a simulation gives: counts of the workload's rules, then metrics.
pub fn metrics() -> Vec<Column> {
    DECLARATIONS.columns[DECLARATIONS.after_axes..].to_vec()
}

/// The Arrow schema; the same in every part that this build writes.
pub fn schema() -> SchemaRef {
    DECLARATIONS.schema.clone()
}

/// Collects rows column by column.
pub struct Builder {
    arrays: Arrays,
    replications: Option<Replications>,
}

/// The last rows, whose tasks differ only in the seed. The axes of the first row are pushed at once, those of the other
/// rows together when the group ends: most tasks of a sweep then skip some two hundred columns.
struct Replications {
    /// The first task.
    task: TaskSpec,
    /// Row of the second task.
    from: usize,
    /// Bytes of texts and lists in the axes of one row.
    bytes: usize,
}

impl Replications {
    /// Whether a task differs only in the seed. Specs share their choices if one decoder made both.
    fn takes(&self, task: &TaskSpec) -> bool {
        self.task.sim.shares_choices(&task.sim) && self.task.digest == task.digest
    }
}

impl Builder {
    /// An empty builder.
    pub fn new() -> Builder {
        let d = &*DECLARATIONS;
        Builder { arrays: Arrays::new(d.schema.clone(), &d.columns), replications: None }
    }

    /// Adds the row of one finished task.
    pub fn push(&mut self, task: &TaskSpec, counts: &RuleCounts, measured: &Measured, run: &RunFacts) {
        let d = &*DECLARATIONS;
        let position = identity::push_keys(&mut self.arrays, task, 1);
        self.arrays.push_records(position, &d.run, slice::from_ref(run));
        self.push_axes(task);
        // A queueing model has no records for rules: nulls.
        let counts = if measured.jobs().is_some() { slice::from_ref(counts) } else { &[] };
        let position = self.arrays.push_records(d.after_axes, &d.counts, counts);
        let row = self.len()..self.len() + 1;
        for (i, metric) in d.metrics.iter().enumerate() {
            self.arrays.push(position + i, metric.value(measured), &row);
        }
        self.arrays.end_rows(1);
    }

    /// Pushes the axes of the next row, unless its task only differs in the seed.
    fn push_axes(&mut self, task: &TaskSpec) {
        if self.replications.as_ref().is_some_and(|last| last.takes(task)) {
            return;
        }
        self.end_replications();
        let (row, before) = (self.len(), self.arrays.bytes());
        AXES.push(&mut self.arrays, DECLARATIONS.first_axis, task, &(row..row + 1));
        let bytes = self.arrays.bytes() - before;
        self.replications = Some(Replications { task: task.clone(), from: row + 1, bytes });
    }

    /// Pushes the axes of the rows after the first one.
    fn end_replications(&mut self) {
        let rows = self.len();
        if let Some(last) = self.replications.take().filter(|last| last.from < rows) {
            AXES.push(&mut self.arrays, DECLARATIONS.first_axis, &last.task, &(last.from..rows));
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
        let pending = self.replications.as_ref().map_or(0, |last| self.len().saturating_sub(last.from) * last.bytes);
        self.arrays.bytes() + pending
    }

    /// The rows as a batch; the builder is empty afterwards and can go on.
    pub fn finish(&mut self) -> RecordBatch {
        self.end_replications();
        self.arrays.finish()
    }
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}
