//! Batches as bytes, for the wire and for the coordinator's durable state.
//!
//! Layout, little endian: mark `PSB3` (4 bytes), [fingerprint](crate::columns::fingerprint) of the schema (u64), then one
//! zstd frame with checksum. The schema itself is not sent: it is some 20 KB, and both sides have it. Each encoded batch
//! is complete, so that the coordinator can store received bytes unchanged and decode them when it writes a part.
//!
//! The frame holds the number of rows (u32), then the columns: all elements of a column that varies, one element of a
//! column of equal rows, and only the first byte of a column of nulls. Most columns of a sweep's rows are constant in a
//! batch, and most of these are null, so that they cost a hand-in of one row little. An Arrow message of 330 columns has
//! more than 10 KB of offsets and lengths, several times the size of the one row of most hand-ins.
//!
//! Decoding checks everything: damaged or hostile bytes give an error, never a panic, and memory is bounded by
//! [`MAX_BATCH_BYTES`].

mod cells;
mod columns;
mod gather;
mod keys;

use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use bytes::Bytes;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

use self::columns::{FoldedColumn, Reader};
pub use self::gather::Gather;
pub use self::keys::{Keys, decoded_bytes, keys};
use crate::ResultsError;
use crate::columns::fingerprint;

/// Maximum size of a batch after decompression, in bytes, with all rows of columns that have one for all. A worker hands its
/// rows in when they have 8 MiB.
pub const MAX_BATCH_BYTES: u64 = 32 << 20;

const MARK: &[u8; 4] = b"PSB3";
const HEADER_BYTES: usize = 12;
/// Measured on rows of a sweep: level 1 gives half the bytes of level -3 in about the same time; higher levels gain little.
const ZSTD_LEVEL: i32 = 1;

/// Encodes a batch so that [`decode`] with the same schema gives it back.
///
/// Fails only if the batch is larger than [`MAX_BATCH_BYTES`], or has a column of a type that no table has.
pub fn encode(batch: &RecordBatch) -> Result<Bytes, ResultsError> {
    let rows = batch.num_rows() as u64;
    check_size(rows)?;
    let mut content = u32::try_from(rows).expect("below MAX_BATCH_BYTES").to_le_bytes().to_vec();
    let begin = content.len();
    let mut repeated = 0;
    for column in batch.columns() {
        repeated += columns::write_folded(column, &mut content)?;
    }
    if check_size(content.len() as u64 + repeated).is_err() {
        // The reader's bound counts whole bytes an element, more than small values take without it.
        content.truncate(begin);
        batch.columns().iter().try_for_each(|column| columns::write(column, &mut content))?;
    }
    frame(batch.schema_ref(), &content)
}

fn frame(schema: &SchemaRef, content: &[u8]) -> Result<Bytes, ResultsError> {
    check_size(content.len() as u64)?;
    let frame = COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            None => {
                let mut compressor = Compressor::new(ZSTD_LEVEL)?;
                compressor.set_parameter(CParameter::ChecksumFlag(true))?;
                kept.insert(compressor)
            }
        };
        compressor.compress(content)
    })?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + frame.len());
    bytes.extend_from_slice(MARK);
    bytes.extend_from_slice(&fingerprint_of(schema).to_le_bytes());
    bytes.extend_from_slice(&frame);
    Ok(bytes.into())
}

/// Decodes a batch of this schema.
///
/// Every error is final: the bytes are damaged, or come from a build with other columns.
pub fn decode(bytes: &[u8], schema: &SchemaRef) -> Result<RecordBatch, ResultsError> {
    let mut gather = Gather::new(schema);
    gather.push(bytes, [])?;
    gather.finish()?.unfold()
}

/// Checks that a batch has the layout and the schema of this build. The error is that of [`decode`].
pub fn check_header(bytes: &[u8], schema: &SchemaRef) -> Result<(), ResultsError> {
    frame_of(bytes, schema).map(drop)
}

/// The decompressed content of a frame.
struct Frame(Vec<u8>);

/// The columns of a frame, in the schema's order.
struct Columns<'a> {
    rows: usize,
    columns: Vec<FoldedColumn<'a>>,
    /// Upper bound of their memory (bytes).
    bytes: u64,
}

impl Frame {
    fn read(bytes: &[u8], schema: &SchemaRef) -> Result<Frame, ResultsError> {
        Ok(Frame(decompress(frame_of(bytes, schema)?)?))
    }

    /// The columns, checked.
    fn columns(&self, schema: &Schema) -> Result<Columns<'_>, ResultsError> {
        let columns = Columns::read(&self.0, schema);
        let columns = columns.ok_or(ResultsError::NotABatch("the columns do not fit the bytes"))?;
        check_size(columns.bytes)?;
        Ok(columns)
    }
}

impl<'a> Columns<'a> {
    fn read(content: &'a [u8], schema: &Schema) -> Option<Columns<'a>> {
        let mut reader = Reader::new(content);
        let rows = reader.number()?;
        let columns = schema.fields().iter().map(|field| reader.folded(field, rows)).collect::<Option<Vec<_>>>()?;
        let repeated = columns.iter().map(|column| column.repeated_bytes).sum::<u64>();
        reader.is_empty().then_some(Columns { rows, columns, bytes: content.len() as u64 + repeated })
    }
}

/// The zstd frame after the header.
fn frame_of<'a>(bytes: &'a [u8], schema: &SchemaRef) -> Result<&'a [u8], ResultsError> {
    let (header, frame) = bytes.split_at_checked(HEADER_BYTES).ok_or(ResultsError::NotABatch("too short"))?;
    let (mark, found) = header.split_at(MARK.len());
    if mark != MARK {
        return Err(ResultsError::NotABatch("wrong mark: damaged, or of another version of powersweep"));
    }
    let found = u64::from_le_bytes(found.try_into().expect("8 bytes"));
    let expected = fingerprint_of(schema);
    if found != expected {
        return Err(ResultsError::OtherSchema { found, expected });
    }
    Ok(frame)
}

thread_local! {
    /// The last schema and its fingerprint: computing one takes longer than encoding a small batch.
    static LAST: RefCell<Option<(SchemaRef, u64)>> = const { RefCell::new(None) };
    // Making a compressor or decompressor is most of the cost of a small batch.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

fn fingerprint_of(schema: &SchemaRef) -> u64 {
    LAST.with_borrow_mut(|last| match last {
        Some((known, found)) if Arc::ptr_eq(known, schema) => *found,
        _ => last.insert((Arc::clone(schema), fingerprint(schema))).1,
    })
}

fn decompress(frame: &[u8]) -> Result<Vec<u8>, ResultsError> {
    let size = zstd::zstd_safe::get_frame_content_size(frame)
        .ok()
        .flatten()
        .ok_or(ResultsError::NotABatch("no size in the zstd frame"))?;
    check_size(size)?;
    let mut content = Vec::with_capacity(usize::try_from(size).expect("below MAX_BATCH_BYTES"));
    let written = DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(Decompressor::new()?),
        };
        decompressor.decompress_to_buffer(frame, &mut content)
    })?;
    if written as u64 != size {
        return Err(ResultsError::NotABatch("wrong size in the zstd frame"));
    }
    Ok(content)
}

fn check_size(bytes: u64) -> Result<(), ResultsError> {
    if bytes > MAX_BATCH_BYTES { Err(ResultsError::TooLarge { bytes, limit: MAX_BATCH_BYTES }) } else { Ok(()) }
}
