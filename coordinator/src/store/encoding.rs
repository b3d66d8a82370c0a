//! Bytes of keys and records.
//!
//! A value is `version (1 byte) | body | crc32 of key, version and body (4 bytes, little endian)`: the checksum binds a
//! value to its key. Bodies are written field by field: integers as LEB128 (signed ones zigzag), strings and byte
//! strings with their length, ids as they are. Fields that the key holds are not repeated. A decoder accepts every
//! version up to its own and refuses trailing bytes; the golden tests hold the bytes of each version.
//!
//! A key is `kind/ | experiment | 0 | numbers, big endian`. Rows are stored under two keys, so that recovery reads the
//! headers without the rows.

use super::StoreError;
use super::codec::{Reader, Writer};
use crate::records::*;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;
use uuid::Uuid;

/// Version of the value format that this build writes.
pub const FORMAT_VERSION: u8 = 1;

const EPOCH: &[u8] = b"epoch";
const EXPERIMENT: &[u8] = b"exp/";
const EARLIER: &[u8] = b"early/";
const DONE: &[u8] = b"done/";
pub(crate) const ROWS: &[u8] = b"rowd/";
const HEADER: &[u8] = b"rowh/";
const INTENT: &[u8] = b"intent/";
const TOTALS: &[u8] = b"total/";
const FAILURE: &[u8] = b"fail/";
const LEASE: &[u8] = b"lease/";
const LOG: &[u8] = b"log/";

/// Why stored bytes are not a record. Final: nothing but another version or a repair helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Written by a later version of the program.
    #[error("format version {0} is later than this program's {FORMAT_VERSION}")]
    Version(u8),
    /// The checksum does not fit.
    #[error("checksum does not match")]
    Checksum,
    /// The bytes end early, go on too long or hold an impossible value.
    #[error("{0}")]
    Malformed(&'static str),
}

/// A decoded value of the database: all of a record, or the header of rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    /// A record with all its fields.
    Record(Record),
    /// The header of rows that are stored under another key.
    Header(RowsHeader),
}

fn name_key(prefix: &[u8], name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + name.len() + 16);
    key.extend_from_slice(prefix);
    key.extend_from_slice(name.as_bytes());
    key.push(0);
    key
}

/// Checks a name that becomes part of a key and of object paths.
pub(crate) fn check_name(name: &str) -> Result<(), StoreError> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.bytes().any(|b| b == 0 || b == b'/') {
        let reason = format!("name {name:?} is empty, has a slash or NUL, or is longer than {MAX_NAME_BYTES} bytes");
        return Err(StoreError::Invalid { reason });
    }
    Ok(())
}

/// The keys under which a record's values are: its own, and for rows their header's.
pub fn encode_key(key: &Key) -> Result<(Vec<u8>, Option<Vec<u8>>), StoreError> {
    match key {
        Key::Experiment { name: experiment }
        | Key::Earlier { experiment, .. }
        | Key::DoneChunk { experiment, .. }
        | Key::Rows { experiment, .. }
        | Key::Totals { experiment, .. }
        | Key::Failure { experiment, .. } => check_name(experiment)?,
        Key::Epoch | Key::Intent { .. } | Key::Lease { .. } | Key::Log { .. } => {}
    }
    let bytes = match key {
        Key::Epoch => EPOCH.to_vec(),
        Key::Experiment { name } => [EXPERIMENT, name.as_bytes()].concat(),
        Key::Earlier { experiment, generation } => {
            let mut bytes = name_key(EARLIER, experiment);
            bytes.extend_from_slice(&generation.to_be_bytes());
            bytes
        }
        Key::DoneChunk { experiment, generation, chunk } => {
            let mut bytes = name_key(DONE, experiment);
            bytes.extend_from_slice(&generation.to_be_bytes());
            bytes.extend_from_slice(&chunk.to_be_bytes());
            bytes
        }
        Key::Rows { experiment, table, seq } => {
            let header = rows_key(HEADER, experiment, *table, *seq);
            return Ok((rows_key(ROWS, experiment, *table, *seq), Some(header)));
        }
        Key::Intent { part_id } => [INTENT, part_id.as_bytes()].concat(),
        Key::Totals { experiment, table } => {
            let mut bytes = name_key(TOTALS, experiment);
            bytes.push(table.code());
            bytes
        }
        Key::Failure { experiment, generation, index } => {
            let mut bytes = name_key(FAILURE, experiment);
            bytes.extend_from_slice(&generation.to_be_bytes());
            bytes.extend_from_slice(&index.to_be_bytes());
            bytes
        }
        Key::Lease { id } => [LEASE, &id.epoch.to_be_bytes(), &id.counter.to_be_bytes()].concat(),
        Key::Log { digest } => [LOG, digest].concat(),
    };
    Ok((bytes, None))
}

