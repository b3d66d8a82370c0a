//! Objects of workers, before their rows are accepted.

use std::collections::BTreeSet;
use std::ops::Range;

use arrow::array::AsArray;
use arrow::datatypes::SchemaRef;
use arrow::pages::{self, Stated};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowSchemaConverter, ProjectionMask, parquet_to_arrow_schema};
use parquet::basic::Type;
use parquet::column::reader::ColumnReader;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{FileReader, SerializedFileReader};
use uuid::Uuid;

use super::{Footer, GROUP_TEXT_BYTES, read_footer};
use crate::ResultsError;
use crate::bounds::{LIST_BYTES_MAX, TEXT_BYTES_MAX};

/// Maximum number of tasks with rows in one object: those of a hand-in.
const TASKS_MAX: usize = 65_536;

/// Rows of a row group, and of all row groups, of an object. A worker's row groups have 65,536, and a task's jobs are fewer.
const GROUP_ROWS_MAX: u64 = 1 << 20;
const ROWS_MAX: u64 = 1 << 26;
/// Bytes of the texts of a row group: twice those of a worker's.
const TEXT_BYTES: u64 = 2 * GROUP_TEXT_BYTES;
/// Bytes of a page, decompressed. A page of a worker has at most the texts of 1,024 cells.
const PAGE_BYTES_MAX: u64 = 128 << 20;
/// Bytes of the lists of a column in a row group of a stranger's table.
const LISTS_BYTES_MAX: u64 = 2 << 30;
const NUMBER_BYTES: u64 = 8;
/// Values that are read at once.
const VALUES_AT_ONCE: usize = 1024;

/// The columns of the keys.
const KEYS: [&str; 2] = ["experiment", "task_id"];

/// The ranges of an object that [`inspect`] reads beside the metadata at its end: the texts, in order and without overlaps. `tail` is
/// the end of the object, with all metadata; `bytes` is its size. May panic where the library does; callers catch that.
pub fn text_ranges(tail: &Bytes, bytes: u64) -> Result<Vec<Range<u64>>, ResultsError> {
    let mut reader = ParquetMetaDataReader::new();
    reader.try_parse_sized(tail, bytes)?;
    let metadata = reader.finish()?;
    let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    let mut ranges: Vec<Range<u64>> = columns
        .filter(|column| column.column_type() == Type::BYTE_ARRAY && is_inside(column, bytes))
        .map(|column| column.byte_range())
        .map(|(start, length)| start..start.saturating_add(length).min(bytes))
        .collect();
    ranges.sort_by_key(|range| range.start);
    let mut apart: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match apart.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => apart.push(range),
        }
    }
    Ok(apart)
}

/// The identity of an object that can be merged into a part, and the tasks that its rows are of, in order.
///
/// Checks the footer, the columns, the place of every column in the file, the lengths of all texts, and the keys of all rows:
/// their later readers take no more memory than for those of a sound worker. The values of the other columns are
/// the worker's word. May panic where the library does; callers catch that.
pub fn inspect(bytes: &Bytes, schema: &SchemaRef) -> Result<(Footer, Vec<Uuid>), ResultsError> {
    let footer = read_footer(bytes)?;
    let metadata = ParquetMetaDataReader::new().parse_and_finish(bytes)?;
    check_columns(&metadata, schema)?;
    let rows = metadata.row_groups().iter().map(|group| u64::try_from(group.num_rows()).ok());
    let mut rows = rows.map(|rows| rows.filter(|rows| *rows <= GROUP_ROWS_MAX));
    let rows = rows.try_fold(0_u64, |sum, rows| sum.checked_add(rows?));
    if rows != Some(footer.rows) || footer.rows > ROWS_MAX {
        return Err(ResultsError::Footer("row count"));
    }
    let mut columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    if !columns.all(|column| is_inside(column, bytes.len() as u64)) {
        return Err(ResultsError::Footer("column offset"));
    }
    check_pages(bytes, &metadata, |column| column.column_type() == Type::BYTE_ARRAY)?;
    check_texts(bytes, TEXT_BYTES)?;
    let tasks = tasks(bytes, &footer)?;
    Ok((footer, tasks))
}

