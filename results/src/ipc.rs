//! Batches as bytes, for the wire and for the coordinator's durable state.
//!
//! Layout, little endian: mark `PSB1` (4 bytes), length of the Arrow message (u32), [fingerprint](crate::columns::fingerprint) of the schema
//! (u64), then one zstd frame with checksum that holds the body (columns) and after it the Arrow record-batch message.
//! The schema itself is not sent: it is some 20 KB, and both sides have it. Each encoded batch stands alone, so that
//! the coordinator can store the bytes as they came and decode them when a part is written.
//!
//! Decoding trusts nothing: damaged or hostile bytes give an error, never a panic, and memory is bounded by
//! [`MAX_BATCH_BYTES`].

use std::collections::HashMap;

use arrow::array::RecordBatch;
use arrow::buffer::{Buffer, MutableBuffer};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::ipc::reader::read_record_batch;
use arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow::ipc::{MessageHeader, MetadataVersion, root_as_message};
use bytes::Bytes;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

use crate::ResultsError;
use crate::columns::fingerprint;

/// Most bytes of a batch after decompression.
pub const MAX_BATCH_BYTES: u64 = 1 << 28;

const MARK: &[u8; 4] = b"PSB1";
const HEADER_BYTES: usize = 16;
/// Measured on rows of a sweep: level 1 halves what -3 leaves for about the same time; higher levels gain little.
const ZSTD_LEVEL: i32 = 1;
/// Arrow buffers begin at multiples of this; 8 instead of 64 keeps small batches small.
const ALIGNMENT: usize = 8;

/// Encodes a batch so that [`decode`] with the same schema gives it back.
///
/// Fails only if the batch is larger than [`MAX_BATCH_BYTES`].
pub fn encode(batch: &RecordBatch) -> Result<Bytes, ResultsError> {
    let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?;
    let (dictionaries, data) = IpcDataGenerator::default().encode(
        batch,
        &mut DictionaryTracker::new(false),
        &options,
        &mut IpcWriteContext::default(),
    )?;
    debug_assert!(dictionaries.is_empty(), "no column is an Arrow dictionary");
    let mut content = data.arrow_data;
    content.extend_from_slice(&data.ipc_message);
    check_size(content.len() as u64)?;
    let message_bytes = u32::try_from(data.ipc_message.len()).expect("below MAX_BATCH_BYTES");

    let mut compressor = Compressor::new(ZSTD_LEVEL)?;
    compressor.set_parameter(CParameter::ChecksumFlag(true))?;
    let frame = compressor.compress(&content)?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + frame.len());
    bytes.extend_from_slice(MARK);
    bytes.extend_from_slice(&message_bytes.to_le_bytes());
    bytes.extend_from_slice(&fingerprint(&batch.schema()).to_le_bytes());
    bytes.extend_from_slice(&frame);
    Ok(bytes.into())
}

/// Decodes a batch of this schema.
///
/// Every error is final: the bytes are damaged, or come from a build with other columns.
pub fn decode(bytes: &[u8], schema: &SchemaRef) -> Result<RecordBatch, ResultsError> {
    let (header, frame) = bytes.split_at_checked(HEADER_BYTES).ok_or(ResultsError::NotABatch("too short"))?;
    if header[..4] != *MARK {
        return Err(ResultsError::NotABatch("wrong mark"));
    }
    let message_bytes = u32::from_le_bytes(header[4..8].try_into().expect("4 bytes")) as usize;
    let found = u64::from_le_bytes(header[8..16].try_into().expect("8 bytes"));
    let expected = fingerprint(schema);
    if found != expected {
        return Err(ResultsError::OtherSchema { found, expected });
    }
    let content = decompress(frame)?;
    let body_bytes = content.len().checked_sub(message_bytes).ok_or(ResultsError::NotABatch("wrong length"))?;
    read_content(&content, body_bytes, schema)
}

