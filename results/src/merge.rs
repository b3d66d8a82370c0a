//! Merges the uploads of workers into few large parts.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, parquet_to_arrow_schema};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::writer::SerializedFileWriter;

use crate::ResultsError;
use crate::folded::FoldedBatch;
use crate::part::{self, Footer};

/// Least mean number of rows of the inputs' row groups for which they are copied without decoding. Smaller row groups are
/// decoded and gathered: each costs a reader an entry of the footer for every column, whatever its number of rows.
pub const COPY_ROWS_MIN: u64 = 8_192;

/// One part with the rows of these parts, in order. All must have the columns of the first.
///
/// Every error is final: the same bytes fail again.
pub fn merge(inputs: &[Bytes], footer: &Footer) -> Result<Bytes, ResultsError> {
    let metadata = inputs
        .iter()
        .map(|bytes| Ok(ParquetMetaDataReader::new().parse_and_finish(bytes)?))
        .collect::<Result<Vec<_>, ResultsError>>()?;
    for (bytes, metadata) in inputs.iter().zip(&metadata) {
        part::check_pages(bytes, metadata, |_| true)?;
    }
    let first = metadata.first().ok_or(ResultsError::Footer("row count"))?;
    let columns = first.file_metadata().schema();
    if metadata.iter().any(|other| other.file_metadata().schema() != columns) {
        return Err(ResultsError::Footer("columns"));
    }
    let rows: u64 = metadata.iter().map(|m| m.file_metadata().num_rows().unsigned_abs()).sum();
    if rows != footer.rows {
        return Err(ResultsError::Footer("row count"));
    }
    let groups: u64 = metadata.iter().map(|m| m.num_row_groups() as u64).sum();
    if rows >= groups * COPY_ROWS_MIN { copy(inputs, &metadata, footer) } else { gather(inputs, first, footer) }
}

fn copy(inputs: &[Bytes], metadata: &[ParquetMetaData], footer: &Footer) -> Result<Bytes, ResultsError> {
    let first = metadata[0].file_metadata();
    let schema = parquet_to_arrow_schema(first.schema_descr(), first.key_value_metadata())?;
    let properties = part::properties(&schema, footer)?;
    let mut writer = SerializedFileWriter::new(Vec::new(), first.schema_descr().root_schema_ptr(), properties.into())?;
    // The key from which an Arrow reader takes the types. `properties` has the other keys.
    let types = first.key_value_metadata().into_iter().flatten().find(|pair| pair.key == ARROW_SCHEMA_META_KEY);
    if let Some(KeyValue { key, value }) = types {
        writer.append_key_value_metadata(KeyValue { key: key.clone(), value: value.clone() });
    }
    for (input, metadata) in inputs.iter().zip(metadata) {
        for group in metadata.row_groups() {
            let mut out = writer.next_row_group()?;
            for column in group.columns() {
                let copied = ColumnCloseResult {
                    bytes_written: column.compressed_size().unsigned_abs(),
                    rows_written: group.num_rows().unsigned_abs(),
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                out.append_column(input, copied)?;
            }
            out.close()?;
        }
    }
    Ok(writer.into_inner()?.into())
}

fn gather(inputs: &[Bytes], first: &ParquetMetaData, footer: &Footer) -> Result<Bytes, ResultsError> {
    let first = first.file_metadata();
    let found = parquet_to_arrow_schema(first.schema_descr(), first.key_value_metadata())?;
    // Without the schema's metadata, in which the inputs may differ.
    let schema = Arc::new(Schema::new(found.fields().clone()));
    let plain = inputs.iter().flat_map(batches).map(|batch| {
        let batch = batch?;
        Ok(FoldedBatch::of(&RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec())?))
    });
    part::encode_from(&schema, plain, footer)
}

/// The batches of a part, one after the other, or why it cannot be opened.
fn batches(bytes: &Bytes) -> Box<dyn Iterator<Item = Result<RecordBatch, ResultsError>>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).and_then(|builder| builder.build());
    match reader {
        Ok(reader) => Box::new(reader.map(|batch| Ok(batch?))),
        Err(error) => Box::new(std::iter::once(Err(error.into()))),
    }
}
