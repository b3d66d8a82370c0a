//! What the builders of all tables share: the columns that every row of a task has, and the arrays that grow.

use std::marker::PhantomData;
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
    table: PhantomData<T>,
}

impl<T: RowKind> Rows<T> {
    /// An empty builder.
    pub fn new() -> Rows<T> {
        let layout = T::layout();
        Rows { arrays: Arrays::new(layout.schema(), &layout.columns), texts: Texts::default(), table: PhantomData }
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

    /// Pushes what `n` rows of this task share: where they come from, and the axes.
    pub(crate) fn push_task(&mut self, task: &TaskSpec, n: usize) {
        let layout = T::layout();
        self.texts.set(task);
        for (position, declared) in layout.origin.iter().enumerate() {
            self.arrays.push(position, (declared.get)(task, &self.texts), n);
        }
        layout.axes.push(&mut self.arrays, layout.first_axis, task, &self.texts, n);
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

    /// Ends `n` rows: columns in which nothing was pushed get nulls.
    pub(crate) fn end(&mut self, n: usize) {
        self.arrays.end_rows(n);
    }
}

impl<T: RowKind> Default for Rows<T> {
    fn default() -> Self {
        Rows::new()
    }
}
