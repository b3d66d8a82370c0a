//! Parts: immutable Parquet files, each with a footer that says whose it is.

use std::collections::HashSet;
use std::io::Write;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, RecordBatch};
use arrow::datatypes::{
    DataType, Float64Type, Int64Type, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType, ToByteSlice,
};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::{KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use uuid::Uuid;

use crate::ResultsError;
use crate::columns::fingerprint;

/// zstd level of Parquet pages: parts are written once and read often, and rows arrive far slower than this encodes.
const ZSTD_LEVEL: i32 = 3;
/// Rows of a row group: a full `tasks` part has four, so that readers can use several cores.
const ROW_GROUP_ROWS: usize = 65_536;

/// Rows of a row group of an exported table: nobody writes to it any more, so larger ones than those of parts.
const EXPORT_ROW_GROUP_ROWS: usize = 131_072;

/// First rows that say whether a column's values are worth a dictionary.
const UNLIKE_ROWS: usize = 100;

const KEY_EXPERIMENT: &str = "powersweep.experiment";
const KEY_PART_ID: &str = "powersweep.part_id";
const KEY_ROWS: &str = "powersweep.rows";
const KEY_SCHEMA: &str = "powersweep.schema";
const KEY_VERSION: &str = "powersweep.version";

/// What a part's footer says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// Name of the experiment.
    pub experiment: String,
    /// The part's id, also in its file name.
    pub part_id: Uuid,
    /// Rows in the part.
    pub rows: u64,
}

/// Encodes batches of one schema as a Parquet file in memory.
///
/// Fails if a batch has another schema, or if `footer.rows` is not the number of rows.
pub fn encode(schema: &SchemaRef, batches: &[RecordBatch], footer: &Footer) -> Result<Bytes, ResultsError> {
    encode_from(schema, batches.iter().cloned().map(Ok), footer)
}

/// [`encode`] of batches made one after the other, so that only one row group is in memory besides the file's bytes.
/// Batches of few rows take as long each as those of some hundreds.
pub fn encode_from(
    schema: &SchemaRef,
    batches: impl IntoIterator<Item = Result<RecordBatch, ResultsError>>,
    footer: &Footer,
) -> Result<Bytes, ResultsError> {
    let mut batches = batches.into_iter();
    let first = batches.next().transpose()?;
    let mut writer = arrow_writer(schema, footer, first.as_ref())?;
    let mut rows = 0;
    for batch in first.into_iter().map(Ok).chain(batches) {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        writer.write(&batch)?;
    }
    if rows != footer.rows {
        return Err(ResultsError::Footer("row count"));
    }
    Ok(writer.into_inner()?.into())
}

/// How many row groups a part of so many rows has.
pub fn row_groups(rows: u64) -> usize {
    usize::try_from(rows.div_ceil(ROW_GROUP_ROWS as u64)).unwrap_or(usize::MAX).max(1)
}

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
    columns: Vec<ArrowColumnChunk>,
    rows: u64,
}

/// An empty part, and what its row groups are encoded with. `first` are some of its rows.
pub fn in_groups(
    schema: &SchemaRef,
    footer: &Footer,
    first: Option<&RecordBatch>,
) -> Result<(Groups, GroupEncoder), ResultsError> {
    let (file, columns) = arrow_writer(schema, footer, first)?.into_serialized_writer()?;
    let groups = Groups { file, rows_left: footer.rows };
    Ok((groups, GroupEncoder { schema: schema.clone(), columns }))
}

impl GroupEncoder {
    /// Encodes one row group from batches of the part's schema. Besides it only one batch is in memory.
    pub fn encode(
        &self,
        batches: impl IntoIterator<Item = Result<RecordBatch, ResultsError>>,
    ) -> Result<Group, ResultsError> {
        // The number of a group matters to encrypted files alone.
        let mut writers = self.columns.create_column_writers(0)?;
        let mut rows = 0;
        for batch in batches {
            let batch = batch?;
            rows += batch.num_rows() as u64;
            let mut next = writers.iter_mut();
            for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                for leaf in compute_leaves(field, column)? {
                    next.next().ok_or(ResultsError::Footer("column count"))?.write(&leaf)?;
                }
            }
        }
        let columns = writers.into_iter().map(ArrowColumnWriter::close).collect::<Result<_, _>>()?;
        Ok(Group { columns, rows })
    }
}

