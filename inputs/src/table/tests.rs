//! Files of Parquet that are small and become large.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Builder, ListBuilder, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::Sheet;
use super::parquet::{File, Limits};

/// Limits that a test reaches soon.
const LIMITS: Limits = Limits { rows: 1_000_000, bytes: 1 << 20 };

/// A file whose rows repeat one row.
fn repeated(columns: Vec<(&str, ArrayRef)>, rows: usize) -> Vec<u8> {
    let one = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut bytes = Vec::new();
    let packed = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut writer = ArrowWriter::try_new(&mut bytes, one.schema(), Some(packed)).expect("a schema");
    (0..rows).for_each(|_| writer.write(&one).expect("a batch"));
    writer.close().expect("a file");
    bytes
}

fn text(bytes: usize) -> ArrayRef {
    Arc::new(StringArray::from(vec!["x".repeat(bytes)]))
}

#[test]
fn a_text_that_many_rows_repeat_is_in_memory_once() {
    let bytes = repeated(vec![("a", text(64 << 10)), ("b", text(1))], 1_000);
    assert!(bytes.len() < 256 << 10, "{} bytes", bytes.len());
    let mut batches = File::open(&bytes, LIMITS).expect("opened").read(|_| true).expect("small pages");
    let batch = batches.next().expect("one").expect("sound");
    assert_eq!((batch.num_rows(), batch.column(0).as_string_view().value(999).len()), (1_000, 64 << 10));
    let memory = batch.column(0).get_buffer_memory_size();
    assert!(memory < 1 << 20, "{memory} bytes for 64 MB of texts");
}

#[test]
fn the_cells_of_a_file_together_are_bounded() {
    let read = |rows: usize| {
        let bytes = repeated(vec![("a", text(64 << 10)), ("b", text(1))], rows);
        let mut sheet = Sheet::of_parquet(&bytes, LIMITS).expect("opened");
        while sheet.next_row().map_err(|problem| problem.to_string())?.is_some() {}
        Ok::<_, String>(())
    };
    assert_eq!(read(60), Ok(()));
    let reason = read(70).expect_err("4.4 MB of cells");
    assert!(reason.contains("4 MiB of data in its cells"), "{reason}");
}

#[test]
fn the_values_of_lists_are_bounded_by_their_number() {
    let list = |values: usize| -> ArrayRef {
        let mut list = ListBuilder::new(Float64Builder::new());
        list.values().append_slice(&vec![1.5; values]);
        list.append(true);
        Arc::new(list.finish())
    };
    let read = |values: usize| {
        let bytes = repeated(vec![("a", list(values))], 1);
        assert!(bytes.len() < 100_000, "{} bytes", bytes.len());
        File::open(&bytes, LIMITS).expect("opened").read(|_| true).map(drop).map_err(|problem| problem.to_string())
    };
    assert_eq!(read(60_000), Ok(()));
    assert!(read(70_000).expect_err("1.1 MB in memory").contains("1 MiB of data"));
}

#[test]
fn a_page_and_a_cell_are_bounded() {
    let limits = Limits { rows: 10, bytes: 4 << 30 };
    let large_page = repeated(vec![("a", text(257 << 20))], 1);
    assert!(large_page.len() < 1 << 20, "{} bytes", large_page.len());
    let read = File::open(&large_page, limits).expect("opened").read(|_| true);
    assert!(read.map(drop).expect_err("refused").to_string().contains("256 MiB in a page"));
    let long_cell = repeated(vec![("a", text(17 << 20)), ("b", text(1))], 1);
    let mut sheet = Sheet::of_parquet(&long_cell, limits).expect("opened");
    let reason = sheet.next_row().map(|_| ()).expect_err("refused").to_string();
    assert!(reason.contains("16 MiB of text in the column a"), "{reason}");
}