fn rows_key(prefix: &[u8], experiment: &str, table: Table, seq: u64) -> Vec<u8> {
    let mut bytes = name_key(prefix, experiment);
    bytes.push(table.code());
    bytes.extend_from_slice(&seq.to_be_bytes());
    bytes
}

/// Key range of rows `first..=last`.
pub(crate) fn rows_range(
    experiment: &str,
    table: Table,
    first: u64,
    last: u64,
) -> Result<std::ops::RangeInclusive<Vec<u8>>, StoreError> {
    check_name(experiment)?;
    Ok(rows_key(ROWS, experiment, table, first)..=rows_key(ROWS, experiment, table, last))
}

/// Bounds of a range of keys.
type KeyRange = (std::ops::Bound<Vec<u8>>, std::ops::Bound<Vec<u8>>);

/// Key ranges of everything but the bytes of rows, in key order.
pub(crate) fn load_ranges() -> [KeyRange; 2] {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let mut behind = ROWS.to_vec();
    *behind.last_mut().expect("a prefix is not empty") += 1;
    [(Unbounded, Excluded(ROWS.to_vec())), (Included(behind), Unbounded)]
}

/// A key and its value as they are stored.
pub type Pair = (Vec<u8>, Vec<u8>);

/// The key and value pairs that store a record: one, and for rows two.
pub fn encode_record(record: &Record) -> Result<Vec<Pair>, StoreError> {
    let (key, header_key) = encode_key(&record.key())?;
    let mut out = Writer::new();
    match record {
        Record::Epoch(epoch) => out.uint(*epoch),
        Record::Experiment(r) => write_experiment(&mut out, r),
        Record::Earlier(r) => {
            out.str(&r.manifest);
            write_digests(&mut out, &r.digests);
        }
        Record::DoneChunk(r) => {
            if r.bitmap.max().is_some_and(|bit| u64::from(bit) >= CHUNK_TASKS) {
                return Err(StoreError::Invalid {
                    reason: format!("done chunk of {:?} has a bit too high", r.experiment),
                });
            }
            out.bitmap(&r.bitmap);
        }
        Record::Rows(r) => {
            out.uint(r.generation);
            out.int(r.received_us);
            out.uint(u64::from(r.rows));
            out.byte(u8::from(r.mask.is_some()));
            if let Some(mask) = &r.mask {
                out.bitmap(mask);
            }
            out.bytes(&r.ipc);
        }
        Record::Intent(r) => write_intent(&mut out, r),
        Record::Totals(r) => {
            out.uint(r.parts);
            out.uint(r.rows);
            out.uint(r.bytes);
        }
        Record::Failure(r) => {
            out.uint(u64::from(r.attempts));
            out.uint(u64::from(r.crashes));
            out.byte(kind_code(r.kind));
            out.byte(u8::from(r.quarantined));
            out.str(&r.message);
            out.str(&r.worker);
            out.int(r.at_us);
        }
        Record::Lease(r) => write_lease(&mut out, r),
        Record::Log(r) => {
            out.uint(r.bytes);
            out.str(&r.name);
        }
    }
    let mut pairs = Vec::with_capacity(2);
    if let (Record::Rows(r), Some(header_key)) = (record, header_key) {
        let header = r.header();
        let mut out = Writer::new();
        out.uint(header.generation);
        out.int(header.received_us);
        out.uint(u64::from(header.rows));
        out.uint(u64::from(header.live_rows));
        out.uint(header.bytes);
        let value = out.finish(&header_key);
        pairs.push((header_key, value));
    }
    let value = out.finish(&key);
    pairs.push((key, value));
    Ok(pairs)
}

