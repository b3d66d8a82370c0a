//! Row groups of parts, column by column.

use arrow::array::ArrayRef;
use arrow::datatypes::{FieldRef, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use super::constant::{self, Value};
use super::{Footer, arrow_writer};
use crate::ResultsError;
use crate::columns::fingerprint;
use crate::folded::{Folded, FoldedBatch, repeat};

/// A part that is put together from row groups, which may be encoded at the same time.
pub struct Groups {
    file: SerializedFileWriter<Vec<u8>>,
    rows_left: u64,
}

/// Encodes row groups of one part; shared by threads.
pub struct GroupEncoder {
    schema: SchemaRef,
    columns: ArrowRowGroupWriterFactory,
}

/// An encoded row group that is in no part yet.
pub struct Group {
    columns: Vec<Chunk>,
    rows: u64,
}

/// An empty part, and what its row groups are encoded with. `first` are some of its rows.
pub fn in_groups(
    schema: &SchemaRef,
    footer: &Footer,
    first: Option<&FoldedBatch>,
) -> Result<(Groups, GroupEncoder), ResultsError> {
    let (file, columns) = arrow_writer(schema, footer, first)?.into_serialized_writer()?;
    let groups = Groups { file, rows_left: footer.rows };
    Ok((groups, GroupEncoder { schema: schema.clone(), columns }))
}

impl GroupEncoder {
    /// Encodes one row group from batches of the part's schema. Besides it only one batch is in memory.
    pub fn encode(
        &self,
        batches: impl IntoIterator<Item = Result<FoldedBatch, ResultsError>>,
    ) -> Result<Group, ResultsError> {
        let mut open = self.open()?;
        for batch in batches {
            open.write(&batch?)?;
        }
        open.close()
    }

    /// Begins a row group.
    pub(super) fn open(&self) -> Result<Open, ResultsError> {
        // The number of a group matters to encrypted files alone.
        let writers = self.columns.create_column_writers(0)?;
        if writers.len() != self.schema.fields().len() {
            return Err(ResultsError::Footer("column count"));
        }
        let column = |(field, writer): (&FieldRef, _)| Column { field: field.clone(), writer, held: Held::Nothing };
        let columns = self.schema.fields().iter().zip(writers).map(column).collect();
        Ok(Open { schema: self.schema.clone(), columns, rows: 0 })
    }
}

impl Groups {
    /// Adds a row group behind the others.
    pub fn append(&mut self, group: Group) -> Result<(), ResultsError> {
        self.rows_left = self.rows_left.checked_sub(group.rows).ok_or(ResultsError::Footer("row count"))?;
        let mut columns = self.file.next_row_group()?;
        for column in group.columns {
            column.append_to(&mut columns)?;
        }
        columns.close()?;
        Ok(())
    }

    /// The part's bytes. Fails if its footer speaks of more rows than there are.
    pub fn finish(self) -> Result<Bytes, ResultsError> {
        if self.rows_left > 0 {
            return Err(ResultsError::Footer("row count"));
        }
        Ok(self.file.into_inner()?.into())
    }
}

/// A row group that is being encoded.
pub(super) struct Open {
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
}

impl Open {
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds the rows of a batch. Fails if it has other columns.
    pub(super) fn write(&mut self, batch: &FoldedBatch) -> Result<(), ResultsError> {
        if batch.schema().fields() != self.schema.fields() {
            let (found, expected) = (fingerprint(batch.schema()), fingerprint(&self.schema));
            return Err(ResultsError::OtherSchema { found, expected });
        }
        self.rows += batch.rows();
        let rows = u32::try_from(batch.rows()).map_err(|_| ResultsError::Footer("row count"))?;
        self.columns.iter_mut().zip(batch.columns()).try_for_each(|(column, more)| column.write(more, rows))
    }

    pub(super) fn close(self) -> Result<Group, ResultsError> {
        let columns = self.columns.into_iter().map(Column::close).collect::<Result<_, _>>()?;
        Ok(Group { columns, rows: self.rows as u64 })
    }
}

/// A column of a row group that is being encoded.
struct Column {
    field: FieldRef,
    writer: ArrowColumnWriter,
    held: Held,
}

/// Rows that the writer has not got.
enum Held {
    /// None: it has none.
    Nothing,
    /// All so far, which are equal: the first, and how many.
    Equal { value: Value, rows: u32 },
    /// None: it has some, or is to get all.
    Written,
}

/// Equal rows that are made at once when they must be written after all.
const REPEATED_ROWS: u32 = 4096;

impl Column {
    /// Adds so many rows.
    fn write(&mut self, column: &Folded, rows: u32) -> Result<(), ResultsError> {
        match (&mut self.held, column) {
            (Held::Equal { value, rows: held }, Folded::Equal(row)) if *value.row == *row => *held += rows,
            (held @ Held::Nothing, Folded::Equal(row)) if let Some(value) = Value::of(row) => {
                *held = Held::Equal { value, rows };
            }
            (_, Folded::Equal(row)) => {
                self.write_held()?;
                self.write_equal(row, rows)?;
            }
            (_, Folded::Rows(array)) => {
                self.write_held()?;
                self.write_now(array)?;
            }
        }
        Ok(())
    }

    fn write_held(&mut self) -> Result<(), ResultsError> {
        match std::mem::replace(&mut self.held, Held::Written) {
            Held::Equal { value, rows } => self.write_equal(&value.row, rows),
            Held::Nothing | Held::Written => Ok(()),
        }
    }

    fn write_equal(&mut self, row: &ArrayRef, mut rows: u32) -> Result<(), ResultsError> {
        while rows > 0 {
            let some = rows.min(REPEATED_ROWS);
            self.write_now(&repeat(row, some as usize)?)?;
            rows -= some;
        }
        Ok(())
    }

    fn write_now(&mut self, array: &ArrayRef) -> Result<(), ResultsError> {
        compute_leaves(&self.field, array)?.iter().try_for_each(|leaf| Ok(self.writer.write(leaf)?))
    }

    fn close(mut self) -> Result<Chunk, ResultsError> {
        let Held::Equal { value, rows } = std::mem::replace(&mut self.held, Held::Written) else {
            return Ok(Chunk::Written(self.writer.close()?));
        };
        self.write_now(&value.row)?;
        let one = self.writer.close()?;
        if rows == 1 {
            return Ok(Chunk::Written(one));
        }
        Ok(Chunk::Repeated(constant::repeated(&one, &value, rows)?))
    }
}

/// An encoded column of a row group.
enum Chunk {
    Written(ArrowColumnChunk),
    Repeated(constant::Chunk),
}

impl Chunk {
    fn append_to(self, columns: &mut SerializedRowGroupWriter<'_, Vec<u8>>) -> Result<(), ResultsError> {
        match self {
            Chunk::Written(chunk) => chunk.append_to_row_group(columns)?,
            Chunk::Repeated(chunk) => columns.append_column(&chunk.bytes, chunk.close)?,
        }
        Ok(())
    }
}
