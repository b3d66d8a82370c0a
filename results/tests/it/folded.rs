//! Columns of equal rows are stored once in memory: parts of them must equal files of the library's writer.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::statistics::Statistics;
use powersweep_results::folded::{Folded, FoldedBatch};
use powersweep_results::part::{self, Footer};
use powersweep_results::{ResultsError, tasks, wire};
use proptest::prelude::*;
use uuid::Uuid;

use crate::roundtrip::tasks_batch;

/// Rows of a row group of parts.
const GROUP: usize = 65_536;

/// Constant columns of every type that tables have, special values included.
fn values(rows: usize) -> Vec<(&'static str, ArrayRef)> {
    let ints = |value| Arc::new(Int64Array::from(vec![value; rows])) as ArrayRef;
    let reals = |value| Arc::new(Float64Array::from(vec![value; rows])) as ArrayRef;
    let texts = |value: Option<&str>| Arc::new(StringArray::from(vec![value; rows])) as ArrayRef;
    let instants =
        |value| Arc::new(TimestampMicrosecondArray::from(vec![value; rows]).with_timezone("UTC")) as ArrayRef;
    let bools = |value| Arc::new(BooleanArray::from(vec![value; rows])) as ArrayRef;
    let int_lists = |value: Option<Vec<Option<i64>>>| {
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(vec![value; rows])) as ArrayRef
    };
    let real_lists = |value: Option<Vec<Option<f64>>>| {
        Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(vec![value; rows])) as ArrayRef
    };
    vec![
        ("int", ints(Some(-7))),
        ("no int", ints(None)),
        ("real", reals(Some(0.1))),
        ("zero", reals(Some(0.0))),
        ("negative zero", reals(Some(-0.0))),
        ("infinity", reals(Some(f64::INFINITY))),
        ("not a number", reals(Some(f64::NAN))),
        ("no real", reals(None)),
        ("text", texts(Some("häuser"))),
        ("empty text", texts(Some(""))),
        ("long text", texts(Some(&"x".repeat(100)))),
        ("no text", texts(None)),
        ("instant", instants(Some(1_700_000_000_000_000))),
        ("no instant", instants(None)),
        ("true", bools(Some(true))),
        ("no bool", bools(None)),
        ("ints", int_lists(Some(vec![Some(1), None, Some(3)]))),
        ("empty ints", int_lists(Some(vec![]))),
        ("no ints", int_lists(None)),
        ("reals", real_lists(Some(vec![Some(0.5)]))),
        ("no reals", real_lists(None)),
    ]
}

/// Nullable columns, and a required one of each value that is not null.
fn batch(rows: usize) -> RecordBatch {
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (name, array) in values(rows) {
        if array.null_count() == 0 {
            fields.push(Field::new(format!("{name}, required"), array.data_type().clone(), false));
            columns.push(Arc::clone(&array));
        }
        fields.push(Field::new(name, array.data_type().clone(), true));
        columns.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("they fit")
}

fn ours(schema: &SchemaRef, batches: &[RecordBatch]) -> Bytes {
    let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
    let footer = Footer::new("e", Uuid::nil(), rows);
    part::encode(schema, batches, &footer).expect("encodes")
}

/// The rows as the library's writer of batches writes them.
fn reference(schema: &SchemaRef, batches: &[RecordBatch]) -> Bytes {
    let properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(GROUP))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(schema), Some(properties)).expect("a writer");
    batches.iter().for_each(|batch| writer.write(batch).expect("writes"));
    writer.into_inner().expect("closes").into()
}

fn read(bytes: &Bytes) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).expect("a Parquet file");
    let schema = Arc::clone(reader.schema());
    let batches: Vec<_> = reader.build().expect("a reader").map(|batch| batch.expect("readable")).collect();
    concat_batches(&schema, &batches).expect("one schema")
}

fn metadata(bytes: &Bytes) -> Arc<ParquetMetaData> {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    Arc::clone(ArrowReaderMetadata::load(bytes, options).expect("a footer").metadata())
}

