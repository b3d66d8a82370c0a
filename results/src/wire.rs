//! Batches as bytes, for the wire and for the coordinator's durable state.
//!
//! Layout, little endian: mark `PSB1` (4 bytes), length of the Arrow message (u32), [fingerprint](crate::columns::fingerprint) of the schema
//! (u64), then one zstd frame with checksum that holds the body (columns) and after it the Arrow record-batch message.
//! The schema itself is not sent: it is some 20 KB, and both sides have it. Each encoded batch stands alone, so that
//! the coordinator can store the bytes as they came and decode them when a part is written.
//!
//! Most columns of a sweep's rows are the same in all rows of a batch, nearly all of those that are null. The mark
//! `PSB2` says that such columns have one row: the frame then holds the body and message of the columns that vary, the
//! same of the constant ones, and a bit a column that says which it is (1: constant). The length in front is that of the
//! first message; the second's (u32) and the length of the first body (u32) end the frame.
//!
//! Decoding trusts nothing: damaged or hostile bytes give an error, never a panic, and memory is bounded by
//! [`MAX_BATCH_BYTES`].

mod columns;
mod gather;

use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow::ipc::{MessageHeader, MetadataVersion, root_as_message};
use bytes::Bytes;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

use self::columns::Column;
pub use self::gather::Gather;
use crate::ResultsError;
use crate::columns::fingerprint;
use crate::folded::is_constant;

/// Most bytes of a batch after decompression.
pub const MAX_BATCH_BYTES: u64 = 1 << 28;

const MARK: &[u8; 4] = b"PSB1";
const MARK_CONSTANTS: &[u8; 4] = b"PSB2";
/// Below so many rows there is little to gain.
const CONSTANTS_MIN_ROWS: usize = 4;
/// Two lengths at the end of a frame with constants.
const LENGTHS_BYTES: usize = 8;
const HEADER_BYTES: usize = 16;
/// Measured on rows of a sweep: level 1 halves what -3 leaves for about the same time; higher levels gain little.
const ZSTD_LEVEL: i32 = 1;
/// Arrow buffers begin at multiples of this; 8 instead of 64 keeps small batches small.
const ALIGNMENT: usize = 8;

/// Encodes a batch so that [`decode`] with the same schema gives it back.
///
/// Fails only if the batch is larger than [`MAX_BATCH_BYTES`].
pub fn encode(batch: &RecordBatch) -> Result<Bytes, ResultsError> {
    let constant: Vec<bool> = batch.columns().iter().map(is_constant).collect();
    // Without a column that varies there would be nothing to tell the number of rows.
    if batch.num_rows() >= CONSTANTS_MIN_ROWS && constant.contains(&true) && constant.contains(&false) {
        let constants = to_content(&batch.slice(0, 1).project(&positions(&constant, true))?)?;
        if check_size(batch.num_rows() as u64 * constants.0.len() as u64).is_ok() {
            return encode_constants(batch, &constant, constants);
        }
    }
    let (content, message_bytes) = to_content(batch)?;
    frame(MARK, message_bytes, batch.schema_ref(), &content)
}

/// Encodes a batch whose constant columns are encoded already, with their message's length.
fn encode_constants(
    batch: &RecordBatch,
    constant: &[bool],
    (second, second_message_bytes): (Vec<u8>, u32),
) -> Result<Bytes, ResultsError> {
    let (mut content, message_bytes) = to_content(&batch.project(&positions(constant, false))?)?;
    let body_bytes = length_u32(content.len())? - message_bytes;
    // The second body begins aligned: zeros behind a message do not change it.
    content.resize(content.len().next_multiple_of(ALIGNMENT), 0);
    let message_bytes = length_u32(content.len())? - body_bytes;
    content.extend_from_slice(&second);
    content.extend(constant.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit))));
    content.extend_from_slice(&second_message_bytes.to_le_bytes());
    content.extend_from_slice(&body_bytes.to_le_bytes());
    frame(MARK_CONSTANTS, message_bytes, batch.schema_ref(), &content)
}

