//! Records from their bytes: the way back of [`encoding`](super::encoding), for every format version up to this one.

use super::StoreError;
use super::codec::Reader;
use super::encoding::*;
use crate::records::*;
use bytes::Bytes;
use powersweep_experiments::Digest;
use std::collections::BTreeMap;
use std::ops::Range;
use uuid::Uuid;

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
        let digest = exact::<32>(rest)?.into();
        Stored::Record(Record::Log(LogRecord { digest, bytes: input.uint()?, name: input.string()? }))
    } else if let Some(rest) = key.strip_prefix(UPLOAD) {
        Stored::Record(Record::Upload(read_upload(&mut input, Uuid::from_bytes(exact(rest)?))?))
    } else if let Some(rest) = key.strip_prefix(COVERED) {
        let (experiment, rest) = read_name(rest)?;
        let table = read_table(exact::<1>(rest)?[0])?;
        Stored::Record(Record::Covered(CoveredRecord { experiment, table, tasks: input.uint()? }))
    } else if let Some(rest) = key.strip_prefix(LEAVING) {
        let name = std::str::from_utf8(rest).map_err(|_| DecodeError::Malformed("experiment name is not UTF-8"))?;
        let fate = read_fate(&mut input)?;
        Stored::Record(Record::Leaving(LeavingRecord { experiment: name.to_owned(), fate }))
    } else if key == FLOOR {
        Stored::Record(Record::GenerationFloor(input.uint()?))
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
    // Version 1 had no priorities.
    let priority = if input.version() < 2 { 0 } else { input.int()? };
    let priority = i32::try_from(priority).map_err(|_| DecodeError::Malformed("a priority is out of range"))?;
    Ok(ExperimentRecord {
        name,
        generation,
        manifest,
        digests,
        pins,
        tasks_schema,
        tables,
        created_us,
        state,
        priority,
    })
}

fn read_fate(input: &mut Reader<'_>) -> Result<Fate, DecodeError> {
    match input.byte()? {
        1 => Ok(Fate::Forget),
        2 => Ok(Fate::Erase),
        3 => Ok(Fate::Rename(input.string()?)),
        _ => Err(DecodeError::Malformed("unknown fate of an experiment")),
    }
}

fn read_rows(input: &mut Reader<'_>, key: &[u8]) -> Result<RowsRecord, DecodeError> {
    let (experiment, table, seq) = read_rows_key(key)?;
    let generation = input.uint()?;
    let received_us = input.int()?;
    let count = if input.version() < 3 { 1 } else { input.count()? };
    let mut hand_ins = Vec::new();
    for _ in 0..count {
        let rows = input.u32()?;
        let mask = if input.flag()? { Some(input.bitmap()?) } else { None };
        hand_ins.push(EncodedRows { rows, mask, encoded: input.shared_bytes()? });
    }
    Ok(RowsRecord { experiment, table, seq, generation, received_us, hand_ins })
}

fn read_intent(input: &mut Reader<'_>, part_id: Uuid) -> Result<Intent, DecodeError> {
    let experiment = input.string()?;
    let table = read_table(input.byte()?)?;
    let source = match input.byte()? {
        1 => Source::Rows { first_seq: input.uint()?, last_seq: input.uint()? },
        2 => Source::Staged,
        3 => {
            let mut uploads = Vec::new();
            for _ in 0..input.count()? {
                uploads.push(Uuid::from_bytes(exact(input.raw(16)?)?));
            }
            Source::Merged { uploads }
        }
        _ => return Err(DecodeError::Malformed("unknown source of a part")),
    };
    Ok(Intent { experiment, table, part_id, source, rows: input.uint()? })
}

fn read_upload(input: &mut Reader<'_>, part_id: Uuid) -> Result<UploadRecord, DecodeError> {
    let experiment = input.string()?;
    let table = read_table(input.byte()?)?;
    let (rows, bytes, received_us) = (input.uint()?, input.uint()?, input.int()?);
    Ok(UploadRecord { experiment, table, part_id, rows, bytes, received_us })
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
    // Version 1 knew no retries.
    let forgiven = if input.version() < 2 { 0 } else { input.u32()? };
    Ok(FailureRecord {
        experiment,
        generation,
        index,
        attempts,
        crashes,
        kind,
        quarantined,
        message,
        worker,
        at_us,
        forgiven,
    })
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

fn read_digests(input: &mut Reader<'_>) -> Result<BTreeMap<String, Digest>, DecodeError> {
    let mut digests = BTreeMap::new();
    for _ in 0..input.count()? {
        let log = input.string()?;
        digests.insert(log, exact::<32>(input.raw(32)?)?.into());
    }
    Ok(digests)
}
