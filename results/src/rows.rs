//! The tables `jobs`, `series` and `failures`: a row has the keys of its task, then the fields of one record.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use powersweep_experiments::TaskSpec;

use crate::builder::Arrays;
use crate::columns::{self, Column, Declared};
use crate::identity;

/// A record that gives one row.
pub trait Record: Sized + 'static {
    /// The columns of its table.
    #[doc(hidden)]
    fn layout() -> &'static Layout<Self>;
}

/// The columns of a record's table: the keys of its task, then its own.
pub struct Layout<R: 'static> {
    own: Vec<Declared<R>>,
    pub(crate) columns: Vec<Column>,
    pub(crate) schema: SchemaRef,
}

impl<R> Layout<R> {
    pub(crate) fn new(own: Vec<Declared<R>>) -> Layout<R> {
        let mut columns = Vec::from(identity::keys());
        columns.extend(own.iter().map(|d| d.column.clone()));
        let schema = columns::schema(&columns);
        Layout { own, columns, schema }
    }
}

/// Declares the table of a record in the module that has the table's name.
macro_rules! table {
    ($record:ty, $own:expr) => {
        static LAYOUT: std::sync::LazyLock<$crate::rows::Layout<$record>> =
            std::sync::LazyLock::new(|| $crate::rows::Layout::new($own));

        /// The columns in order.
        pub fn columns() -> Vec<$crate::columns::Column> {
            LAYOUT.columns.clone()
        }

        /// The Arrow schema.
        pub fn schema() -> arrow::datatypes::SchemaRef {
            LAYOUT.schema.clone()
        }

        impl $crate::rows::Record for $record {
            fn layout() -> &'static $crate::rows::Layout<$record> {
                &LAYOUT
            }
        }

        /// Collects the rows of the table.
        pub type Builder = $crate::Rows<$record>;
    };
}
pub(crate) use table;

/// Collects the rows of a record's table column by column.
pub struct Rows<R: Record> {
    arrays: Arrays,
    layout: &'static Layout<R>,
}

impl<R: Record> Rows<R> {
    /// An empty builder.
    pub fn new() -> Self {
        let layout = R::layout();
        Rows { arrays: Arrays::new(layout.schema.clone(), &layout.columns), layout }
    }

    /// Adds one row a record of this task.
    pub fn push(&mut self, task: &TaskSpec, records: &[R]) {
        let first = identity::push_keys(&mut self.arrays, task, records.len());
        self.arrays.push_records(first, &self.layout.own, records);
        self.arrays.end_rows(records.len());
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

impl<R: Record> Default for Rows<R> {
    fn default() -> Self {
        Rows::new()
    }
}
