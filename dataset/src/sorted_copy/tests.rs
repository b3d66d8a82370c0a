//! Copies of parts in memory and in a far store.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Int64Array, RecordBatch};
use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use powersweep_results::Table;

use super::*;
use crate::tables::{Listing, Tables, Wanted};

/// A far store that counts its requests.
#[derive(Default)]
struct Far {
    objects: HashMap<Path, Bytes>,
    requests: AtomicUsize,
}

impl fmt::Display for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a store")
    }
}

#[async_trait]
impl Tables for Far {
    async fn list(&self, _: &str, _: Table, _: Wanted) -> Result<Listing, Error> {
        Err(failure!(Storage, "it lists nothing"))
    }

    async fn ranges(&self, part: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, Error> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let slice = |range: &Range<u64>| self.objects[part].slice(range.start as usize..range.end as usize);
        Ok(ranges.iter().map(slice).collect())
    }
}

/// A part of rows with an index, an identity and a number, in row groups of two rows.
async fn part_of(rows: &[(i64, &str, i64)], number: &str) -> Part {
    let bytes = bytes_of(rows, number);
    Part::held(&Path::from("p"), bytes).await.map_err(|failure| failure.message).expect("a footer")
}

fn bytes_of(rows: &[(i64, &str, i64)], number: &str) -> Bytes {
    let ids: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.1)).collect::<StringArray>());
    let indices: ArrayRef = Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>());
    let numbers: ArrayRef = Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>());
    let columns = [(INDEX, indices, true), (ID, ids, true), (number, numbers, true)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2)).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).expect("a writer");
    writer.write(&batch).expect("written");
    Bytes::from(writer.into_inner().expect("closed"))
}

/// Index, identity, own number, number of the task.
type Copied = (i64, String, i64, Option<i64>);

/// A copy's rows, and the number of its row groups.
fn copied(bucket_rows: usize, elsewhere: bool) -> (Vec<Copied>, usize) {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let fields = [INDEX, ID, "attempt", "seed"]
        .map(|name| Field::new(name, if name == ID { DataType::Utf8 } else { DataType::Int64 }, true));
    let own = |name: &str| Origin::Own(name.to_owned());
    let (rows, bytes) = runtime.block_on(async {
        let first = part_of(&[(7, "h", 1), (1, "b", 2), (0, "a", 3), (8, "x", 4)], "attempt").await;
        let second = part_of(&[(0, "a", 5), (3, "d", 6), (5, "c", 7)], "attempt").await;
        let tasks = part_of(&[(0, "a", 10), (1, "b", 11), (3, "d", 13), (7, "h", 17), (900, "c", 12)], "seed").await;
        let copy = SortedCopy {
            rows: vec![first, second],
            tasks: vec![tasks],
            schema: Arc::new(Schema::new(fields.to_vec())),
            origins: vec![own(INDEX), own(ID), own("attempt"), Origin::Task("seed".to_owned())],
            bucket_rows,
            elsewhere,
        };
        copy.write("e", Vec::new()).await.map_err(|failure| failure.message).expect("copied")
    });
    assert_eq!(rows, 7);
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).expect("a Parquet file");
    let groups = reader.metadata().num_row_groups();
    let batches = reader.build().expect("readable").map(|batch| batch.expect("whole"));
    let row = |batch: &RecordBatch, row: usize| {
        let number = |at: usize| batch.column(at).as_primitive::<Int64Type>();
        let seed = number(3).is_valid(row).then(|| number(3).value(row));
        (number(0).value(row), batch.column(1).as_string::<i32>().value(row).to_owned(), number(2).value(row), seed)
    };
    let rows = batches.flat_map(|batch| (0..batch.num_rows()).map(|at| row(&batch, at)).collect::<Vec<_>>());
    (rows.collect(), groups)
}

#[test]
fn rows_of_overlapping_parts_are_sorted_and_joined() {
    let expected = |of_c| {
        let rows = [
            (0, "a", 3, Some(10)),
            (0, "a", 5, Some(10)),
            (1, "b", 2, Some(11)),
            (3, "d", 6, Some(13)),
            (5, "c", 7, of_c),
            (7, "h", 1, Some(17)),
            (8, "x", 4, None),
        ];
        rows.map(|(index, id, own, seed)| (index, id.to_owned(), own, seed)).to_vec()
    };
    for (bucket_rows, groups) in [(100, 1), (4, 2), (2, 3)] {
        // The failure of `c` was at index 5 of an earlier manifest; `x` has no row in `tasks`.
        assert_eq!(copied(bucket_rows, true), (expected(Some(12)), groups), "buckets of {bucket_rows} rows");
    }
    assert_eq!(copied(2, false).0, expected(None), "only tasks of the same indices are found");
}

#[test]
fn a_part_in_a_far_store_is_read_in_few_requests() {
    let rows = |from: i64| (from..from + 20).map(|index| (index, "a", index)).collect::<Vec<_>>();
    let names = ["p", "q", "tasks"].map(Path::from);
    let bytes = [rows(0), rows(20), rows(0)].map(|rows| bytes_of(&rows, "n"));
    let far = Arc::new(Far { objects: names.iter().cloned().zip(bytes).collect(), ..Far::default() });
    let tables: Arc<dyn Tables> = far.clone();
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let copied = runtime.block_on(async {
        let mut parts = Vec::new();
        for name in &names {
            parts.push(Part::stored(&tables, name, far.objects[name].len() as u64).await?);
        }
        let tasks = parts.split_off(2);
        let fields = [INDEX, "n", "of"].map(|name| Field::new(name, DataType::Int64, true));
        let origins = vec![Origin::Own(INDEX.into()), Origin::Own("n".into()), Origin::Task("n".into())];
        let schema = Arc::new(Schema::new(fields.to_vec()));
        SortedCopy { rows: parts, tasks, schema, origins, bucket_rows: 5, elsewhere: false }
            .write("e", Vec::new())
            .await
    });
    assert_eq!(copied.map_err(|error| error.message).expect("copied").0, 40);
    // The footer and the whole of each part, and the indices of twenty row groups.
    assert_eq!(far.requests.load(Ordering::Relaxed), 3 + 3 + 20);
}

#[test]
fn ranges_cover_every_index_once() {
    assert_eq!(ranges(&[], 1), [i64::MIN..=i64::MAX]);
    assert_eq!(ranges(&[0, 1, 2, 3], 2), [i64::MIN..=1, 2..=i64::MAX]);
    // One task with more rows than a bucket.
    assert_eq!(ranges(&[7, 7, 7, 8], 4), [i64::MIN..=6, 7..=7, 8..=i64::MAX]);
    assert_eq!(ranges(&[1, 2], 1_000_000).len(), 2);
}