impl Groups {
    /// Adds a row group behind the others.
    pub fn append(&mut self, group: Group) -> Result<(), ResultsError> {
        self.rows_left = self.rows_left.checked_sub(group.rows).ok_or(ResultsError::Footer("row count"))?;
        let mut columns = self.file.next_row_group()?;
        for column in group.columns {
            column.append_to_row_group(&mut columns)?;
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

/// A writer of one part, set up for rows like the first ones.
fn arrow_writer(
    schema: &SchemaRef,
    footer: &Footer,
    first: Option<&RecordBatch>,
) -> Result<ArrowWriter<Vec<u8>>, ResultsError> {
    let unlike = first.map(columns_of_unlike_values).unwrap_or_default();
    let without_dictionary =
        |builder: WriterPropertiesBuilder, column| builder.set_column_dictionary_enabled(column, false);
    let properties = unlike.into_iter().fold(properties(schema, footer)?.into_builder(), without_dictionary).build();
    Ok(ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties))?)
}

/// How every part is written.
pub(crate) fn properties(schema: &Schema, footer: &Footer) -> Result<WriterProperties, ResultsError> {
    let mut pairs = origin(schema, &footer.experiment);
    pairs.push(key_value(KEY_PART_ID, footer.part_id.to_string()));
    pairs.push(key_value(KEY_ROWS, footer.rows.to_string()));
    Ok(builder(pairs)?.set_max_row_group_row_count(Some(ROW_GROUP_ROWS)).build())
}

/// A writer of a table that is no part: an export, or rows on their way to another tool.
pub fn export_writer<W: Write + Send>(
    schema: &SchemaRef,
    experiment: &str,
    out: W,
) -> Result<ArrowWriter<W>, ResultsError> {
    let properties = builder(origin(schema, experiment))?.set_max_row_group_row_count(Some(EXPORT_ROW_GROUP_ROWS));
    Ok(ArrowWriter::try_new(out, schema.clone(), Some(properties.build()))?)
}

fn key_value(key: &str, value: String) -> KeyValue {
    KeyValue::new(key.to_owned(), value)
}

/// What all our Parquet files say of themselves.
fn origin(schema: &Schema, experiment: &str) -> Vec<KeyValue> {
    vec![
        key_value(KEY_EXPERIMENT, experiment.to_owned()),
        key_value(KEY_SCHEMA, format!("{:016x}", fingerprint(schema))),
        key_value(KEY_VERSION, env!("CARGO_PKG_VERSION").to_owned()),
    ]
}

fn builder(pairs: Vec<KeyValue>) -> Result<WriterPropertiesBuilder, ResultsError> {
    Ok(WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("powersweep ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(pairs)))
}

/// Columns whose values nearly all differ in the first rows, such as ids, instants and most means. A dictionary of
/// them is as long as the column, and looking each value up in it is most of what encoding costs.
fn columns_of_unlike_values(batch: &RecordBatch) -> Vec<ColumnPath> {
    let rows = batch.num_rows().min(UNLIKE_ROWS);
    let most = |distinct: usize| 2 * distinct > rows;
    let unlike = |column: &ArrayRef| match column.data_type() {
        DataType::Utf8 => most(column.as_string::<i32>().iter().take(rows).collect::<HashSet<_>>().len()),
        DataType::Int64 => most(distinct(column.as_primitive::<Int64Type>(), rows)),
        DataType::Float64 => most(distinct(column.as_primitive::<Float64Type>(), rows)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            most(distinct(column.as_primitive::<TimestampMicrosecondType>(), rows))
        }
        _ => false,
    };
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let names = columns.filter(|(_, column)| unlike(column)).map(|(field, _)| ColumnPath::from(field.name().as_str()));
    // Few rows tell little, and cost little.
    if rows < UNLIKE_ROWS { Vec::new() } else { names.collect() }
}

/// Different values among the first rows.
fn distinct<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>, rows: usize) -> usize {
    column
        .iter()
        .take(rows)
        .map(|value| value.map(|value| value.to_byte_slice().to_vec()))
        .collect::<HashSet<_>>()
        .len()
}

/// The footer of a part, from the file's bytes.
pub fn read_footer(bytes: &Bytes) -> Result<Footer, ResultsError> {
    footer_of(&ParquetMetaDataReader::new().parse_and_finish(bytes)?)
}

/// The footer of a part, from its Parquet metadata.
pub fn footer_of(metadata: &ParquetMetaData) -> Result<Footer, ResultsError> {
    let pairs = metadata.file_metadata().key_value_metadata();
    let value = |key: &'static str| {
        let found = pairs.into_iter().flatten().find(|pair| pair.key == key).and_then(|pair| pair.value.as_deref());
        found.ok_or(ResultsError::Footer(key))
    };
    let footer = Footer {
        experiment: value(KEY_EXPERIMENT)?.to_owned(),
        part_id: value(KEY_PART_ID)?.parse().map_err(|_| ResultsError::Footer(KEY_PART_ID))?,
        rows: value(KEY_ROWS)?.parse().map_err(|_| ResultsError::Footer(KEY_ROWS))?,
    };
    if u64::try_from(metadata.file_metadata().num_rows()) != Ok(footer.rows) {
        return Err(ResultsError::Footer(KEY_ROWS));
    }
    Ok(footer)
}
