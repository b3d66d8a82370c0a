//! Bytes of keys and records.
//!
//! A value is `version (1 byte) | the record, a protobuf message | crc32 of key, version and message (4 bytes, little
//! endian)`: the checksum binds a value to its key. A value with a valid checksum counts only if its record encodes to
//! the same key and value.
//!
//! A key is `kind/ | experiment | 0 | numbers, big endian`. Rows are stored under two keys, so that recovery reads the
//! headers without the rows.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::ops::{Bound, RangeInclusive};

use bytes::Bytes;
use powersweep_results::Table;
use prost::Message;

use super::StoreError;
use crate::records::*;

/// Version of the value format.
pub const FORMAT_VERSION: u8 = 1;

/// Prefix of the keys of rows, and the least key after them.
const ROWS: &[u8] = b"rowd/";
const AFTER_ROWS: &[u8] = b"rowd0";

/// Prefix of the keys of intents, and the least key after them.
const INTENTS: &[u8] = b"intent/";
const AFTER_INTENTS: &[u8] = b"intent0";

/// Size of the checksum at a value's end.
const CHECK_BYTES: usize = 4;

/// Why stored bytes are not a record. Final: only another version or a repair helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Written by another version of the program.
    #[error("format version {0} is not this program's {FORMAT_VERSION}")]
    Version(u8),
    /// The checksum does not match.
    #[error("checksum does not match")]
    Checksum,
    /// The bytes are no protobuf message of a record.
    #[error(transparent)]
    Message(#[from] prost::DecodeError),
    /// The bytes end early, or the record that was read has other bytes.
    #[error("{0}")]
    Malformed(&'static str),
}

/// The message in a value.
#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(oneof = "Record", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15")]
    record: Option<Record>,
}

/// Checks a name that becomes part of a key and of object paths.
pub(crate) fn check_name(name: &str) -> Result<(), StoreError> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.bytes().any(|b| b == 0 || b == b'/') {
        let reason = format!("name {name:?} is empty, has a slash or NUL, or is longer than {MAX_NAME_BYTES} bytes");
        return Err(StoreError::Invalid { reason });
    }
    Ok(())
}

/// The bytes of a key.
pub fn encode_key(key: &Key) -> Result<Vec<u8>, StoreError> {
    let of = |kind: &[u8], experiment: &str, numbers: &[&[u8]]| {
        check_name(experiment)?;
        Ok([kind, experiment.as_bytes(), &[0], &numbers.concat()].concat())
    };
    match key {
        Key::Epoch => Ok(b"epoch".to_vec()),
        Key::Experiment { name } => of(b"exp/", name, &[]),
        Key::Earlier { experiment, generation } => of(b"early/", experiment, &[&generation.to_be_bytes()]),
        Key::DoneChunk { experiment, generation, chunk } => {
            of(b"done/", experiment, &[&generation.to_be_bytes(), &chunk.to_be_bytes()])
        }
        Key::Rows { experiment, table, seq } => of(ROWS, experiment, &[&[*table as u8], &seq.to_be_bytes()]),
        Key::Header { experiment, table, seq } => of(b"rowh/", experiment, &[&[*table as u8], &seq.to_be_bytes()]),
        Key::Intent { part_id } => Ok([INTENTS, part_id.as_bytes().as_slice()].concat()),
        Key::Totals { experiment, table } => of(b"total/", experiment, &[&[*table as u8]]),
        Key::Failure { experiment, generation, index } => {
            of(b"fail/", experiment, &[&generation.to_be_bytes(), &index.to_be_bytes()])
        }
        Key::Lease { id } => Ok([b"lease/", &id.epoch.to_be_bytes()[..], &id.counter.to_be_bytes()].concat()),
        Key::Log { digest } => Ok([b"log/", digest.as_bytes().as_slice()].concat()),
        Key::Covered { experiment, table } => of(b"cover/", experiment, &[&[*table as u8]]),
        Key::Leaving { experiment } => of(b"leave/", experiment, &[]),
        Key::GenerationFloor => Ok(b"floor".to_vec()),
        Key::Split { experiment } => of(b"split/", experiment, &[]),
    }
}

