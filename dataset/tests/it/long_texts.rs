//! Parts at their limits: texts with more bytes than one array can have, and damaged bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use object_store::path::Path;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use powersweep_dataset::Kind;
use powersweep_dataset::reading::Part;
use powersweep_dataset::sorted_copy::{Origin, SortedCopy};
use powersweep_results::folded::FoldedBatch;
use powersweep_results::part::{self, Footer};
use uuid::Uuid;

/// Offsets of an array have 31 bits.
const ARRAY_BYTES_MAX: u64 = 1 << 31;
const TEXT_BYTES: u64 = 64 << 10;
const BATCH_ROWS: i64 = 256;

#[test]
fn a_table_with_more_than_two_gib_of_texts_is_published_and_exported() {
    let rows = (ARRAY_BYTES_MAX / TEXT_BYTES).cast_signed() + BATCH_ROWS;
    let text = "x".repeat(TEXT_BYTES as usize);
    let id = Uuid::nil().to_string();
    let batch = |begin: i64| {
        let columns: [(&str, ArrayRef); 3] = [
            ("task_index", Arc::new((begin..begin + BATCH_ROWS).collect::<Int64Array>())),
            ("task_id", Arc::new(StringArray::from(vec![&*id; BATCH_ROWS as usize]))),
            ("log", Arc::new(StringArray::from(vec![&*text; BATCH_ROWS as usize]))),
        ];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    };
    let schema = batch(0).schema();
    let footer = Footer::new("e", Uuid::nil(), rows.unsigned_abs());
    let batches = (0..rows).step_by(BATCH_ROWS as usize).map(|begin| Ok(FoldedBatch::of(&batch(begin))));
    let published = part::encode_from(&schema, batches, &footer).expect("published");

    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let part = runtime.block_on(Part::held(&Path::from("p"), published));
    let part = part.map_err(|error| error.message).expect("a footer");
    let origins = schema.fields().iter().map(|field| Origin::Own(field.name().clone())).collect();
    let bucket_rows = part::EXPORT_ROW_GROUP_ROWS;
    let copy = SortedCopy { rows: vec![part], tasks: Vec::new(), schema, origins, bucket_rows, elsewhere: false };
    let (copied, exported) =
        runtime.block_on(copy.write("e", Vec::new())).map_err(|error| error.message).expect("exported");
    assert_eq!(copied, rows.unsigned_abs());

    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(exported)).expect("a Parquet file");
    let mut read = 0;
    for batch in reader.build().expect("readable") {
        let batch = batch.expect("whole");
        let texts = batch.column(2).as_string::<i32>();
        assert_eq!(texts.value(texts.len() - 1).len() as u64, TEXT_BYTES);
        read += batch.num_rows() as i64;
    }
    assert_eq!(read, rows);
}

/// The Parquet library panics at some of them.
#[test]
fn a_part_with_a_flipped_bit_is_read_or_refused() {
    let values: ArrayRef = Arc::new((0..40).collect::<Int64Array>());
    let batch = RecordBatch::try_from_iter([("task_index", values)]).expect("a column");
    let schema = batch.schema();
    let published = part::encode(&schema, &[batch], &Footer::new("e", Uuid::nil(), 40)).expect("published").to_vec();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a thread");
    let read = |bytes: Vec<u8>| {
        runtime.block_on(async {
            let part = Part::held(&Path::from("p"), bytes.into()).await?;
            part.each(&["task_index"], part.all(), 64, |_| Ok(true)).await
        })
    };
    let mut refused = 0;
    for at in 0..published.len() * 8 {
        let mut bytes = published.clone();
        bytes[at / 8] ^= 1 << (at % 8);
        refused += usize::from(read(bytes).is_err_and(|error| error.kind == Kind::Storage));
    }
    assert!(refused > published.len(), "{refused} of {} flips are refused", published.len() * 8);
}
