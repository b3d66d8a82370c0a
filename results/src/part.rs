//! Parts: immutable Parquet files, each with a footer that identifies it.

mod groups;
mod inspect;

use std::collections::{BTreeMap, HashSet};
use std::io::Write;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, RecordBatch};
use arrow::datatypes::{
    DataType, Float64Type, Int64Type, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType, ToByteSlice,
};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::{KeyValue, ParquetMetaDataReader};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use uuid::Uuid;

pub use self::groups::{ColumnEncoder, EncodedColumn, Group, GroupEncoder, Groups, in_groups};
pub(crate) use self::inspect::check_pages;
pub use self::inspect::{check_foreign, inspect, text_ranges};
use crate::ResultsError;
use crate::columns::fingerprint;
use crate::folded::{Folded, FoldedBatch};

/// zstd level of the pages of parts: with level 3 the whole encoding takes a sixth longer, and a sweep's rows take 2%
/// fewer bytes.
const ZSTD_LEVEL: i32 = 1;
/// zstd level of exported tables, which are written once and kept.
const EXPORT_ZSTD_LEVEL: i32 = 3;
/// Rows of a row group: a full `tasks` part has four, so that readers can use several cores.
const ROW_GROUP_ROWS: usize = 65_536;

/// Bytes of the texts and lists of a row group. Readers take a row group at a time, and offsets in a column have 31 bits.
const GROUP_TEXT_BYTES: u64 = 128 << 20;

/// Rows of a row group of an exported table: more than of a part, because an export is complete when it is written.
pub const EXPORT_ROW_GROUP_ROWS: usize = 131_072;

/// Number of first rows that decide whether a column gets a dictionary.
const SAMPLED_ROWS: usize = 100;

/// Rows of a page of a part. The writer keeps eight bytes for each value of a column's open page, so that the library's
/// 20,000 rows would cost the coordinator memory.
const PAGE_ROWS: usize = 4096;

const KEY_EXPERIMENT: &str = "powersweep.experiment";
/// Key of a part's id in its footer.
pub const KEY_PART_ID: &str = "powersweep.part_id";
const KEY_ROWS: &str = "powersweep.rows";
const KEY_SCHEMA: &str = "powersweep.schema";
const KEY_VERSION: &str = "powersweep.version";
/// Key of the manifest's text in the metadata of a file.
pub const KEY_MANIFEST: &str = "powersweep.manifest";
const KEY_LOG_DIGESTS: &str = "powersweep.log_digests";
const KEY_COMPONENT_VERSIONS: &str = "powersweep.component_versions";
const KEY_BUILD: &str = "powersweep.build";
const KEY_LEDGERS: &str = "powersweep.ledgers";

/// Longest text of a manifest that a footer has. Every part has a footer, and readers read it whole.
const MANIFEST_BYTES_MAX: usize = 1 << 16;

/// Longest text of the ledgers of a footer (bytes).
pub const LEDGERS_BYTES_MAX: usize = 1 << 16;

/// The identity of a part, as its footer has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// Name of the experiment.
    pub experiment: String,
    /// The part's id, also in its file name.
    pub part_id: Uuid,
    /// Rows in the part.
    pub rows: u64,
    /// What its rows come from. It does not identify the part: after an edit of the manifest, the same part may be made
    /// again with another origin.
    pub origin: Origin,
}

/// What rows come from, for readers of a file without its farm. Empty fields have no entry in a footer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// The text of the manifest. A text of more than 64 KiB is left out.
    pub manifest: String,
    /// SHA-256 of each log, by its name in the manifest.
    pub log_digests: BTreeMap<String, String>,
    /// Versions of the kernel and of the components.
    pub component_versions: BTreeMap<String, u32>,
    /// Version and commit of the program that made the part.
    pub build: String,
    /// What happened to the rows of job logs and signals when they were read: a JSON array with one object for each file.
    pub ledgers: String,
}

impl Footer {
    /// The footer of a part whose origin is not known.
    pub fn new(experiment: &str, part_id: Uuid, rows: u64) -> Footer {
        Footer { experiment: experiment.to_owned(), part_id, rows, origin: Origin::default() }
    }
}

impl Origin {
    /// The origin of the rows of several parts: the manifest and the ledgers of the last part that has them, and the digests,
    /// versions and programs of all.
    pub fn merged(parts: impl IntoIterator<Item = Origin>) -> Origin {
        let mut all = Origin::default();
        let mut builds: Vec<String> = Vec::new();
        for part in parts {
            if !part.manifest.is_empty() {
                all.manifest = part.manifest;
            }
            if !part.ledgers.is_empty() {
                all.ledgers = part.ledgers;
            }
            if !part.build.is_empty() && !builds.contains(&part.build) {
                builds.push(part.build);
            }
            all.log_digests.extend(part.log_digests);
            all.component_versions.extend(part.component_versions);
        }
        Origin { build: builds.join(", "), ..all }
    }