/// Compares everything that the footers tell a reader about the values.
fn assert_same_metadata(ours: &Bytes, reference: &Bytes) {
    let (ours, reference) = (metadata(ours), metadata(reference));
    assert_eq!(ours.num_row_groups(), reference.num_row_groups());
    for (group, expected) in ours.row_groups().iter().zip(reference.row_groups()) {
        assert_eq!(group.num_rows(), expected.num_rows());
        for (column, expected) in group.columns().iter().zip(expected.columns()) {
            let name = column.column_path();
            assert_eq!(column.num_values(), expected.num_values(), "{name}");
            // As texts, because NaN does not equal itself.
            assert_eq!(format!("{:?}", column.statistics()), format!("{:?}", expected.statistics()), "{name}");
            let nan = |column: &ColumnChunkMetaData| column.statistics().and_then(Statistics::nan_count_opt);
            assert_eq!(nan(column), nan(expected), "{name}");
            assert_eq!(column.definition_level_histogram(), expected.definition_level_histogram(), "{name}");
            assert_eq!(column.repetition_level_histogram(), expected.repetition_level_histogram(), "{name}");
            assert_eq!(column.unencoded_byte_array_data_bytes(), expected.unencoded_byte_array_data_bytes(), "{name}");
        }
    }
}

#[test]
fn statistics_of_equal_rows_equal_those_of_the_library() {
    for rows in [1, 2, 63, 64, 8191, GROUP, GROUP + 1] {
        let batch = batch(rows);
        let (schema, batches) = (batch.schema(), std::slice::from_ref(&batch));
        let (part, expected) = (ours(&schema, batches), reference(&schema, batches));
        assert_same_metadata(&part, &expected);
        assert_eq!(read(&part).columns(), batch.columns());
    }
}

#[test]
fn equal_rows_take_no_space() {
    let size = |rows| ours(&batch(rows).schema(), &[batch(rows)]).len();
    let (few, many) = (size(2), size(GROUP));
    // Booleans and lists have a bit or a position each.
    assert!(many < few + 6 * GROUP / 8, "{few} bytes for two rows, {many} for {GROUP}");
}

#[test]
fn columns_that_begin_with_equal_rows_are_complete() {
    let (schema, head) = (batch(1).schema(), batch(5000));
    let nulls = |field: &Arc<Field>| arrow::array::new_null_array(field.data_type(), 3);
    let columns = schema.fields().iter().zip(head.columns());
    let tail = columns
        .map(|(field, head)| if field.is_nullable() { nulls(field) } else { head.slice(0, 3) })
        .collect::<Vec<_>>();
    let tail = RecordBatch::try_new(Arc::clone(&schema), tail).expect("they fit");
    let batches = [head.clone(), head, tail.clone(), batch(10), tail];
    let (part, expected) = (ours(&schema, &batches), reference(&schema, &batches));
    assert_same_metadata(&part, &expected);
    assert_eq!(read(&part).columns(), concat_batches(&schema, &batches).expect("one schema").columns());
}

#[test]
fn a_batch_of_other_columns_is_refused() {
    let other = Arc::new(Schema::new(vec![Field::new("int", DataType::Int64, true)]));
    let footer = Footer::new("e", Uuid::nil(), 2);
    let refused = part::encode(&other, &[batch(2)], &footer);
    assert!(matches!(refused, Err(ResultsError::OtherSchema { .. })), "{refused:?}");
}

#[test]
fn folding_loses_nothing() {
    let batch = tasks_batch(0, 50);
    let folded = FoldedBatch::of(&batch);
    let equal = folded.columns().iter().filter(|column| matches!(column, Folded::Equal(_))).count();
    assert!(equal > 100, "most columns of a sweep: {equal}");
    assert_eq!(folded.unfold().expect("it fits"), batch);
    assert_eq!(wire::decode(&wire::encode(&batch).expect("encodes"), &tasks::schema()).expect("decodes"), batch);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    /// The rows do not depend on the batches that they come in, nor on where a column begins to vary.
    #[test]
    fn parts_hold_their_batches(runs in prop::collection::vec((0_u64..3, 1_usize..400), 1..6)) {
        let row = |at: u64| tasks_batch(at, at + 1);
        let all = |batches: &[RecordBatch]| concat_batches(&tasks::schema(), batches).expect("one schema");
        let batches: Vec<_> = runs.iter().map(|&(at, rows)| all(&vec![row(at); rows])).collect();
        let part = ours(&tasks::schema(), &batches);
        assert_same_metadata(&part, &reference(&tasks::schema(), &batches));
        let (found, expected) = (read(&part), all(&batches));
        prop_assert_eq!(found.columns(), expected.columns());
    }
}