/// Positions of the columns that are constant, or are not.
fn positions(constant: &[bool], wanted: bool) -> Vec<usize> {
    (0..constant.len()).filter(|&at| constant[at] == wanted).collect()
}

/// Body and message of a batch, and the length of the message.
fn to_content(batch: &RecordBatch) -> Result<(Vec<u8>, u32), ResultsError> {
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
    Ok((content, length_u32(data.ipc_message.len())?))
}

fn length_u32(bytes: usize) -> Result<u32, ResultsError> {
    check_size(bytes as u64)?;
    Ok(u32::try_from(bytes).expect("below MAX_BATCH_BYTES"))
}

fn frame(mark: &[u8; 4], message_bytes: u32, schema: &SchemaRef, content: &[u8]) -> Result<Bytes, ResultsError> {
    check_size(content.len() as u64)?;
    let mut compressor = Compressor::new(ZSTD_LEVEL)?;
    compressor.set_parameter(CParameter::ChecksumFlag(true))?;
    let frame = compressor.compress(content)?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + frame.len());
    bytes.extend_from_slice(mark);
    bytes.extend_from_slice(&message_bytes.to_le_bytes());
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

/// The number of rows of a batch that [`decode`] can decode, without making its columns.
pub fn rows(bytes: &[u8], schema: &SchemaRef) -> Result<usize, ResultsError> {
    Ok(Frame::read(bytes, schema)?.columns(schema)?.rows)
}

/// An Arrow message with its body in front.
struct Content {
    bytes: Buffer,
    body_bytes: usize,
}

/// What is in a frame; the constant columns, if they are apart, are of one row, and the bits say which they are.
struct Frame {
    varying: Content,
    constants: Option<(Content, Vec<bool>)>,
}

/// The columns of a frame, in the schema's order. Those with `true` are of one row, which stands for all.
struct Columns<'a> {
    rows: usize,
    columns: Vec<(Column<'a>, bool)>,
    /// Most that they take in memory.
    bytes: u64,
}

impl Frame {
    fn read(bytes: &[u8], schema: &SchemaRef) -> Result<Frame, ResultsError> {
        let (header, frame) = bytes.split_at_checked(HEADER_BYTES).ok_or(ResultsError::NotABatch("too short"))?;
        let has_constants = header[..4] == *MARK_CONSTANTS;
        if header[..4] != *MARK && !has_constants {
            return Err(ResultsError::NotABatch("wrong mark"));
        }
        let message_bytes = u32::from_le_bytes(header[4..8].try_into().expect("4 bytes")) as usize;
        let found = u64::from_le_bytes(header[8..16].try_into().expect("8 bytes"));
        let expected = fingerprint_of(schema);
        if found != expected {
            return Err(ResultsError::OtherSchema { found, expected });
        }
        let bytes = decompress(frame)?;
        if has_constants {
            return Frame::with_constants(&bytes, message_bytes, schema.fields().len());
        }
        let body_bytes = bytes.len().checked_sub(message_bytes).ok_or(ResultsError::NotABatch("wrong length"))?;
        Ok(Frame { varying: Content { bytes, body_bytes }, constants: None })
    }

    fn with_constants(bytes: &Buffer, message_bytes: usize, columns: usize) -> Result<Frame, ResultsError> {
        let wrong = || ResultsError::NotABatch("wrong length");
        let bits_at = bytes.len().checked_sub(LENGTHS_BYTES + columns.div_ceil(8)).ok_or_else(wrong)?;
        let (bits, lengths) = bytes[bits_at..].split_at(columns.div_ceil(8));
        let length = |at: usize| u32::from_le_bytes(lengths[at..at + 4].try_into().expect("4 bytes")) as usize;
        let (second_message_bytes, body_bytes) = (length(0), length(4));
        let second_at = body_bytes.checked_add(message_bytes).filter(|&at| at <= bits_at).ok_or_else(wrong)?;
        let second_body_bytes = (bits_at - second_at).checked_sub(second_message_bytes).ok_or_else(wrong)?;
        if second_at % ALIGNMENT != 0 {
            return Err(ResultsError::NotABatch("not aligned"));
        }

        let constant: Vec<bool> = (0..columns).map(|at| bits[at / 8] >> (at % 8) & 1 == 1).collect();
        if !constant.contains(&false) {
            return Err(ResultsError::NotABatch("no column varies"));
        }
        let part = |at, end: usize, body_bytes| Content { bytes: bytes.slice_with_length(at, end - at), body_bytes };
        let constants = part(second_at, bits_at, second_body_bytes);
        Ok(Frame { varying: part(0, second_at, body_bytes), constants: Some((constants, constant)) })
    }