/// Decompresses into aligned memory.
fn decompress(frame: &[u8]) -> Result<Buffer, ResultsError> {
    let size = zstd::zstd_safe::get_frame_content_size(frame)
        .ok()
        .flatten()
        .ok_or(ResultsError::NotABatch("no size in the zstd frame"))?;
    check_size(size)?;
    let mut content = MutableBuffer::from_len_zeroed(usize::try_from(size).expect("below MAX_BATCH_BYTES"));
    let written = Decompressor::new()?.decompress_to_buffer(frame, content.as_slice_mut())?;
    if written as u64 != size {
        return Err(ResultsError::NotABatch("wrong size in the zstd frame"));
    }
    Ok(content.into())
}

fn read_content(content: &Buffer, body_bytes: usize, schema: &SchemaRef) -> Result<RecordBatch, ResultsError> {
    let damaged = |what: &str| ResultsError::Message(what.to_owned());
    let (body, message) = content.split_at(body_bytes);
    let message = root_as_message(message).map_err(|e| ResultsError::Message(e.to_string()))?;
    if message.header_type() != MessageHeader::RecordBatch || message.version() != MetadataVersion::V5 {
        return Err(damaged("not a record batch"));
    }
    let batch = message.header_as_record_batch().ok_or_else(|| damaged("no record batch"))?;
    check_sizes(&batch, body.len() as u64, schema).ok_or_else(|| damaged("column sizes do not fit the bytes"))?;
    if batch.compression().is_some() {
        return Err(damaged("compressed twice"));
    }
    let body = content.slice_with_length(0, body_bytes);
    Ok(read_record_batch(&body, batch, schema.clone(), &HashMap::new(), None, &MetadataVersion::V5)?)
}

/// Whether every buffer lies inside the body, begins aligned and holds whole elements: Arrow's reader slices and casts
/// by these numbers and panics if they are wrong. What the buffers hold, Arrow validates itself.
fn check_sizes(batch: &arrow::ipc::RecordBatch<'_>, body_bytes: u64, schema: &SchemaRef) -> Option<()> {
    let mut widths = Vec::new();
    schema.fields().iter().for_each(|field| buffer_widths(field.data_type(), &mut widths));
    let buffers = batch.buffers()?;
    let inside = |(buffer, width): (&arrow::ipc::Buffer, &u64)| {
        let (offset, length) = (u64::try_from(buffer.offset()).ok()?, u64::try_from(buffer.length()).ok()?);
        let fits = offset.checked_add(length)? <= body_bytes;
        (fits && offset.is_multiple_of(ALIGNMENT as u64) && length.is_multiple_of(*width)).then_some(())
    };
    let sane = |rows: i64| u64::try_from(rows).is_ok_and(|rows| rows <= MAX_BATCH_BYTES);
    let nodes = batch.nodes()?;
    let sane_nodes = nodes.iter().all(|n| sane(n.length()) && (0..=n.length()).contains(&n.null_count()));
    if buffers.len() != widths.len() || !sane_nodes || !sane(batch.length()) {
        return None;
    }
    buffers.iter().zip(&widths).try_for_each(inside)
}

/// Bytes of an element in each buffer of a column, in the order of the format.
fn buffer_widths(ty: &DataType, widths: &mut Vec<u64>) {
    const BITS: u64 = 1;
    const OFFSETS: u64 = 4;
    match ty {
        DataType::Boolean => widths.extend([BITS, BITS]),
        DataType::Utf8 => widths.extend([BITS, OFFSETS, 1]),
        DataType::List(item) => {
            widths.extend([BITS, OFFSETS]);
            buffer_widths(item.data_type(), widths);
        }
        // Every other column type is a 64-bit number.
        _ => widths.extend([BITS, 8]),
    }
}

fn check_size(bytes: u64) -> Result<(), ResultsError> {
    if bytes > MAX_BATCH_BYTES { Err(ResultsError::TooLarge { bytes, limit: MAX_BATCH_BYTES }) } else { Ok(()) }
}
