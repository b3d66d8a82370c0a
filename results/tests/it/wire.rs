//! Encoded batches: round trips, and damaged bytes.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Float64Builder, Int8Array, Int64Array, ListBuilder, RecordBatch, StringArray,
    UInt64Array, new_null_array,
};
use arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use powersweep_engine::Measured;
use powersweep_results::identity::Micros;
use powersweep_results::wire::Gather;
use powersweep_results::{ResultsError, failures, jobs, tasks, wire};
use proptest::prelude::*;
use uuid::Uuid;

use crate::roundtrip::tasks_batch;
use crate::sample;

/// Mark and fingerprint, before the zstd frame.
const HEADER_BYTES: usize = 12;

/// In the first no column varies.
static ROWS: LazyLock<[RecordBatch; 3]> = LazyLock::new(|| [tasks_batch(0, 1), tasks_batch(0, 3), tasks_batch(0, 20)]);
static BYTES: LazyLock<[Vec<u8>; 3]> =
    LazyLock::new(|| ROWS.each_ref().map(|rows| wire::encode(rows).expect("encodes").to_vec()));

#[test]
fn decoded_batches_equal_the_encoded_ones() {
    let mut rows = jobs::Builder::new();
    rows.push(&sample::task(0), &sample::jobs(100));
    for batch in [tasks_batch(0, 50), tasks_batch(0, 1), tasks_batch(0, 0), rows.finish()] {
        let bytes = wire::encode(&batch).expect("encodes");
        assert_eq!(wire::decode(&bytes, &batch.schema()).expect("decodes"), batch);
    }
}

#[test]
fn the_head_says_how_long_the_content_is() {
    let bytes = &BYTES[2];
    assert_eq!(wire::decoded_bytes(bytes), Some(content_of(bytes).len() as u64));
    assert_eq!(wire::decoded_bytes(&bytes[..HEADER_BYTES - 1]), None);
}

#[test]
fn only_the_rows_of_a_slice_are_encoded() {
    let slice = tasks_batch(0, 20).slice(5, 7);
    let bytes = wire::encode(&slice).expect("encodes");
    assert_eq!(wire::decode(&bytes, &tasks::schema()).expect("decodes"), slice);
}

#[test]
fn a_batch_is_read_with_its_own_schema_only() {
    let bytes = wire::encode(&tasks_batch(0, 2)).expect("encodes");
    assert!(matches!(wire::decode(&bytes, &failures::schema()), Err(ResultsError::OtherSchema { .. })));
}

#[test]
fn cut_bytes_are_errors() {
    for bytes in &*BYTES {
        for length in 0..bytes.len() {
            assert!(wire::decode(&bytes[..length], &tasks::schema()).is_err(), "{length} bytes");
        }
    }
}

/// The content of the zstd frame of a batch.
fn content_of(bytes: &[u8]) -> Vec<u8> {
    zstd::decode_all(&bytes[HEADER_BYTES..]).expect("a zstd frame")
}

#[test]
fn equal_rows_are_encoded_once_and_nulls_not_at_all() {
    let rows = tasks_batch(0, 500);
    let bytes = wire::encode(&rows).expect("encodes");
    assert_eq!(wire::decode(&bytes, &rows.schema()).expect("decodes"), rows);
    let all_columns = 8 * rows.num_rows() * rows.num_columns();
    assert!(content_of(&bytes).len() < all_columns / 2, "{} bytes of {all_columns}", content_of(&bytes).len());

    let has_value = |column: &&ArrayRef| column.null_count() == 0;
    let values = ROWS[0].columns().iter().filter(has_value).count();
    // The first byte, the begin and end of a text, and eight bytes or a short text.
    let most = values * (1 + 8 + 8) + ROWS[0].num_columns() + 500;
    assert!(values < ROWS[0].num_columns() / 2, "{values} of {}", ROWS[0].num_columns());
    assert!(content_of(&BYTES[0]).len() < most, "{} bytes for {values} values", content_of(&BYTES[0]).len());
}