    /// The columns, checked.
    fn columns(&self, schema: &Schema) -> Result<Columns<'_>, ResultsError> {
        let Some((constants, constant)) = &self.constants else {
            let (rows, columns) = self.varying.columns(schema.fields())?;
            let columns = columns.into_iter().map(|column| (column, false)).collect();
            return Ok(Columns { rows, columns, bytes: self.varying.body_bytes as u64 });
        };
        let fields = |wanted: bool| {
            let fields = schema.fields().iter().zip(constant);
            fields.filter(move |&(_, &constant)| constant == wanted).map(|(field, _)| field)
        };
        let (rows, varying) = self.varying.columns(fields(false))?;
        let (row, constants_of_one) = constants.columns(fields(true))?;
        if row != 1 {
            return Err(ResultsError::NotABatch("constants of other than one row"));
        }
        let repeated = (rows as u64).saturating_mul(constants.body_bytes as u64);
        check_size(repeated)?;
        let (mut varying, mut constants) = (varying.into_iter(), constants_of_one.into_iter());
        let next = |&constant: &bool| Some((if constant { constants.next() } else { varying.next() }?, constant));
        let columns = constant.iter().filter_map(next).collect();
        Ok(Columns { rows, columns, bytes: self.varying.body_bytes as u64 + repeated })
    }
}

thread_local! {
    /// The schema that was asked for last, and its fingerprint: a small batch takes less time than one fingerprint.
    static LAST: RefCell<Option<(SchemaRef, u64)>> = const { RefCell::new(None) };
    /// Making one is most of the cost of a small batch.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

fn fingerprint_of(schema: &SchemaRef) -> u64 {
    LAST.with_borrow_mut(|last| match last {
        Some((known, found)) if Arc::ptr_eq(known, schema) => *found,
        _ => last.insert((Arc::clone(schema), fingerprint(schema))).1,
    })
}

/// Decompresses into aligned memory.
fn decompress(frame: &[u8]) -> Result<Buffer, ResultsError> {
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
    let content = Buffer::from_vec(content);
    // Allocators align more than a vector of bytes asks for; Arrow's own buffers always do.
    if content.as_ptr().align_offset(ALIGNMENT) == 0 { Ok(content) } else { Ok(Buffer::from(content.as_slice())) }
}

impl Content {
    /// The rows, and the columns of these fields, checked.
    fn columns<'f>(
        &self,
        fields: impl IntoIterator<Item = &'f FieldRef>,
    ) -> Result<(usize, Vec<Column<'_>>), ResultsError> {
        let damaged = |what: &str| ResultsError::Message(what.to_owned());
        let (body, message) = self.bytes.split_at(self.body_bytes);
        let message = root_as_message(message).map_err(|e| ResultsError::Message(e.to_string()))?;
        if message.header_type() != MessageHeader::RecordBatch || message.version() != MetadataVersion::V5 {
            return Err(damaged("not a record batch"));
        }
        let batch = message.header_as_record_batch().ok_or_else(|| damaged("no record batch"))?;
        if batch.compression().is_some() {
            return Err(damaged("compressed twice"));
        }
        columns::of(&batch, body, fields).ok_or_else(|| damaged("columns do not fit the bytes"))
    }
}

fn check_size(bytes: u64) -> Result<(), ResultsError> {
    if bytes > MAX_BATCH_BYTES { Err(ResultsError::TooLarge { bytes, limit: MAX_BATCH_BYTES }) } else { Ok(()) }
}
