//! What the builders of all tables share: the columns that every row of a task has, and the arrays that grow.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use powersweep_experiments::TaskSpec;

use crate::axes::Axes;
use crate::builder::Arrays;
use crate::columns::{self, Column, Declared};
use crate::identity::{self, TaskColumn, Texts};

/// The columns of a table: origin, own columns in front of the axes, axes, own columns behind them.
pub struct Layout {
    origin: Vec<TaskColumn>,
    axes: Axes,
    /// Position of the first axis.
    first_axis: usize,
    /// Position of the first column behind the axes.
    behind_axes: usize,
    columns: Vec<Column>,
    schema: SchemaRef,
}

impl Layout {
    /// A table with these own columns. An axis that has the name of one of them is called `param_NAME`.
    pub(crate) fn new(front: Vec<Column>, behind: Vec<Column>) -> Layout {
        let own: Vec<&str> = front.iter().chain(&behind).map(|c| c.name.as_str()).collect();
        let (origin, axes) = (identity::origin(), Axes::new(&own));
        let mut columns: Vec<Column> = origin.iter().map(|d| d.column.clone()).collect();
        columns.extend(front);
        let first_axis = columns.len();
        columns.extend(axes.columns());
        let behind_axes = columns.len();
        columns.extend(behind);
        let schema = columns::schema(&columns);
        Layout { origin, axes, first_axis, behind_axes, columns, schema }
    }

    /// The columns in order.
    pub(crate) fn columns(&self) -> Vec<Column> {
        self.columns.clone()
    }

    /// The Arrow schema.
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Position of the first own column in front of the axes.
    pub(crate) fn front(&self) -> usize {
        self.origin.len()
    }

    /// Position of the first own column behind the axes.
    pub(crate) fn behind_axes(&self) -> usize {
        self.behind_axes
    }
}

/// The columns of declarations.
pub(crate) fn columns_of<R>(declared: &[Declared<R>]) -> Vec<Column> {
    declared.iter().map(|d| d.column.clone()).collect()
}

/// A table of the dataset, as a type.
pub trait RowKind: 'static {
    /// Its columns.
    #[doc(hidden)]
    fn layout() -> &'static Layout;
}

/// Collects the rows of a table column by column. Each table adds its own `push`.
pub struct Rows<T: RowKind> {
    arrays: Arrays,
    texts: Texts,
    run: Option<Run>,
    table: PhantomData<T>,
}

/// The last rows, of tasks that differ in their own columns only. What they share is pushed for the rows of the first
/// task at once, and for the others together when the run ends: some two hundred columns that most tasks of a sweep need
/// not look at.
struct Run {
    /// The first task.
    task: TaskSpec,
    /// First row of the second task.
    from: usize,
    /// Bytes of texts and lists in the shared columns of a row.
    bytes: usize,
}

impl Run {
    /// Whether a task may go on with the run. Its spec shares its parts with the run's if one decoder made both.
    fn takes(&self, task: &TaskSpec) -> bool {
        let same = |a: &Arc<str>, b: &Arc<str>| Arc::ptr_eq(a, b);
        self.task.sim.shares_choices(&task.sim)
            && self.task.digest == task.digest
            && same(&self.task.experiment, &task.experiment)
            && same(&self.task.workload, &task.workload)
            && same(&self.task.platform, &task.platform)
            && same(&self.task.policy, &task.policy)
    }
}

impl<T: RowKind> Rows<T> {
    /// An empty builder.
    pub fn new() -> Rows<T> {
        let layout = T::layout();
        let arrays = Arrays::new(layout.schema(), &layout.columns);
        Rows { arrays, texts: Texts::default(), run: None, table: PhantomData }
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
        let to_come = self.run.as_ref().map_or(0, |run| (self.len() - run.from.min(self.len())) * run.bytes);
        self.arrays.bytes() + to_come
    }

    /// The rows as a batch; the builder is empty afterwards and can go on.
    pub fn finish(&mut self) -> RecordBatch {
        self.end_run();
        self.arrays.finish()
    }

    /// Pushes what the next `n` rows, all of this task, share: where they come from, and the axes.
    pub(crate) fn push_task(&mut self, task: &TaskSpec, n: usize) {
        let layout = T::layout();
        if !self.run.as_ref().is_some_and(|run| run.takes(task)) {
            self.end_run();
            self.texts.set_shared(task);
            let (from, before) = (self.len() + n, self.arrays.bytes());
            self.push_shared(task, self.len()..from);
            let bytes = (self.arrays.bytes() - before).checked_div(n).unwrap_or(0);
            self.run = Some(Run { task: task.clone(), from, bytes });
        }
        self.texts.set(task);
        for (position, declared) in layout.origin.iter().enumerate().filter(|(_, d)| d.of_each_task) {
            self.arrays.push(position, (declared.get)(task, &self.texts), n);
        }
        layout.axes.push_own(&mut self.arrays, layout.first_axis, task, &self.texts, n);
    }

    /// Pushes what the rest of a run shares.
    fn end_run(&mut self) {
        if let Some(run) = self.run.take() {
            self.push_shared(&run.task, run.from..self.len());
        }
    }

    fn push_shared(&mut self, task: &TaskSpec, rows: Range<usize>) {
        // A task may have no rows in this table.
        if rows.is_empty() {
            return;
        }
        let layout = T::layout();
        for (position, declared) in layout.origin.iter().enumerate().filter(|(_, d)| !d.of_each_task) {
            self.arrays.push_rows(position, (declared.get)(task, &self.texts), &rows);
        }
        layout.axes.push_shared(&mut self.arrays, layout.first_axis, task, &self.texts, &rows);
    }

    /// Pushes every declared value of each record into the columns from `position` on; returns the position behind.
    pub(crate) fn push_records<R>(&mut self, position: usize, declared: &[Declared<R>], records: &[R]) -> usize {
        for (i, d) in declared.iter().enumerate() {
            for record in records {
                self.arrays.push(position + i, (d.get)(record), 1);
            }
        }
        position + declared.len()
    }

    /// The growing arrays, for values that no single record declares.
    pub(crate) fn arrays(&mut self) -> &mut Arrays {
        &mut self.arrays
    }

    /// Ends `n` rows: columns in which nothing was pushed, by the task or its run, get nulls.
    pub(crate) fn end(&mut self, n: usize) {
        self.arrays.end_rows(n);
    }
}

impl<T: RowKind> Default for Rows<T> {
    fn default() -> Self {
        Rows::new()
    }
}