/// Compares the columns with the table's, in both type systems: parts are merged by copying columns.
fn check_columns(metadata: &ParquetMetaData, schema: &SchemaRef) -> Result<(), ResultsError> {
    let file = metadata.file_metadata();
    let expected = ArrowSchemaConverter::new().convert(schema)?;
    let found = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())?;
    let same = file.schema() == expected.root_schema() && found.fields() == schema.fields();
    if same { Ok(()) } else { Err(ResultsError::Footer("columns")) }
}

/// Whether the pages of a column are in the file.
fn is_inside(column: &ColumnChunkMetaData, file_bytes: u64) -> bool {
    let offsets = [Some(column.data_page_offset()), column.dictionary_page_offset()];
    let size = u64::try_from(column.compressed_size()).ok();
    let fits = |offset: i64| Some(u64::try_from(offset).ok()?.checked_add(size?)? <= file_bytes);
    let first = offsets.into_iter().flatten().min();
    column.num_values() >= 0
        && column.uncompressed_size() >= 0
        && offsets.into_iter().flatten().all(|offset| (0..=file_bytes.cast_signed()).contains(&offset))
        && first.and_then(fits) == Some(true)
}

/// Refuses a table of a stranger from which a row could take more memory than a row of powersweep does. May panic where the
/// library does; callers catch that.
pub fn check_foreign(bytes: &Bytes) -> Result<(), ResultsError> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(bytes)?;
    for group in metadata.row_groups() {
        let lists = group.num_rows().unsigned_abs().saturating_mul(LIST_BYTES_MAX).min(LISTS_BYTES_MAX);
        for column in group.columns() {
            if !is_inside(column, bytes.len() as u64) {
                return Err(ResultsError::Footer("column offset"));
            }
            let values = stated(bytes, column).map_or(u64::MAX, |pages| pages.values);
            let is_list = column.column_descr().max_rep_level() > 0;
            if is_list && values.saturating_mul(NUMBER_BYTES) > lists {
                return Err(ResultsError::TooLarge { bytes: values.saturating_mul(NUMBER_BYTES), limit: lists });
            }
        }
    }
    check_pages(bytes, &metadata, |_| true)?;
    check_texts(bytes, u64::MAX)
}

/// The sizes that the pages of a column state; `None` if the pages are not at the stated place or not of the stated size.
fn stated(bytes: &Bytes, column: &ColumnChunkMetaData) -> Option<Stated> {
    let (begin, length) = column.byte_range();
    pages::stated(bytes.get(begin as usize..)?.get(..length as usize)?, pages::VALUE_BYTES_MIN)
}

/// Refuses an object with pages that are not where and as large as their headers say, or not small. `of`: the columns whose
/// pages are in `bytes`. All columns are in the object.
pub(crate) fn check_pages(
    bytes: &Bytes,
    metadata: &ParquetMetaData,
    of: impl Fn(&ColumnChunkMetaData) -> bool,
) -> Result<(), ResultsError> {
    let is_small = |column| stated(bytes, column).is_some_and(|pages| pages.largest <= PAGE_BYTES_MAX);
    let mut columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    if columns.all(|column| !of(column) || is_small(column)) { Ok(()) } else { Err(ResultsError::Footer("page size")) }
}

/// Compares the texts of each row group with the bounds of cells and row groups. The values that are read share the memory of
/// their page: a text that a dictionary repeats a million times is in memory once.
fn check_texts(bytes: &Bytes, group_max: u64) -> Result<(), ResultsError> {
    let file = SerializedFileReader::new(bytes.clone())?;
    let mut rows_before = 0;
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group)?;
        let mut all = 0;
        for at in 0..group.num_columns() {
            let ColumnReader::ByteArrayColumnReader(mut column) = group.get_column_reader(at)? else { continue };
            let name = || group.metadata().column(at).column_path().string();
            let (mut row, mut levels, mut texts) = (rows_before, Vec::new(), Vec::new());
            loop {
                levels.clear();
                texts.clear();
                let (rows, ..) = column.read_records(VALUES_AT_ONCE, Some(&mut levels), None, &mut texts)?;
                for bytes in texts.iter().map(|text| text.len() as u64) {
                    all += bytes;
                    if bytes > TEXT_BYTES_MAX as u64 {
                        return Err(ResultsError::long_cell(row, &name(), bytes, TEXT_BYTES_MAX as u64));
                    }
                }
                row += rows;
                if rows == 0 {
                    break;
                }
            }
        }
        if all > group_max {
            return Err(ResultsError::TooLarge { bytes: all, limit: group_max });
        }
        rows_before += usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    }
    Ok(())
}