fn write_digests(out: &mut Writer, digests: &BTreeMap<String, LogDigest>) {
    out.uint(digests.len() as u64);
    for (log, digest) in digests {
        out.str(log);
        out.raw(digest);
    }
}

fn read_digests(input: &mut Reader<'_>) -> Result<BTreeMap<String, LogDigest>, DecodeError> {
    let mut digests = BTreeMap::new();
    for _ in 0..input.count()? {
        let log = input.string()?;
        digests.insert(log, exact(input.raw(32)?)?);
    }
    Ok(digests)
}

fn write_experiment(out: &mut Writer, r: &ExperimentRecord) {
    out.uint(r.generation);
    out.str(&r.manifest);
    write_digests(out, &r.digests);
    out.uint(r.pins.len() as u64);
    for (part, version) in &r.pins {
        out.str(part);
        out.uint(u64::from(*version));
    }
    out.raw(&r.tasks_schema.to_le_bytes());
    out.uint(r.tables.len() as u64);
    for table in &r.tables {
        out.byte(table.code());
    }
    out.int(r.created_us);
    out.byte(state_code(r.state));
}

fn write_intent(out: &mut Writer, r: &Intent) {
    out.str(&r.experiment);
    out.byte(r.table.code());
    match r.source {
        Source::Rows { first_seq, last_seq } => {
            out.byte(1);
            out.uint(first_seq);
            out.uint(last_seq);
        }
        Source::Staged => out.byte(2),
    }
    out.uint(r.rows);
}

fn write_lease(out: &mut Writer, r: &LeaseRecord) {
    out.str(&r.experiment);
    out.uint(r.generation);
    out.uint(r.ranges.len() as u64);
    // Gaps and lengths: neighbouring ranges cost a few bytes whatever the index.
    let mut at = 0u64;
    for range in &r.ranges {
        out.uint(range.start.wrapping_sub(at));
        out.uint(range.end.wrapping_sub(range.start));
        at = range.end;
    }
    out.raw(r.worker_id.as_bytes());
    out.str(&r.worker);
    out.uint(u64::from(r.attempt));
}

/// [`decode`] with the key named in the error.
pub(crate) fn read(key: &[u8], value: &Bytes) -> Result<Stored, StoreError> {
    decode(key, value).map_err(|error| corrupt(key, &error.to_string()))
}

/// [`read`] for keys of rows.
pub(crate) fn read_rows_record(key: &[u8], value: &Bytes) -> Result<RowsRecord, StoreError> {
    match read(key, value)? {
        Stored::Record(Record::Rows(rows)) => Ok(rows),
        _ => Err(corrupt(key, "not a record of rows")),
    }
}

fn corrupt(key: &[u8], reason: &str) -> StoreError {
    StoreError::Corrupt { path: format!("key {}", key.escape_ascii()), reason: reason.to_owned() }
}

