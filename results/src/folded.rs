//! Batches in which a column of equal rows is stored as one row.
//!
//! Most columns of a sweep's rows are constant: parameters of components that the sweep does not choose are null, and many
//! other parameters and counts have one value. Their memory and the time to write them should not grow with the number
//! of rows.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, MutableArrayData, RecordBatch, RecordBatchOptions, make_array, new_null_array,
};
use arrow::datatypes::{DataType, FieldRef, SchemaRef};

use crate::ResultsError;

/// Bytes of a value of a list.
const NUMBER_BYTES: u64 = 8;

/// A batch of rows.
#[derive(Debug, Clone)]
pub struct FoldedBatch {
    schema: SchemaRef,
    rows: usize,
    columns: Vec<Folded>,
}

/// A column of a [`FoldedBatch`].
#[derive(Debug, Clone)]
pub enum Folded {
    /// Its rows.
    Rows(ArrayRef),
    /// One row, to which all are equal, bit by bit.
    Equal(ArrayRef),
}

impl Folded {
    pub(crate) fn of(array: &ArrayRef) -> Folded {
        if is_constant(array) { Folded::Equal(array.slice(0, 1)) } else { Folded::Rows(Arc::clone(array)) }
    }

    /// All rows of the column; `rows` is their number.
    pub(crate) fn unfold(&self, rows: usize) -> Result<ArrayRef, ResultsError> {
        match self {
            Folded::Rows(array) => Ok(Arc::clone(array)),
            Folded::Equal(row) => repeat(row, rows),
        }
    }
}

impl FoldedBatch {
    /// A batch of these columns with this number of rows.
    pub(crate) fn new(schema: SchemaRef, rows: usize, columns: Vec<Folded>) -> FoldedBatch {
        FoldedBatch { schema, rows, columns }
    }

    /// The rows of a batch.
    pub fn of(batch: &RecordBatch) -> FoldedBatch {
        FoldedBatch::new(batch.schema(), batch.num_rows(), batch.columns().iter().map(Folded::of).collect())
    }

    /// The schema.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns, in the schema's order.
    pub fn columns(&self) -> &[Folded] {
        &self.columns
    }

    /// `rows` rows from `from` on, which must exist. No data is copied.
    pub(crate) fn slice(&self, from: usize, rows: usize) -> FoldedBatch {
        let slice = |column: &Folded| match column {
            Folded::Rows(array) => Folded::Rows(array.slice(from, rows)),
            Folded::Equal(row) => Folded::Equal(Arc::clone(row)),
        };
        FoldedBatch::new(Arc::clone(&self.schema), rows, self.columns.iter().map(slice).collect())
    }

    /// The batch with all rows of all columns.
    ///
    /// Fails if the columns do not fit the schema.
    pub fn unfold(&self) -> Result<RecordBatch, ResultsError> {
        let columns = self.columns.iter().map(|column| column.unfold(self.rows)).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// The rows with the columns of another schema, by name; null where this batch lacks a column. No data is copied.
    pub fn project(&self, schema: &SchemaRef) -> FoldedBatch {
        let column = |field: &FieldRef| match self.column(field.name()) {
            Some(column) => column.clone(),
            None => Folded::Equal(new_null_array(field.data_type(), 1)),
        };
        FoldedBatch::new(Arc::clone(schema), self.rows, schema.fields().iter().map(column).collect())
    }

    /// Bytes of the texts and lists of `rows` rows from `from` on, unfolded.
    pub(crate) fn text_bytes(&self, from: usize, rows: usize) -> u64 {
        let bytes = |column: &Folded| match column {
            Folded::Rows(array) => text_bytes(array, from, rows),
            Folded::Equal(row) => text_bytes(row, 0, 1) * rows as u64,
        };
        self.columns.iter().map(bytes).sum()
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&Folded> {
        Some(&self.columns[self.schema.index_of(name).ok()?])
    }
}

/// Bytes of texts, or of the values of lists, in `rows` rows from `from` on; 0 for cells of fixed size.
pub fn text_bytes(column: &ArrayRef, from: usize, rows: usize) -> u64 {
    let between = |offsets: &[i32]| (offsets[from + rows] - offsets[from]) as u64;
    match column.data_type() {
        DataType::Utf8 => between(column.as_string::<i32>().value_offsets()),
        DataType::List(_) => NUMBER_BYTES * between(column.as_list::<i32>().value_offsets()),
        _ => 0,
    }
}

/// An array of equal rows. It doubles until it has this number of rows.
fn repeat(row: &ArrayRef, rows: usize) -> Result<ArrayRef, ResultsError> {
    let mut data = row.to_data().slice(0, rows.min(1));
    while data.len() < rows {
        let added = data.len().min(rows - data.len());
        let mut longer = MutableArrayData::new(vec![&data], false, data.len() + added);
        longer.try_extend(0, 0, data.len())?;
        longer.try_extend(0, 0, added)?;
        data = longer.freeze();
    }
    Ok(make_array(data))
}

/// Whether all rows are equal, bit by bit.
pub(crate) fn is_constant(column: &ArrayRef) -> bool {
    let rows = column.len();
    let are_equal = || column.null_count() == rows || column.slice(0, rows - 1) == column.slice(1, rows - 1);
    rows == 1 || (rows > 1 && are_equal())
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringArray};

    use super::*;

    #[test]
    fn equal_rows_unfold_to_any_number_of_rows() {
        for rows in [0, 1, 2, 3, 100] {
            let texts = Folded::Equal(Arc::new(StringArray::from(vec!["ab"]))).unfold(rows).expect("it fits");
            assert_eq!(*texts, StringArray::from(vec!["ab"; rows]));
            let nulls = Folded::Equal(Arc::new(Int64Array::from(vec![None]))).unfold(rows).expect("it fits");
            assert_eq!(*nulls, Int64Array::from(vec![None; rows]));
        }
    }
}
