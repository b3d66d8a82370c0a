//! Column chunks whose rows are all equal, in a time that does not depend on how many there are.
//!
//! The library's writer looks at each row. Here it writes one, whose statistics are those of all, and the pages say how
//! often that row comes: levels and positions in the dictionary are runs (Parquet format, encoding RLE).

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType};
use bytes::Bytes;
use parquet::arrow::arrow_writer::ArrowColumnChunk;
use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{LevelHistogram, OffsetIndexBuilder, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

use crate::ResultsError;

/// A column chunk as it lies in a file, and what the file's footer says of it.
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) close: ColumnCloseResult,
}

/// A value whose rows can be written at once.
pub(super) struct Value {
    /// Its one row.
    pub(super) row: ArrayRef,
    /// Its bytes in a dictionary page; None: null.
    plain: Option<Bytes>,
}

impl Value {
    /// Of an array of one row; None for values that have no dictionary, or are not in the statistics.
    pub(super) fn of(row: &ArrayRef) -> Option<Value> {
        if !row.is_null(0) {
            return Some(Value { row: row.clone(), plain: Some(plain(row)?.into()) });
        }
        known(row.data_type()).then(|| Value { row: row.clone(), plain: None })
    }
}

/// Whether [`of_nulls`] knows this type.
fn known(ty: &DataType) -> bool {
    match ty {
        DataType::Boolean | DataType::Int64 | DataType::Float64 | DataType::Utf8 | DataType::Timestamp(..) => true,
        DataType::List(item) => known(item.data_type()),
        _ => false,
    }
}

/// The bytes of a value in a dictionary page.
fn plain(row: &ArrayRef) -> Option<Vec<u8>> {
    match row.data_type() {
        DataType::Int64 => Some(row.as_primitive::<Int64Type>().value(0).to_le_bytes().to_vec()),
        DataType::Timestamp(..) => {
            Some(row.as_primitive_opt::<TimestampMicrosecondType>()?.value(0).to_le_bytes().to_vec())
        }
        DataType::Float64 => {
            let real = row.as_primitive::<Float64Type>().value(0);
            // What is not a number is counted apart.
            (!real.is_nan()).then(|| real.to_le_bytes().to_vec())
        }
        DataType::Utf8 => {
            let text = row.as_string::<i32>().value(0);
            let length = u32::try_from(text.len()).ok()?;
            Some([&length.to_le_bytes(), text.as_bytes()].concat())
        }
        _ => None,
    }
}