/// Reads one stored pair back.
pub fn decode(key: &[u8], value: &Bytes) -> Result<Stored, DecodeError> {
    let mut input = Reader::open(key, value)?;
    let stored = if key == EPOCH {
        Stored::Record(Record::Epoch(input.uint()?))
    } else if let Some(rest) = key.strip_prefix(EXPERIMENT) {
        let name = std::str::from_utf8(rest).map_err(|_| DecodeError::Malformed("experiment name is not UTF-8"))?;
        Stored::Record(Record::Experiment(read_experiment(&mut input, name.to_owned())?))
    } else if let Some(rest) = key.strip_prefix(EARLIER) {
        let (experiment, rest) = read_name(rest)?;
        let generation = u64::from_be_bytes(exact(rest)?);
        let (manifest, digests) = (input.string()?, read_digests(&mut input)?);
        Stored::Record(Record::Earlier(EarlierRecord { experiment, generation, manifest, digests }))
    } else if let Some(rest) = key.strip_prefix(DONE) {
        let (experiment, rest) = read_name(rest)?;
        let (generation, chunk) = split_u64(rest)?;
        let chunk = u32::from_be_bytes(exact(chunk)?);
        Stored::Record(Record::DoneChunk(DoneChunk { experiment, generation, chunk, bitmap: input.bitmap()? }))
    } else if let Some(rest) = key.strip_prefix(ROWS) {
        Stored::Record(Record::Rows(read_rows(&mut input, rest)?))
    } else if let Some(rest) = key.strip_prefix(HEADER) {
        let (experiment, table, seq) = read_rows_key(rest)?;
        let generation = input.uint()?;
        let received_us = input.int()?;
        let (rows, live_rows, bytes) = (input.u32()?, input.u32()?, input.uint()?);
        Stored::Header(RowsHeader { experiment, table, seq, generation, received_us, rows, live_rows, bytes })
    } else if let Some(rest) = key.strip_prefix(INTENT) {
        Stored::Record(Record::Intent(read_intent(&mut input, Uuid::from_bytes(exact(rest)?))?))
    } else if let Some(rest) = key.strip_prefix(TOTALS) {
        let (experiment, rest) = read_name(rest)?;
        let table = read_table(exact::<1>(rest)?[0])?;
        let (parts, rows, bytes) = (input.uint()?, input.uint()?, input.uint()?);
        Stored::Record(Record::Totals(Totals { experiment, table, parts, rows, bytes }))
    } else if let Some(rest) = key.strip_prefix(FAILURE) {
        Stored::Record(Record::Failure(read_failure(&mut input, rest)?))
    } else if let Some(rest) = key.strip_prefix(LEASE) {
        let (epoch, rest) = split_u64(rest)?;
        let id = LeaseId { epoch, counter: u64::from_be_bytes(exact(rest)?) };
        Stored::Record(Record::Lease(read_lease(&mut input, id)?))
    } else if let Some(rest) = key.strip_prefix(LOG) {
        let digest = exact(rest)?;
        Stored::Record(Record::Log(LogRecord { digest, bytes: input.uint()?, name: input.string()? }))
    } else {
        return Err(DecodeError::Malformed("unknown kind of key"));
    };
    input.end()?;
    Ok(stored)
}

fn read_experiment(input: &mut Reader<'_>, name: String) -> Result<ExperimentRecord, DecodeError> {
    let generation = input.uint()?;
    let manifest = input.string()?;
    let digests = read_digests(input)?;
    let mut pins = BTreeMap::new();
    for _ in 0..input.count()? {
        let part = input.string()?;
        pins.insert(part, input.u32()?);
    }
    let tasks_schema = u64::from_le_bytes(exact(input.raw(8)?)?);
    let tables = (0..input.count()?).map(|_| read_table(input.byte()?)).collect::<Result<Vec<_>, _>>()?;
    let created_us = input.int()?;
    let code = input.byte()?;
    let state = STATES.iter().find(|(_, c)| *c == code).ok_or(DecodeError::Malformed("unknown experiment state"))?.0;
    Ok(ExperimentRecord { name, generation, manifest, digests, pins, tasks_schema, tables, created_us, state })
}

fn read_rows(input: &mut Reader<'_>, key: &[u8]) -> Result<RowsRecord, DecodeError> {
    let (experiment, table, seq) = read_rows_key(key)?;
    let generation = input.uint()?;
    let received_us = input.int()?;
    let rows = input.u32()?;
    let mask = if input.flag()? { Some(input.bitmap()?) } else { None };
    let ipc = input.shared_bytes()?;
    Ok(RowsRecord { experiment, table, seq, generation, received_us, rows, mask, ipc })
}

fn read_intent(input: &mut Reader<'_>, part_id: Uuid) -> Result<Intent, DecodeError> {
    let experiment = input.string()?;
    let table = read_table(input.byte()?)?;
    let source = match input.byte()? {
        1 => Source::Rows { first_seq: input.uint()?, last_seq: input.uint()? },
        2 => Source::Staged,
        _ => return Err(DecodeError::Malformed("unknown source of a part")),
    };
    Ok(Intent { experiment, table, part_id, source, rows: input.uint()? })
}

