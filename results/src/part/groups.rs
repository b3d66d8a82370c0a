//! Row groups of parts and of exported tables, column by column.

use std::io::Write;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{FieldRef, SchemaRef};
use arrow::error::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::file::writer::SerializedFileWriter;

use super::{Footer, GROUP_TEXT_BYTES, arrow_writer};
use crate::ResultsError;
use crate::columns::fingerprint;
use crate::folded::FoldedBatch;

/// A file made of row groups, which several threads may encode.
pub struct Groups<W: Write + Send = Vec<u8>> {
    file: SerializedFileWriter<W>,
    /// Rows of the footer that are in no row group yet; `None` for a file whose footer states no number.
    rows_left: Option<u64>,
}

/// Encodes row groups of one file; shared by threads.
pub struct GroupEncoder {
    schema: SchemaRef,
    columns: ArrowRowGroupWriterFactory,
}

/// An encoded row group that is in no file yet.
pub struct Group {
    columns: Vec<EncodedColumn>,
    rows: u64,
}

/// Encodes one column of a row group.
pub struct ColumnEncoder {
    field: FieldRef,
    writer: ArrowColumnWriter,
}

/// An encoded column of a row group.
pub struct EncodedColumn(ArrowColumnChunk);

/// An empty part, and the encoder of its row groups. `first` are some of its rows.
pub fn in_groups(
    schema: &SchemaRef,
    footer: &Footer,
    first: Option<&FoldedBatch>,
) -> Result<(Groups, GroupEncoder), ResultsError> {
    from_writer(schema, arrow_writer(schema, footer, first)?, Some(footer.rows))
}

/// An empty file of this writer, and the encoder of its row groups.
pub(super) fn from_writer<W: Write + Send>(
    schema: &SchemaRef,
    writer: ArrowWriter<W>,
    rows: Option<u64>,
) -> Result<(Groups<W>, GroupEncoder), ResultsError> {
    let (file, columns) = writer.into_serialized_writer()?;
    Ok((Groups { file, rows_left: rows }, GroupEncoder { schema: schema.clone(), columns }))
}

impl GroupEncoder {
    /// Encodes batches of the part's schema, and calls `each` with every row group. A row group ends at this number of rows,
    /// or before its texts and lists would have more than [`GROUP_TEXT_BYTES`]. Only the row group and one batch are in memory.
    pub fn encode(
        &self,
        batches: impl IntoIterator<Item = Result<FoldedBatch, ResultsError>>,
        rows_max: usize,
        mut each: impl FnMut(Group) -> Result<(), ResultsError>,
    ) -> Result<(), ResultsError> {
        let mut group = self.open()?;
        for batch in batches {
            let batch = batch?;
            let mut from = 0;
            while from < batch.rows() {
                let some = group.room(&batch, from, rows_max);
                if some == 0 {
                    each(std::mem::replace(&mut group, self.open()?).close()?)?;
                    continue;
                }
                group.write(&batch.slice(from, some))?;
                from += some;
            }
        }
        if group.rows > 0 { each(group.close()?) } else { Ok(()) }
    }

    /// The encoders of the columns of a row group, in the schema's order.
    pub fn columns(&self) -> Result<Vec<ColumnEncoder>, ResultsError> {
        // Only encrypted files use the number of a group.
        let writers = self.columns.create_column_writers(0)?;
        if writers.len() != self.schema.fields().len() {
            return Err(ResultsError::Footer("column count"));
        }
        let fields = self.schema.fields().iter().cloned();
        Ok(fields.zip(writers).map(|(field, writer)| ColumnEncoder { field, writer }).collect())
    }

    /// Begins a row group.
    fn open(&self) -> Result<OpenGroup, ResultsError> {
        Ok(OpenGroup { schema: self.schema.clone(), columns: self.columns()?, rows: 0, text_bytes: 0 })
    }
}

impl ColumnEncoder {
    /// The column.
    pub fn field(&self) -> &FieldRef {
        &self.field
    }

    /// Adds values. Fails if they have another type.
    pub fn write(&mut self, values: &ArrayRef) -> Result<(), ResultsError> {
        if values.data_type() != self.field.data_type() {
            let (name, found) = (self.field.name(), values.data_type());
            return Err(ArrowError::SchemaError(format!("the column `{name}` has values of type {found}")).into());
        }
        let leaves = compute_leaves(&self.field, values)?;
        leaves.iter().try_for_each(|leaf| self.writer.write(leaf))?;
        Ok(())
    }

    /// The encoded column.
    pub fn close(self) -> Result<EncodedColumn, ResultsError> {
        Ok(EncodedColumn(self.writer.close()?))
    }
}

impl Group {
    /// A row group of these columns, which are in the schema's order and have this number of rows each.
    pub fn new(columns: Vec<EncodedColumn>, rows: u64) -> Group {
        Group { columns, rows }
    }
}

impl<W: Write + Send> Groups<W> {
    /// Appends a row group.
    pub fn append(&mut self, group: Group) -> Result<(), ResultsError> {
        if let Some(left) = &mut self.rows_left {
            *left = left.checked_sub(group.rows).ok_or(ResultsError::Footer("row count"))?;
        }
        let mut columns = self.file.next_row_group()?;
        for EncodedColumn(column) in group.columns {
            column.append_to_row_group(&mut columns)?;
        }
        columns.close()?;
        Ok(())
    }

    /// Writes the end of the file. Fails if its footer states more rows than the row groups have.
    pub fn finish(self) -> Result<W, ResultsError> {
        if self.rows_left.is_some_and(|left| left > 0) {
            return Err(ResultsError::Footer("row count"));
        }
        Ok(self.file.into_inner()?)
    }
}

/// A row group that is being encoded.
struct OpenGroup {
    schema: SchemaRef,
    columns: Vec<ColumnEncoder>,
    rows: usize,
    text_bytes: u64,
}

impl OpenGroup {
    /// Number of rows of a batch, from `from` on, that still belong to this row group. An empty one takes a row of any size.
    fn room(&self, batch: &FoldedBatch, from: usize, rows_max: usize) -> usize {
        let mut some = (batch.rows() - from).min(rows_max - self.rows);
        while some > 0 && self.text_bytes + batch.text_bytes(from, some) > GROUP_TEXT_BYTES {
            some /= 2;
        }
        some.max(usize::from(self.rows == 0))
    }

    /// Adds the rows of a batch. Fails if it has other columns.
    fn write(&mut self, batch: &FoldedBatch) -> Result<(), ResultsError> {
        if batch.schema().fields() != self.schema.fields() {
            let (found, expected) = (fingerprint(batch.schema()), fingerprint(&self.schema));
            return Err(ResultsError::OtherSchema { found, expected });
        }
        self.rows += batch.rows();
        self.text_bytes += batch.text_bytes(0, batch.rows());
        for (encoder, column) in self.columns.iter_mut().zip(batch.columns()) {
            encoder.write(&column.unfold(batch.rows())?)?;
        }
        Ok(())
    }

    fn close(self) -> Result<Group, ResultsError> {
        let columns = self.columns.into_iter().map(ColumnEncoder::close).collect::<Result<_, _>>()?;
        Ok(Group::new(columns, self.rows as u64))
    }
}
