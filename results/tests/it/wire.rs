//! Encoded batches: what comes back, and what damaged bytes do.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use arrow::array::{AsArray, BooleanArray, RecordBatch, UInt64Array};
use arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use arrow::datatypes::Float64Type;
use powersweep_engine::Measured;
use powersweep_results::ipc::Gather;
use powersweep_results::{ResultsError, failures, ipc, jobs, tasks};
use proptest::prelude::*;

use crate::roundtrip::tasks_batch;
use crate::sample;

/// Too few rows for constant columns to be encoded apart, and enough.
static ROWS: LazyLock<[RecordBatch; 2]> = LazyLock::new(|| [tasks_batch(0, 3), tasks_batch(0, 20)]);
static BYTES: LazyLock<[Vec<u8>; 2]> =
    LazyLock::new(|| ROWS.each_ref().map(|rows| ipc::encode(rows).expect("encodes").to_vec()));

#[test]
fn batches_come_back_as_they_were() {
    let mut rows = jobs::Builder::new();
    rows.push(&sample::task(0), &sample::jobs(100));
    for batch in [tasks_batch(0, 50), tasks_batch(0, 1), tasks_batch(0, 0), rows.finish()] {
        let bytes = ipc::encode(&batch).expect("encodes");
        assert_eq!(ipc::decode(&bytes, &batch.schema()).expect("decodes"), batch);
    }
}

#[test]
fn a_slice_is_encoded_as_what_it_shows() {
    let slice = tasks_batch(0, 20).slice(5, 7);
    let bytes = ipc::encode(&slice).expect("encodes");
    assert_eq!(ipc::decode(&bytes, &tasks::schema()).expect("decodes"), slice);
}

#[test]
fn a_batch_is_read_with_its_own_schema_only() {
    let bytes = ipc::encode(&tasks_batch(0, 2)).expect("encodes");
    assert!(matches!(ipc::decode(&bytes, &failures::schema()), Err(ResultsError::OtherSchema { .. })));
}

#[test]
fn cut_bytes_are_errors() {
    for bytes in &*BYTES {
        for length in 0..bytes.len() {
            assert!(ipc::decode(&bytes[..length], &tasks::schema()).is_err(), "{length} bytes");
        }
    }
}

/// And batches without them, such as earlier builds stored, are read all the same.
#[test]
fn constant_columns_take_no_room() {
    let rows = tasks_batch(0, 500);
    let bytes = ipc::encode(&rows).expect("encodes");
    assert_eq!(bytes[..4], *b"PSB2");
    assert_eq!(ipc::decode(&bytes, &rows.schema()).expect("decodes"), rows);
    assert_eq!(BYTES[0][..4], *b"PSB1");
    let inside = zstd::decode_all(&bytes[16..]).expect("a zstd frame");
    let all_columns = 8 * rows.num_rows() * rows.num_columns();
    assert!(inside.len() < all_columns / 2, "{} bytes of {all_columns}", inside.len());
}

/// Columns are constant bit by bit: a zero of another sign is another value.
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
    let bytes = ipc::encode(&rows.finish()).expect("encodes");
    let batch = ipc::decode(&bytes, &tasks::schema()).expect("decodes");
    let read = batch.column_by_name("wait_s_mean").expect("a column").as_primitive::<Float64Type>();
    assert_eq!(read.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>(), waits.map(f64::to_bits));
}

/// Rows of hand-ins of a part: each one's positions to leave out, and whether its first row stands for all.
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
fn rows_that_are_not_there_cannot_be_left_out() {
    let mut gather = Gather::new(&tasks::schema());
    assert!(matches!(gather.push(&BYTES[0], [1, 3]), Err(ResultsError::Mask { position: 3, rows: 3 })));
    assert_eq!(gather.rows(), 0, "nothing of it is there");
    gather.push(&BYTES[0], [0, 2]).expect("decodes");
    assert_eq!(gathered(&mut gather), ROWS[0].slice(1, 1));
}

/// Decompresses, damages the inside and packs it again, so that the checksum does not protect the decoder.
fn with_damaged_inside(bytes: &[u8], damage: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut content = zstd::decode_all(&bytes[16..]).expect("a zstd frame");
    damage(&mut content);
    let frame = zstd::bulk::compress(&content, 1).expect("compresses");
    [&bytes[..16], &frame].concat()
}

#[test]
fn an_inside_that_is_honest_is_read() {
    for (bytes, rows) in BYTES.iter().zip(&*ROWS) {
        let bytes = with_damaged_inside(bytes, |_| ());
        assert_eq!(ipc::decode(&bytes, &tasks::schema()).expect("decodes"), *rows);
        assert_eq!(ipc::rows(&bytes, &tasks::schema()).expect("decodes"), rows.num_rows());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn flipped_bytes_are_errors(which in 0_usize..2, at in 0_usize..10_000, xor in 1_u8..) {
        let mut bytes = BYTES[which].clone();
        let at = at % bytes.len();
        bytes[at] ^= xor;
        // Either refused, or (an unused bit of the frame's header) the same rows: never other rows.
        if let Ok(read) = ipc::decode(&bytes, &tasks::schema()) {
            prop_assert_eq!(&read, &ROWS[which]);
        }
    }

    #[test]
    fn hostile_insides_never_panic(
        cells in prop::collection::vec((0_usize..1 << 16, any::<u64>(), 0_u32..64), 1..6),
        from_end in any::<bool>(),
        which in 0_usize..2,
    ) {
        let bytes = with_damaged_inside(&BYTES[which], |content| {
            for (at, value, shift) in &cells {
                // The message lies at the end; aim at it half of the time.
                let at = if from_end { content.len() - 8 - at % 8192.min(content.len() - 8) } else { at % (content.len() - 8) };
                content[at..at + 8].copy_from_slice(&(value >> shift).to_le_bytes());
            }
        });
        let counted = ipc::rows(&bytes, &tasks::schema());
        let decoded = ipc::decode(&bytes, &tasks::schema());
        // Hand-ins are accepted by their count alone: it must be refused exactly where no rows can be made.
        prop_assert_eq!(counted.ok(), decoded.as_ref().ok().map(RecordBatch::num_rows));
        if let Ok(batch) = decoded {
            // What is accepted must be usable.
            for column in batch.columns() {
                column.to_data().validate_full().expect("valid arrays");
            }
        }
    }

    /// Arrow's own functions, one hand-in at a time, are the reference.
    #[test]
    fn gathered_rows_are_those_of_the_hand_ins(hand_ins in hand_ins()) {
        let mut gather = Gather::new(&tasks::schema());
        let mut kept = Vec::new();
        for (at, (rows, left_out, same)) in (0..).zip(hand_ins) {
            let batch = tasks_batch(100 * at, 100 * at + rows);
            let batch = if same { take_record_batch(&batch, &UInt64Array::from(vec![0; rows as usize])).expect("rows") } else { batch };
            gather.push(&ipc::encode(&batch).expect("encodes"), left_out.iter().copied()).expect("decodes");
            let keep: BooleanArray = (0..rows as u32).map(|row| Some(!left_out.contains(&row))).collect();
            kept.push(filter_record_batch(&batch, &keep).expect("a mask"));
        }
        let expected = concat_batches(&tasks::schema(), &kept).expect("one schema");
        prop_assert_eq!(gather.rows(), expected.num_rows());
        prop_assert_eq!(gathered(&mut gather), expected);
        prop_assert_eq!(gathered(&mut gather).num_rows(), 0, "they are given once");
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(ipc::decode(&bytes, &tasks::schema()).is_err());
    }
}