    /// The entries of a footer. Maps are JSON objects.
    fn pairs(&self) -> Result<Vec<KeyValue>, ResultsError> {
        let json = |error: serde_json::Error| ResultsError::Damaged(error.into());
        let manifest = if self.manifest.len() > MANIFEST_BYTES_MAX { "" } else { &self.manifest };
        let digests = serde_json::to_string(&self.log_digests).map_err(json)?;
        let versions = serde_json::to_string(&self.component_versions).map_err(json)?;
        let pairs = [
            (KEY_MANIFEST, manifest),
            (KEY_LOG_DIGESTS, &digests),
            (KEY_COMPONENT_VERSIONS, &versions),
            (KEY_BUILD, &self.build),
            (KEY_LEDGERS, &self.ledgers),
        ];
        let some = pairs.into_iter().filter(|(_, value)| !["", "{}"].contains(value));
        Ok(some.map(|(key, value)| key_value(key, value.to_owned())).collect())
    }

    /// The origin in a footer; empty where an entry is missing or is none of ours.
    pub fn of(value: impl Fn(&'static str) -> Option<String>) -> Origin {
        let text = |key| value(key).unwrap_or_default();
        Origin {
            manifest: text(KEY_MANIFEST),
            log_digests: serde_json::from_str(&text(KEY_LOG_DIGESTS)).unwrap_or_default(),
            component_versions: serde_json::from_str(&text(KEY_COMPONENT_VERSIONS)).unwrap_or_default(),
            build: text(KEY_BUILD),
            ledgers: text(KEY_LEDGERS),
        }
    }
}

/// Encodes batches of one schema as a Parquet file in memory.
///
/// Fails if a batch has another schema, or if `footer.rows` is not the number of rows.
pub fn encode(schema: &SchemaRef, batches: &[RecordBatch], footer: &Footer) -> Result<Bytes, ResultsError> {
    encode_from(schema, batches.iter().map(|batch| Ok(FoldedBatch::of(batch))), footer)
}

/// Encodes batches that are made one after the other into a part: only one row group is in memory besides the file's
/// bytes. A batch of few rows takes as long as one of some hundreds.
pub fn encode_from(
    schema: &SchemaRef,
    batches: impl IntoIterator<Item = Result<FoldedBatch, ResultsError>>,
    footer: &Footer,
) -> Result<Bytes, ResultsError> {
    let mut batches = batches.into_iter();
    let first = batches.next().transpose()?;
    let (mut part, encoder) = in_groups(schema, footer, first.as_ref())?;
    encoder.encode(first.into_iter().map(Ok).chain(batches), ROW_GROUP_ROWS, |group| part.append(group))?;
    Ok(part.finish()?.into())
}

/// Number of row groups of a part with this number of rows.
pub fn row_groups(rows: u64) -> usize {
    usize::try_from(rows.div_ceil(ROW_GROUP_ROWS as u64)).unwrap_or(usize::MAX).max(1)
}

/// A writer of one part, configured for rows like `first`.
fn arrow_writer(
    schema: &SchemaRef,
    footer: &Footer,
    first: Option<&FoldedBatch>,
) -> Result<ArrowWriter<Vec<u8>>, ResultsError> {
    let columns = first.map(columns_without_dictionary).unwrap_or_default();
    let properties = columns.into_iter().fold(properties(schema, footer)?.into_builder(), without_dictionary).build();
    Ok(ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties))?)
}

/// The properties of the writer of every part.
pub(crate) fn properties(schema: &Schema, footer: &Footer) -> Result<WriterProperties, ResultsError> {
    let mut pairs = kind(schema, &footer.experiment);
    pairs.extend(footer.origin.pairs()?);
    pairs.push(key_value(KEY_PART_ID, footer.part_id.to_string()));
    pairs.push(key_value(KEY_ROWS, footer.rows.to_string()));
    Ok(builder(pairs, ZSTD_LEVEL)?
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .build())
}

/// A writer of a table that is not a part: an export, or rows for another tool.
pub fn export_writer<W: Write + Send>(
    schema: &SchemaRef,
    experiment: &str,
    out: W,
) -> Result<ArrowWriter<W>, ResultsError> {
    let properties = export_properties(schema, experiment, &Origin::default())?.build();
    Ok(ArrowWriter::try_new(out, schema.clone(), Some(properties))?)
}

/// A table that is not a part and is written column by column. `origin` is that of all rows. `distinct`: columns whose
/// values mostly differ, which get no dictionary.
pub fn export_groups<W: Write + Send>(
    schema: &SchemaRef,
    experiment: &str,
    origin: &Origin,
    distinct: impl IntoIterator<Item = String>,
    out: W,
) -> Result<(Groups<W>, GroupEncoder), ResultsError> {
    let columns = distinct.into_iter().map(ColumnPath::from);
    let properties = columns.fold(export_properties(schema, experiment, origin)?, without_dictionary).build();
    groups::from_writer(schema, ArrowWriter::try_new(out, schema.clone(), Some(properties))?, None)
}

