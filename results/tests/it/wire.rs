//! Encoded batches: what comes back, and what damaged bytes do.

use std::sync::LazyLock;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Float64Type;
use powersweep_engine::Measured;
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

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(ipc::decode(&bytes, &tasks::schema()).is_err());
    }
}