/// The content of this batch is its number of rows and one byte a column.
#[test]
fn rows_of_nulls_are_decoded() {
    let schema = Arc::new(Schema::new(vec![
        Field::new("bit", DataType::Boolean, true),
        Field::new("number", DataType::Float64, true),
        Field::new("text", DataType::Utf8, true),
        Field::new_list("list", Field::new_list_field(DataType::Float64, true), true),
    ]));
    let nulls = schema.fields().iter().map(|field| new_null_array(field.data_type(), 70)).collect();
    let rows = RecordBatch::try_new(Arc::clone(&schema), nulls).expect("columns of the schema");
    let bytes = wire::encode(&rows).expect("encodes");
    assert_eq!(content_of(&bytes).len(), 4 + schema.fields().len());
    assert_eq!(wire::decode(&bytes, &schema).expect("decodes"), rows);

    let many = with_damaged_content(&bytes, |content| content[..4].fill(u8::MAX));
    assert!(matches!(wire::decode(&many, &schema), Err(ResultsError::TooLarge { .. })));
}

#[test]
fn contents_that_do_not_fit_the_schema_are_errors() {
    let read = |nullable: bool, content: &[&[u8]]| {
        let schema = Arc::new(Schema::new(vec![Field::new("number", DataType::Int64, nullable)]));
        let rows =
            RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(vec![5, 6]))]).expect("rows");
        let bytes = wire::encode(&rows).expect("encodes");
        wire::decode(&with_damaged_content(&bytes, |old| *old = content.concat()), &schema)
    };
    let (rows, numbers) = (2_u32.to_le_bytes(), [5_i64.to_le_bytes(), 6_i64.to_le_bytes()].concat());
    for nullable in [true, false] {
        assert!(read(nullable, &[&rows, &[0], &numbers]).is_ok(), "all numbers");
        assert!(read(nullable, &[&rows, &[2], &numbers[..8]]).is_ok(), "one for both");
        assert_eq!(read(nullable, &[&rows, &[1, 0b01], &numbers]).is_ok(), nullable, "one null");
        assert_eq!(read(nullable, &[&rows, &[3]]).is_ok(), nullable, "only nulls");
        assert!(read(nullable, &[&rows, &[4], &numbers]).is_err(), "an unknown kind");
        assert!(read(nullable, &[&rows, &[0], &numbers, &[0]]).is_err(), "a byte too many");
        assert!(read(nullable, &[&rows, &[0], &numbers[1..]]).is_err(), "a byte too few");
    }
}

/// A batch of the columns `experiment`, `task_id` and `task_index` of one task, and of these.
fn keyed(rows: usize, columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let id = Uuid::from_u128(1).to_string();
    let keys: [(&str, ArrayRef); 3] = [
        ("experiment", Arc::new(StringArray::from(vec!["e"; rows]))),
        ("task_id", Arc::new(StringArray::from(vec![&*id; rows]))),
        ("task_index", Arc::new(Int64Array::from(vec![7; rows]))),
    ];
    RecordBatch::try_from_iter(keys.into_iter().chain(columns)).expect("columns of one length")
}

/// Why a batch is refused before it is stored; or the upper bound of its memory.
fn checked(batch: &RecordBatch) -> Result<u64, String> {
    let bytes = wire::encode(batch).expect("encodes");
    Ok(wire::keys(&bytes, &batch.schema(), "e", None).map_err(|error| error.to_string())?.bytes)
}

#[test]
fn cells_and_rows_beyond_their_bounds_are_refused_before_they_are_stored() {
    let text = |bytes: usize| "x".repeat(bytes);
    let texts = |texts: Vec<String>| -> ArrayRef { Arc::new(StringArray::from(texts)) };
    let list = |values: usize| -> ArrayRef {
        let mut list = ListBuilder::new(Float64Builder::new());
        list.values().append_slice(&vec![1.5; values]);
        list.append(true);
        Arc::new(list.finish())
    };
    let longest = keyed(2, vec![("a", texts(vec![text(65_536), String::new()]))]);
    assert!(checked(&longest).expect("accepted") > 65_536);
    let one_long = keyed(2, vec![("a", texts(vec![String::new(), text(65_537)]))]);
    let reason = checked(&one_long).expect_err("refused");
    assert_eq!(reason, "row 1 has 65537 bytes in the column `a`, at most 65536 are allowed");
    let all_long = keyed(2, vec![("a", texts(vec![text(70_000); 2]))]);
    assert!(checked(&all_long).expect_err("refused").starts_with("row 0 has 70000 bytes in the column `a`"));
    assert!(checked(&keyed(1, vec![("a", list(131_072))])).is_ok());
    let reason = checked(&keyed(1, vec![("a", list(131_073))])).expect_err("refused");
    assert_eq!(reason, "row 0 has 1048584 bytes in the column `a`, at most 1048576 are allowed");
    let names: Vec<String> = (0..8).map(|number| format!("list {number}")).collect();
    let large_row = keyed(1, names.iter().map(|name| (name.as_str(), list(131_072))).collect());
    let reason = checked(&large_row).expect_err("refused");
    assert!(reason.starts_with("row 0 has 83886") && reason.ends_with("at most 8388608 are allowed"), "{reason}");
}

