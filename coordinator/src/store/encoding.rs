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
use super::codec::Writer;
use crate::records::*;
use powersweep_experiments::Digest;
use std::collections::BTreeMap;

/// Version of the value format that this build writes.
pub const FORMAT_VERSION: u8 = 3;

pub(super) const EPOCH: &[u8] = b"epoch";
pub(super) const EXPERIMENT: &[u8] = b"exp/";
pub(super) const EARLIER: &[u8] = b"early/";
pub(super) const DONE: &[u8] = b"done/";
pub(crate) const ROWS: &[u8] = b"rowd/";
pub(super) const HEADER: &[u8] = b"rowh/";
pub(super) const INTENT: &[u8] = b"intent/";
pub(super) const TOTALS: &[u8] = b"total/";
pub(super) const FAILURE: &[u8] = b"fail/";
pub(super) const LEASE: &[u8] = b"lease/";
pub(super) const LOG: &[u8] = b"log/";
pub(super) const UPLOAD: &[u8] = b"upload/";
pub(super) const COVERED: &[u8] = b"cover/";
pub(super) const LEAVING: &[u8] = b"leave/";
pub(super) const FLOOR: &[u8] = b"floor";

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
        | Key::Covered { experiment, .. }
        | Key::Failure { experiment, .. }
        | Key::Leaving { experiment } => check_name(experiment)?,
        Key::Epoch
        | Key::Intent { .. }
        | Key::Upload { .. }
        | Key::Lease { .. }
        | Key::Log { .. }
        | Key::GenerationFloor => {}
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
        Key::Log { digest } => [LOG, digest.as_bytes()].concat(),
        Key::Upload { part_id } => [UPLOAD, part_id.as_bytes()].concat(),
        Key::Covered { experiment, table } => {
            let mut bytes = name_key(COVERED, experiment);
            bytes.push(table.code());
            bytes
        }
        Key::Leaving { experiment } => [LEAVING, experiment.as_bytes()].concat(),
        Key::GenerationFloor => FLOOR.to_vec(),
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
            out.uint(r.hand_ins.len() as u64);
            for hand_in in &r.hand_ins {
                out.uint(u64::from(hand_in.rows));
                out.byte(u8::from(hand_in.mask.is_some()));
                if let Some(mask) = &hand_in.mask {
                    out.bitmap(mask);
                }
                out.bytes(&hand_in.encoded);
            }
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
            out.uint(u64::from(r.forgiven));
        }
        Record::Lease(r) => write_lease(&mut out, r),
        Record::Log(r) => {
            out.uint(r.bytes);
            out.str(&r.name);
        }
        Record::Upload(r) => {
            out.str(&r.experiment);
            out.byte(r.table.code());
            out.uint(r.rows);
            out.uint(r.bytes);
            out.int(r.received_us);
        }
        Record::Covered(r) => out.uint(r.tasks),
        Record::Leaving(r) => write_fate(&mut out, &r.fate),
        Record::GenerationFloor(generation) => out.uint(*generation),
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

fn write_digests(out: &mut Writer, digests: &BTreeMap<String, Digest>) {
    out.uint(digests.len() as u64);
    for (log, digest) in digests {
        out.str(log);
        out.raw(digest.as_bytes());
    }
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
    out.int(i64::from(r.priority));
}

fn write_fate(out: &mut Writer, fate: &Fate) {
    match fate {
        Fate::Forget => out.byte(1),
        Fate::Erase => out.byte(2),
        Fate::Rename(name) => {
            out.byte(3);
            out.str(name);
        }
    }
}

fn write_intent(out: &mut Writer, r: &Intent) {
    out.str(&r.experiment);
    out.byte(r.table.code());
    match &r.source {
        Source::Rows { first_seq, last_seq } => {
            out.byte(1);
            out.uint(*first_seq);
            out.uint(*last_seq);
        }
        Source::Staged => out.byte(2),
        Source::Merged { uploads } => {
            out.byte(3);
            out.uint(uploads.len() as u64);
            uploads.iter().for_each(|id| out.raw(id.as_bytes()));
        }
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

/// Numbers in stored bytes; never reused.
pub(super) const STATES: [(ExperimentState, u8); 6] = [
    (ExperimentState::Waiting, 1),
    (ExperimentState::Running, 2),
    (ExperimentState::Paused, 3),
    (ExperimentState::Finished, 4),
    (ExperimentState::Failed, 5),
    (ExperimentState::Cancelled, 6),
];

/// Numbers in stored bytes; never reused.
pub(super) const KINDS: [(FailureKind, u8); 8] = [
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