/// The chunk of so many rows of a value, from the one that the library wrote of one.
pub(super) fn repeated(one: &ArrowColumnChunk, value: &Value, rows: u32) -> Result<Chunk, ResultsError> {
    let one = one.close();
    let column = one.metadata.column_descr_ptr();
    let mut pages = Pages(TrackedWrite::new(Vec::new()));
    // A list's first level tells where it begins, and null is the lowest of the others.
    let mut data = Vec::new();
    levels(&mut data, rows, column.max_rep_level(), 0);
    let (dictionary, encoding) = if let Some(plain) = &value.plain {
        let buf = plain.clone();
        let page = Page::DictionaryPage { buf, num_values: 1, encoding: Encoding::PLAIN, is_sorted: false };
        levels(&mut data, rows, column.max_def_level(), column.max_def_level());
        // The only entry needs no bits.
        data.push(0);
        run(&mut data, rows, None);
        (Some(pages.write(page)?), Encoding::RLE_DICTIONARY)
    } else {
        levels(&mut data, rows, column.max_def_level(), 0);
        (None, Encoding::PLAIN)
    };
    let data_page = pages.write(Page::DataPage {
        buf: data.into(),
        num_values: rows,
        encoding,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    })?;
    let bytes: Bytes = pages.0.into_inner()?.into();

    let times = |count: i64| count * i64::from(rows);
    let histogram =
        |one: Option<&LevelHistogram>| one.map(|one| one.values().iter().map(|&n| times(n)).collect::<Vec<_>>().into());
    let text_bytes = one.metadata.unencoded_byte_array_data_bytes().map(times);
    let stats = |page_type, encoding| PageEncodingStats { page_type, encoding, count: 1 };
    let of_dictionary = dictionary.as_ref().map(|_| stats(PageType::DICTIONARY_PAGE, Encoding::PLAIN));
    let mut metadata = one
        .metadata
        .clone()
        .into_builder()
        // The pages have fewer bytes than a compressed one's frame.
        .set_compression(Compression::UNCOMPRESSED)
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, encoding])
        .set_page_encoding_stats(of_dictionary.into_iter().chain([stats(PageType::DATA_PAGE, encoding)]).collect())
        .set_num_values(rows.into())
        .set_total_compressed_size(bytes.len() as i64)
        .set_total_uncompressed_size(bytes.len() as i64)
        .set_dictionary_page_offset(dictionary.map(|page| page.offset as i64))
        .set_data_page_offset(data_page.offset as i64)
        .set_unencoded_byte_array_data_bytes(text_bytes)
        .set_definition_level_histogram(histogram(one.metadata.definition_level_histogram()))
        .set_repetition_level_histogram(histogram(one.metadata.repetition_level_histogram()));
    if let Some(statistics) = one.metadata.statistics().filter(|_| value.plain.is_none()) {
        metadata = metadata.set_statistics(of_nulls(statistics, rows.into()));
    }
    let offset_index = one.offset_index.as_ref().map(|_| {
        let mut index = OffsetIndexBuilder::new();
        index.append_row_count(rows.into());
        index.append_offset_and_size(data_page.offset as i64, data_page.compressed_size as i32);
        index.append_unencoded_byte_array_data_bytes(text_bytes);
        index.build()
    });
    let close = ColumnCloseResult {
        bytes_written: bytes.len() as u64,
        rows_written: rows.into(),
        metadata: metadata.build()?,
        bloom_filter: None,
        column_index: None,
        offset_index,
    };
    Ok(Chunk { bytes, close })
}

/// Statistics of nothing but nulls.
fn of_nulls(like: &Statistics, nulls: u64) -> Statistics {
    match like {
        Statistics::Boolean(_) => Statistics::boolean(None, None, None, Some(nulls), false),
        Statistics::Int64(_) => Statistics::int64(None, None, None, Some(nulls), false),
        Statistics::Double(_) => Statistics::double(None, None, None, Some(nulls), false),
        Statistics::ByteArray(_) => Statistics::byte_array(None, None, None, Some(nulls), false),
        _ => unreachable!("`Value::of` takes no other"),
    }
}

/// The levels of a data page (version 1) whose rows all have the same: length (u32) and a run. Nothing where there is only
/// one level.
fn levels(data: &mut Vec<u8>, rows: u32, max: i16, level: i16) {
    if max == 0 {
        return;
    }
    let mut encoded = Vec::new();
    // Levels of up to 8 bits take a byte.
    run(&mut encoded, rows, Some(level as u8));
    data.extend_from_slice(&(encoded.len() as u32).to_le_bytes());
    data.extend_from_slice(&encoded);
}

/// A run: its length, doubled, in groups of 7 bits, the lowest first; then the value that is repeated, if it has bits.
fn run(data: &mut Vec<u8>, length: u32, value: Option<u8>) {
    let mut rest = u64::from(length) << 1;
    while rest >= 0x80 {
        data.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    data.push(rest as u8);
    data.extend(value);
}

/// Pages one after the other, not compressed.
struct Pages(TrackedWrite<Vec<u8>>);

impl Pages {
    fn write(&mut self, page: Page) -> Result<PageWriteSpec, ResultsError> {
        let length = page.buffer().len();
        Ok(SerializedPageWriter::new(&mut self.0).write_page(CompressedPage::new(page, length))?)
    }
}