#[test]
fn a_worker_cuts_a_long_text_of_its_own() {
    let mut rows = failures::Builder::new();
    let message = "é".repeat(100_000);
    let worker = "w".to_owned();
    let failure_kind = "panic".to_owned();
    rows.push(
        &sample::task(0),
        &[failures::Failure { attempt: 1, worker, failed_at: Micros(0), failure_kind, message }],
    );
    let batch = rows.finish();
    let kept = batch.column_by_name("message").expect("a column").as_string::<i32>().value(0).to_owned();
    assert!(kept.len() > 65_000 && kept.ends_with("é [... cut, 200000 bytes in all]"), "{} bytes", kept.len());
    let bytes = wire::encode(&batch).expect("encodes");
    let keys = wire::keys(&bytes, &failures::schema(), &sample::task(0).experiment, Some("w")).expect("accepted");
    assert_eq!(keys.rows.len(), 1);
}

#[test]
fn a_batch_that_decompresses_to_more_than_a_worker_hands_in_is_not_decompressed() {
    let bytes = wire::encode(&keyed(1, Vec::new())).expect("encodes");
    let bomb = with_damaged_content(&bytes, |content| content.resize(60 << 20, 0));
    assert!(bomb.len() < 64 << 10, "{} bytes", bomb.len());
    let schema = keyed(1, Vec::new()).schema();
    for refused in [wire::keys(&bomb, &schema, "e", None).map(drop), wire::decode(&bomb, &schema).map(drop)] {
        assert!(matches!(refused, Err(ResultsError::TooLarge { bytes: 62_914_560, limit: 33_554_432 })), "{refused:?}");
    }
}

/// No table has columns of this type.
#[test]
fn columns_of_other_types_are_not_encoded() {
    let rows =
        RecordBatch::try_from_iter([("small", Arc::new(Int8Array::from(vec![1, 2])) as ArrayRef)]).expect("rows");
    assert!(matches!(wire::encode(&rows), Err(ResultsError::Arrow(_))));
}

/// Rows are compared bit by bit: zeros of different signs differ.
#[test]
fn zeros_keep_their_sign() {
    let waits = [0.0, -0.0, 0.0, -0.0, -0.0];
    let mut rows = tasks::Builder::new();
    for (i, wait) in (0..).zip(waits) {
        let mut measured = sample::summary(i);
        let Measured::Jobs(summary) = &mut measured else { unreachable!("sample rows are of jobs") };
        summary.wait_s_mean = wait;
        rows.push(&sample::task(i), &sample::counts(i), &measured, &sample::run(i));
    }
    let bytes = wire::encode(&rows.finish()).expect("encodes");
    let batch = wire::decode(&bytes, &tasks::schema()).expect("decodes");
    let read = batch.column_by_name("wait_s_mean").expect("a column").as_primitive::<Float64Type>();
    assert_eq!(read.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>(), waits.map(f64::to_bits));
}

/// Hand-ins of a part: number of rows, positions to leave out, and whether all rows equal the first.
fn hand_ins() -> impl Strategy<Value = Vec<(u64, BTreeSet<u32>, bool)>> {
    let hand_in = (0_u64..30).prop_flat_map(|rows| {
        let left_out = prop::collection::btree_set(0..rows.max(1) as u32, 0..=rows.min(5) as usize);
        (
            Just(rows),
            left_out.prop_map(move |mut set| {
                set.retain(|&at| u64::from(at) < rows);
                set
            }),
            any::<bool>(),
        )
    });
    prop::collection::vec(hand_in, 0..8)
}

fn gathered(gather: &mut Gather) -> RecordBatch {
    gather.finish().and_then(|rows| rows.unfold()).expect("a batch")
}