fn export_properties(
    schema: &Schema,
    experiment: &str,
    origin: &Origin,
) -> Result<WriterPropertiesBuilder, ResultsError> {
    let pairs = [kind(schema, experiment), origin.pairs()?].concat();
    let builder = builder(pairs, EXPORT_ZSTD_LEVEL)?;
    Ok(builder.set_max_row_group_row_count(Some(EXPORT_ROW_GROUP_ROWS)))
}

fn without_dictionary(builder: WriterPropertiesBuilder, column: ColumnPath) -> WriterPropertiesBuilder {
    builder.set_column_dictionary_enabled(column, false)
}

fn key_value(key: &str, value: String) -> KeyValue {
    KeyValue::new(key.to_owned(), value)
}

/// The footer entries of every Parquet file that powersweep writes.
fn kind(schema: &Schema, experiment: &str) -> Vec<KeyValue> {
    vec![
        key_value(KEY_EXPERIMENT, experiment.to_owned()),
        key_value(KEY_SCHEMA, format!("{:016x}", fingerprint(schema))),
        key_value(KEY_VERSION, env!("CARGO_PKG_VERSION").to_owned()),
    ]
}

fn builder(pairs: Vec<KeyValue>, zstd_level: i32) -> Result<WriterPropertiesBuilder, ResultsError> {
    Ok(WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(zstd_level)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("powersweep ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(pairs)))
}

/// Columns in which more than half of the first values are distinct, such as ids, instants and most means. Their
/// dictionary would be about as long as the column, and the look-ups in it would be most of the cost of encoding.
fn columns_without_dictionary(batch: &FoldedBatch) -> Vec<ColumnPath> {
    let rows = batch.rows().min(SAMPLED_ROWS);
    let most = |distinct: usize| 2 * distinct > rows;
    let is_distinct = |column: &ArrayRef| match column.data_type() {
        DataType::Utf8 => most(column.as_string::<i32>().iter().take(rows).collect::<HashSet<_>>().len()),
        DataType::Int64 => most(distinct(column.as_primitive::<Int64Type>(), rows)),
        DataType::Float64 => most(distinct(column.as_primitive::<Float64Type>(), rows)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            most(distinct(column.as_primitive::<TimestampMicrosecondType>(), rows))
        }
        _ => false,
    };
    // Too few rows to decide; they are cheap to encode either way.
    if rows < SAMPLED_ROWS {
        return Vec::new();
    }
    let columns = batch.schema().fields().iter().zip(batch.columns());
    let found = columns.filter(|(_, column)| matches!(column, Folded::Rows(rows) if is_distinct(rows)));
    found.map(|(field, _)| ColumnPath::from(field.name().as_str())).collect()
}

/// Number of distinct values among the first rows.
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
    let metadata = ParquetMetaDataReader::new().parse_and_finish(bytes)?;
    let pairs = metadata.file_metadata().key_value_metadata();
    let value = |key: &'static str| {
        let found = pairs.into_iter().flatten().find(|pair| pair.key == key).and_then(|pair| pair.value.as_deref());
        found.ok_or(ResultsError::Footer(key))
    };
    let footer = Footer {
        experiment: value(KEY_EXPERIMENT)?.to_owned(),
        part_id: value(KEY_PART_ID)?.parse().map_err(|_| ResultsError::Footer(KEY_PART_ID))?,
        rows: value(KEY_ROWS)?.parse().map_err(|_| ResultsError::Footer(KEY_ROWS))?,
        origin: Origin::of(|key| value(key).ok().map(str::to_owned)),
    };
    if u64::try_from(metadata.file_metadata().num_rows()) != Ok(footer.rows) {
        return Err(ResultsError::Footer(KEY_ROWS));
    }
    Ok(footer)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;
    use arrow::datatypes::Field;
    use parquet::file::metadata::ParquetMetaData;

    use super::*;

    /// Whether a part with a column of these values has a dictionary.
    fn has_dictionary(values: Vec<i64>) -> bool {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let footer = Footer::new("e", Uuid::nil(), values.len() as u64);
        let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(Int64Array::from(values))]).expect("fits");
        let part = encode(&schema, &[batch], &footer).expect("a part");
        let metadata: ParquetMetaData = ParquetMetaDataReader::new().parse_and_finish(&part).expect("a part");
        metadata.row_group(0).column(0).dictionary_page_offset().is_some()
    }

    #[test]
    fn a_column_whose_values_mostly_differ_has_no_dictionary() {
        let rows = 2 * SAMPLED_ROWS as i64;
        // Of the first 100 values, as many differ as the number says.
        let distinct = |count: i64| (0..rows).map(|row| row % count).collect();
        assert!(has_dictionary(distinct(50)));
        assert!(!has_dictionary(distinct(51)));
        assert!(!has_dictionary(distinct(rows)));
        // Too few rows to decide.
        assert!(has_dictionary((0..SAMPLED_ROWS as i64 - 1).collect()));
    }
}
