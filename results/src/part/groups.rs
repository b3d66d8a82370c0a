//! Row groups of parts, column by column.

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::file::writer::SerializedFileWriter;

use super::{Footer, arrow_writer};
use crate::ResultsError;
use crate::columns::fingerprint;
use crate::folded::FoldedBatch;

/// A part made of row groups, which several threads may encode.
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
    columns: Vec<ArrowColumnChunk>,
    rows: u64,
}

/// An empty part, and the encoder of its row groups. `first` are some of its rows.
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
    /// Encodes one row group from batches of the part's schema. Only the row group and one batch are in memory.
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
    pub(super) fn open(&self) -> Result<OpenGroup, ResultsError> {
        // Only encrypted files use the number of a group.
        let columns = self.columns.create_column_writers(0)?;
        if columns.len() != self.schema.fields().len() {
            return Err(ResultsError::Footer("column count"));
        }
        Ok(OpenGroup { schema: self.schema.clone(), columns, rows: 0 })
    }
}

impl Groups {
    /// Appends a row group.
    pub fn append(&mut self, group: Group) -> Result<(), ResultsError> {
        self.rows_left = self.rows_left.checked_sub(group.rows).ok_or(ResultsError::Footer("row count"))?;
        let mut columns = self.file.next_row_group()?;
        for column in group.columns {
            column.append_to_row_group(&mut columns)?;
        }
        columns.close()?;
        Ok(())
    }

    /// The part's bytes. Fails if its footer states more rows than the row groups have.
    pub fn finish(self) -> Result<Bytes, ResultsError> {
        if self.rows_left > 0 {
            return Err(ResultsError::Footer("row count"));
        }
        Ok(self.file.into_inner()?.into())
    }
}

/// A row group that is being encoded.
pub(super) struct OpenGroup {
    schema: SchemaRef,
    columns: Vec<ArrowColumnWriter>,
    rows: usize,
}

impl OpenGroup {
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
        let fields = self.schema.fields().iter();
        for ((field, writer), column) in fields.zip(&mut self.columns).zip(batch.columns()) {
            let leaves = compute_leaves(field, &column.unfold(batch.rows())?)?;
            leaves.iter().try_for_each(|leaf| writer.write(leaf))?;
        }
        Ok(())
    }

    pub(super) fn close(self) -> Result<Group, ResultsError> {
        let columns = self.columns.into_iter().map(ArrowColumnWriter::close).collect::<Result<_, _>>()?;
        Ok(Group { columns, rows: self.rows as u64 })
    }
}