/// The distinct tasks of the rows.
fn tasks(bytes: &Bytes, footer: &Footer) -> Result<Vec<Uuid>, ResultsError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes.clone())?;
    let keys = ProjectionMask::columns(builder.parquet_schema(), KEYS);
    let (mut tasks, mut row) = (BTreeSet::new(), 0);
    let mut last = String::new();
    for batch in builder.with_projection(keys).build()? {
        let batch = batch?;
        let columns = (batch.column(0).as_string::<i32>(), batch.column(1).as_string::<i32>());
        for (experiment, id) in columns.0.iter().zip(columns.1) {
            let foreign = |reason| ResultsError::Foreign { row, reason };
            if experiment != Some(footer.experiment.as_str()) {
                return Err(foreign("is of another experiment"));
            }
            let id = id.unwrap_or_default();
            if id != last {
                tasks.insert(Uuid::try_parse(id).map_err(|_| foreign("has no task_id"))?);
                id.clone_into(&mut last);
            }
            if tasks.len() > TASKS_MAX {
                return Err(foreign("is of one task too many"));
            }
            row += 1;
        }
    }
    if row as u64 != footer.rows {
        return Err(ResultsError::Footer("row count"));
    }
    Ok(tasks.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Builder, Int64Array, ListBuilder, RecordBatch, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::ColumnChunkMetaDataBuilder;

    use super::*;
    use crate::part::{encode, properties};

    /// Whether a changed column of a sound object counts as inside of it.
    fn passes(change: impl FnOnce(ColumnChunkMetaDataBuilder) -> ColumnChunkMetaDataBuilder) -> bool {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(Int64Array::from(vec![1, 2]))]).expect("fits");
        let object = encode(&schema, &[batch], &Footer::new("e", Uuid::nil(), 2)).expect("a part");
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&object).expect("a part");
        let column = metadata.row_group(0).column(0).clone().into_builder();
        is_inside(&change(column).build().expect("it is a column"), object.len() as u64)
    }

    /// The check of an object with zeros in place of all bytes that are in no range gives the same.
    /// An object of one row group whose rows have these texts.
    fn object_of(text: &str, rows: usize) -> (Bytes, SchemaRef) {
        let footer = Footer::new("e", Uuid::nil(), rows as u64);
        let columns: [(&str, ArrayRef); 3] = [
            ("experiment", Arc::new(StringArray::from(vec!["e"; 1]))),
            ("task_id", Arc::new(StringArray::from(vec![Uuid::nil().to_string(); 1]))),
            ("name", Arc::new(StringArray::from(vec![text; 1]))),
        ];
        let one = RecordBatch::try_from_iter(columns).expect("columns of one length");
        let properties = properties(&one.schema(), &footer).expect("valid").into_builder();
        let properties = properties.set_max_row_group_row_count(Some(rows)).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), one.schema(), Some(properties)).expect("a writer");
        for _ in 0..rows {
            writer.write(&one).expect("written");
        }
        (writer.into_inner().expect("closed").into(), one.schema())
    }

    /// A dictionary has each text once: of these objects only their readers would take gigabytes.
    #[test]
    fn an_object_with_long_texts_is_refused_whatever_its_size() {
        let (sound, schema) = object_of(&"x".repeat(65_536), 10);
        inspect(&sound, &schema).expect("sound");
        let (long, schema) = object_of(&"x".repeat(65_537), 1);
        let error = inspect(&long, &schema).expect_err("a long text").to_string();
        assert_eq!(error, "row 0 has 65537 bytes in the column `name`, at most 65536 are allowed");
        let (many, schema) = object_of(&"x".repeat(65_536), 5_000);
        assert!(many.len() < 1 << 20, "{} bytes", many.len());
        assert!(matches!(inspect(&many, &schema), Err(ResultsError::TooLarge { .. })));
        let (bomb, schema) = object_of(&"x".repeat(200 << 20), 1);
        assert!(matches!(inspect(&bomb, &schema), Err(ResultsError::Footer("page size"))), "{}", bomb.len());
    }

    /// A table that a stranger exported has no footer of a part.
    #[test]
    fn a_foreign_table_is_refused_by_what_its_rows_become() {
        check_foreign(&object_of(&"x".repeat(65_536), 2_000).0).expect("its rows are read one by one");
        let long = check_foreign(&object_of(&"x".repeat(65_537), 1).0);
        assert!(matches!(long, Err(ResultsError::Long { .. })), "{long:?}");
        let bomb = check_foreign(&object_of(&"x".repeat(130 << 20), 1).0);
        assert!(matches!(bomb, Err(ResultsError::Footer("page size"))), "{bomb:?}");
        let listed = |values: usize| {
            let mut list = ListBuilder::new(Float64Builder::new());
            list.values().append_slice(&vec![1.5; values]);
            list.append(true);
            let list: ArrayRef = Arc::new(list.finish());
            let batch = RecordBatch::try_from_iter([("list", list)]).expect("one column");
            check_foreign(&encode(&batch.schema(), &[batch], &Footer::new("e", Uuid::nil(), 1)).expect("encodes"))
        };
        listed(131_072).expect("as long as a cell may be");
        assert!(matches!(listed(131_073), Err(ResultsError::TooLarge { .. })));
    }

    #[test]
    fn the_check_reads_the_texts_and_the_metadata() {
        let field = |name: &str, kind| Field::new(name, kind, false);
        let fields = [("experiment", DataType::Utf8), ("filler", DataType::Int64), ("task_id", DataType::Utf8)];
        let schema = Arc::new(Schema::new(fields.map(|(name, kind)| field(name, kind)).to_vec()));
        let ids: Vec<Uuid> = (1..=4).map(Uuid::from_u128).collect();
        let rows: usize = 40_000;
        let texts = |text: &dyn Fn(usize) -> String| Arc::new(StringArray::from_iter_values((0..rows).map(text)));
        let filler =
            Int64Array::from_iter_values((0..rows as i64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64)));
        let columns: Vec<ArrayRef> =
            vec![texts(&|_| "e".to_owned()), Arc::new(filler), texts(&|row| ids[row * 4 / rows].to_string())];
        let batch = RecordBatch::try_new(schema.clone(), columns).expect("fits");
        let footer = Footer::new("e", Uuid::from_u128(9), rows as u64);
        let object = encode(&schema, &[batch], &footer).expect("a part");
        let (bytes, tail_begin) = (object.len() as u64, object.len() - 8_000);
        let ranges = text_ranges(&object.slice(tail_begin..), bytes).expect("a part");
        let read: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        assert!(read > 0 && read < bytes / 20, "{read} of {bytes} bytes");
        assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{ranges:?}");
        let mut sparse = vec![0; object.len()];
        for range in ranges
            .iter()
            .map(|range| range.start as usize..range.end as usize)
            .chain(std::iter::once(tail_begin..object.len()))
        {
            sparse[range.clone()].copy_from_slice(&object[range]);
        }
        let checked =
            |object: &Bytes| inspect(object, &schema).map(|(footer, tasks)| (footer.part_id, footer.rows, tasks));
        assert_eq!(checked(&sparse.into()).expect("sound"), checked(&object).expect("sound"));
        assert_eq!(checked(&object).expect("sound").2, ids);
        assert!(text_ranges(&object.slice(..object.len() - 1), bytes).is_err(), "a cut object");
    }

    /// Each number is enough: the library takes them for sizes and offsets.
    #[test]
    fn a_column_with_a_wrong_number_is_not_inside() {
        assert!(passes(|column| column));
        assert!(!passes(|column| column.set_num_values(-1)));
        assert!(!passes(|column| column.set_total_uncompressed_size(-1)));
        assert!(!passes(|column| column.set_total_compressed_size(-1)));
        assert!(!passes(|column| column.set_total_compressed_size(1 << 40)));
        assert!(!passes(|column| column.set_data_page_offset(-1)));
        assert!(!passes(|column| column.set_dictionary_page_offset(Some(1 << 40))));
    }
}