fn read_failure(input: &mut Reader<'_>, key: &[u8]) -> Result<FailureRecord, DecodeError> {
    let (experiment, rest) = read_name(key)?;
    let (generation, rest) = split_u64(rest)?;
    let index = u64::from_be_bytes(exact(rest)?);
    let (attempts, crashes) = (input.u32()?, input.u32()?);
    let code = input.byte()?;
    let kind = KINDS.iter().find(|(_, c)| *c == code).ok_or(DecodeError::Malformed("unknown kind of failure"))?.0;
    let quarantined = input.flag()?;
    let (message, worker, at_us) = (input.string()?, input.string()?, input.int()?);
    Ok(FailureRecord { experiment, generation, index, attempts, crashes, kind, quarantined, message, worker, at_us })
}

fn read_lease(input: &mut Reader<'_>, id: LeaseId) -> Result<LeaseRecord, DecodeError> {
    let experiment = input.string()?;
    let generation = input.uint()?;
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut at = 0u64;
    for _ in 0..input.count()? {
        let start = at.wrapping_add(input.uint()?);
        at = start.wrapping_add(input.uint()?);
        ranges.push(start..at);
    }
    let worker_id = Uuid::from_bytes(exact(input.raw(16)?)?);
    let worker = input.string()?;
    Ok(LeaseRecord { id, experiment, generation, ranges, worker_id, worker, attempt: input.u32()? })
}

fn read_rows_key(key: &[u8]) -> Result<(String, Table, u64), DecodeError> {
    let (experiment, rest) = read_name(key)?;
    let (&table, rest) = rest.split_first().ok_or(DecodeError::Malformed("key of rows is too short"))?;
    Ok((experiment, read_table(table)?, u64::from_be_bytes(exact(rest)?)))
}

fn read_name(key: &[u8]) -> Result<(String, &[u8]), DecodeError> {
    let end = key.iter().position(|&b| b == 0).ok_or(DecodeError::Malformed("key has no end of name"))?;
    let name = std::str::from_utf8(&key[..end]).map_err(|_| DecodeError::Malformed("name is not UTF-8"))?;
    Ok((name.to_owned(), &key[end + 1..]))
}

fn read_table(code: u8) -> Result<Table, DecodeError> {
    Table::from_code(code).ok_or(DecodeError::Malformed("unknown table"))
}

fn split_u64(bytes: &[u8]) -> Result<(u64, &[u8]), DecodeError> {
    let (number, rest) = bytes.split_first_chunk::<8>().ok_or(DecodeError::Malformed("key is too short"))?;
    Ok((u64::from_be_bytes(*number), rest))
}

fn exact<const N: usize>(bytes: &[u8]) -> Result<[u8; N], DecodeError> {
    bytes.try_into().map_err(|_| DecodeError::Malformed("a field has the wrong length"))
}

/// Numbers in stored bytes; never reused.
const STATES: [(ExperimentState, u8); 6] = [
    (ExperimentState::Waiting, 1),
    (ExperimentState::Running, 2),
    (ExperimentState::Paused, 3),
    (ExperimentState::Finished, 4),
    (ExperimentState::Failed, 5),
    (ExperimentState::Cancelled, 6),
];

/// Numbers in stored bytes; never reused.
const KINDS: [(FailureKind, u8); 8] = [
    (FailureKind::Invalid, 1),
    (FailureKind::Panic, 2),
    (FailureKind::Deadline, 3),
    (FailureKind::EventLimit, 4),
    (FailureKind::MemoryLimit, 5),
    (FailureKind::Policy, 6),
    (FailureKind::Workload, 7),
    (FailureKind::Crash, 8),
];

fn state_code(state: ExperimentState) -> u8 {
    STATES.iter().find(|(s, _)| *s == state).expect("every state has a number").1
}

fn kind_code(kind: FailureKind) -> u8 {
    KINDS.iter().find(|(k, _)| *k == kind).expect("every kind has a number").1
}