#[test]
fn a_mask_that_leaves_out_missing_rows_is_an_error() {
    let mut gather = Gather::new(&tasks::schema());
    assert!(matches!(gather.push(&BYTES[1], [1, 3]), Err(ResultsError::Mask { position: 3, rows: 3 })));
    assert_eq!(gather.rows(), 0, "no row was appended");
    gather.push(&BYTES[1], [0, 2]).expect("decodes");
    assert_eq!(gathered(&mut gather), ROWS[1].slice(1, 1));
}

/// Damages the content of the frame and compresses it again, so that the checksum does not protect the decoder.
fn with_damaged_content(bytes: &[u8], damage: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut content = content_of(bytes);
    damage(&mut content);
    let frame = zstd::bulk::compress(&content, 1).expect("compresses");
    [&bytes[..HEADER_BYTES], &frame].concat()
}

#[test]
fn content_that_was_compressed_again_is_read() {
    for (bytes, rows) in BYTES.iter().zip(&*ROWS) {
        let bytes = with_damaged_content(bytes, |_| ());
        assert_eq!(wire::decode(&bytes, &tasks::schema()).expect("decodes"), *rows);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn flipped_bytes_are_errors(which in 0_usize..3, at in 0_usize..10_000, xor in 1_u8..) {
        let mut bytes = BYTES[which].clone();
        let at = at % bytes.len();
        bytes[at] ^= xor;
        // Either refused, or (an unused bit of the frame's header) the same rows: never other rows.
        if let Ok(read) = wire::decode(&bytes, &tasks::schema()) {
            prop_assert_eq!(&read, &ROWS[which]);
        }
    }

    #[test]
    fn hostile_contents_never_panic(
        cells in prop::collection::vec((0_usize..1 << 16, any::<u64>(), 0_u32..64), 1..6),
        bytes_each in prop::sample::select(vec![1, 4, 8]),
        which in 0_usize..3,
    ) {
        let bytes = with_damaged_content(&BYTES[which], |content| {
            for (at, value, shift) in &cells {
                let at = at % (content.len() - bytes_each);
                content[at..at + bytes_each].copy_from_slice(&(value >> shift).to_le_bytes()[..bytes_each]);
            }
        });
        let keys = wire::keys(&bytes, &tasks::schema(), &sample::task(0).experiment, None);
        let decoded = wire::decode(&bytes, &tasks::schema());
        // Hand-ins are accepted after their keys are read, which must fail where decoding fails.
        match keys {
            Ok(keys) => prop_assert_eq!(decoded.as_ref().ok().map(RecordBatch::num_rows), Some(keys.rows.len())),
            Err(ResultsError::Foreign { .. } | ResultsError::Long { .. }) => prop_assert!(decoded.is_ok()),
            Err(_) => prop_assert!(decoded.is_err()),
        }
        if let Ok(batch) = decoded {
            // Accepted rows must be valid arrays.
            for column in batch.columns() {
                column.to_data().validate_full().expect("valid arrays");
            }
        }
    }

    /// The reference: Arrow's own functions, one hand-in at a time.
    #[test]
    fn gathered_rows_are_those_of_the_hand_ins(hand_ins in hand_ins()) {
        let mut gather = Gather::new(&tasks::schema());
        let mut kept = Vec::new();
        for (at, (rows, left_out, same)) in (0..).zip(hand_ins) {
            let batch = tasks_batch(100 * at, 100 * at + rows);
            let batch = if same { take_record_batch(&batch, &UInt64Array::from(vec![0; rows as usize])).expect("rows") } else { batch };
            gather.push(&wire::encode(&batch).expect("encodes"), left_out.iter().copied()).expect("decodes");
            let keep: BooleanArray = (0..rows as u32).map(|row| Some(!left_out.contains(&row))).collect();
            kept.push(filter_record_batch(&batch, &keep).expect("a mask"));
        }
        let expected = concat_batches(&tasks::schema(), &kept).expect("one schema");
        prop_assert_eq!(gather.rows(), expected.num_rows());
        prop_assert_eq!(gathered(&mut gather), expected);
        prop_assert_eq!(gathered(&mut gather).num_rows(), 0, "the gatherer is empty");
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(wire::decode(&bytes, &tasks::schema()).is_err());
    }
}