/// Key range of rows `first..=last`.
pub(crate) fn rows_range(
    experiment: &str,
    table: Table,
    first: u64,
    last: u64,
) -> Result<RangeInclusive<Vec<u8>>, StoreError> {
    let key = |seq| encode_key(&Key::Rows { experiment: experiment.to_owned(), table, seq });
    Ok(key(first)?..=key(last)?)
}

/// The first and the last key of a scan.
pub(crate) type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Key ranges of what [`Store::load_of`](super::Store::load_of) reads, in key order.
pub(crate) fn ranges_of(experiment: &str) -> Result<[KeyRange; 5], StoreError> {
    let name = || experiment.to_owned();
    let own = encode_key(&Key::Experiment { name: name() })?;
    let leaving = encode_key(&Key::Leaving { experiment: name() })?;
    let split = encode_key(&Key::Split { experiment: name() })?;
    let total = |table| encode_key(&Key::Totals { experiment: name(), table });
    Ok([
        (Included(own.clone()), Included(own)),
        (Included(INTENTS.to_vec()), Excluded(AFTER_INTENTS.to_vec())),
        (Included(leaving.clone()), Included(leaving)),
        (Included(split.clone()), Included(split)),
        (Included(total(Table::Tasks)?), Included(total(Table::Accounts)?)),
    ])
}

/// Key ranges of everything but the bytes of rows, in key order.
pub(crate) fn load_ranges() -> [KeyRange; 2] {
    [(Unbounded, Excluded(ROWS.to_vec())), (Included(AFTER_ROWS.to_vec()), Unbounded)]
}

/// A stored key and value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// The key and value of a record. The header of rows is a separate record.
pub fn encode(record: &Record) -> Result<Pair, StoreError> {
    if let Record::DoneChunk(chunk) = record
        && chunk.bitmap.max().is_some_and(|bit| u64::from(bit) >= CHUNK_TASKS)
    {
        return Err(StoreError::Invalid { reason: format!("done chunk of {:?} has a bit too high", chunk.experiment) });
    }
    let key = encode_key(&record.key())?;
    let mut value = Vec::with_capacity(1 + record.encoded_len() + CHECK_BYTES);
    value.push(FORMAT_VERSION);
    record.encode(&mut value);
    value.extend_from_slice(&checksum(&key, &value).to_le_bytes());
    Ok((key, value))
}

/// The record of a stored key and value.
pub fn decode(key: &[u8], value: &Bytes) -> Result<Record, DecodeError> {
    let (versioned, check) = value.split_last_chunk().ok_or(DecodeError::Malformed("value is too short"))?;
    match versioned.first() {
        None => return Err(DecodeError::Malformed("value is too short")),
        Some(&FORMAT_VERSION) => {}
        Some(&other) => return Err(DecodeError::Version(other)),
    }
    if checksum(key, versioned) != u32::from_le_bytes(*check) {
        return Err(DecodeError::Checksum);
    }
    let found = Value::decode(value.slice(1..versioned.len()))?.record;
    let is_stored = |record: &Record| encode(record).is_ok_and(|(k, v)| k == key && v == *value);
    found.filter(is_stored).ok_or(DecodeError::Malformed("no record of this key has these bytes"))
}

/// [`decode`] with the key named in the error.
pub(crate) fn read(key: &[u8], value: &Bytes) -> Result<Record, StoreError> {
    decode(key, value).map_err(|error| corrupt(key, &error.to_string()))
}

/// [`read`] for keys of rows.
pub(crate) fn read_rows(key: &[u8], value: &Bytes) -> Result<RowsRecord, StoreError> {
    match read(key, value)? {
        Record::Rows(rows) => Ok(rows),
        _ => Err(corrupt(key, "not a record of rows")),
    }
}

fn corrupt(key: &[u8], reason: &str) -> StoreError {
    StoreError::Corrupt { path: format!("key {}", key.escape_ascii()), reason: reason.to_owned() }
}

fn checksum(key: &[u8], versioned: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(versioned);
    hasher.finalize()
}
